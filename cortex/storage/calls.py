"""Uses of tools, kept from the gate's word to the result: intent, effect, done, so that none happens twice.

How tools fare over the whole server is counted here too: what was said in a call stays its owner's.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, Literal, NotRequired, TypedDict, Unpack

from msgspec import Struct
from sqlalchemy import ColumnElement, Select, Update, and_, case, func, select, update

from cortex.storage import kept
from cortex.storage.repository import Repository, SharedRepository, as_row, each, reading, selected
from cortex.storage.schema import CallTable, TurnTable, UndoTable

Came = Literal["", "rescued", "discovered", "missing"]
CallState = Literal["decided", "intended", "done", "failed", "unknown", "refused"]


class CallRow(Struct, frozen=True, kw_only=True):
    """A call. `id` is unique on the server; `arguments` is canonical JSON; `spill` names the file of a long result.

    is_rescued: the turn's first request did not carry this tool. came: how it was had then, at its first call.
    """

    id: str
    turn_id: str
    conversation_id: str
    round: int
    name: str
    arguments: str
    arguments_hash: str
    risk: str
    state: CallState = "decided"
    text: str = ""
    is_error: bool = False
    is_tainted: bool = False
    is_rescued: bool = False
    came: Came = ""
    ms: int | None = None
    spill: str | None = None
    created_at: datetime | None = None


class CallEnd(TypedDict):
    """The end of a call: `ms` it took; `spill` names the file of a long result."""

    text: str
    is_error: NotRequired[bool]
    is_tainted: bool
    ms: NotRequired[int | None]
    spill: NotRequired[str | None]


class CallsRepository(Repository):
    """The calls of a user's turns."""

    async def decided(self, call: CallRow) -> bool:
        """Keep the gate's word on a call (`created_at` is set here); False when it stands already, as it is.

        NotFound for a foreign turn.
        """
        await self._must_own(TurnTable, call.turn_id, "turn")
        return await self._is_new(CallTable, {**as_row(call), "created_at": self.clock()})

    async def intend(self, call_id: str) -> CallRow | None:
        """Record that the call is about to act; None when that stood before: it may or may not have happened."""
        return await self._row_of(CallRow, _intending(), id=call_id)

    async def keep_target(self, call_id: str, target: dict[str, Any]) -> dict[str, Any]:
        """Keep what the call acts on, ahead of its act, until it has ended; what stands: what was kept first stays."""
        is_open = (CallTable.acts_on.is_(None), CallTable.state.in_(("decided", "intended")))
        change = self._change(CallTable).where(CallTable.id == call_id, *is_open)
        if await self._touched(change.values(acts_on=target), CallTable.id):
            return target
        return await self.target(call_id) or target

    async def forget_targets(self, turn_id: str) -> None:
        """Let go of what the calls of a turn act on that has ended in their middle: nobody runs them again."""
        change = self._change(CallTable).where(CallTable.turn_id == turn_id, CallTable.acts_on.is_not(None))
        await self.session.execute(change.values(acts_on=None))

    @reading
    async def target(self, call_id: str) -> dict[str, Any] | None:
        """Return what an earlier try of this call acts on; None when it died before it knew."""
        mine = (CallTable.owner_id == self.owner_id, CallTable.id == call_id)
        return (await self.session.execute(select(CallTable.acts_on).where(*mine))).scalar_one_or_none()

    async def finish(self, call_id: str, state: CallState, **end: Unpack[CallEnd]) -> bool:
        """Keep how the call ended, once; False when an ending stands already. NotFound for a foreign call."""
        values = {"state": state, **end, "acts_on": None}
        new = {f"new_{name}": value for name, value in values.items()}
        if (await self._run(_finishing(tuple(values)), id=call_id, **new)).first() is not None:
            return True
        await self.get(call_id)
        return False

    @reading
    async def get(self, call_id: str) -> CallRow:
        """The call; NotFound when it is absent or another user's."""
        return await self._get(CallRow, CallTable, call_id, "This call does not exist.")

    @reading
    async def of_turn(self, turn_id: str) -> Sequence[CallRow]:
        """The calls of a turn, in order."""
        return await self._where(CallRow, CallTable, "round", "created_at", "id", turn_id=turn_id)

    @reading
    async def standing(self, turn_ids: Iterable[str]) -> Sequence[CallRow]:
        """The calls of these turns that ended well and were not taken back, in order."""
        ways = select(func.count()).where(UndoTable.call_id == CallTable.id, UndoTable.used_at.is_not(None))
        undone = ways.scalar_subquery() % 2 == 1  # a second one took the first back
        statement = selected(CallRow, CallTable).where(
            self._checked(CallTable), CallTable.turn_id.in_(turn_ids), CallTable.state == "done", ~undone
        )
        return await self._all(CallRow, statement.order_by(CallTable.created_at, CallTable.id))

    @reading
    async def tainted_last(self, conversation_id: str, but: str) -> CallRow | None:
        """The last call in a conversation that brought text from outside, none of a dropped turn; `but`: without."""
        return await self._row_of(CallRow, _tainted_last(), conversation_id=conversation_id, but=but)

    @reading
    async def of_tool(self, name: str, limit: int) -> Sequence[CallRow]:
        """The user's last calls of a tool, newest first."""
        statement = self._mine(CallRow, CallTable).where(CallTable.name == name)
        return await self._all(CallRow, statement.order_by(CallTable.created_at.desc(), CallTable.id).limit(limit))


