"""The ledger of slots: each due time of a job ends, once. What is due and what a policy says is not known here.

Bars, means and the history stand in `slot_history.py`; `AllSlotsRepository` is for the start and for housekeeping.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from msgspec import Struct
from sqlalchemy import ColumnElement, Select, case, delete, func, or_, select
from sqlalchemy.orm import aliased

from cortex.base.errors import NotFound
from cortex.base.ids import digest
from cortex.base.job import SLOT_ENDS, SlotState
from cortex.base.turn import TurnState
from cortex.storage.halts import is_halted
from cortex.storage.repository import Repository, SharedRepository, reading, selected
from cortex.storage.schema import AccountTable, JobTable, SlotTable, TurnTable

RESULT_CHARACTERS = 2_000
KEPT_A_JOB = 1_000
KEPT_FOR = timedelta(days=365)
KEPT_ANYHOW = 14  # what the bars show
_PRUNED_AT_ONCE = 500  # nobody else writes meanwhile


class SlotRow(Struct, frozen=True, kw_only=True):
    """A slot. `attempt`: how often it was started; `ready_at`: not before then; `result`: its first characters.

    `in_line_at`: since when it waits for a free place alone, and is late rather than missed.

    `started_at`, `turn_id`: of the last attempt (not every one has a turn); `why`: how it came to its state, shortly.
    `cost_usd`, `tokens`: of all attempts; None: no price is known.
    """

    id: str
    job_id: str
    owner_id: str
    due_at: datetime
    state: SlotState
    why: str
    is_by_hand: bool
    attempt: int
    ready_at: datetime | None
    in_line_at: datetime | None
    turn_id: str | None
    started_at: datetime | None
    ended_at: datetime | None
    result: str
    result_hash: str
    cost_usd: float | None
    tokens: int


class RunningSlot(SlotRow, frozen=True, kw_only=True):
    """A slot that runs, with the state of its turn; None when it has none."""

    turn_state: TurnState | None


class SlotEnd(Struct, frozen=True, kw_only=True):
    """The meaning of an ending. `failures`: of the job, in a row; `has_changed`: other than the last good result."""

    slot: SlotRow
    failures: int
    has_changed: bool


class Misses(Struct, frozen=True, kw_only=True):
    """The number of slots of a job that were missed, from the first one on."""

    first: datetime
    count: int


def slot_id(job_id: str, due_at: datetime) -> str:
    """The id that the slot always has, by the second: `cron:{job}:20261121T090000Z`."""
    return f"cron:{job_id}:{due_at.astimezone(UTC):%Y%m%dT%H%M%SZ}"


class SlotsRepository(Repository):
    """The slots of one user's jobs."""

    async def write_down(
        self,
        job_id: str,
        due_at: datetime,
        *,
        state: SlotState = "planned",
        why: str = "",
        is_by_hand: bool = False,
    ) -> bool:
        """Write the slot down; False when it stands already, as it is. NotFound for a foreign or removed job."""
        if (await self.session.execute(self._job(JobTable.id == job_id))).first() is None:
            raise NotFound("This job does not exist.")
        row = {**_slot(job_id, due_at), "state": state, "why": why, "is_by_hand": is_by_hand}
        row["ended_at"] = self.clock() if state in SLOT_ENDS else None
        return await self._is_new(SlotTable, row)

    async def miss(self, job_id: str, missed: Mapping[datetime, str]) -> int:
        """Write these down as missed, with why, in one statement; how many did not stand already. Of an own job."""
        at = self.clock()
        rows = [
            {**_slot(job_id, due_at), "state": "missed", "why": why, "ended_at": at} for due_at, why in missed.items()
        ]
        if not rows or (await self.session.execute(self._job(JobTable.id == job_id))).first() is None:
            return 0
        # The id holds job and due time: a slot that stands has been decided before, and stays.
        statement = self._insert(SlotTable, *rows).on_conflict_do_nothing().returning(SlotTable.id)
        return len((await self.session.execute(statement)).all())

    async def give_up(self, ids: Sequence[str], why: str, *, state: Literal["missed", "skipped"] = "missed") -> int:
        """End those of these that still wait to begin; how many that were."""
        change = self._change(SlotTable).where(SlotTable.id.in_(ids), SlotTable.state == "planned")
        values = {"state": state, "why": why, "ready_at": None, "ended_at": self.clock()}
        return len(await self._touched(change.values(**values), SlotTable.id))

    async def withdraw(self, id: str, why: str) -> bool:
        """End it as stopped, unless it was begun before."""
        change = self._change(SlotTable).where(SlotTable.id == id, SlotTable.state == "planned", SlotTable.attempt == 0)
        values = {"state": "stopped", "why": why, "ready_at": None, "ended_at": self.clock()}
        return bool(await self._touched(change.values(**values), SlotTable.id))

    @reading
    async def missed_since(self, id: str, *, but: str) -> Misses | None:
        """The missed slots of this one's job from this one on, but those with that reason; None when it is gone."""
        first = select(SlotTable.job_id, SlotTable.due_at).where(SlotTable.id == id).subquery()
        columns: tuple[ColumnElement[Any], ...] = (
            func.min(SlotTable.due_at).label("first"),
            func.count().label("count"),
        )
        statement = (
            select(*columns)
            .join(first, (first.c.job_id == SlotTable.job_id) & (first.c.due_at <= SlotTable.due_at))
            .where(SlotTable.owner_id == self.owner_id, SlotTable.state == "missed", SlotTable.why != but)
        )
        found = await self._first(Misses, statement)
        return found if found and found.count else None

    @reading
    async def get(self, id: str) -> SlotRow:
        """The slot; NotFound when it is absent or another user's."""
        return await self._get(SlotRow, SlotTable, id, "This run does not exist.")

    @reading
    async def open_of(self, job_id: str) -> Sequence[SlotRow]:
        """The job's slots that have not ended, oldest first."""
        statement = self._mine(SlotRow, SlotTable).where(
            SlotTable.job_id == job_id, SlotTable.state.in_(("planned", "running"))
        )
        return await self._all(SlotRow, statement.order_by(SlotTable.due_at))

    @reading
    async def standing(self, job_id: str, since: datetime) -> frozenset[datetime]:
        """The due times of the job after this one that have a slot, however it stands."""
        statement = select(SlotTable.due_at).where(
            SlotTable.owner_id == self.owner_id, SlotTable.job_id == job_id, SlotTable.due_at > since
        )
        return frozenset((await self.session.execute(statement)).scalars())

    async def start(self, id: str, turn_id: str | None = None) -> bool:
        """Begin an attempt; False when it does not wait (any more): another began it, or it has ended.

        Nor does a slot of a job that was removed begin, or of a paused one, but by hand; none while work is stopped.
        """
        is_on = or_(JobTable.is_enabled, SlotTable.is_by_hand)
        may_run = self._job(is_on, JobTable.id == SlotTable.job_id, ~is_halted(JobTable.owner_id))
        change = self._change(SlotTable).where(SlotTable.id == id, SlotTable.state == "planned", may_run.exists())
        values: dict[str, Any] = {"state": "running", "why": "", "ready_at": None, "started_at": self.clock()}
        values |= {"attempt": SlotTable.attempt + 1, "turn_id": turn_id}
        return bool(await self._touched(change.values(**values), SlotTable.id))

    async def again(
        self, id: str, attempt: int, ready_at: datetime, why: str, *, cost_usd: float | None = None, tokens: int = 0
    ) -> bool:
        """Let a slot wait for its next attempt, with what this one took; False when this attempt does not run."""
        change = self._change(SlotTable).where(*_running(id, attempt))
        values = {"state": "planned", "ready_at": ready_at, "in_line_at": None, "why": why, **_took(cost_usd, tokens)}
        return bool(await self._touched(change.values(**values), SlotTable.id))

    async def end(
        self,
        id: str,
        state: SlotState,
        *,
        why: str = "",
        result: str = "",
        attempt: int | None = None,
        cost_usd: float | None = None,
        tokens: int = 0,
    ) -> SlotEnd | None:
        """End it, once, and count the job's failures; None when it has ended before. NotFound for a foreign one.

        `attempt`: end it only while this attempt runs; None: whatever it waits for. `cost_usd`, `tokens`: of this
        attempt. Only a failure counts as one, and only a success ends the count.
        """
        if state not in SLOT_ENDS:
            raise ValueError(f"{state!r} is no ending of a slot")
        is_open = (SlotTable.id == id, SlotTable.state.not_in(SLOT_ENDS)) if attempt is None else _running(id, attempt)
        change = self._change(SlotTable).where(*is_open)
        values: dict[str, Any] = {"state": state, "why": why, "ready_at": None, "ended_at": self.clock()}
        values |= {"result": result[:RESULT_CHARACTERS], "result_hash": digest(result)}
        touched = await self._touched(change.values(**values, **_took(cost_usd, tokens)), SlotTable.id)
        slot = await self.get(id)
        if not touched:
            return None
        failures = await self._count_failure(slot.job_id, state)
        has_changed = slot.result_hash != await self._good_hash_before(slot)
        return SlotEnd(slot=slot, failures=failures, has_changed=has_changed)

    def _job(self, *which: ColumnElement[bool]) -> Select[Any]:
        return select(JobTable.id).where(JobTable.owner_id == self.owner_id, JobTable.removed_at.is_(None), *which)

    async def _count_failure(self, job_id: str, state: SlotState) -> int:
        is_failure, is_good = state == "failed", state == "done"
        count = 0 if is_good else JobTable.failures + int(is_failure)
        change = self._change(JobTable).where(JobTable.id == job_id).values(failures=count)
        return int((await self._touched(change, JobTable.failures))[0])

    async def _good_hash_before(self, slot: SlotRow) -> str | None:
        statement = select(SlotTable.result_hash).where(
            SlotTable.owner_id == self.owner_id,
            SlotTable.job_id == slot.job_id,
            SlotTable.state == "done",
            SlotTable.due_at < slot.due_at,
        )
        return (await self.session.execute(statement.order_by(SlotTable.due_at.desc()).limit(1))).scalar()


