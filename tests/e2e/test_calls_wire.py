"""What selection promises of calls, through the whole house: late tools in each way, rescue, search, the missing tool.

Only the model is scripted; its server is as strict as the real ones and checks that no cached prefix is left.
"""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from cortex.storage.calls import CallRow, CallsRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.plans import PlanRow, PlansRepository
from cortex.storage.tasks import TasksRepository
from cortex.storage.turns import TurnsRepository
from tests.living_house import LivingHouse, living_house
from tests.scripted_server import Asked, ScriptedServer, Use, rule

LONG = "Some words about my day that make this long enough to be kept. " * 12
OPENS = f"add milk to my shopping list. {LONG}"
CREATE = Use("task_create", {"title": "Milk", "list_name": "shopping"})
RULES = [
    rule("add milk", CREATE, "Milk is on it."),
    rule("sunshine", Use("agent_notes_read", is_blind=True), "You have no notes."),
    rule("thank", "You are welcome."),
]
CACHE = {"caches": True, "minimum_tokens": 1, "read_factor": 0.1, "strength": "strong"}
WAYS: dict[str, dict[str, Any]] = {
    "anthropic tells": {"provider": "anthropic", "model": "claude-opus-5", "late": "native"},
    "anthropic searches": {"provider": "anthropic", "model": "claude-sonnet-4-6", "late": "native"},
    "openai responses": {"provider": "openai", "model": "gpt-5.5", "late": "native"},
    "bridge": {"provider": "openai", "model": "gpt-4o", "late": "bridge"},
}
NATIVE = [way for way, facts in WAYS.items() if facts["late"] == "native"]


@pytest.fixture
def strict(request: pytest.FixtureRequest) -> Iterator[ScriptedServer]:
    """The scripted server with a cache that keeps every prefix, however short; checked in the end."""
    with ScriptedServer(*RULES, cache_minimum_tokens=1) as server:
        yield server
        assert server.problems == []
        if request.node.get_closest_marker("moves_cache_prefix") is None:
            assert server.cache_breaks() == []


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home") as opened:
        yield opened


async def connect(house: LivingHouse, server: ScriptedServer, way: str = "anthropic tells", **more: Any) -> None:
    facts = dict(WAYS[way])
    base_url = server.base_url if facts["provider"] == "openai" else server.origin
    cache = {**CACHE, "late_tools": facts.pop("late"), **more}
    form = {"name": "scripted", "base_url": base_url, "api_key": server.api_key, "cache": cache, **facts}
    await house.cortex.models.save(house.admin, form)


async def calls_of(house: LivingHouse, turn_id: str) -> list[CallRow]:
    return list(await house.cortex.runtime.db.repository(CallsRepository, house.admin.id).of_turn(turn_id))


async def plans_of(house: LivingHouse, turn_id: str) -> list[PlanRow]:
    return list(await house.cortex.runtime.db.repository(PlansRepository, house.admin.id).of_turn(turn_id))


async def answer_of(house: LivingHouse, conversation: str, turn_id: str) -> str:
    events = await house.events(conversation, "part.end")
    return [str(e.payload["text"]) for e in events if e.turn_id == turn_id and e.payload["text"]][-1]


def names(plan: PlanRow) -> list[str]:
    return [item["name"] for item in plan.receipt["sent"]]


@pytest.mark.parametrize("way", WAYS)
async def test_a_tool_that_a_later_message_needs_comes_late_and_no_cached_prefix_is_left(
    house: LivingHouse, strict: ScriptedServer, way: str
) -> None:
    call = Use("agent_notes_append", {"text": "Sow in May."})
    bridged = Use("tool_call", {"name": call.tool, "arguments": call.arguments})
    strict.rules.insert(0, rule("your notes", bridged if way == "bridge" else call, "It is written down."))
    await connect(house, strict, way)
    conversation = await house.conversation()
    await house.say(conversation, OPENS)
    turn_id = await house.say(conversation, "write into your notes that we sow in May")
    plan = (await plans_of(house, turn_id))[0]
    assert plan.receipt["late"] == WAYS[way]["late"]
    assert [(row.name, row.state, row.came) for row in await calls_of(house, turn_id)] == [
        ("agent_notes_append", "done", "")
    ]
    await house.say(conversation, "thank you")
    assert await answer_of(house, conversation, turn_id) == "It is written down."


