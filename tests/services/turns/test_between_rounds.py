"""What holds between two rounds of a turn: what was done is known when it ends, what was switched off is off."""

import asyncio
from collections.abc import Callable

import pytest

from cortex.base.messages import ToolCall, ToolResult
from cortex.base.role import ToolMode
from cortex.base.turn import Need, Turn
from cortex.ports.steps import is_first_life
from cortex.services.turns.answer_writer import AnswerWriter, Row
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.messages import MessagesRepository
from cortex.storage.turns import NOTHING_READ, NewTurn, TurnsRepository
from tests.living_house import LivingHouse
from tests.patience import PATIENCE_S
from tests.scripted_server import Fault, Say, ScriptedServer, Use, rule

WRITE = Use("file_write", {"path": "milk.txt", "text": "milk"})


@pytest.fixture
async def house(scripted: ScriptedServer, house: LivingHouse) -> LivingHouse:
    await house.connect(scripted)
    return house


async def results_of(house: LivingHouse, turn_id: str) -> list[ToolResult]:
    stored = await house.rows(MessagesRepository).of_turn(turn_id)
    return [part for row in stored for part in row.message.parts if isinstance(part, ToolResult)]


async def test_a_call_that_was_made_stands_as_made_when_the_next_answer_never_begins(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    scripted.rules = [rule("milk", Say("I put it down.", (WRITE,)), "Done.")]
    scripted.fail(Fault(kind="slow"), Fault(kind="stall"))  # the second answer never begins
    cid = await house.conversation()
    turn_id = await house.cortex.chat.send_message(house.admin, cid, "write milk.txt with the word milk", mode="all")
    await until(lambda: len(scripted.log) == 2)  # the call is done, and the model thinks about the next words
    await house.cortex.chat.stop(house.admin, cid)
    (result,) = await results_of(house, turn_id)
    assert (result.is_error, "milk.txt" in result.text) == (False, True)


async def opened_turn(house: LivingHouse, text: str = "write a file", mode: ToolMode = "all") -> Turn:
    """A turn that was opened and not run."""
    cid = await house.conversation()
    turns = house.rows(TurnsRepository)
    row = await turns.create(
        NewTurn("turn:1", cid, text, mode=mode, role="orchestrator", is_tainted=False, reads=NOTHING_READ)
    )
    turn = await house.cortex.turn_runs.turn_start.start_turn(house.admin.id, row.id)
    assert turn is not None
    return turn


async def test_a_notice_that_stood_before_a_kill_is_not_written_again(house: LivingHouse) -> None:
    turn = await opened_turn(house)
    history, before = house.cortex.turn_runs.ports.history, is_first_life.set(True)
    try:
        await history.say(turn, 1, "Trying again.", "notice")
        is_first_life.set(False)  # as if the process had died before the engine noted it
        await history.say(turn, 1, "Trying again.", "notice")
        await history.say(turn, 1, "It failed.", "notice")
    finally:
        is_first_life.reset(before)
    told = [event.payload["text"] for event in await house.events(turn.conversation_id, "notice")]
    assert told == ["Trying again.", "It failed."]


async def test_a_plan_that_is_made_again_tells_of_its_limit_once(house: LivingHouse) -> None:
    form = {"kind": "user", "subject": "", "limit_tokens": "1", "limit_usd": "", "at_limit": "chat", "model": ""}
    await house.cortex.budget_admin.put(house.admin, form)
    turn, planner = await opened_turn(house), house.cortex.turn_runs.ports.planner
    await house.say(await house.conversation(), "hello")
    for _ in range(2):
        await planner.plan(turn, Need(round=1))
    told = [event.payload["text"] for event in await house.events(turn.conversation_id, "notice")]
    assert ["without tools" in each for each in told] == [True]


async def test_a_tool_that_is_switched_off_is_not_run_any_more_in_a_turn_that_goes_on(house: LivingHouse) -> None:
    turn, hands = await opened_turn(house), house.cortex.turn_runs.ports.tool_runner
    call = ToolCall(id="c1", name="file_write", arguments='{"path": "a.txt", "text": "x"}')
    decision = await hands.decide(turn, 1, call)
    assert decision.verdict == "run"
    await house.cortex.tool_settings.change(house.admin, "file_write", is_on=False, sending="needed", asks_first=False)
    done = await hands.perform(turn, 1, call, decision, None)
    assert done.result.is_error
    (shown,) = await house.events(turn.conversation_id, "tool.result")
    assert shown.payload["state"] == "refused", "its card says that it did not run"
    assert (
        await hands.decide(turn, 2, ToolCall(id="c2", name=call.name, arguments=call.arguments))
    ).verdict == "refuse"


async def test_a_call_that_a_kill_cut_is_not_called_refused_when_its_tool_is_gone(house: LivingHouse) -> None:
    turn, hands = await opened_turn(house), house.cortex.turn_runs.ports.tool_runner
    call = ToolCall(id="c1", name="file_write", arguments='{"path": "a.txt", "text": "x"}')
    decision = await hands.decide(turn, 1, call)
    assert await house.cortex.executor.call_log.intend(turn, decision.call_id) == "first"  # killed right after it
    await house.cortex.tool_settings.change(house.admin, "file_write", is_on=False, sending="needed", asks_first=False)
    await hands.perform(turn, 1, call, decision, None)
    (shown,) = await house.events(turn.conversation_id, "tool.result")
    assert shown.payload["state"] == "unknown", "it may have happened"


async def test_a_limit_that_is_set_while_a_turn_goes_on_holds_in_its_next_round(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    scripted.rules = [rule("milk", Say("I put it down.", (WRITE,)), "Done.")]
    scripted.fail(Fault(kind="pause"))
    cid = await house.conversation()
    turn_id = await house.cortex.chat.send_message(house.admin, cid, "write milk.txt with the word milk", mode="all")
    await until(lambda: len(scripted.log) == 1)
    form = {"kind": "user", "subject": "", "limit_tokens": "1", "limit_usd": "", "at_limit": "stop", "model": ""}
    await house.cortex.budget_admin.put(house.admin, form)
    scripted.go_on(99)
    await house.until(cid, "turn.end", turn=turn_id)
    assert len(scripted.log) == 1


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - the server tells nobody of its requests
            await asyncio.sleep(0.01)


async def test_a_rescue_that_a_kill_cut_brings_its_tools_again(house: LivingHouse) -> None:
    admin, name = house.admin, "file_write"  # sent only when it is named or found
    await house.cortex.tool_settings.change(admin, name, is_on=True, sending="never", asks_first=False)
    turn = await opened_turn(house, "write the word milk into the file milk.txt", "auto")
    planner = house.cortex.turn_runs.ports.planner
    first = await planner.plan(turn, Need(round=1))
    rescue = Need(round=2, missing="I can't write files.")
    made = await planner.plan(turn, rescue)
    assert name in made.added
    assert not set(made.added) & {tool.name for tool in first.tools}
    again = await planner.plan(turn, rescue)  # committed, and the process died before the engine knew
    assert (again.added, again.tools, again.tail) == (made.added, made.tools, made.tail)


async def test_what_an_earlier_round_told_is_told_again_where_a_later_one_is_taken_up(house: LivingHouse) -> None:
    turn = await opened_turn(house)
    notice: Row = ("notice", {"turn": turn.id, "level": "warn", "text": "m: busy. Trying again."}, turn.id)
    usage: Row = ("usage", {"turn": turn.id, "round": 1, "input": 1, "output": 1, "cached": 0, "written": 0}, turn.id)
    await house.rows(ConversationsRepository).append(turn.conversation_id, [notice, usage, notice])
    writer = AnswerWriter(runtime=house.cortex.runtime, turn=turn, round_number=2)
    await writer.begin()
    for _ in range(2):
        await writer.notice("m: busy. Trying again.")
    assert len(await house.events(turn.conversation_id, "notice")) == 3, "one was told ahead of the kill, one is news"