class AllSlotsRepository(SharedRepository):
    """The slots of everybody."""

    @reading
    async def ready(self, limit: int = 100) -> Sequence[SlotRow]:
        """The slots that wait and that `start` would take now; none of a closed account.

        The longest due first, but a person's second one comes behind everybody's first, and those at work count as
        well; messages, which nobody waits for, are counted apart.
        """
        columns = tuple(getattr(SlotTable, name) for name in SlotRow.__struct_fields__)
        return await self._all(SlotRow, in_order(columns, self.clock()).limit(limit))

    @reading
    async def running(self) -> Sequence[RunningSlot]:
        """Every slot that runs, with its turn's state: what a killed process left behind is found by it."""
        statement = selected(SlotRow, SlotTable).add_columns(TurnTable.state.label("turn_state"))
        statement = statement.outerjoin(TurnTable, TurnTable.id == SlotTable.turn_id)
        order = (SlotTable.due_at, SlotTable.id)
        return await self._all(RunningSlot, statement.where(SlotTable.state == "running").order_by(*order))

    async def prune(self, before: datetime | None = None, keep: int = KEPT_A_JOB) -> int:
        """Forget ended slots due before then (a year ago), and all but the newest `keep` of a job; how many.

        The newest 14 of a job stay however old they are. At most 500 at once: call it until there is none.
        """
        rank = func.row_number().over(partition_by=SlotTable.job_id, order_by=SlotTable.due_at.desc())
        ranked = select(SlotTable.id, SlotTable.state, SlotTable.due_at, rank.label("rank")).subquery()
        is_old = ranked.c.due_at < (before or self.clock() - KEPT_FOR)
        found = (
            select(ranked.c.id)
            .where(ranked.c.state.in_(SLOT_ENDS))
            .where(or_(ranked.c.rank > keep, is_old & (ranked.c.rank > KEPT_ANYHOW)))
            .limit(_PRUNED_AT_ONCE)
        )
        return len(await self._touched(delete(SlotTable).where(SlotTable.id.in_(found)), SlotTable.id))


