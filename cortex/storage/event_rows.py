"""Rows of a conversation's log: their payloads in short and at length, and where those of one turn are.

Used by `storage/conversations.py`, and by what reads rows by itself: a person's archive, the way back of a migration.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, func, literal_column, select

from cortex.base.events import Event
from cortex.storage import kept
from cortex.storage.schema import EventTable

_AHEAD_OF_MESSAGE = 100  # events: what a turn takes the place of is told ahead of it, in the same transaction
_OF_ROW, _KEY_OF_ROW = 0, "*"  # in a row's payload: its turn, and the beginning of a part's name


def shortened(payload: dict[str, Any], turn_id: str | None) -> dict[str, Any]:
    """The payload as its row keeps it: what repeats the row's turn is left to that, a third of most payloads."""
    if turn_id is None:
        return payload
    short = {**payload, "turn": _OF_ROW} if payload.get("turn") == turn_id else payload
    part, key = payload.get("part"), turn_id.removeprefix("turn:")
    if isinstance(part, str) and part.startswith(f"{key}-"):
        short = {**short, "part": _KEY_OF_ROW + part.removeprefix(key)}
    return short


def at_length(short: dict[str, Any], turn_id: str | None) -> dict[str, Any]:
    """The payload that was shortened; one of an earlier version as it is."""
    if turn_id is None:
        return short
    whole = {**short, "turn": turn_id} if short.get("turn") == _OF_ROW else short
    part = short.get("part")
    if isinstance(part, str) and part.startswith(_KEY_OF_ROW):
        whole = {**whole, "part": turn_id.removeprefix("turn:") + part.removeprefix(_KEY_OF_ROW)}
    return whole


def _of_turn() -> Sequence[ColumnElement[bool]]:
    """Tell which events are a turn's. Its message is found by an index; the others lie near it, and behind it."""
    event, its = kept.columns(EventTable), EventTable.__table__.alias().c
    conversation_id, turn_id = kept.given("conversation_id"), kept.given("turn_id")
    is_message = its.kind == literal_column("'message'")  # as the index has it, which a parameter would not be
    # By the turn alone, which is of one conversation: beside that SQLite would take the key, and read the chat from its
    # beginning.
    message = select(func.min(its.seq)).where(its.turn_id == turn_id, is_message)
    begins = func.coalesce(message.scalar_subquery() - _AHEAD_OF_MESSAGE, 0)
    return event.conversation_id == conversation_id, event.seq >= begins, event.turn_id == turn_id


@cache
def turns_events() -> Select[Any]:
    """The rows of a turn in order, given `conversation_id` and `turn_id`."""
    return kept.owned(Event, EventTable).where(*_of_turn()).order_by(kept.columns(EventTable).seq)


@cache
def first_seq() -> Select[Any]:
    """The number of a turn's first row, given the same."""
    return select(func.min(kept.columns(EventTable).seq)).where(kept.is_own(EventTable), *_of_turn())
