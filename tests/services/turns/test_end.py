"""How a turn that did not come to its end leaves the transcript: whole, valid, with everything the user said."""

import asyncio
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from cortex.base.errors import Conflict
from cortex.base.messages import Message, ToolCall, ToolResult, assistant, results, user
from cortex.base.turn import Outcome, Turn
from cortex.base.user import User
from cortex.ports.loop import ApprovalRequest, CallRecord
from cortex.services.accounts.accounts import Accounts
from cortex.services.roles.roles import Roles
from cortex.services.turns.turn_context import TurnContext
from cortex.storage.messages import MessagesRepository
from cortex.storage.turns import NewTurn, TurnRow, TurnsRepository
from tests.living_house import LivingHouse
from tests.plain_world import PLAIN_TURN

CALL = ToolCall(id="w1", name="task_list", arguments="{}")


async def opened_turn(house: LivingHouse, *said: Message) -> tuple[Turn, TurnRow]:
    """A turn in the middle of its work, with these messages kept; nobody runs it."""
    turns = house.rows(TurnsRepository)
    conversation = await house.conversation()
    row = await turns.create(NewTurn("turn:1", conversation, "what is on my list?", **PLAIN_TURN))
    turn = await house.cortex.turn_runs.turn_start.start_turn(house.admin.id, row.id)
    assert turn is not None
    messages = house.rows(MessagesRepository)
    for index, message in enumerate((user(row.text), *said)):
        await messages.add(row.id, index, message, is_tainted=False)
    return turn, await turns.get(row.id)


async def transcript(house: LivingHouse) -> list[Message]:
    return [row.message for row in await house.rows(MessagesRepository).of_turn("turn:1")]


async def test_a_message_taken_into_a_turn_that_is_broken_off_is_not_lost(house: LivingHouse) -> None:
    done = results(ToolResult(call_id="w1", name="task_list", text="Nothing."))
    turn, row = await opened_turn(house, assistant("", CALL), done)
    turns = house.rows(TurnsRepository)
    await turns.create(NewTurn("turn:2", turn.conversation_id, "and be brief", **PLAIN_TURN))
    await turns.take_queued(turn.conversation_id, turn.id, 1)
    await house.cortex.turn_end.interrupt(row, "Cortex stopped.")
    said = await transcript(house)
    assert said[:4] == [user(row.text), assistant("", CALL), done, user("and be brief")]
    assert said[4].text == "(broken off before it was done)"


async def test_a_fault_in_the_middle_of_a_call_leaves_a_transcript_that_providers_take(house: LivingHouse) -> None:
    turn, _ = await opened_turn(house, assistant("", CALL))
    await house.cortex.turn_end.end_turn(turn, Outcome(state="failed", rounds=0, text="A fault."))
    said = await transcript(house)
    assert [message.speaker for message in said] == ["user", "assistant", "tool", "assistant"]
    result = said[2].parts[0]
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.is_error) == ("w1", True)


async def test_of_several_who_end_a_turn_at_once_one_does(house: LivingHouse) -> None:
    turn, row = await opened_turn(house)
    end = house.cortex.turn_end
    await asyncio.gather(
        end.stop(row, ()),
        end.interrupt(row, "Cortex stopped."),
        end.end_turn(turn, Outcome(state="done", rounds=1, text="", messages=(user(row.text), assistant("Milk.")))),
        end.refuse(house.admin.id, row.id, "A file has a slip."),
    )
    ends = await house.events(turn.conversation_id, "turn.end")
    state = (await house.rows(TurnsRepository).get(row.id)).state
    assert [event.payload["state"] for event in ends] == [state]
    assert len([message for message in await transcript(house) if message.speaker == "assistant"]) == 1


async def asked(house: LivingHouse, turn: Turn) -> str:
    """Put a question of this turn to its person; the approval's id."""
    call = CallRecord(id="c1", wire_id="w1", tool="shell", arguments="{}", hash="h", risk="high", title="")
    await house.cortex.turn_runs.ports.tool_runner.executor.call_log.record(turn, 1, call)  # type: ignore[attr-defined]
    request = ApprovalRequest(tool="shell", destination="here", verb="Run", detail="echo", why="", risk="high")
    return await house.cortex.approvals.ask(turn, call, request)


async def test_an_answer_that_comes_with_a_stop_does_not_wake_the_turn(house: LivingHouse) -> None:
    turn, row = await opened_turn(house)
    approval_id = await asked(house, turn)
    await house.cortex.turn_end.stop(row, ())
    with pytest.raises(Conflict, match="has ended"):
        await house.cortex.approvals.settle(turn, approval_id, "allowed")
    assert (await house.rows(TurnsRepository).get(row.id)).state == "stopped"


async def test_a_turn_that_was_just_stopped_asks_nothing(house: LivingHouse) -> None:
    turn, row = await opened_turn(house)
    await house.cortex.turn_end.stop(row, ())
    with pytest.raises(Conflict, match="has ended"):
        await asked(house, turn)
    assert await house.cortex.approvals.pending(house.admin) == []
    assert (await house.rows(TurnsRepository).get(row.id)).state == "stopped"


@dataclass
class StoppedMeanwhile:
    """Reads what a turn depends on; just then the person stops it."""

    house: LivingHouse

    @property
    def accounts(self) -> Accounts:
        return self.house.cortex.turn_runs.contexts.accounts

    @property
    def roles(self) -> Roles:
        return self.house.cortex.roles

    async def read(self, user: User, row: TurnRow, *, chosen: str) -> TurnContext:
        context = await self.house.cortex.turn_runs.contexts.read(user, row, chosen=chosen)
        await self.house.cortex.turn_end.stop(row, ())
        return context


async def test_a_turn_that_is_stopped_while_it_begins_is_not_begun(house: LivingHouse) -> None:
    turns = house.rows(TurnsRepository)
    cid = await house.conversation()
    await turns.create(NewTurn("turn:1", cid, "hello", **PLAIN_TURN))
    meanwhile = StoppedMeanwhile(house)
    start = replace(house.cortex.turn_runs.turn_start, contexts=meanwhile)
    assert await start.start_turn(house.admin.id, "turn:1") is None
    assert [event.kind for event in await house.events(cid, "turn.start", "turn.end")] == ["turn.end"]
    assert (await turns.get("turn:1")).state == "stopped"
