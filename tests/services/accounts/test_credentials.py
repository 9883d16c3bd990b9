"""After a scare all that lets somebody in as a person ends, but what they choose; and tokens end by themselves."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from cortex.app import Cortex
from cortex.base.errors import CortexError, NotAllowed, UserError
from cortex.base.user import User
from cortex.services.api.requests import read_request
from cortex.services.health.housekeeping import tell_of_token_ends
from cortex.services.jobs.forms import JobForm
from cortex.services.jobs.hook_requests import HookRequest
from cortex.storage.accounts import LoginsRepository
from cortex.storage.approvals import GrantsRepository
from cortex.storage.devices import ActionLinksRepository, DevicesRepository
from cortex.storage.notices import NoticesRepository, NoticeValues
from cortex.storage.slots import SlotsRepository
from tests.databases import copy_home, house_settings
from tests.living_house import PASSWORD, living_house, peopled_home
from tests.scripted_server import Fault, ScriptedServer
from tests.still_clock import StillClock

OTHER = "harbour violin moss 1432"
ALL = {"login", "token", "device", "hook", "grant", "button"}


class Doors:
    """All that opens a door for Bob, and which of it still does."""

    def __init__(self, cortex: Cortex, bob: User) -> None:
        self.cortex, self.bob, self.db = cortex, bob, cortex.runtime.db
        self.here = self.there = self.token = self.address = self.slot = self.job = ""

    async def open(self) -> None:
        later = self.cortex.runtime.clock() + timedelta(hours=1)
        login = await self.db.repository(LoginsRepository, self.bob.id).add("here", "here", "", "Firefox", later)
        await self.db.repository(LoginsRepository, self.bob.id).add("there", "there", "", "Safari", later)
        self.here, self.there = "here", "there"
        self.token = await self.cortex.api_tokens.make(self.bob, {"name": "Editor", "role": "orchestrator"})
        await self.db.repository(DevicesRepository, self.bob.id).add(
            endpoint="https://push.example.org/x",
            p256dh="k",
            auth="a",
            signed_for="s",
            login_id=login.id,
            name="Phone",
            agent="",
        )
        self.job = (await self.cortex.jobs.add(self.bob, JobForm(name="Bell", prompt="x", when="only when called"))).id
        await self.cortex.hooks.open(self.bob, self.job, needs_secret=False)
        hook = await self.cortex.hooks.get(self.bob, self.job)
        assert hook is not None
        self.address, self.slot = hook.address, await self.cortex.hooks.receive(hook.address, ring())
        await self.db.repository(GrantsRepository, self.bob.id).add("shell_exec", "df #1", None, later)
        values = NoticeValues(kind="approval", title="x", text="x", is_tainted=False)
        await self.db.repository(NoticesRepository, self.bob.id).add("n", values, ())
        await self.db.repository(ActionLinksRepository, self.bob.id).add("press", "n", "approve", later)

    async def still_open(self) -> set[str]:
        ways: dict[str, Callable[[], Awaitable[object]]] = {
            "login": lambda: self.cortex.accounts.who(self.there),
            "token": lambda: self.cortex.api_tokens.who(self.token),
            "device": lambda: self.db.repository(DevicesRepository, self.bob.id).list(),
            "hook": lambda: self.cortex.hooks.receive(self.address, ring()),
            "grant": lambda: self.cortex.approvals.grants(self.bob),
            "button": lambda: self.db.repository(ActionLinksRepository, self.bob.id).get("press"),
        }
        found = set()
        for name, way in ways.items():
            with suppress(CortexError):
                if await way():
                    found.add(name)
        return found


def ring() -> HookRequest:
    return HookRequest(headers={}, body=b"{}")


@pytest.fixture
async def cortex(tmp_path: Path, clock: StillClock) -> AsyncIterator[Cortex]:
    """At rest: what came by a job's address waits."""
    copy_home(await peopled_home(), tmp_path / "home")
    async with Cortex.at_rest(house_settings(home=tmp_path / "home"), clock=clock) as opened:
        yield opened


@pytest.fixture
async def doors(cortex: Cortex) -> Doors:
    made = Doors(cortex, await cortex.accounts.named("bob"))
    await made.open()
    return made


async def by_password(doors: Doors) -> None:
    doors.here = await doors.cortex.accounts.change_password(doors.here, PASSWORD, OTHER)


async def by_one_press(doors: Doors) -> None:
    doors.here = await doors.cortex.accounts.sign_out_everywhere(doors.here)


async def by_link(doors: Doors) -> None:
    await doors.cortex.accounts.redeem_setup(await doors.cortex.accounts.reset("bob"), "", OTHER)


async def by_disabling(doors: Doors) -> None:
    await doors.cortex.accounts.set_active("bob", False)


async def by_disabling_for_a_while(doors: Doors) -> None:
    await doors.cortex.accounts.set_active("bob", False)
    await doors.cortex.accounts.set_active("bob", True)


