"""How a turn that did not come to its end leaves the transcript: whole, valid, with everything the user said."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cortex.base.messages import Message, ToolCall, ToolResult, assistant, results, user
from cortex.base.turn import Outcome, Turn
from cortex.storage.messages import MessagesRepository
from cortex.storage.turns import TurnRow, TurnsRepository
from tests.living_house import LivingHouse, living_house

CALL = ToolCall(id="w1", name="task_list", arguments="{}")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home") as opened:
        yield opened


async def opened_turn(house: LivingHouse, *said: Message) -> tuple[Turn, TurnRow]:
    """A turn in the middle of its work, with these messages kept; nobody runs it."""
    turns = house.cortex.runtime.db.repository(TurnsRepository, house.admin.id)
    conversation = await house.conversation()
    row = await turns.create("turn:1", conversation, "what is on my list?", mode="auto", role="orchestrator")
    turn = await house.cortex.turn_runs.turn_start.start_turn(house.admin.id, row.id)
    assert turn is not None
    messages = house.cortex.runtime.db.repository(MessagesRepository, house.admin.id)
    for index, message in enumerate((user(row.text), *said)):
        await messages.add(row.id, index, message, is_tainted=False)
    return turn, await turns.get(row.id)


async def transcript(house: LivingHouse) -> list[Message]:
    return [
        row.message
        for row in await house.cortex.runtime.db.repository(MessagesRepository, house.admin.id).of_turn("turn:1")
    ]


async def test_a_message_taken_into_a_turn_that_is_broken_off_is_not_lost(house: LivingHouse) -> None:
    done = results(ToolResult(call_id="w1", name="task_list", text="Nothing."))
    turn, row = await opened_turn(house, assistant("", CALL), done)
    turns = house.cortex.runtime.db.repository(TurnsRepository, house.admin.id)
    await turns.create("turn:2", turn.conversation_id, "and be brief", mode="auto", role="orchestrator")
    await turns.take_queued(turn.conversation_id, turn.id, 1)
    await house.cortex.turn_end.interrupt(row, "Cortex stopped.")
    said = await transcript(house)
    assert said[:4] == [user(row.text), assistant("", CALL), done, user("and be brief")]
    assert said[4].text == "(broken off when Cortex stopped)"


async def test_a_fault_in_the_middle_of_a_call_leaves_a_transcript_that_providers_take(house: LivingHouse) -> None:
    turn, _ = await opened_turn(house, assistant("", CALL))
    await house.cortex.turn_end.end_turn(turn, Outcome(state="failed", rounds=0, text="A fault."))
    said = await transcript(house)
    assert [message.speaker for message in said] == ["user", "assistant", "tool", "assistant"]
    result = said[2].parts[0]
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.is_error) == ("w1", True)
