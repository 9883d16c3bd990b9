"""An admin's model in other people's hands: whose key pays, what shows, and that it is gone when it is taken back."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from cortex.base.errors import Conflict, NotAllowed, NotFound, UserError
from cortex.base.user import User
from cortex.services.models.files import FILE, RegistryFile
from cortex.services.models.models import Models
from cortex.services.models.sharing import PersonShare, ShareForm
from cortex.services.models.store import RegistryStore
from cortex.storage.audit import AuditRepository
from cortex.storage.round_rows import RoundRow
from cortex.storage.rounds import RoundsRepository
from tests.living_house import PASSWORD, LivingHouse
from tests.patience import PATIENCE_S
from tests.scripted_server import Fault, Say, ScriptedServer, Use, rule

EVERYBODY = ShareForm(audience="everybody")
GIVEN = "Big (from ada)"
WRITE = Use("task_create", {"title": "milk"})
MILK = "add milk to my shopping list"


def form(server: ScriptedServer, **more: Any) -> dict[str, Any]:
    return {
        "name": "Big",
        "provider": "openai",
        "model": "hidden-id",
        "base_url": server.base_url,
        "api_key": server.api_key,
        **more,
    }


async def share(house: LivingHouse, server: ScriptedServer, wanted: ShareForm = EVERYBODY, **more: Any) -> None:
    await house.cortex.model_sharing.save(house.admin, form(server, **more), "", wanted)


async def change(house: LivingHouse, server: ScriptedServer, wanted: ShareForm, **more: Any) -> None:
    await house.cortex.model_sharing.save(house.admin, form(server, api_key="", **more), "Big", wanted)


async def names(house: LivingHouse, user: User) -> list[str]:
    return [entry.name for entry in (await house.cortex.models.registry(user)).entries]


async def said(house: LivingHouse, cid: str) -> str:
    text: str = (await house.events(cid, "part.end", user=house.member))[-1].payload["text"]
    return text


async def notices(house: LivingHouse, cid: str) -> list[str]:
    return [event.payload["text"] for event in await house.events(cid, "notice", user=house.member)]


async def rounds(house: LivingHouse, turn_id: str) -> list[RoundRow]:
    return list(await house.cortex.runtime.db.repository(RoundsRepository, house.member.id).of_turn(turn_id))


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - the server tells nobody of its requests
            await asyncio.sleep(0.01)


class CutOff(Models):
    """The registry in a process that ends before a model is taken out of it."""

    def __init__(self, models: Models) -> None:
        self.__dict__ = vars(models)

    async def remove(self, user: User, name: str) -> None:
        raise SystemExit


async def test_a_removal_that_is_cut_off_leaves_no_share_behind(house: LivingHouse, scripted: ScriptedServer) -> None:
    await share(house, scripted)
    sharing = house.cortex.model_sharing
    with pytest.raises(SystemExit):
        await replace(sharing, models=CutOff(sharing.models)).remove(house.admin, "Big")
    assert await sharing.words(house.admin) == {}
    assert GIVEN not in await names(house, house.member)
    assert "Big" in await names(house, house.admin)
    await sharing.remove(house.admin, "Big")
    assert "Big" not in await names(house, house.admin)


class OvertakenStore(RegistryStore):
    """The files of people, one of which somebody changes while a model is taken out of it, or whose disk is full."""

    def __init__(self, store: RegistryStore, failure: Exception) -> None:
        self.__dict__ = {**vars(store), "failure": failure}

    async def write(self, user_id: str, before: RegistryFile, after: RegistryFile, version: str) -> None:
        raise self.__dict__["failure"]


class Overtaken(Models):
    """The registry over such files."""

    def __init__(self, models: Models, failure: Exception) -> None:
        self.__dict__ = {**vars(models), "store": OvertakenStore(models.store, failure)}


@pytest.mark.parametrize("failure", [Conflict("It was changed."), OSError("no space left")], ids=["changed", "full"])
async def test_a_removal_that_fails_leaves_the_model_shared_as_it_was(
    house: LivingHouse, scripted: ScriptedServer, failure: Exception
) -> None:
    await share(house, scripted, replace(EVERYBODY, limit_tokens="5000"))
    sharing = house.cortex.model_sharing
    before = await sharing.words(house.admin)
    with pytest.raises(type(failure)):
        await replace(sharing, models=Overtaken(sharing.models, failure)).remove(house.admin, "Big")
    assert await sharing.words(house.admin) == before != {}
    assert await names(house, house.member) == [GIVEN]


async def test_a_model_in_a_file_that_cannot_be_read_is_not_removed_and_stays_shared(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    await share(house, scripted)
    sharing, home = house.cortex.model_sharing, house.cortex.homes.home_of(house.admin.id)
    good = (await home.read(FILE)).text
    await home.write(FILE, "{")
    with pytest.raises(UserError):
        await sharing.remove(house.admin, "Big")
    await home.write(FILE, good)
    assert await names(house, house.member) == [GIVEN]


async def test_a_member_chats_with_it_at_once_and_sees_neither_key_nor_address(
    house: LivingHouse, scripted: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    scripted.api_key = "sk-adas-own-key-4711"
    await share(house, scripted)
    cid = await house.conversation(house.member)
    turn = await house.say(cid, "hello", user=house.member)
    assert (await said(house, cid)).startswith("You said: hello")
    (row,) = await rounds(house, turn)
    assert (row.model, row.paid_by) == (GIVEN, house.admin.id)
    trace = await house.cortex.traces.trace(house.member, turn)
    assert trace.payers == {house.admin.id: "ada"}
    told = trace.to_json() + repr(await house.cortex.models.registry(house.member)) + caplog.text
    told += json.dumps([event.payload for event in await house.events(cid, user=house.member)])
    assert json.loads(trace.to_json())["rounds"][0]["paid_by"] == "ada"
    assert scripted.api_key not in told
    shown = trace.to_json()
    assert all(hidden not in shown for hidden in ("hidden-id", str(scripted.port)))
    (taken,) = await house.cortex.model_sharing.borrowed(house.admin)
    assert (taken.person, taken.taken.model, taken.taken.rounds) == ("bob", GIVEN, 1)
    assert taken.taken.tokens > 0
    assert await house.cortex.model_sharing.borrowed(house.member) == []


async def test_only_whom_it_is_given_to_has_it_and_only_an_admin_gives(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    await house.cortex.accounts.add_user("cleo", "member", PASSWORD)
    cleo = await house.cortex.accounts.named("cleo")
    chosen = PersonShare(id=house.member.id, is_chosen=True)
    await share(house, scripted, ShareForm(audience="people", people=(chosen, PersonShare(id=cleo.id))))
    assert await names(house, house.member) == [GIVEN]
    assert await names(house, cleo) == []
    assert await house.cortex.model_sharing.for_newcomers() == {}
    with pytest.raises(NotFound):
        await house.cortex.models.entry(cleo, GIVEN)
    with pytest.raises(NotAllowed):
        await house.cortex.model_sharing.save(house.member, form(scripted, name="own"), "", EVERYBODY)
    with pytest.raises(NotFound):
        await house.cortex.models.test_saved(house.member, GIVEN)
    with pytest.raises(NotFound):
        await house.cortex.models.save(house.member, form(scripted), GIVEN)
    with pytest.raises(NotFound):
        await house.cortex.model_sharing.remove(house.member, GIVEN)
    actions = [row.action for row in await house.cortex.runtime.db.repository(AuditRepository).list()]
    assert actions.count("model.shared") == 1


async def test_an_address_inside_is_reached_through_the_shared_model_alone(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    await share(house, scripted)
    await house.cortex.models.save(house.member, form(scripted, name="own"))
    cid = await house.conversation(house.member)
    await house.say(cid, "hello", user=house.member)
    (usage,) = await house.events(cid, "usage", user=house.member)
    assert usage.payload["model"] == GIVEN, "their own model may not reach this house's network"
    assert any("own:" in text for text in await notices(house, cid))
    await house.cortex.models.set_chain(house.member, [GIVEN])
    assert (await house.cortex.models.registry(house.member)).default == (GIVEN,)


async def test_it_is_gone_at_the_next_message_and_says_so_once(house: LivingHouse, scripted: ScriptedServer) -> None:
    await share(house, scripted)
    cid = await house.conversation(house.member)
    await house.say(cid, "hello", user=house.member)
    await change(house, scripted, ShareForm())
    await house.say(cid, "hello again", user=house.member)
    assert await names(house, house.member) == []
    (told,) = await notices(house, cid)
    assert (GIVEN in told, "no other model" in told) == (True, True)
    assert len(scripted.log) == 1
    await house.say(cid, "and again", user=house.member)
    assert len(await notices(house, cid)) == 1


async def test_a_running_turn_ends_in_a_sentence_when_its_model_is_taken_back(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    await share(house, scripted)
    scripted.rules = [rule("milk", Say("I put it down.", (WRITE,)), "Done.")]
    scripted.fail(Fault(kind="pause"))
    cid = await house.conversation(house.member)
    turn = await house.cortex.chat.send_message(house.member, cid, MILK, mode="all")
    await until(lambda: len(scripted.log) == 1)
    await change(house, scripted, ShareForm())
    scripted.go_on(99)
    end = await house.until(cid, "turn.end", user=house.member, turn=turn)
    assert end.payload["state"] == "done"
    assert "not shared" in await said(house, cid)
    assert len(scripted.log) == 1


async def test_a_running_turn_goes_on_with_the_next_model(house: LivingHouse, scripted: ScriptedServer) -> None:
    await share(house, scripted)
    await share(house, scripted, name="Small")
    scripted.rules = [rule("milk", Say("I put it down.", (WRITE,)), "Done.")]
    scripted.fail(Fault(kind="pause"))
    cid = await house.conversation(house.member)
    turn = await house.cortex.chat.send_message(house.member, cid, MILK, mode="all")
    await until(lambda: len(scripted.log) == 1)
    await house.cortex.model_sharing.remove(house.admin, "Big")
    scripted.go_on(99)
    await house.until(cid, "turn.end", user=house.member, turn=turn)
    assert await said(house, cid) == "Done."
    assert any("Small (from ada)" in notice for notice in await notices(house, cid))
    assert [row.model for row in await rounds(house, turn)] == [GIVEN, "Small (from ada)"]


async def test_another_process_takes_it_back_from_a_running_turn_too(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    await share(house, scripted)
    scripted.rules = [rule("milk", Say("I put it down.", (WRITE,)), "Done.")]
    scripted.fail(Fault(kind="pause"))
    cid = await house.conversation(house.member)
    turn = await house.cortex.chat.send_message(house.member, cid, MILK, mode="all")
    await until(lambda: len(scripted.log) == 1)
    await house.cortex.accounts.add_user("dora", "admin", PASSWORD)
    await house.cortex.accounts.set_rank("ada", "member")  # touches no model: the database alone says it
    scripted.go_on(99)
    await house.until(cid, "turn.end", user=house.member, turn=turn)
    assert "not shared" in await said(house, cid)
    assert await names(house, house.member) == []


async def test_each_ones_day_ends_at_their_limit_and_the_next_model_goes_on(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    await share(house, scripted, ShareForm(audience="everybody", limit_tokens="100"))
    cid = await house.conversation(house.member)
    await house.say(cid, "hello", user=house.member)
    turn = await house.say(cid, "hello again", user=house.member)
    assert "used up" in await said(house, cid)
    assert [row.state for row in await rounds(house, turn)] == ["refused"]
    assert len(scripted.log) == 1
    (standing,) = await house.cortex.budget_admin.standings([house.member])
    assert (standing.subject, standing.state, standing.who) == (GIVEN, "reached", "bob")
    await share(house, scripted, name="Small")
    turn = await house.say(cid, "once more", user=house.member)
    assert [row.model for row in await rounds(house, turn)] == ["Small (from ada)"]
    assert "switching to Small" in (await notices(house, cid))[-1]
    own = await house.conversation()
    await house.say(own, "the admin's own day has no such limit")
    assert len(await house.events(own, "usage")) == 1


async def test_what_is_used_up_is_no_way_out_for_a_chain_either(house: LivingHouse, scripted: ScriptedServer) -> None:
    await share(house, scripted, ShareForm(audience="everybody", limit_tokens="100"))
    cid = await house.conversation(house.member)
    await house.say(cid, "hello", user=house.member)
    await house.cortex.models.save(house.member, form(scripted, name="own"))  # which cannot be reached
    await house.say(cid, "hello again", user=house.member)
    assert len(scripted.log) == 1


async def test_a_person_may_have_a_limit_of_their_own(house: LivingHouse, scripted: ScriptedServer) -> None:
    apart = PersonShare(id=house.member.id, limit_tokens="5 000")
    wanted = ShareForm(audience="everybody", limit_usd="1.00", people=(apart,))
    await share(house, scripted, wanted)
    assert await house.cortex.model_sharing.limits(house.member) == {GIVEN: "5,000 tokens a day"}
    assert await house.cortex.model_sharing.for_newcomers() == {GIVEN: "$1.00 a day"}
    shown = await house.cortex.model_sharing.form(house.admin, "Big")
    assert (shown.audience, shown.limit_usd, shown.limit_tokens) == ("everybody", "1.00", "")
    assert [(one.name, one.limit_tokens, one.limit_usd) for one in shown.people] == [("bob", "5000", "")]


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (ShareForm(audience="people"), "share_people"),
        (ShareForm(audience="all"), "share"),
        (ShareForm(audience="everybody", limit_tokens="many"), "share_tokens"),
        (ShareForm(audience="everybody", limit_usd="-1"), "share_usd"),
    ],
    ids=["nobody chosen", "unknown audience", "tokens", "dollars"],
)
async def test_a_slip_saves_nothing(
    house: LivingHouse, scripted: ScriptedServer, wanted: ShareForm, field: str
) -> None:
    with pytest.raises(UserError) as refused:
        await share(house, scripted, wanted)
    assert refused.value.field == field
    assert await names(house, house.admin) == []


async def test_another_name_takes_the_gift_along_and_the_old_one_gives_nothing(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    await share(house, scripted)
    await change(house, scripted, EVERYBODY, name="Bigger")
    assert await names(house, house.member) == ["Bigger (from ada)"]
    await house.cortex.models.save(house.admin, form(scripted))  # as if the registry file had been edited
    assert await names(house, house.member) == ["Bigger (from ada)"]


async def test_a_failure_says_whom_to_ask_and_nothing_of_the_endpoint(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    await share(house, scripted, api_key="wrong-key")
    cid = await house.conversation(house.member)
    turn = await house.say(cid, "hello", user=house.member)
    (end,) = await house.events(cid, "turn.end", user=house.member)
    told = json.dumps([event.payload for event in await house.events(cid, user=house.member)])
    assert (end.payload["state"], end.payload["turn"]) == ("failed", turn)
    assert ("was refused" in told, "Ask ada" in told) == (True, True)
    assert all(hidden not in told for hidden in ("hidden-id", str(scripted.port), "wrong-key", "Models page"))


async def test_a_slip_in_the_admins_file_leaves_others_their_own(house: LivingHouse, scripted: ScriptedServer) -> None:
    await share(house, scripted)
    file = house.cortex.settings.home / house.admin.id / "model_registry.json"
    file.write_text("{", encoding="utf-8")
    assert await names(house, house.member) == []
    assert await house.cortex.models.fault(house.member) is None


async def test_the_doctor_counts_what_is_shared_as_a_model(house: LivingHouse, scripted: ScriptedServer) -> None:
    async def line() -> tuple[str, str]:
        found = await house.cortex.doctor.examine(of=house.member)
        return next((one.state, one.text) for one in found if one.name == "models of bob")

    assert (await line())[0] == "warn"
    await share(house, scripted)
    assert await line() == ("good", f"{GIVEN}.")
