"""A turn's trace: what went out as it went out, secrets blotted, others' only on record; and its replay."""

import json

import pytest

from cortex.base.errors import NotFound, UserError
from cortex.storage.audit import AuditRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.plans import PlansRepository
from tests.living_house import LivingHouse
from tests.scripted_server import ScriptedServer, Use, rule

MILK = rule("milk", Use("task_create", {"title": "milk test-key"}), "Added.")
ASKED = "add milk to my shopping list"


@pytest.fixture
async def house(scripted: ScriptedServer, house: LivingHouse) -> LivingHouse:
    scripted.rules = [MILK]
    form = {"name": "m", "provider": "openai", "model": "s", "base_url": scripted.base_url}
    cache = {"late_tools": "rewrite", "strength": "strong", "read_factor": 0.1, "minimum_tokens": 1024}
    await house.cortex.models.save(house.admin, {**form, "api_key": "test-key", "cache": cache})
    return house


async def test_a_round_shows_system_and_tools_to_the_byte_as_the_provider_got_them(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    turn = await house.say(await house.conversation(), ASKED)
    trace = await house.cortex.traces.trace(house.admin, turn)
    assert [one.number for one in trace.rounds] == [1, 2]
    for shown, seen in zip(trace.rounds, scripted.log, strict=True):
        assert seen.body["messages"][0] == {"role": "system", "content": shown.system}
        declared = [one["function"] for one in seen.body["tools"]]
        assert [one["name"] for one in shown.tools] == [one["name"] for one in declared]
        assert [one["description"] for one in shown.tools] == [one["description"] for one in declared]
        assert shown.round.input_tokens == seen.usage["prompt_tokens"]
    first, second = trace.rounds
    assert [one.speaker for one in first.messages] == ["user"]
    assert [one.speaker for one in second.messages] == ["user", "assistant", "tool"]
    assert first.messages[0].text.startswith(ASKED)
    assert second.answer is not None
    assert second.answer.text == "Added."
    (call,) = first.calls
    assert (call.call.name, call.call.state, call.approval) == ("task_create", "done", "")
    assert (second.calls, "first request" in first.cache_words) == ((), True)


async def test_a_changed_description_goes_out_with_the_very_next_message_of_a_chat(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    cid = await house.conversation()
    await house.say(cid, ASKED)
    await house.cortex.tool_settings.describe(house.admin, "task_create", (words := "Write a thing on a list."))
    turn = await house.say(cid, "more milk")
    told = {one["function"]["name"]: one["function"]["description"] for one in scripted.log[-1].body["tools"]}
    assert told["task_create"] == words
    trace = await house.cortex.traces.trace(house.admin, turn)
    receipt = trace.rounds[0].receipt
    assert receipt is not None
    assert "tools changed" in receipt["epoch"]["boundary"]


async def test_the_past_stands_ahead_of_the_turn(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.say(cid, ASKED)
    trace = await house.cortex.traces.trace(house.admin, await house.say(cid, "more milk"))
    assert [one.speaker for one in trace.past] == ["user", "assistant", "tool", "assistant"]
    assert trace.past[-1].text == "Added."


async def test_known_secrets_are_blotted_out_of_everything(house: LivingHouse) -> None:
    turn = await house.say(await house.conversation(), f"{ASKED}, my key is test-key")
    trace = await house.cortex.traces.trace(house.admin, turn)
    assert "test-key" not in trace.to_json()
    assert "[secret]" in trace.text
    assert "[secret]" in trace.rounds[0].calls[0].call.arguments
    assert json.loads(trace.to_json())["rounds"][0]["took"]["state"] == "answered"


async def test_anothers_trace_is_an_admins_and_stands_in_the_audit_log(house: LivingHouse) -> None:
    cid = await house.conversation(house.member)
    turn = await house.say(cid, "hello", user=house.member)
    own = await house.say(await house.conversation(), ASKED)
    traces, audit = house.cortex.traces, house.cortex.runtime.db.repository(AuditRepository)
    with pytest.raises(NotFound):
        await traces.trace(house.member, own)
    before = (await audit.list())[0].number
    await traces.trace(house.admin, own)
    assert (await audit.list())[0].number == before, "one's own is nobody's business"
    assert (await traces.trace(house.admin, turn)).text == "hello"
    entry = (await audit.list())[0]
    assert (entry.action, entry.actor, entry.subject) == ("trace.read", house.admin.id, house.member.id)
    assert turn in entry.detail


async def test_the_same_recipe_gives_the_same_plan_from_the_stored_input(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.say(cid, ASKED)
    turn = await house.say(cid, "and what is on my list?")
    for plan in await house.rows(PlansRepository).of_turn(turn):
        again = await house.cortex.replays.replay(house.admin.id, turn, plan.round, plan.receipt["recipe"])
        assert (again.is_exact, again.is_same_registry) == (True, True)
        assert (again.joined, again.left, again.reshaped) == ((), (), ())
        assert again.after["sent"] == plan.receipt["sent"]
        assert again.after["decisions"] == plan.receipt["decisions"]
        assert again.after["epoch"] == plan.receipt["epoch"]


async def test_another_recipe_shows_its_difference_and_changes_and_asks_nothing(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    cid = await house.conversation()
    turn = await house.say(cid, ASKED)
    db = house.cortex.runtime.db
    before = [
        await db.repository(PlansRepository, house.admin.id).of_turn(turn),
        await db.repository(ConversationsRepository, house.admin.id).get(cid),
        await house.events(cid),
        len(scripted.log),
    ]
    replay = await house.cortex.replays.replay(house.admin.id, turn, 1, "all")
    assert len(replay.joined) > 10
    assert replay.after["tokens"] > 3 * replay.before["tokens"]
    assert [one.name for one in replay.left] == ["tools_discover"]
    assert [(one.name, one.form) for one in replay.reshaped][:1] == [("task_list", "stub → full")]
    for recipe in house.cortex.replays.recipes:
        await house.cortex.replays.replay(house.admin.id, turn, 1, recipe)
    after = [
        await db.repository(PlansRepository, house.admin.id).of_turn(turn),
        await db.repository(ConversationsRepository, house.admin.id).get(cid),
        await house.events(cid),
        len(scripted.log),
    ]
    assert after == before


async def test_a_registry_that_changed_since_is_said_to_have(house: LivingHouse) -> None:
    turn = await house.say(await house.conversation(), ASKED)
    await house.cortex.tool_settings.change(house.admin, "task_update", is_on=True, sending="always", asks_first=False)
    replay = await house.cortex.replays.replay(house.admin.id, turn, 1, "cortex")
    assert (replay.is_same_registry, replay.is_exact) == (False, True)


async def test_a_replay_refuses_what_is_not_there(house: LivingHouse) -> None:
    turn = await house.say(await house.conversation(), ASKED)
    replays = house.cortex.replays
    with pytest.raises(NotFound):
        await replays.replay(house.admin.id, turn, 9, "all")
    with pytest.raises(NotFound):
        await replays.replay(house.member.id, turn, 1, "all")
    with pytest.raises(UserError, match="no recipe"):
        await replays.replay(house.admin.id, turn, 1, "magic")
