"""Every tool that is marked idempotent, killed at each point at which something lasts: one effect, on the same row.

What stands after a call that was killed and run again is what stands after one that lived: each row of each table, the
files, what clients were told, and what the model reads. The tools come from the registry, and so do the arguments of
those that act on nothing that is there before (`SAMPLES` of a tool file). Words in `CASES` mean one thing before the
act and another one behind it.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from cortex.agent.refusals import UNKNOWN
from cortex.base.messages import ToolCall
from cortex.integrations.dav.values import Collection
from cortex.ports.aether import Journals
from cortex.ports.agents import Agents
from cortex.ports.mail import Mailboxes
from cortex.ports.memory import Memory
from cortex.ports.outgoing import Mail
from cortex.ports.schedule import Jobs, Reminders, Timing
from cortex.services.calendars.accounts import book_row, calendar_row
from cortex.storage.accounts import AccountsRepository
from cortex.storage.calendars import CalendarAccountRow, CalendarsRepository, account_key
from cortex.storage.contacts import AddressBooksRepository
from cortex.storage.home import Home
from cortex.storage.mail import MailAccountRow, MailAccountsRepository
from cortex.storage.preferences import PreferencesRepository
from cortex.storage.secrets import SecretsRepository
from cortex.storage.tasks import TasksRepository
from cortex.toolkit.page import mark_of
from tests.dav_servers import event
from tests.plain_clients import Letters
from tests.plain_dav import HOME, PEOPLE
from tests.plain_mail import PlainMail
from tests.services.turns.cut_calls import REGISTRY, TURN, CutCall, Killed, World, world
from tests.sharing import share

DAILY = Timing(kind="cron", expression="0 9 * * *", time_zone="UTC", words="every day at 09:00")

Prepare = Callable[[World], Awaitable[object]]


async def nothing(_: World) -> None:
    """Nothing is there yet."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a tool is called with, and what is there before."""

    arguments: Mapping[str, Any] = field(default_factory=dict)
    before: Prepare = nothing


def opened(made: World, kind: type[Any]) -> Any:
    return made.life().scope.provide(kind, made.user.id)


async def tasks(made: World) -> None:
    for id, title in (("task-1", "milk"), ("task-2", "oat milk")):
        await opened(made, TasksRepository).create(id, title=title, is_tainted=False)


async def tasks_of_bob(made: World) -> None:
    """On a list of Bob's that he shares with the person whose turn it is."""
    bob = await made.db.repository(AccountsRepository).named("bob")
    assert bob is not None
    theirs = made.db.repository(TasksRepository, bob.id)
    for id, title in (("task-1", "milk"), ("task-2", "oat milk")):
        await theirs.create(id, title=title, list_name="shopping", is_tainted=False)
    await share(made.db, bob.id, "shopping", [made.user.id])


async def reminders(made: World) -> None:
    for text in ("dentist", "dentist for the dog"):
        await opened(made, Reminders).add(text, text, DAILY, made.clock() + timedelta(hours=3), False)


async def jobs(made: World) -> None:
    for name in ("news", "news of sport"):
        await opened(made, Jobs).add(name, name, "sum up", DAILY, "orchestrator", is_tainted=False, is_private=False)


async def facts(made: World) -> None:
    for number, text in enumerate(("Ann eats nuts", "Ann eats nuts at night")):
        await opened(made, Memory).add(f"fact-{number}", text, "the user", False)


async def entries(made: World) -> None:
    for number, title in enumerate(("frost", "first frost")):
        await opened(made, Journals).write(f"entry-{number}", "Garden", title, "The dahlias are in.", False)


async def agent(made: World) -> None:
    await opened(made, Agents).start("agent-1", TURN, "compare the offers", "orchestrator", False)


async def passage(made: World) -> None:
    await opened(made, Home).write("files/list.txt", "one\n# end\n")


async def calendar(made: World) -> None:
    """On a calendar server that the person has connected: one of their own, and one to which another invites them."""
    at = ["DTSTART:20261201T090000Z", "DURATION:PT1H"]
    made.dav.hold("dentist", *event("dentist", "Dentist", *at))
    organizer, me = "ORGANIZER:mailto:karim@example.org", "ATTENDEE:mailto:ada@example.org"
    made.dav.hold("budget", *event("budget", "Budget", *at, organizer, me))
    life, now = made.life(), made.clock()
    # Not by the form: what is made of these ids would be another in each house.
    account = CalendarAccountRow(
        id="account-1", owner_id=made.user.id, kind="caldav", title="dav.example.org", url="https://dav.example.org",
        username="ann", addresses="ada@example.org", created_at=now, next_at=now, worked_at=now, failure="", failures=0,
        schedules=True,
    )  # fmt: skip
    async with made.db.transaction(made.user.id) as repository:
        row = calendar_row(account, Collection(url=HOME, name="Home"), "calendar-1")
        await repository(CalendarsRepository).add(account, [row])
        await repository(SecretsRepository).put(account_key(account.id), life.vault.seal('"tulip-quarry"'))
    await life.calendar_sync.sync(made.user.id, account.id)