@cache
def _intending() -> Update:
    call = kept.columns(CallTable)
    change = update(CallTable.__table__).where(kept.is_own(CallTable), call.id == kept.given("id"))  # type: ignore[arg-type]
    return (
        change.where(call.state == "decided")
        .values(state="intended")
        .returning(*kept.whole(CallRow, CallTable).selected_columns)
    )


@lru_cache(maxsize=256)
def _finishing(names: tuple[str, ...]) -> Update:
    call = kept.columns(CallTable)
    change = update(CallTable.__table__).where(kept.is_own(CallTable), call.id == kept.given("id"))  # type: ignore[arg-type]
    change = change.where(call.state.in_(("decided", "intended")))
    return change.values({name: kept.given(f"new_{name}") for name in names}).returning(call.id)


@cache
def _tainted_last() -> Select[Any]:
    call, turn = kept.columns(CallTable), kept.columns(TurnTable)
    found = kept.owned(CallRow, CallTable).join(TurnTable.__table__, turn.id == call.turn_id)
    found = found.where(call.conversation_id == kept.given("conversation_id"), ~turn.is_dropped)
    found = found.where(call.is_tainted, call.id != kept.given("but"))
    return found.order_by(turn.ordinal.desc(), call.round.desc(), call.created_at.desc()).limit(1)


RAN: tuple[CallState, ...] = ("done", "failed", "unknown")
FAILED: tuple[CallState, ...] = ("failed", "unknown")


class ToolOutcomes(Struct, frozen=True, kw_only=True):
    """The outcomes of a tool's calls. `rescued`: those whose turn began without it; `failed_at`: the last time."""

    name: str
    calls: int
    rescued: int
    failures: int
    failed_at: datetime | None


class UseOfTool(Struct, frozen=True, kw_only=True):
    """One call, without its words."""

    id: str
    owner_id: str
    conversation_id: str
    state: CallState
    is_rescued: bool
    ms: int | None
    created_at: datetime


class ToolUsesRepository(SharedRepository):
    """Reads the calls of everybody, as figures."""

    @reading
    async def by_tool(self, since: datetime) -> Sequence[ToolOutcomes]:
        """One row for each tool that was called since then."""
        has_run, has_failed = CallTable.state.in_(RAN), CallTable.state.in_(FAILED)
        columns: tuple[ColumnElement[Any], ...] = (
            func.sum(case((has_run, 1), else_=0)).label("calls"),
            func.sum(case((and_(has_run, CallTable.is_rescued), 1), else_=0)).label("rescued"),
            func.sum(case((has_failed, 1), else_=0)).label("failures"),
            func.max(case((has_failed, CallTable.created_at))).label("failed_at"),
        )
        names = each(CallTable.name)  # one after the other, so that the index gives the calls of each since then alone
        statement = select(names.c.value.label("name"), *columns).join(CallTable, CallTable.name == names.c.value)
        statement = statement.where(CallTable.created_at >= since)
        return await self._all(ToolOutcomes, statement.group_by(names.c.value).order_by(names.c.value))

    @reading
    async def of_tool(self, name: str, limit: int = 20) -> Sequence[UseOfTool]:
        """The last calls of a tool, newest first."""
        statement = selected(UseOfTool, CallTable).where(CallTable.name == name)
        return await self._all(UseOfTool, statement.order_by(CallTable.created_at.desc(), CallTable.id).limit(limit))
