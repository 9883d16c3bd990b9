"""The whole house over the real wires of OpenAI and Anthropic, against a server as strict as theirs, and each fault.

The conversation goes through the chat service, the durable engine and the real tools; only the model is scripted.
"""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from cortex.base.messages import Message, ToolResult
from cortex.base.turn import LOOP_ENDS
from cortex.storage.messages import MessagesRepository
from cortex.storage.tasks import TasksRepository
from cortex.storage.turns import TurnRow, TurnsRepository
from tests.living_house import LivingHouse, living_house
from tests.scripted_server import Asked, Fault, Say, ScriptedServer, Use, rule

KINDS = ("openai", "anthropic")
BOTH = ("openai", pytest.param("anthropic", marks=pytest.mark.full))  # one wire in a hurry: the rule is the house's
ASKED = "add milk to my shopping list"
ANSWERED = "Milk is on your shopping list now."
RULES = [
    rule("milk", Say("I put it down.", (Use("task_create", {"title": "Milk", "list_name": "shopping"}),)), ANSWERED),
    rule("what.*list", Use("task_list", {}), lambda asked: f"It holds: {_shown(asked)}"),
    rule("thank", "You are welcome."),
    rule("later", "Later it is."),
]
WHOLE = {"I put it down.", ANSWERED, "You are welcome.", "Later it is.", "Milk is what I shall buy."}


def _shown(asked: Asked) -> str:
    return "milk" if "Milk" in asked.results[-1] else "nothing"


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


async def connect(house: LivingHouse, server: ScriptedServer, kind: str, name: str = "scripted", **more: Any) -> None:
    """Register the server as an admin's model, the way the Models page does."""
    base_url = server.base_url if kind == "openai" else server.origin
    form = {
        "name": name,
        "provider": kind,
        "model": "scripted-1",
        "base_url": base_url,
        "api_key": server.api_key,
        "cache": {"caches": True, "minimum_tokens": 1, "read_factor": 0.1, "late_tools": "bridge"},
    }
    await house.cortex.models.save(house.admin, {**form, **more})


async def turn_of(house: LivingHouse, turn_id: str) -> TurnRow:
    return await house.cortex.runtime.db.repository(TurnsRepository, house.admin.id).get(turn_id)


async def transcript_of(house: LivingHouse, turn_id: str) -> list[Message]:
    return [
        row.message
        for row in await house.cortex.runtime.db.repository(MessagesRepository, house.admin.id).of_turn(turn_id)
    ]


async def titles(house: LivingHouse) -> list[str]:
    return [task.title for task in await house.cortex.runtime.db.repository(TasksRepository, house.admin.id).list()]


async def check(house: LivingHouse, conversation_id: str, turn_id: str) -> str:
    """What holds for every turn, however it went; its state."""
    turn = await turn_of(house, turn_id)
    assert turn.state in LOOP_ENDS
    events = [event for event in await house.events(conversation_id) if event.turn_id == turn_id]
    assert events[-1].kind == "turn.end"
    assert [event.kind for event in events].count("turn.end") == 1
    shown = {e.payload["part"]: e.payload for e in events if e.kind == "part.end"}
    texts = [part["text"] for part in shown.values() if part["text"] and not part.get("is_partial")]
    errors = [event.payload for event in events if event.kind == "error"]
    assert texts or errors, "a turn ends with words or with an error that says what to do"
    assert all(error["can_retry"] and len(error["text"]) > 20 for error in errors)
    assert bool(errors) == (turn.state == "failed")
    messages = await transcript_of(house, turn_id)
    assert messages[0].speaker == "user"
    for message, following in zip(messages, [*messages[1:], None], strict=True):
        if message.speaker == "assistant":
            assert message.text in {"", *WHOLE} or message.text.startswith("It holds"), "half a message was kept"
        if message.calls:
            assert following is not None
            answered = [part.call_id for part in following.parts if isinstance(part, ToolResult)]
            assert answered == [call.id for call in message.calls]
    return turn.state