def in_order(columns: Sequence[Any], now: datetime, *, with_place: bool = False) -> Select[Any]:
    """These columns of the slots that wait and may begin, joined with their jobs, in the order in which they begin.

    with_place: with one more, `place`, the first by which they are ordered; due time and id come behind it.
    """
    line = (SlotTable.owner_id, JobTable.kind == "message")
    going, turn = aliased(SlotTable), aliased(TurnTable)
    at_work = (
        select(going.owner_id, func.count().label("runs"))
        .join(turn, turn.id == going.turn_id)
        .where(going.state == "running", turn.state.in_(("queued", "running")))
        .group_by(going.owner_id)
        .subquery()
    )
    of_own = func.row_number().over(partition_by=line, order_by=(SlotTable.due_at, SlotTable.id))
    place = of_own + case((JobTable.kind == "message", 0), else_=func.coalesce(at_work.c.runs, 0))
    return (
        select(*columns, *([place.label("place")] if with_place else []))
        .join(JobTable, JobTable.id == SlotTable.job_id)
        .join(AccountTable, AccountTable.id == SlotTable.owner_id)
        .outerjoin(at_work, at_work.c.owner_id == SlotTable.owner_id)
        .where(JobTable.removed_at.is_(None), or_(JobTable.is_enabled, SlotTable.is_by_hand))
        .where(AccountTable.is_active, ~is_halted(SlotTable.owner_id), SlotTable.state == "planned")
        .where(or_(SlotTable.ready_at.is_(None), SlotTable.ready_at <= now))
        .order_by(place, SlotTable.due_at, SlotTable.id)
    )


def _slot(job_id: str, due_at: datetime) -> dict[str, Any]:
    due = due_at.astimezone(UTC).replace(microsecond=0)
    return {"id": slot_id(job_id, due_at), "job_id": job_id, "due_at": due}


def _running(id: str, attempt: int) -> tuple[ColumnElement[bool], ...]:
    """That this attempt of the slot runs: another process may have ended it, and begun the next one."""
    return SlotTable.id == id, SlotTable.state == "running", SlotTable.attempt == attempt


def _took(cost_usd: float | None, tokens: int) -> dict[str, Any]:
    """The changes that add what an attempt took; an unknown price adds nothing to a known one."""
    cost = SlotTable.cost_usd if cost_usd is None else func.coalesce(SlotTable.cost_usd, 0.0) + cost_usd
    return {"cost_usd": cost, "tokens": SlotTable.tokens + tokens}