@pytest.mark.parametrize("way", WAYS)
async def test_a_search_finds_a_tool_and_it_is_called_by_its_name(
    house: LivingHouse, strict: ScriptedServer, way: str
) -> None:
    found = Use("tool_call", {"name": "cortex_status", "arguments": {}}) if way == "bridge" else Use("cortex_status")

    def search(asked: Asked) -> Use:
        return found if asked.results else Use("tools_discover", {"query": "how the server is doing"})

    strict.rules.insert(0, rule("sunshine", search, "Fine."))
    await connect(house, strict, way)
    conversation = await house.conversation()
    await house.say(conversation, OPENS)
    turn_id = await house.say(conversation, "sunshine")
    rows = await calls_of(house, turn_id)
    assert [(row.name, row.came) for row in rows] == [("tools_discover", ""), ("cortex_status", "discovered")]
    assert rows[0].text.startswith("- ")
    assert rows[0].text.count("\n- ") <= 4, "five at most"
    turn = await house.cortex.runtime.db.repository(TurnsRepository, house.admin.id).get(turn_id)
    assert turn.rounds == 3


async def test_a_permitted_tool_that_was_not_sent_runs_and_its_schema_is_there_from_then_on(
    house: LivingHouse, strict: ScriptedServer
) -> None:
    await connect(house, strict)
    conversation = await house.conversation()
    await house.say(conversation, OPENS)
    turn_id = await house.say(conversation, "sunshine")
    (row,) = await calls_of(house, turn_id)
    assert (row.name, row.state, row.came) == ("agent_notes_read", "done", "rescued")
    before, after = await plans_of(house, turn_id)
    assert "agent_notes_read" not in names(before)
    assert names(after) == [*names(before), "agent_notes_read"]
    assert await answer_of(house, conversation, turn_id) == "You have no notes."
    again = await house.say(conversation, "sunshine once more")
    assert "agent_notes_read" in names((await plans_of(house, again))[0])
    assert [row.came for row in await calls_of(house, again)] == [""]


async def test_an_unsent_tool_of_high_risk_asks_as_always(house: LivingHouse, strict: ScriptedServer) -> None:
    strict.rules.insert(0, rule("sunshine", Use("shell_exec", {"command": "ls"}, is_blind=True), "It was not run."))
    await connect(house, strict)
    conversation = await house.conversation()
    await house.say(conversation, OPENS)
    turn_id = await house.cortex.chat.send_message(house.admin, conversation, "sunshine")
    asked = await house.until(conversation, "approval", turn=turn_id)
    assert asked.payload["tool"] == "shell_exec"
    await house.cortex.approvals.answer(house.admin, asked.payload["approval"], "deny")
    await house.until(conversation, "turn.end", turn=turn_id)
    (row,) = await calls_of(house, turn_id)
    assert (row.state, row.came) == ("refused", "rescued")


@pytest.mark.parametrize(
    ("tool", "told"),
    [
        ("task_creat", "There is no tool named 'task_creat' here. Did you mean task_create?"),
        ("launch_rocket", "There is no tool named 'launch_rocket' here."),
        ("aider_status", "There is no tool named 'aider_status' here."),
    ],
    ids=["one near name", "none that is near", "one that is not permitted"],
)
async def test_an_unknown_tool_and_a_forbidden_one_are_told_alike(
    house: LivingHouse, strict: ScriptedServer, tool: str, told: str
) -> None:
    strict.rules.insert(0, rule("sunshine", Use(tool, {"title": "x"}, is_blind=True), "I see."))
    await connect(house, strict)
    conversation = await house.conversation()
    await house.say(conversation, OPENS)
    turn_id = await house.say(conversation, "sunshine")
    (row,) = await calls_of(house, turn_id)
    assert (row.text, row.state, row.came) == (told, "refused", "")


async def test_a_rejected_call_brings_the_full_schema_back(house: LivingHouse, strict: ScriptedServer) -> None:
    strict.rules.insert(0, rule("sunshine", Use("agent_notes_append", {"wrong": 1}, is_blind=True), "I see."))
    await connect(house, strict)
    conversation = await house.conversation()
    await house.say(conversation, OPENS)
    (row,) = await calls_of(house, await house.say(conversation, "sunshine"))
    assert row.state == "refused"
    assert '"properties"' in row.text
    assert '"description"' in row.text


async def test_the_same_failing_call_three_times_ends_the_turn_with_words(
    house: LivingHouse, strict: ScriptedServer
) -> None:
    bad = Use("task_create", {"nonsense": True})
    strict.rules.insert(0, rule("sunshine", *[bad] * 6))
    await connect(house, strict)
    conversation = await house.conversation()
    await house.say(conversation, OPENS)
    turn_id = await house.say(conversation, "sunshine")
    assert len(await calls_of(house, turn_id)) == 3
    assert "3 times" in await answer_of(house, conversation, turn_id)


