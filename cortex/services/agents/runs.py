"""A background run as its rows have it: the turn, its conversation, what it said, its card. `agents.py` starts them."""

from typing import TypeVar

from msgspec import Struct

from cortex.base.errors import NotFound
from cortex.base.turn import LOOP_ENDS, TurnState, parent_of
from cortex.ports.agents import AgentRun, RunState
from cortex.services.turns.answer_writer import Row
from cortex.storage.conversations import ConversationRow, ConversationsRepository
from cortex.storage.db import Database, Opener
from cortex.storage.messages import MessagesRepository
from cortex.storage.repository import Repository
from cortex.storage.rounds import RoundsRepository
from cortex.storage.turns import TurnRow, TurnsRepository

R = TypeVar("R", bound=Repository)
STATES: dict[TurnState, RunState] = {
    "queued": "queued",
    "running": "running",
    "waiting": "waiting",
    "done": "done",
    "out_of_rounds": "done",
    "stopped": "cancelled",
    "failed": "failed",
    "interrupted": "failed",
}


class AgentView(Struct, frozen=True, kw_only=True):
    """A run as its card shows it. `conversation_id` is its own; `parent_id` that in which it was started."""

    run: AgentRun
    rounds: int
    conversation_id: str
    parent_id: str
    error: str


def reading(db: Database, user_id: str) -> Opener:
    """Opens this user's repositories without a transaction around them, for what is only looked at."""

    def repository(kind: type[R], /) -> R:
        return db.repository(kind, user_id)

    return repository


async def view_of(repository: Opener, run_id: str) -> AgentView:
    """The run with what it took; NotFound for what is none of this user's."""
    conversation, row = await run_of(repository, run_id)
    run = AgentRun(
        id=run_id,
        task=row.text,
        kind="agent",
        role=row.role,
        state=STATES[row.state],
        started_at=row.created_at,
        is_tainted=(await repository(TurnsRepository).reads(row)).outside,
        ended_at=row.ended_at,
        tokens=(await repository(RoundsRepository).spent_in_turn(row.id)).tokens,
        result=await result_of(repository, row),
    )
    rounds = sum(one.round > 0 for one in await repository(RoundsRepository).of_turn(row.id))
    parent_id = conversation.parent_id or ""
    return AgentView(run=run, rounds=rounds, conversation_id=run_id, parent_id=parent_id, error=row.error)


async def run_of(repository: Opener, run_id: str) -> tuple[ConversationRow, TurnRow]:
    """The conversation of a run and its first turn, which is the run."""
    conversation = await repository(ConversationsRepository).get(run_id, with_deleted=True)
    row = await repository(TurnsRepository).at(run_id, 1)
    if conversation.source != "agent" or row is None:
        raise NotFound("This background run does not exist.")
    return conversation, row


async def result_of(repository: Opener, row: TurnRow) -> str:
    """Return what it said in the end; "" while it runs."""
    if row.state not in LOOP_ENDS:
        return ""
    said = [
        one.message.text
        for one in await repository(MessagesRepository).of_turn(row.id)
        if one.message.speaker == "assistant"
    ]
    return next((text for text in reversed(said) if text), "")


def card_row(row: TurnRow, run_id: str) -> Row:
    """Return how the run stands, for the log of the conversation in which it was started."""
    parent = parent_of(row.id)
    payload = {
        "turn": parent,
        "agent": run_id,
        "task": row.text,
        "role": row.role,
        "state": STATES[row.state],
        "error": row.error,
    }
    return "agent", payload, parent