@pytest.mark.parametrize("kind", KINDS)
async def test_a_conversation_with_real_tool_calls_goes_through_the_wire(
    house: LivingHouse, strict: ScriptedServer, kind: str
) -> None:
    await connect(house, strict, kind)
    conversation = await house.conversation()
    ids = [await house.say(conversation, text) for text in (ASKED, "what is on my list?", "thank you")]
    assert [await check(house, conversation, turn_id) for turn_id in ids] == ["done"] * 3
    assert await titles(house) == ["Milk"]
    last = [(await transcript_of(house, turn_id))[-1].text for turn_id in ids]
    assert last == [ANSWERED, "It holds: milk", "You are welcome."]
    assert len(strict.log) == 5
    bodies = [seen.body for seen in strict.log]
    assert all(body["stream"] for body in bodies)
    assert {seen.path for seen in strict.log} == {"/v1/chat/completions" if kind == "openai" else "/v1/messages"}
    usages = [event.payload for event in await house.events(conversation, "usage")]
    assert [usage["model"] for usage in usages] == ["scripted"] * 5
    assert all(usage["cached"] > 0 for usage in usages[1:]), "later requests are read from the cache"
    assert "Milk" in json.dumps(bodies[-1]["messages"])


@pytest.mark.moves_cache_prefix(reason="a message without tools declares none")
@pytest.mark.parametrize("kind", KINDS)
async def test_chat_only_after_calls_is_still_a_valid_request(
    house: LivingHouse, strict: ScriptedServer, kind: str
) -> None:
    await connect(house, strict, kind)
    conversation = await house.conversation()
    await house.say(conversation, ASKED)
    turn_id = await house.say(conversation, "thank you", mode="chat")
    assert await check(house, conversation, turn_id) == "done"
    body = strict.log[-1].body
    assert "tools" not in body
    assert "task_create" in json.dumps(body["messages"]), "the call is told in words"


GETS_THROUGH = {
    "429 with Retry-After": [Fault(kind="status", status=429, retry_after="1")],
    "500": [Fault(kind="status", status=500)],
    "529": [Fault(kind="status", status=529)],
    "cut before the first word": [Fault(kind="cut", after_bytes=1)],
    "cut in the middle": [Fault(kind="cut", after_bytes=700)],
    "no finish": [Fault(kind="no_finish")],
    "empty answer": [Fault(kind="empty")],
    "error in the stream": [Fault(kind="error_event")],
    "no answer at all": [Fault(kind="garbage")],
}
NO_WAY = {
    "429 that asks for too much": [Fault(kind="status", status=429, retry_after="600")],
    "500 again and again": [Fault(kind="status", status=500)] * 2,
    "cut again and again": [Fault(kind="cut", after_bytes=700)] * 2,
    "empty again and again": [Fault(kind="empty")] * 2,
    "wrong key": [Fault(kind="status", status=401)],
    "refused": [Fault(kind="status", status=400)] * 2,
}


WIRES = ("openai", *(pytest.param(wire, marks=pytest.mark.full) for wire in ("anthropic", "responses")))
SAME_WORDS = pytest.mark.moves_cache_prefix(reason="several conversations begin with the same words")
WELL = Fault(kind="none")
CALL_PHASES = {
    "before the head": Fault(kind="drop"),
    "behind the head": Fault(kind="cut"),
    "before the first word": Fault(kind="cut", behind=b'"assistant"'),
    "in the text": Fault(kind="cut", behind=b'"put "'),
    "in the arguments": Fault(kind="cut", behind=rb"ilk\", \"li"),
    "behind the arguments": Fault(kind="cut", behind=rb"ping\"}"),
}
ANSWER_PHASES = {
    "before the head of the answer": Fault(kind="drop"),
    "behind the head of the answer": Fault(kind="cut"),
    "in the answer": Fault(kind="cut", behind=b'"your "'),
}
END_PHASES = {  # the answer is whole, and what follows is missing: on two wires the usage
    "openai": Fault(kind="cut", behind=b'"finish_reason": "tool_calls"'),
    "anthropic": Fault(kind="cut", behind=b'"stop_reason": "tool_use"'),
    "responses": Fault(kind="cut", behind=b'"response.output_item.done", "output_index": 1'),
}
SAID = {
    **dict.fromkeys((*CALL_PHASES, *ANSWER_PHASES), ""),
    "in the text": "I put ",
    "in the arguments": "I put it down.",
    "behind the arguments": "I put it down.",
    "in the answer": "Milk is on your ",
}


async def connect_wire(house: LivingHouse, server: ScriptedServer, wire: str) -> None:
    if wire != "responses":
        await connect(house, server, wire)
        return
    cache = {"caches": True, "minimum_tokens": 1, "read_factor": 0.1, "late_tools": "native"}
    await connect(house, server, "openai", model="gpt-5.5", cache=cache)


