"""What is stopped until it is lifted. Every process reads it before it starts anything, so it outlives them all."""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Select, delete, exists, or_, select, update

from cortex.storage import kept
from cortex.storage.repository import SharedRepository, reading
from cortex.storage.schema import HaltTable, SlotTable, TurnTable
from cortex.storage.turn_statements import LIVING_HERE

EVERYBODY = "everybody"
OUTWARD = "outward"


class HaltRow(Struct, frozen=True, kw_only=True):
    """A stop in force. `scope`: EVERYBODY, OUTWARD (tools that reach outside), or the account whose work stands.

    `by_id`: who ordered it, "" for no account; `who`: the same in words.
    """

    scope: str
    by_id: str
    who: str
    at: datetime


class HaltsRepository(SharedRepository):
    """The stops of the whole server; who may order and lift one is the services' matter."""

    async def add(self, scope: str, by_id: str, who: str) -> bool:
        """Put it in force; False when it is already, with whoever was first. Who stands in line leaves it."""
        if scope != OUTWARD:
            whose = () if scope == EVERYBODY else (SlotTable.owner_id == scope,)
            leaving = update(SlotTable).where(SlotTable.state == "planned", SlotTable.in_line_at.is_not(None), *whose)
            await self.session.execute(leaving.values(in_line_at=None))
        values = {"scope": scope, "by_id": by_id, "who": who, "at": self.clock()}
        statement = self._upsert(HaltTable, values).on_conflict_do_nothing().returning(HaltTable.scope)
        return (await self.session.execute(statement)).first() is not None

    async def lift(self, scope: str) -> bool:
        """End it; False when it is not in force."""
        return bool(await self._touched(delete(HaltTable).where(HaltTable.scope == scope), HaltTable.scope))

    @reading
    async def list(self) -> Sequence[HaltRow]:
        """All in force, oldest first."""
        return await self._rows_of(HaltRow, _in_force())

    @reading
    async def has_work(self) -> bool:
        """Tell whether a stop is in force, or somebody asked a turn that lives to end."""
        return bool((await self._run(_has_work())).scalar_one())

    @reading
    async def of(self, user_id: str) -> HaltRow | None:
        """Return what stops this person's work now; None when it may go on."""
        return halt_of(await self.list(), user_id)


@cache
def _in_force() -> Select[Any]:
    halt = kept.columns(HaltTable)
    return kept.whole(HaltRow, HaltTable).order_by(halt.at, halt.scope)


@cache
def _has_work() -> Select[Any]:
    turn = kept.columns(TurnTable)
    asked = exists().where(LIVING_HERE, turn.stop_asked_at.is_not(None))
    return select(or_(exists().where(kept.columns(HaltTable).scope.is_not(None)), asked))


def halt_of(halts: Sequence[HaltRow], user_id: str) -> HaltRow | None:
    """The one of these that stops this person's work."""
    return next((halt for halt in halts if halt.scope in (EVERYBODY, user_id)), None)


def is_halted(owner_id: Any) -> ColumnElement[bool]:  # Any: SQLAlchemy's columns share no narrower type
    """The condition, for queries over everybody, that the owner's work is stopped."""
    return exists().where(HaltTable.scope.in_((EVERYBODY, owner_id)))