async def contacts(made: World) -> None:
    """In the address book of the same account."""
    await calendar(made)
    made.dav.hold_card("mia", "FN:Mia Keller", "N:Keller;Mia;;;", "TEL:0171")
    life, owner = made.life(), made.user.id
    row = book_row(
        await made.db.repository(CalendarsRepository, owner).account("account-1"),
        Collection(url=PEOPLE, name="People", is_contacts=True),
        "book-1",
    )
    await made.db.repository(AddressBooksRepository, owner).add([row])
    await life.calendar_sync.sync(owner, "account-1")


async def mailbox(made: World) -> None:
    """Two mails in a mailbox that the person has connected, one with a file."""
    held = made.clients[Mailboxes]
    assert isinstance(held, PlainMail)
    held.hold("roof", "The roof", files={"plan.pdf": b"%PDF-1"})
    held.hold("offer", "The offer")
    now = made.clock()
    account = MailAccountRow(
        id="mailbox-1", owner_id=made.user.id, address="ann@example.org", host="imap.example.org", port=993,
        security="tls", username="ann", way="password", created_at=now, next_at=now, worked_at=now, failure="",
        failures=0,
    )  # fmt: skip
    await made.db.repository(MailAccountsRepository, made.user.id).add(account, [])


def page(path: str) -> Prepare:
    """A page with words from outside."""

    async def prepare(made: World) -> None:
        await opened(made, Home).write(path, "before\n")
        await opened(made, PreferencesRepository).set(mark_of(path), True)

    return prepare


MARKED = sorted(tool.name for tool in REGISTRY().tools.values() if tool.idempotent and tool.effect == "write")
SAMPLES = {
    name: Case(arguments=given)
    for category in REGISTRY().categories.values()
    for name, given in category.samples.items()
    if name in MARKED
}
CASES: dict[str, Case] = SAMPLES | {
    "ae_journal_entry_create": Case(arguments={"text": "Snow.", "journal": "garden"}, before=entries),
    "ae_journal_entry_disable": Case(arguments={"entry": "frost"}, before=entries),
    "ae_journal_entry_update": Case(arguments={"entry": "frost", "title": "ice", "text": "Ice."}, before=entries),
    "agent_cancel": Case(arguments={"agent": "compare"}, before=agent),
    "agent_notes_clear": Case(before=page("agent_notes/admin.md")),
    "agent_notes_write": Case(arguments={"text": "likes coffee"}, before=page("agent_notes/admin.md")),
    "calendar_add": Case(arguments={"title": "vet", "when": "2026-12-02 09:00"}, before=calendar),
    "calendar_answer": Case(arguments={"appointment": "budget", "answer": "accepted"}, before=calendar),
    "calendar_change": Case(arguments={"appointment": "dentist", "when": "11:00"}, before=calendar),
    "calendar_remove": Case(arguments={"appointment": "dentist"}, before=calendar),
    "contact_add": Case(arguments={"name": "Ola Berg", "phone": "0160"}, before=contacts),
    "contact_change": Case(arguments={"contact": "mia", "add": "0172"}, before=contacts),
    "contact_remove": Case(arguments={"contact": "mia"}, before=contacts),
    "cron_remove": Case(arguments={"job": "news"}, before=jobs),
    "cron_toggle": Case(arguments={"job": "news", "enabled": False}, before=jobs),
    "file_write": Case(
        arguments={"path": "list.txt", "text": "two\n# end", "replace": "# end"},
        before=passage,
    ),
    "mail_draft": Case(arguments={"text": "Fine.", "answers": "roof"}, before=mailbox),
    "mail_flag": Case(arguments={"mails": ["roof", "offer"], "mark": "read"}, before=mailbox),
    "mail_move": Case(arguments={"mails": ["roof", "offer"], "folder": "archive"}, before=mailbox),
    "mail_save": Case(arguments={"mail": "roof"}, before=mailbox),
    "memory_add": Case(arguments={"fact": "Ann eats no fish."}, before=facts),
    "memory_forget": Case(arguments={"fact": "Ann eats nuts"}, before=facts),
    "reminders_clear": Case(before=reminders),
    "reminders_remove": Case(arguments={"reminder": "dentist"}, before=reminders),
    "scratch_clear": Case(before=page("scratchpad.md")),
    "scratch_write": Case(arguments={"text": "mine"}, before=page("scratchpad.md")),
    "task_complete": Case(arguments={"task": "milk"}, before=tasks),
    "task_update": Case(arguments={"task": "milk", "title": "bread", "due": "2026-12-01"}, before=tasks),
}
SHARED = {
    "task_complete": Case(arguments={"task": "milk"}, before=tasks_of_bob),
    "task_create": Case(arguments={"title": "milk", "list_name": "shopping"}, before=tasks_of_bob),
    "task_update": Case(arguments={"task": "milk", "title": "bread", "list_name": "own"}, before=tasks_of_bob),
}