@pytest.mark.parametrize("faults", GETS_THROUGH.values(), ids=GETS_THROUGH)
@pytest.mark.parametrize("kind", BOTH)
async def test_a_passing_fault_is_retried_and_told(
    house: LivingHouse, strict: ScriptedServer, kind: str, faults: list[Fault]
) -> None:
    await connect(house, strict, kind)
    strict.fail(*faults)
    conversation = await house.conversation()
    turn_id = await house.say(conversation, ASKED)
    assert await check(house, conversation, turn_id) == "done"
    assert await titles(house) == ["Milk"]
    assert (await transcript_of(house, turn_id))[-1].text == ANSWERED
    notices = [event.payload["text"] for event in await house.events(conversation, "notice")]
    assert len(notices) == 1
    assert "Trying again" in notices[0]


@pytest.mark.parametrize("faults", NO_WAY.values(), ids=NO_WAY)
@pytest.mark.parametrize("kind", BOTH)
async def test_a_lasting_fault_ends_in_a_clear_sentence_and_another_try_works(
    house: LivingHouse, strict: ScriptedServer, kind: str, faults: list[Fault]
) -> None:
    await connect(house, strict, kind)
    strict.fail(*faults)
    conversation = await house.conversation()
    turn_id = await house.say(conversation, ASKED)
    assert await check(house, conversation, turn_id) == "failed"
    assert [message.speaker for message in await transcript_of(house, turn_id)] == ["user"]
    assert await titles(house) == []
    again = await house.cortex.chat.again(house.admin, turn_id)
    await house.until(conversation, "turn.end", turn=again)
    assert await check(house, conversation, again) == "done"
    assert await titles(house) == ["Milk"]


@pytest.mark.parametrize("kind", BOTH)
async def test_a_fault_after_a_call_does_not_call_it_twice(
    house: LivingHouse, strict: ScriptedServer, kind: str
) -> None:
    await connect(house, strict, kind)
    strict.rules = [rule("milk", RULES[0].steps[0], lambda asked: _broken_once(strict)), *RULES[1:]]
    conversation = await house.conversation()
    turn_id = await house.say(conversation, ASKED)
    assert await check(house, conversation, turn_id) == "failed"
    assert await titles(house) == ["Milk"], "what was done stays done"
    follow_up = await house.say(conversation, "thank you")
    assert await check(house, conversation, follow_up) == "done"


def _broken_once(server: ScriptedServer) -> str:
    """The answer breaks off, twice."""
    server.fail(Fault(kind="status", status=500))
    return ""


@SAME_WORDS
@pytest.mark.parametrize("wire", WIRES)
async def test_an_answer_that_is_cut_at_any_phase_is_given_again_and_acted_on_once(
    house: LivingHouse, strict: ScriptedServer, wire: str
) -> None:
    await connect_wire(house, strict, wire)
    for phase, fault in {**CALL_PHASES, "before the end": END_PHASES[wire]}.items():
        strict.fail(fault)
        conversation = await house.conversation()
        turn_id = await house.say(conversation, ASKED)
        assert await check(house, conversation, turn_id) == "done", phase
        assert await titles(house) == ["Milk"], phase
        assert (await transcript_of(house, turn_id))[-1].text == ANSWERED, phase
        await forget_tasks(house)
    for phase, fault in ANSWER_PHASES.items():
        strict.fail(WELL, fault)
        conversation = await house.conversation()
        turn_id = await house.say(conversation, ASKED)
        assert await check(house, conversation, turn_id) == "done", phase
        assert await titles(house) == ["Milk"], phase
        assert (await transcript_of(house, turn_id))[-1].text == ANSWERED, phase
        await forget_tasks(house)


@SAME_WORDS
@pytest.mark.parametrize("wire", WIRES)
async def test_an_answer_that_is_cut_again_and_again_fails_with_a_sentence_and_keeps_its_words(
    house: LivingHouse, strict: ScriptedServer, wire: str
) -> None:
    await connect_wire(house, strict, wire)
    for phase, fault in CALL_PHASES.items():
        strict.fail(fault, fault)
        conversation = await house.conversation()
        turn_id = await house.say(conversation, ASKED)
        assert await check(house, conversation, turn_id) == "failed", phase
        assert await titles(house) == [], phase
        assert await broken_off(house, conversation) == SAID[phase], phase
    for phase, fault in ANSWER_PHASES.items():
        strict.fail(WELL, fault, fault)
        conversation = await house.conversation()
        turn_id = await house.say(conversation, ASKED)
        assert await check(house, conversation, turn_id) == "failed", phase
        assert await titles(house) == ["Milk"], phase
        assert await broken_off(house, conversation) == SAID[phase], phase
        follow_up = await house.say(conversation, "thank you")
        assert await check(house, conversation, follow_up) == "done", phase
        await forget_tasks(house)


