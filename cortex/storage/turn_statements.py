"""The statements of turns (`turns.py`), each made once. kind: the class whose fields are read, for rows of turns."""

from functools import cache, lru_cache
from typing import Any

from sqlalchemy import Select, Update, bindparam, func, select, text, update

from cortex.storage import kept
from cortex.storage.schema import ConversationTable, TurnTable

OTHERS = ("agent", "result", "api")  # by these channels somebody else's words come

# No parameter: the narrow index of turns that live is taken where the statement holds its condition to the letter.
LIVING_HERE = text("turns.state IN ('queued', 'running', 'waiting')")


@lru_cache(maxsize=256)
def moving(kind: type[Any], names: tuple[str, ...], *, begins: bool) -> Update:
    """Set these columns where the turn is in a state of `only_from`. begins: a start that stands stays."""
    turn = kept.columns(TurnTable)
    new: dict[str, Any] = {name: kept.given(f"new_{name}") for name in names}
    if begins:
        new["started_at"] = func.coalesce(turn.started_at, bindparam("new_started_at_", type_=turn.started_at.type))
    change = update(TurnTable.__table__).where(  # type: ignore[arg-type]  # typed as what it may be, and is a table
        kept.is_own(TurnTable), turn.id == kept.given("id"), turn.state.in_(kept.several("only_from"))
    )
    return change.values(new).returning(*kept.whole(kind, TurnTable).selected_columns)


@cache
def counting() -> Update:
    """Count one more turn of the conversation; how many there are then."""
    conversation = kept.columns(ConversationTable)
    change = update(ConversationTable.__table__).where(  # type: ignore[arg-type]  # as above
        kept.is_own(ConversationTable), conversation.id == kept.given("id"), conversation.deleted_at.is_(None)
    )
    return change.values(turn_count=conversation.turn_count + 1).returning(conversation.turn_count)


def _marks() -> Select[Any]:
    turn = kept.columns(TurnTable)
    marks = select(turn.is_tainted, turn.has_read_outside, turn.has_read_private).distinct()
    return marks.where(kept.is_own(TurnTable), turn.conversation_id == kept.given("conversation_id"))


@cache
def read_upto() -> Select[Any]:
    """Read the marks of the turns up to this ordinal, of this turn and of those taken into it."""
    turn = kept.columns(TurnTable)
    own = (turn.id == kept.given("id")) | (turn.taken_by == kept.given("id"))
    return _marks().where(own | (turn.ordinal <= kept.given("upto")))


@cache
def read_from() -> Select[Any]:
    """Read the marks of the turns from this ordinal on."""
    return _marks().where(kept.columns(TurnTable).ordinal >= kept.given("ordinal"))


@lru_cache(maxsize=256)
def first_in_states(kind: type[Any]) -> Select[Any]:
    """The first turn of a conversation in one of these states, of those that live."""
    turn = kept.columns(TurnTable)
    found = kept.owned(kind, TurnTable).where(turn.conversation_id == kept.given("conversation_id"))
    found = found.where(LIVING_HERE, turn.state.in_(kept.several("states")))
    return found.order_by(turn.ordinal).limit(1)


@lru_cache(maxsize=256)
def active(kind: type[Any]) -> Select[Any]:
    """The user's turns that live, oldest first."""
    turn = kept.columns(TurnTable)
    found = kept.owned(kind, TurnTable).where(LIVING_HERE)
    return found.order_by(turn.created_at, turn.ordinal)


@lru_cache(maxsize=256)
def waiting(kind: type[Any]) -> Select[Any]:
    """The queued messages of a conversation that are in view, oldest first."""
    turn = kept.columns(TurnTable)
    found = kept.owned(kind, TurnTable).where(turn.conversation_id == kept.given("conversation_id"))
    return found.where(LIVING_HERE, turn.state == "queued", ~turn.is_dropped).order_by(turn.ordinal)


@cache
def last_in_view() -> Select[Any]:
    """The id of a conversation's last turn in view."""
    turn = kept.columns(TurnTable)
    found = select(turn.id).where(turn.conversation_id == kept.given("conversation_id"), ~turn.is_dropped)
    return found.order_by(turn.ordinal.desc()).limit(1)


@lru_cache(maxsize=256)
def unfinished(kind: type[Any], *, to_stop: bool) -> Select[Any]:
    """Everybody's turns that live, oldest first."""
    turn = kept.columns(TurnTable)
    found = kept.whole(kind, TurnTable).where(LIVING_HERE)
    found = found.where(turn.stop_asked_at.is_not(None)) if to_stop else found
    return found.order_by(turn.created_at, turn.ordinal)


@cache
def typed() -> Select[Any]:
    """The texts of a conversation's turns in view that came from no one else, in order."""
    turn = kept.columns(TurnTable)
    found = select(turn.text).where(kept.is_own(TurnTable), turn.conversation_id == kept.given("conversation_id"))
    found = found.where(~turn.is_dropped, ~turn.is_tainted, turn.channel.not_in(OTHERS))
    return found.order_by(turn.ordinal)


@lru_cache(maxsize=256)
def listed(kind: type[Any], bounds: tuple[str, ...], *, include_dropped: bool) -> Select[Any]:
    """A conversation's turns, the newest first. bounds: which of `before` (an ordinal) and `limit` are given."""
    turn = kept.columns(TurnTable)
    found = kept.owned(kind, TurnTable).where(turn.conversation_id == kept.given("conversation_id"))
    found = found if include_dropped else found.where(~turn.is_dropped)
    found = found.where(turn.ordinal < kept.given("before")) if "before" in bounds else found
    found = found.order_by(turn.ordinal.desc())
    return found.limit(kept.given("limit")) if "limit" in bounds else found