async def ended(folder: Path, name: str, dies_at: int, case: Case | None = None) -> tuple[list[str], str, int]:
    """What stands after a call that died there (0: nowhere) and was run again, what it said, and its points."""
    async with world(folder / f"{name}-{dies_at}") as made:
        case = case or CASES[name]
        await case.before(made)
        arguments = json.dumps(case.arguments)
        call = CutCall(world=made, call=ToolCall(id="c1", name=name, arguments=arguments))
        if dies_at:
            with suppress(Killed):
                await call.live(dies_at)
        performed = await call.live()
        assert not performed.result.is_error, performed.result.text
        return await made.stands(), performed.result.text, call.points


def test_there_are_arguments_for_each_tool_that_is_marked() -> None:
    assert sorted(CASES) == MARKED


@pytest.mark.parametrize("name", MARKED)
async def test_a_call_killed_ahead_of_its_record_has_one_effect(tmp_path: Path, name: str) -> None:
    """Killed with its effect made, and at one point more, another one for each tool."""
    await has_one_effect(tmp_path, name, lambda points: {points, crc32(name.encode()) % points + 1})


@pytest.mark.full
@pytest.mark.parametrize("name", MARKED)
async def test_a_call_killed_at_any_point_has_one_effect(tmp_path: Path, name: str) -> None:
    # Behind the last point its life ends well; the engine did not keep that.
    await has_one_effect(tmp_path, name, lambda points: set(range(1, points + 2)))


@pytest.mark.parametrize("name", SHARED)
async def test_a_call_on_a_shared_list_that_is_killed_at_any_point_has_one_effect(tmp_path: Path, name: str) -> None:
    await has_one_effect(tmp_path, name, lambda points: set(range(1, points + 2)), SHARED[name])


async def has_one_effect(folder: Path, name: str, chosen: Callable[[int], set[int]], case: Case | None = None) -> None:
    stands, text, points = await ended(folder, name, 0, case)
    for dies_at in sorted(chosen(points)):
        again, said, _ = await ended(folder, name, dies_at, case)
        other = sorted(set(again) ^ set(stands))
        assert (said, other) == (text, []), f"killed at {dies_at} of {points}"
        assert len(again) == len(stands)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("reminders_add", {"text": "tea", "when": "2026-11-20 09:10"}),
        ("cron_add", {"prompt": "sum up the news", "when": "2026-11-20 09:10"}),
    ],
    ids=["reminders_add", "cron_add"],
)
async def test_a_time_that_passed_while_the_process_was_down_is_the_one_that_was_meant(
    tmp_path: Path, name: str, arguments: dict[str, str]
) -> None:
    async with world(tmp_path / "home") as made:
        call = CutCall(world=made, call=ToolCall(id="c1", name=name, arguments=json.dumps(arguments)))
        with pytest.raises(Killed):
            await call.live(await points_of(tmp_path, name, arguments))
        made.clock.forward(minutes=30)
        performed = await call.live()
    assert not performed.result.is_error, performed.result.text
    assert "2026-11-20" in performed.result.text
    assert "09:10" in performed.result.text


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("email_send", {"to": "bo@example.org", "subject": "hello", "text": "hello"}),
        ("nc_talk_send", {"to": "family", "text": "hello"}),
    ],
    ids=["email_send", "nc_talk_send"],
)
async def test_words_to_others_that_may_have_left_are_not_sent_again(
    tmp_path: Path, name: str, arguments: dict[str, str]
) -> None:
    points = await points_of(tmp_path, name, arguments)
    for dies_at in (points - 1, points):  # behind the sending, and ahead of its record
        async with world(tmp_path / str(dies_at)) as made:
            call = CutCall(world=made, call=ToolCall(id="c1", name=name, arguments=json.dumps(arguments)))
            with pytest.raises(Killed):
                await call.live(dies_at)
            performed = await call.live()
            assert (made.clients[Mail], performed.result.text) == (Letters(["hello"]), UNKNOWN)


async def points_of(folder: Path, name: str, arguments: dict[str, str]) -> int:
    """How many points a whole life of this call has."""
    async with world(folder / "whole") as made:
        call = CutCall(world=made, call=ToolCall(id="c1", name=name, arguments=json.dumps(arguments)))
        await call.live()
        return call.points