@pytest.mark.parametrize("way", [by_password, by_one_press, by_link, by_disabling, by_disabling_for_a_while])
async def test_everything_that_opens_a_door_ends(doors: Doors, way: Callable[[Doors], Awaitable[None]]) -> None:
    assert await doors.still_open() == ALL
    link = await doors.cortex.accounts.reset("bob")
    await way(doors)
    assert await doors.still_open() == set()
    assert await doors.cortex.accounts.who("here") is None, "a copy of the cookie lets nobody in"
    is_here = await doors.cortex.accounts.who(doors.here) is not None
    assert is_here == (way in (by_password, by_one_press)), "whoever ends it stays logged in"
    slot = await doors.db.repository(SlotsRepository, doors.bob.id).get(doors.slot)
    assert slot.state == "stopped", "what came by the address and waited does not begin"
    with pytest.raises(NotAllowed):
        await doors.cortex.accounts.redeem_setup(link, "", "another long password 77")


async def test_what_was_unticked_stays(doors: Doors) -> None:
    keys = {one.kind: one.key for one in await doors.cortex.accounts.credentials(doors.bob)}
    assert set(keys) == {"login", "token", "device", "hook", "grant"}
    await doors.cortex.accounts.change_password(
        doors.here, PASSWORD, OTHER, keep={keys["token"], keys["hook"], "login"}
    )
    assert await doors.still_open() == {"token", "hook"}


async def test_a_link_keeps_whole_kinds_but_no_login(doors: Doors) -> None:
    link = await doors.cortex.accounts.reset("bob")
    await doors.cortex.accounts.redeem_setup(link, "", OTHER, keep={"device", "grant", "login", "login:there"})
    assert await doors.still_open() == {"device", "grant"}


async def test_nothing_of_anybody_else_ends(doors: Doors) -> None:
    ada = Doors(doors.cortex, await doors.cortex.accounts.named("ada"))
    secret = await doors.cortex.api_tokens.make(ada.bob, {"name": "Hers", "role": "orchestrator"})
    await by_password(doors)
    assert (await doors.cortex.api_tokens.who(secret)).user == ada.bob


async def test_a_wrong_password_ends_nothing(doors: Doors) -> None:
    with pytest.raises(NotAllowed):
        await doors.cortex.accounts.change_password(doors.here, "wrong", OTHER)
    with pytest.raises(UserError):
        await doors.cortex.accounts.change_password(doors.here, PASSWORD, "short")
    assert await doors.still_open() == ALL


async def test_what_an_ended_token_asked_for_ends_too(tmp_path: Path, scripted: ScriptedServer) -> None:
    scripted.fail(Fault(kind="hang"))
    async with living_house(tmp_path / "home") as house:
        await house.connect(scripted)
        tokens = house.cortex.api_tokens
        who = await tokens.who(await tokens.make(house.admin, {"name": "p", "role": "orchestrator"}))
        body = b'{"messages": [{"role": "user", "content": "hello"}]}'
        asked = await house.cortex.program_chats.ask(who, read_request(body))
        login = await house.cortex.accounts.login("ada", PASSWORD, "", "")
        await house.cortex.accounts.sign_out_everywhere(login)
        end = await house.until(asked.turn.conversation_id, "turn.end", turn=asked.turn.id)
        assert end.payload["state"] == "stopped"


# --- tokens end by themselves


async def test_a_token_ends_after_ninety_days_unless_told_otherwise(cortex: Cortex, clock: StillClock) -> None:
    ada, tokens = await cortex.accounts.named("ada"), cortex.api_tokens
    form = {"name": "p", "role": "orchestrator"}
    usual = await tokens.make(ada, {**form, "days": ""})
    short = await tokens.make(ada, {**form, "days": "3"})
    never = await tokens.make(ada, {**form, "never": "1"})
    clock.forward(days=3)
    with pytest.raises(NotAllowed, match=r"This token expired on \d{4}-\d\d-\d\d. Create a new one"):
        await tokens.who(short)
    clock.forward(days=86)
    assert await tokens.who(usual)
    clock.forward(days=1)
    with pytest.raises(NotAllowed, match="expired"):
        await tokens.who(usual)
    assert await tokens.who(never)
    with pytest.raises(NotAllowed, match="unknown or was revoked"):
        await tokens.who("cx-wrong")


async def test_its_person_is_told_once_ahead_of_it(cortex: Cortex, clock: StillClock) -> None:
    ada, tokens = await cortex.accounts.named("ada"), cortex.api_tokens
    db, notices = cortex.runtime.db, cortex.notices
    await tokens.make(ada, {"name": "Editor", "role": "orchestrator"})
    await tokens.make(ada, {"name": "Brief", "role": "orchestrator", "days": "5"})
    await tokens.make(ada, {"name": "Old", "role": "orchestrator", "never": "1"})

    async def told() -> list[str]:
        await asyncio.gather(tell_of_token_ends(db, notices), tell_of_token_ends(db, notices))  # two processes
        return [one.row.title for one in (await cortex.notices.page(ada.id)).notices]

    clock.forward(days=75)
    assert await told() == []
    clock.forward(days=2)
    (title,) = await told()
    assert "Editor" in title
    clock.forward(days=1)
    assert await told() == [title]
    (editor,) = [one.token for one in await tokens.list(ada) if one.token.name == "Editor"]
    until = await tokens.extend(ada, editor.id)
    assert until == clock() + timedelta(days=90)
    clock.forward(days=77)
    assert len(await told()) == 2, "told again of the later end"
    clock.forward(days=14)
    with pytest.raises(UserError, match="no end to move"):
        await tokens.extend(ada, editor.id)