async def test_searches_are_not_counted_as_rounds_and_two_are_enough(
    house: LivingHouse, strict: ScriptedServer
) -> None:
    searches = [Use("tools_discover", {"query": f"zebra {number}"}) for number in range(3)]
    done = iter(searches)
    strict.rules.insert(0, rule("sunshine", lambda _: next(done, "Nothing.")))
    await connect(house, strict)
    conversation = await house.conversation()
    await house.say(conversation, OPENS)
    turn_id = await house.say(conversation, "sunshine")
    texts = [row.text for row in await calls_of(house, turn_id)]
    assert [text.startswith("2 searches") for text in texts] == [False, False, True]
    assert "2 searches" in texts[2]


async def test_an_answer_that_lacks_a_tool_is_asked_again_once_with_it(
    house: LivingHouse, strict: ScriptedServer
) -> None:
    def second(asked: Asked) -> str | Use:
        has_it = "agent_notes_read" in asked.tools
        return Use("agent_notes_read") if has_it else "I'm sorry, I don't have a tool to list your notes."

    strict.rules.insert(0, rule("sunshine|Cortex: these tools", second, "There are none."))
    await connect(house, strict)
    form: dict[str, Any] = {"is_on": True, "sending": "never", "asks_first": False}  # else its words alone bring it
    await house.cortex.tool_settings.change(house.admin, "agent_notes_read", **form)
    conversation = await house.conversation()
    await house.say(conversation, OPENS)
    turn_id = await house.say(conversation, "sunshine, read me your agent notes")
    (row,) = await calls_of(house, turn_id)
    assert (row.name, row.state, row.came) == ("agent_notes_read", "done", "missing")
    notices = [event.payload["text"] for event in await house.events(conversation, "notice")]
    (tried,) = [text for text in notices if text.startswith("Trying again with more tools: ")]
    assert "agent_notes_read" in tried


async def test_small_talk_carries_no_tool_and_a_refusal_that_nobody_asked_for_brings_none(
    house: LivingHouse, strict: ScriptedServer
) -> None:
    strict.rules.insert(0, rule("hello", "Hello. I can't see your tasks: I have no tool for that."))
    await connect(house, strict, minimum_tokens=4096)
    conversation = await house.conversation()
    turn_id = await house.say(conversation, "hello")
    (first,) = await plans_of(house, turn_id)
    assert names(first) == []
    assert first.receipt["reachable"] != []


@pytest.mark.parametrize("way", NATIVE)
async def test_a_restart_knows_what_was_sent_and_goes_on_in_the_same_epoch(
    tmp_path: Path, strict: ScriptedServer, way: str
) -> None:
    async with living_house(tmp_path / "home") as house:
        await connect(house, strict, way)
        conversation = await house.conversation()
        await house.say(conversation, OPENS)
        await house.say(conversation, "sunshine")
    async with living_house(tmp_path / "home") as house:
        turn_id = await house.say(conversation, "thank you")
        assert "agent_notes_read" in names((await plans_of(house, turn_id))[0])
        state = (
            await house.cortex.runtime.db.repository(ConversationsRepository, house.admin.id).get(conversation)
        ).selection_state
        assert state["number"] == 1
        assert [
            task.title for task in await house.cortex.runtime.db.repository(TasksRepository, house.admin.id).list()
        ] == ["Milk"]


@pytest.mark.moves_cache_prefix(reason="a local model gets a late tool by a rewrite")
async def test_a_model_on_a_private_address_gets_a_selection_and_the_rest_when_it_is_needed(
    house: LivingHouse, strict: ScriptedServer
) -> None:
    reminder = Use("reminders_add", {"text": "water the plants", "when": "tomorrow at nine"})
    strict.rules.insert(0, rule("remind me", reminder, "I will."))
    form = {"name": "local", "provider": "openai", "model": "llama3.2", "base_url": strict.base_url}
    await house.cortex.models.save(house.admin, {**form, "api_key": strict.api_key})
    conversation = await house.conversation()
    await house.say(conversation, "add milk to my shopping list")
    turn_id = await house.say(conversation, "remind me tomorrow at nine to water the plants")
    sent = [[tool["function"]["name"] for tool in seen.body["tools"]] for seen in strict.log]
    assert "task_create" in sent[0]
    assert "reminders_add" not in sent[0]
    assert {tuple(each) for each in sent} == {tuple(sent[0])}, "a prompt that is read again costs the person seconds"
    assert "- reminders_add(" in json.dumps(strict.log[-1].body["messages"])
    assert max(len({*each} - {"tools_discover"}) for each in sent) <= 12
    assert [(row.name, row.state, row.came) for row in await calls_of(house, turn_id)] == [
        ("reminders_add", "done", "")
    ]
