"""An outside system is set up by admins, tested, given to roles and people, switched off; its secret stays in."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cortex.base.errors import NotAllowed, NotFound, ServiceDown, ToolFailed, UserError
from cortex.ports.integrations import IntegrationKind
from cortex.services.integrations.clients import IntegrationClients
from cortex.services.integrations.forms import FormErrors
from cortex.services.integrations.integrations import IntegrationCard, Integrations
from cortex.services.integrations.sealed_forms import SealedForms
from cortex.storage.audit import AuditFilter
from cortex.storage.secrets import AllSecretsRepository
from tests.lamps import LampCortex, LampServer
from tests.living_house import LivingHouse, living_house
from tests.patience import PATIENCE_S

TYPED = {"address": "http://lamps.lan", "token": "lamp-token", "rooms": "hall, attic", "is_strict": "1", "level": "70"}
LAMPS = "lamps"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home", of=LampCortex) as opened:
        yield opened


@pytest.fixture
def server(house: LivingHouse) -> LampServer:
    found: LampServer = vars(house.cortex).setdefault("lamp_server", LampServer())
    return found


@pytest.fixture
def systems(house: LivingHouse, server: LampServer) -> Integrations:
    return house.cortex.integrations


@pytest.fixture
def clients(systems: Integrations) -> IntegrationClients:
    return IntegrationClients(integrations=systems)


async def set_up(systems: Integrations, house: LivingHouse, **other: str) -> None:
    await systems.save(house.admin, LAMPS, "", {**TYPED, **other}, is_new=True)


async def card(systems: Integrations, kind: str = LAMPS) -> IntegrationCard:
    return next(one for one in await systems.cards() if one.kind.name == kind)


async def test_what_is_not_set_up_says_what_it_asks_for(systems: Integrations) -> None:
    empty = await card(systems)
    assert (empty.is_set_up, empty.state) == (False, "Not configured.")
    assert [(one.name, one.input, one.value, one.is_required) for one in empty.fields] == [
        ("address", "text", "", True),
        ("token", "secret", "", True),
        ("pin", "secret", "", False),
        ("level", "number", "50", False),
        ("mode", "choice", "calm", False),
        ("is_strict", "switch", "", False),
        ("rooms", "lines", "", False),
    ]


async def test_what_is_set_up_is_kept_and_its_secret_is_sealed(systems: Integrations, house: LivingHouse) -> None:
    await set_up(systems, house)
    kept = await card(systems)
    assert kept.row
    assert kept.row.settings == {
        "address": "http://lamps.lan",
        "level": 70,
        "mode": "calm",
        "is_strict": True,
        "rooms": ["hall", "attic"],
    }
    token = kept.fields[1]
    assert (token.value, token.is_kept, token.is_required) == ("", True, False)
    rows = [one for one in await house.cortex.runtime.db.repository(AllSecretsRepository).list() if "lamps" in one.name]
    assert [one.name for one in rows] == ["integration:lamps::token"]
    assert b"lamp-token" not in rows[0].ciphertext
    audit = [rows async for rows in house.cortex.audit_log.export(house.admin, AuditFilter())]
    assert "integration.saved" in str(audit)
    assert "lamp-token" not in str(audit)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"address": ""}, {"address": "Address: is needed."}),
        ({"address": "lamps"}, {"address": "Address: must begin with http."}),
        ({"level": "many"}, {"level": "Level: must be a whole number."}),
        ({"level": "101"}, {"level": "Level: must be at most 100."}),
        ({"mode": "wild"}, {"mode": "Mode: must be 'calm' or 'bright'."}),
        ({"token": ""}, {"token": "Token: is needed."}),
    ],
    ids=["nothing", "no address", "no number", "too much", "no choice", "no secret"],
)
async def test_a_slip_is_said_beside_its_field_and_nothing_is_kept(
    systems: Integrations, house: LivingHouse, typed: dict[str, str], words: dict[str, str]
) -> None:
    with pytest.raises(FormErrors) as refused:
        await set_up(systems, house, **typed)
    ((field, sentence),) = words.items()
    assert refused.value.fields[field].startswith(sentence)
    assert (await card(systems)).row is None


async def test_an_empty_secret_is_the_stored_one_but_for_another_place(
    systems: Integrations, house: LivingHouse, clients: IntegrationClients
) -> None:
    await set_up(systems, house)
    await systems.save(house.admin, LAMPS, "", {**TYPED, "token": "", "level": "10"}, is_new=False)
    async with clients.using(LAMPS, user_id=house.member.id) as lamps:
        assert (lamps.form.level, await lamps.count()) == (10, 4)
    with pytest.raises(UserError, match="Enter it again"):
        await systems.save(house.admin, LAMPS, "", {**TYPED, "token": "", "address": "http://evil"}, is_new=False)
    with pytest.raises(UserError, match="Enter it again"):
        await systems.test(house.admin, LAMPS, "", {**TYPED, "token": "", "address": "http://evil"})


@pytest.mark.parametrize("blank", [" ", "\n", "\r\n"], ids=["space", "line", "windows"])
async def test_a_blank_in_place_of_the_secret_takes_it_nowhere(
    systems: Integrations, house: LivingHouse, server: LampServer, blank: str
) -> None:
    """A blank is a secret of its own, or none: in no case the stored one."""
    await set_up(systems, house)
    with pytest.raises(UserError):
        await systems.test(house.admin, LAMPS, "", {**TYPED, "token": blank, "address": "http://evil"})
    assert "lamp-token" not in server.asked


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        (" two words ", " two words "),
        ("a\tb ", "a\tb "),
        ("pasted\n", "pasted"),
        ("pasted\r\n", "pasted"),
        ("x\n\n", "x\n"),
    ],
    ids=["spaces", "tab", "line", "windows line", "two lines"],
)
async def test_a_secret_is_kept_as_it_is_typed(
    systems: Integrations, house: LivingHouse, clients: IntegrationClients, typed: str, kept: str
) -> None:
    await set_up(systems, house, pin=typed)
    async with clients.using(LAMPS, user_id=house.member.id) as lamps:
        assert lamps.form.pin.get_secret_value() == kept


async def test_a_stored_secret_can_be_removed_where_it_is_not_needed(
    systems: Integrations, house: LivingHouse, clients: IntegrationClients
) -> None:
    await set_up(systems, house, pin="1234")
    token, pin = (await card(systems)).fields[1:3]
    assert (token.remove, pin.remove) == ("", "remove_pin")
    gone = {**TYPED, "token": "", "remove_pin": "1"}
    typed = systems.typed_card(await card(systems), gone, {})
    assert typed.fields[2].is_removed, "the tick stays where the form is shown again"
    await systems.save(house.admin, LAMPS, "", gone, is_new=False)
    async with clients.using(LAMPS, user_id=house.member.id) as lamps:
        assert (lamps.form.pin.get_secret_value(), await lamps.count()) == ("", 4)
    assert not (await card(systems)).fields[2].is_kept
    audit = [rows async for rows in house.cortex.audit_log.export(house.admin, AuditFilter())]
    assert '"removed":["pin"]' in str(audit)
    await systems.save(house.admin, LAMPS, "", {**TYPED, "pin": "5678", "remove_pin": "1"}, is_new=False)
    assert (await card(systems)).fields[2].is_kept, "what is typed replaces it"
    with pytest.raises(FormErrors, match="Token: is needed"):
        await systems.save(house.admin, LAMPS, "", {**TYPED, "token": "", "remove_token": "1"}, is_new=False)


async def test_what_is_removed_needs_not_be_entered_again_for_another_place(
    systems: Integrations, house: LivingHouse, clients: IntegrationClients
) -> None:
    await set_up(systems, house, pin="1234")
    moved = {**TYPED, "address": "http://other.lan"}
    with pytest.raises(UserError, match="Enter it again"):
        await systems.save(house.admin, LAMPS, "", moved, is_new=False)
    await systems.save(house.admin, LAMPS, "", {**moved, "remove_pin": "1"}, is_new=False)
    async with clients.using(LAMPS, user_id=house.member.id) as lamps:
        assert lamps.form.pin.get_secret_value() == ""


async def test_a_test_says_what_answers_and_keeps_how_it_went(
    systems: Integrations, house: LivingHouse, server: LampServer
) -> None:
    assert "4 lamps" in await systems.test(house.admin, LAMPS, "", TYPED)
    assert (await card(systems)).row is None
    await set_up(systems, house)
    server.token = "another"
    with pytest.raises(UserError, match="refuses the token"):
        await systems.test(house.admin, LAMPS, "", {**TYPED, "token": ""})
    failing = await card(systems)
    assert (failing.is_failing, "the token" in failing.state) == (True, True)
    assert all(one.is_closed for one in server.opened)


async def test_how_calls_went_is_kept(
    systems: Integrations, house: LivingHouse, clients: IntegrationClients, server: LampServer
) -> None:
    await set_up(systems, house)
    assert "Not used" in (await card(systems)).state
    async with clients.using(LAMPS, user_id=house.member.id) as lamps:
        await lamps.count()
    assert (await card(systems)).state == "Works."
    server.token = "another"
    for _ in range(2):
        with pytest.raises(ServiceDown):
            async with clients.using(LAMPS, user_id=house.member.id) as lamps:
                await lamps.count()
    assert (await card(systems)).is_failing
    server.token = "lamp-token"
    async with clients.using(LAMPS, user_id=house.member.id) as lamps:
        await lamps.count()
    assert not (await card(systems)).is_failing
    assert len(server.opened) == 1


async def test_a_change_opens_another_client_and_closes_the_former(
    systems: Integrations, house: LivingHouse, clients: IntegrationClients, server: LampServer
) -> None:
    await set_up(systems, house)
    async with clients.using(LAMPS, user_id=house.member.id) as first:
        pass
    await systems.save(house.admin, LAMPS, "", {**TYPED, "level": "1"}, is_new=False)
    async with clients.using(LAMPS, user_id=house.member.id) as second:
        assert second.form.level == 1
    assert (first.is_closed, second.is_closed) == (True, False)
    await clients.close()
    assert second.is_closed


async def test_a_client_that_failed_is_opened_anew_when_its_card_is_saved_as_it_was(
    systems: Integrations, house: LivingHouse, clients: IntegrationClients, server: LampServer
) -> None:
    await set_up(systems, house)
    server.token = "another"
    with pytest.raises(ServiceDown):
        async with clients.using(LAMPS, user_id=house.member.id) as first:
            await first.count()
    server.token = "lamp-token"
    await systems.save(house.admin, LAMPS, "", TYPED, is_new=False)
    async with clients.using(LAMPS, user_id=house.member.id) as second:
        await second.count()
    assert (first.is_closed, second.is_closed) == (True, False)
    assert not (await card(systems)).is_failing


async def test_a_client_that_is_closed_while_secrets_are_read_is_not_handed_out(
    systems: Integrations, house: LivingHouse, clients: IntegrationClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    await set_up(systems, house)
    async with clients.using(LAMPS, user_id=house.member.id) as first:
        pass
    await systems.save(house.admin, LAMPS, "", TYPED, is_new=False)
    reads, may_read, kept = asyncio.Event(), asyncio.Event(), SealedForms.kept

    async def held(self: SealedForms, kind: IntegrationKind, name: str) -> dict[str, str]:
        reads.set()
        await may_read.wait()
        return await kept(self, kind, name)

    monkeypatch.setattr(SealedForms, "kept", held)
    slow = asyncio.create_task(clients.peek(LAMPS, user_id=house.member.id))
    await asyncio.wait_for(reads.wait(), PATIENCE_S)
    await systems.switch(house.admin, LAMPS, "", is_on=False)
    with pytest.raises(ToolFailed):
        await clients.peek(LAMPS, user_id=house.member.id)
    assert first.is_closed
    may_read.set()
    assert not (await slow).is_closed


async def test_another_choice_of_who_may_use_it_keeps_the_client(
    systems: Integrations, house: LivingHouse, clients: IntegrationClients, server: LampServer
) -> None:
    await set_up(systems, house)
    async with clients.using(LAMPS, user_id=house.admin.id) as first:
        pass
    await systems.share(house.admin, LAMPS, "", ("admin",), (house.admin.id,))
    async with clients.using(LAMPS, user_id=house.admin.id) as again:
        await again.count()
    assert again is first
    assert not first.is_closed
    assert (await card(systems)).state == "Works."
    with pytest.raises(ToolFailed, match="not available to this account"):
        async with clients.using(LAMPS, user_id=house.member.id):
            pass
    server.token = "another-token"
    await systems.save(house.admin, LAMPS, "", {**TYPED, "token": "another-token"}, is_new=False)
    async with clients.using(LAMPS, user_id=house.admin.id) as third:
        await third.count()
    assert (first.is_closed, third.is_closed) == (True, False)


async def test_a_role_that_is_gone_is_dropped_and_never_opens_it_to_all(
    systems: Integrations, house: LivingHouse
) -> None:
    cortex = house.cortex
    home = cortex.homes.home_of(house.admin.id)
    await home.write("roles/butler.md", "---\ntools: [all]\n---\nServe.\n")
    await set_up(systems, house)
    await systems.share(house.admin, LAMPS, "", ("butler", "admin"), ())
    await home.remove("roles/butler.md")
    await systems.share(house.admin, LAMPS, "", ("butler", "admin"), (house.admin.id,))
    row = (await card(systems)).row
    assert row
    assert row.roles == ("admin",)
    with pytest.raises(UserError, match="These roles no longer exist: butler"):
        await systems.share(house.admin, LAMPS, "", ("butler",), ())
    assert (await card(systems)).row == row


async def test_one_that_is_given_to_people_takes_no_roles(systems: Integrations, house: LivingHouse) -> None:
    await systems.save(house.admin, "personal", "", TYPED, is_new=True)
    await systems.share(house.admin, "personal", "", ("admin",), (house.admin.id,))
    row = (await card(systems, "personal")).row
    assert row
    assert (row.roles, row.people) == ((), (house.admin.id,))


async def test_what_is_removed_and_set_up_again_gets_a_client_of_its_own(
    systems: Integrations, house: LivingHouse, clients: IntegrationClients
) -> None:
    await set_up(systems, house)
    async with clients.using(LAMPS, user_id=house.member.id) as first:
        pass
    await systems.remove(house.admin, LAMPS, "")
    await set_up(systems, house, address="http://other.lan")
    async with clients.using(LAMPS, user_id=house.member.id) as second:
        assert second.form.address == "http://other.lan"
    assert (first.is_closed, second.is_closed) == (True, False)


async def test_a_call_that_was_refused_proves_nothing(
    systems: Integrations, house: LivingHouse, clients: IntegrationClients
) -> None:
    await set_up(systems, house)
    with pytest.raises(ToolFailed):
        async with clients.using(LAMPS, user_id=house.member.id):
            raise ToolFailed("That is refused here, and nobody was asked.")
    assert "Not used" in (await card(systems)).state


async def test_tools_follow_what_is_set_up_and_for_whom(systems: Integrations, house: LivingHouse) -> None:
    tools = house.cortex.tools

    async def has(user: str) -> bool:
        person = {"admin": house.admin, "member": house.member}[user]
        return "ha_get_state" in await tools.permitted(person, "orchestrator")

    unset: dict[str, Any] = {row["name"]: row.get("setup") for row in await tools.listing()}
    assert not await has("admin")
    assert unset["ha_get_state"]["page"] == "/admin/integrations#lamps"
    assert "not set up" in unset["ha_get_state"]["text"]
    await set_up(systems, house)
    assert (await has("admin"), await has("member")) == (True, True)
    await systems.share(house.admin, LAMPS, "", (), (house.admin.id,))
    assert (await has("admin"), await has("member")) == (True, False)
    await systems.share(house.admin, LAMPS, "", ("admin",), ())
    assert (await has("admin"), await has("member")) == (False, False)
    assert "ha_get_state" in await tools.permitted(house.admin, "admin")
    await systems.share(house.admin, LAMPS, "", (), ())
    await systems.switch(house.admin, LAMPS, "", is_on=False)
    assert not await has("admin")
    setups = await tools.setups()
    assert "switched off" in setups["ha_get_state"].text


async def test_a_system_for_a_role_is_closed_to_whoever_may_not_take_it(
    systems: Integrations, house: LivingHouse
) -> None:
    await set_up(systems, house)
    for roles, seen in (("admin",), []), (("admin", "research"), [""]):
        await systems.share(house.admin, LAMPS, "", roles, ())
        assert await systems.names(LAMPS, house.member.id) == seen
        assert await systems.names(LAMPS, house.admin.id) == [""]


async def test_a_members_own_role_opens_no_system_by_its_name(systems: Integrations, house: LivingHouse) -> None:
    cortex = house.cortex
    await set_up(systems, house)
    for user in (house.member, house.admin):
        await cortex.homes.home_of(user.id).write("roles/butler.md", "---\ntools: [all]\n---\nServe.\n")
    assert "ha_get_state" in await cortex.tools.permitted(house.member, "butler")
    await systems.share(house.admin, LAMPS, "", ("butler",), ())
    assert "ha_get_state" not in await cortex.tools.permitted(house.member, "butler")
    assert await systems.names(LAMPS, house.member.id, "butler") == []
    assert "ha_get_state" in await cortex.tools.permitted(house.admin, "butler")
    assert await systems.names(LAMPS, house.admin.id, "butler") == [""]
    await systems.share(house.admin, LAMPS, "", ("admin",), ())
    assert await systems.names(LAMPS, house.member.id, "admin") == []


async def test_another_account_is_refused_by_the_client_too(
    systems: Integrations, house: LivingHouse, clients: IntegrationClients
) -> None:
    with pytest.raises(ToolFailed, match="is not set up"):
        async with clients.using(LAMPS, user_id=house.admin.id):
            pass
    await set_up(systems, house)
    await systems.share(house.admin, LAMPS, "", (), (house.admin.id,))
    with pytest.raises(ToolFailed, match="not available to this account"):
        async with clients.using(LAMPS, user_id=house.member.id):
            pass


async def test_several_of_a_kind_have_names(systems: Integrations, house: LivingHouse) -> None:
    with pytest.raises(UserError, match="Give it a name"):
        await systems.save(house.admin, "many", "", TYPED, is_new=True)
    for name in ("Attic", "hall"):
        await systems.save(house.admin, "many", name, TYPED, is_new=True)
    with pytest.raises(UserError, match="name is already used"):
        await systems.save(house.admin, "many", "ATTIC", TYPED, is_new=True)
    with pytest.raises(UserError, match="letters, digits"):
        await systems.save(house.admin, "many", "a/b", TYPED, is_new=True)
    assert await systems.names("many", house.member.id) == ["attic", "hall"]
    titles = [one.title for one in await systems.cards() if one.kind.name == "many"]
    assert titles == ["Lamp servers: attic", "Lamp servers: hall", "Lamp servers"]


async def test_only_admins_change_anything(systems: Integrations, house: LivingHouse) -> None:
    for act in (
        systems.save(house.member, LAMPS, "", TYPED, is_new=True),
        systems.test(house.member, LAMPS, "", TYPED),
        systems.switch(house.member, LAMPS, "", is_on=False),
        systems.share(house.member, LAMPS, "", (), ()),
        systems.remove(house.member, LAMPS, ""),
    ):
        with pytest.raises(NotAllowed):
            await act
    with pytest.raises(NotFound):
        await systems.remove(house.admin, LAMPS, "")


async def test_what_is_removed_leaves_no_secret(systems: Integrations, house: LivingHouse) -> None:
    await set_up(systems, house)
    await systems.remove(house.admin, LAMPS, "")
    names = [one.name for one in await house.cortex.runtime.db.repository(AllSecretsRepository).list()]
    assert [name for name in names if "lamps" in name] == []
    assert (await card(systems)).row is None


async def test_the_doctor_has_a_line_for_each(systems: Integrations, house: LivingHouse, server: LampServer) -> None:
    async def line() -> tuple[str, str, str]:
        found = await house.cortex.doctor.examine(of=house.admin)
        return next((one.state, one.text, one.mend) for one in found if one.name == "Lamp server")

    assert await line() == ("unset", "Not configured.", "")
    await set_up(systems, house)
    server.token = "another"
    with pytest.raises(UserError):
        await systems.test(house.admin, LAMPS, "", {**TYPED, "token": ""})
    state, text, mend = await line()
    assert (state, "Integrations" in mend) == ("warn", True)
    assert "refuses the token" in text