async def broken_off(house: LivingHouse, conversation: str) -> str:
    """What the page shows of an answer that did not come whole."""
    ends = [event.payload for event in await house.events(conversation, "part.end")]
    return "".join(end["text"] for end in ends if end.get("is_partial"))


async def forget_tasks(house: LivingHouse) -> None:
    tasks = house.cortex.runtime.db.repository(TasksRepository, house.admin.id)
    for task in await tasks.list():
        await tasks.remove(task.id)


@pytest.mark.parametrize("kind", BOTH)
async def test_silence_is_a_time_out_and_is_retried(house: LivingHouse, strict: ScriptedServer, kind: str) -> None:
    await connect(house, strict, kind, timeout_s=3)
    strict.fail(Fault(kind="hang"))
    conversation = await house.conversation()
    turn_id = await house.say(conversation, ASKED)
    assert await check(house, conversation, turn_id) == "done"
    strict.fail(Fault(kind="hang"), Fault(kind="stall", after_bytes=420))
    turn_id = await house.say(conversation, "later then")
    assert await check(house, conversation, turn_id) == "failed"


@pytest.mark.parametrize("kind", KINDS)
async def test_malformed_arguments_are_told_to_the_model_and_run_nothing(
    house: LivingHouse, strict: ScriptedServer, kind: str
) -> None:
    step = RULES[0].steps[0]
    strict.rules = [rule("milk", step, step, ANSWERED)]
    await connect(house, strict, kind)
    strict.fail(Fault(kind="malformed"))
    conversation = await house.conversation()
    turn_id = await house.say(conversation, ASKED)
    assert await check(house, conversation, turn_id) == "done"
    results = [event.payload["state"] for event in await house.events(conversation, "tool.result")]
    assert results == ["refused", "ok"]
    assert await titles(house) == ["Milk"]


@pytest.mark.parametrize("kind", KINDS)
async def test_an_unknown_tool_is_told_to_the_model_and_the_turn_goes_on(
    house: LivingHouse, strict: ScriptedServer, kind: str
) -> None:
    strict.rules = [rule("milk", "", "Milk is what I shall buy.")]
    await connect(house, strict, kind)
    strict.fail(Fault(kind="unknown_tool"))
    conversation = await house.conversation()
    turn_id = await house.say(conversation, ASKED)
    assert await check(house, conversation, turn_id) == "done"
    told = [event.payload for event in await house.events(conversation, "tool.result")]
    assert [(one["name"], one["state"]) for one in told] == [("no_such_tool", "refused")]
    assert "no tool named" in told[0]["text"]


@pytest.mark.parametrize(("kind", "other"), [KINDS, KINDS[::-1]])
async def test_a_model_that_is_down_hands_on_to_the_next(
    house: LivingHouse, strict: ScriptedServer, kind: str, other: str
) -> None:
    await connect(house, strict, kind, "first")
    await connect(house, strict, other, "second")
    await house.cortex.models.set_chain(house.admin, ["first", "second"])
    strict.fail(*[Fault(kind="status", status=503)] * 2)
    conversation = await house.conversation()
    turn_id = await house.say(conversation, ASKED)
    assert await check(house, conversation, turn_id) == "done"
    notices = [event.payload["text"] for event in await house.events(conversation, "notice")]
    assert any("with second" in text for text in notices)
    used = [event.payload["model"] for event in await house.events(conversation, "usage")]
    assert used == ["second", "first"]
    assert await titles(house) == ["Milk"]


@pytest.mark.parametrize("kind", BOTH)
async def test_every_model_down_says_so_once_and_offers_another_try(
    house: LivingHouse, strict: ScriptedServer, kind: str
) -> None:
    await connect(house, strict, kind, "first")
    await connect(house, strict, kind, "second")
    strict.fail(*[Fault(kind="status", status=503)] * 4)
    conversation = await house.conversation()
    turn_id = await house.say(conversation, ASKED)
    assert await check(house, conversation, turn_id) == "failed"
    errors = [event.payload["text"] for event in await house.events(conversation, "error")]
    assert len(errors) == 1
    assert errors[0].startswith("No model answered.")
    assert len(strict.log) == 4


async def test_a_member_cannot_name_a_server_inside_the_network(house: LivingHouse, strict: ScriptedServer) -> None:
    form = {"name": "inside", "provider": "openai", "model": "x", "base_url": strict.base_url, "api_key": "k"}
    await house.cortex.models.save(house.member, form)
    conversation = await house.conversation(house.member)
    await house.say(conversation, ASKED, user=house.member)
    errors = await house.events(conversation, "error", user=house.member)
    assert "not allowed" in errors[0].payload["text"]
    assert strict.log == []
