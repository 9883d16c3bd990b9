"""Reminders as they are kept: notified when due, once each, until acknowledged. Notifying is the services' part.

A recurring one has two clocks: `next_at` goes on with its rhythm while `again_at` repeats a notice without answer.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Select, Update, and_, case, delete, func, or_, select

from cortex.base.errors import Conflict
from cortex.base.ids import new_id
from cortex.base.job import ReminderState, TimingKind
from cortex.ports.schedule import Timing
from cortex.storage.repository import Repository, SharedRepository, as_row, reading, selected
from cortex.storage.schema import AccountTable, ReminderTable
from cortex.storage.table import each_word

KEPT_FOR_RESTORE = timedelta(days=1)
DONE_KEPT_FOR = timedelta(days=90)
TOLD_MOST = 24  # notices in a row without an answer; then it waits in the list


class ReminderValues(Struct, frozen=True, kw_only=True):
    """The values of a reminder, as a person or a tool says them.

    `repeat_s`: notified again so often until acknowledged, TOLD_MOST times at most; None: once.
    """

    text: str
    timing_kind: TimingKind
    expression: str
    time_zone: str
    words: str
    repeat_s: int | None = None
    is_tainted: bool

    @property
    def timing(self) -> Timing:
        """When it is due, as the readers of time take it."""
        return Timing(kind=self.timing_kind, expression=self.expression, time_zone=self.time_zone, words=self.words)


def values_of(text: str, timing: Timing, repeat_s: int | None, *, is_tainted: bool) -> ReminderValues:
    """The values of a reminder that was read as text and timing."""
    return ReminderValues(
        text=text,
        timing_kind=timing.kind,
        expression=timing.expression,
        time_zone=timing.time_zone,
        words=timing.words,
        repeat_s=repeat_s,
        is_tainted=is_tainted,
    )


class ReminderRow(ReminderValues, frozen=True, kw_only=True):
    """A reminder as it is kept. `next_at`: of its rhythm, None when that is over.

    `due_at`: the time that was notified, not acknowledged; `again_at`: when that is repeated, or a snooze is over;
    `told_count`: how often it was notified since it came due or was put off.
    """

    id: str
    owner_id: str
    state: ReminderState
    next_at: datetime | None
    due_at: datetime | None
    again_at: datetime | None
    told_at: datetime | None
    told_count: int
    version: int
    created_at: datetime
    updated_at: datetime
    removed_at: datetime | None

    @property
    def is_given_up(self) -> bool:
        """Tell whether it was notified as often as it may be and got no answer."""
        return self.due_at is not None and self.repeat_s is not None and self.told_count >= TOLD_MOST

    @property
    def wakes_at(self) -> datetime | None:
        """When it is notified next, for the first time or again."""
        return min((at for at in (self.next_at, self.again_at) if at is not None), default=None)


class ArmedReminder(Struct, frozen=True, kw_only=True):
    """A reminder that the timer waits for, by one or both of its clocks."""

    id: str
    owner_id: str
    next_at: datetime | None
    again_at: datetime | None


class RemindersRepository(Repository):
    """The reminders of one user."""

    @reading
    async def list(
        self, states: Sequence[ReminderState] = (), words: str = "", *, skip: int = 0, limit: int | None = None
    ) -> Sequence[ReminderRow]:
        """The reminders in these states (none: all) with all words: by when they are due, then the last notified."""
        statement = self._standing().where(*each_word(words, ReminderTable.text, ReminderTable.words))
        if states:
            statement = statement.where(ReminderTable.state.in_(states))
        wakes = _wakes()
        order = (wakes.is_(None), wakes, ReminderTable.told_at.desc(), ReminderTable.id)
        return await self._all(ReminderRow, statement.order_by(*order).offset(skip).limit(limit))

    @reading
    async def count(self) -> Mapping[str, int]:
        """Return how many there are in each state."""
        statement = (
            select(ReminderTable.state, func.count())
            .where(ReminderTable.owner_id == self.owner_id, ReminderTable.removed_at.is_(None))
            .group_by(ReminderTable.state)
        )
        counts = {"planned": 0, "due": 0, "snoozed": 0, "done": 0}
        for state, count in await self.session.execute(statement):
            counts[state] = count
        return counts

    @reading
    async def get(self, id: str) -> ReminderRow:
        """The reminder; NotFound when it is absent, removed or another user's."""
        return await self._one(
            ReminderRow, self._standing().where(ReminderTable.id == id), "This reminder does not exist."
        )

    async def add(self, id: str | None, values: ReminderValues, next_at: datetime) -> ReminderRow:
        """A new one (`id` None: a fresh one); one that stands already is handed back as it is."""
        at = self.clock()
        reminder_id = id or new_id(self.clock)
        head = {"id": reminder_id, "next_at": next_at, "created_at": at, "updated_at": at}
        await self._is_new(ReminderTable, {**as_row(values, ReminderValues), **head})
        return await self.get(reminder_id)

    async def change(
        self, id: str, expected_version: int, values: ReminderValues, next_at: datetime | None
    ) -> ReminderRow:
        """Give it these values and its next time; an earlier notice of it counts as acknowledged.

        Conflict when it no longer stands at that version. A `ReminderRow` will do: the rest of it is not read.
        """
        before = await self.get(id)
        change = self._at(id).where(ReminderTable.version == expected_version)
        done: dict[str, Any] = {**as_row(values, ReminderValues), "next_at": next_at, "due_at": None, "again_at": None}
        done["state"] = "done" if next_at is None else "planned"
        if not await self._touched(change.values(**done), ReminderTable.id):
            raise Conflict(f"The reminder {before.text!r} was sent or changed in the meantime. Check it again.")
        return await self.get(id)

    async def come_due(self, id: str, due: datetime, next_at: datetime | None) -> ReminderRow | None:
        """Note that the time `due` of its rhythm is notified now, once, and what comes after; None: another did it.

        Add the notice in the same transaction (`Database.transaction`).
        """
        return await self._mark_due(
            self._at(id).where(ReminderTable.next_at == due), due_at=due, next_at=next_at, told_count=1
        )

    async def come_again(self, id: str, again: datetime) -> ReminderRow | None:
        """Note that what was due is notified again now, once; None: another did it, or it was acknowledged."""
        return await self._mark_due(
            self._at(id).where(ReminderTable.again_at == again), told_count=ReminderTable.told_count + 1
        )

    async def acknowledge(self, id: str) -> ReminderRow:
        """Note that it was heard: no further notice before its rhythm's next time. A second yes changes nothing."""
        over = case((ReminderTable.next_at.is_(None), "done"), else_="planned")
        change = self._at(id).where(ReminderTable.due_at.is_not(None))
        await self.session.execute(change.values(due_at=None, again_at=None, state=over))
        return await self.get(id)

    async def snooze(self, id: str, until: datetime) -> ReminderRow:
        """Notify again then; Conflict when there is nothing to snooze: no notice was sent, or it was acknowledged."""
        change = self._at(id).where(ReminderTable.due_at.is_not(None))
        if not await self._touched(change.values(again_at=until, state="snoozed", told_count=0), ReminderTable.id):
            before = await self.get(id)
            raise Conflict(f"The reminder {before.text!r} is not waiting for an answer.")
        return await self.get(id)

    async def skip(self, id: str, due: datetime, next_at: datetime | None) -> ReminderRow:
        """Pass over the time `due` of its rhythm, which is to come: `next_at` follows, None ends it.

        Conflict when that is not its next time any more, or was notified.
        """
        change = self._at(id).where(ReminderTable.next_at == due, ReminderTable.due_at.is_(None))
        state = "done" if next_at is None else "planned"
        if not await self._touched(change.values(next_at=next_at, state=state), ReminderTable.id):
            before = await self.get(id)
            raise Conflict(f"The reminder {before.text!r} was sent or changed in the meantime. Check it again.")
        return await self.get(id)

    async def unskip(self, id: str, due: datetime) -> ReminderRow:
        """Make `due` its next time again; one that has passed meanwhile comes due at once.

        Conflict when it was notified since, or an earlier time comes first.
        """
        is_later = or_(ReminderTable.next_at.is_(None), ReminderTable.next_at > due)
        change = self._at(id).where(ReminderTable.due_at.is_(None), is_later)
        if not await self._touched(change.values(next_at=due, state="planned"), ReminderTable.id):
            before = await self.get(id)
            raise Conflict(f"The reminder {before.text!r} was sent or changed in the meantime. Check it again.")
        return await self.get(id)

    async def wait_again(self, id: str) -> ReminderRow:
        """Take an acknowledgement or a snooze back; Conflict when there is none: it waits, or no notice was sent."""
        answered = and_(ReminderTable.told_at.is_not(None), ReminderTable.state != "due")
        due_at = func.coalesce(ReminderTable.due_at, ReminderTable.told_at)
        change = self._at(id).where(answered).values(due_at=due_at, again_at=None, state="due")
        if not await self._touched(change, ReminderTable.id):
            before = await self.get(id)
            raise Conflict(f"The reminder {before.text!r} was not answered, so there is nothing to undo.")
        return await self._repeated(await self.get(id))

    async def remove(self, ids: Sequence[str]) -> int:
        """Take them off in one step, kept for `restore` a day long; how many there were."""
        change = self._counted_up(ReminderTable.removed_at.is_(None), ReminderTable.id.in_(ids))
        return len(await self._touched(change.values(removed_at=self.clock()), ReminderTable.id))

    async def restore(self, ids: Sequence[str]) -> int:
        """Put removed ones back as they were; how many. Those whose time has passed come due at once."""
        is_kept = ReminderTable.removed_at > self.clock() - KEPT_FOR_RESTORE
        change = self._counted_up(is_kept, ReminderTable.id.in_(ids))
        return len(await self._touched(change.values(removed_at=None), ReminderTable.id))

    async def _mark_due(self, change: Update, **values: Any) -> ReminderRow | None:  # Any: the columns' own types
        at = self.clock()
        change = change.values(**values, state="due", told_at=at, again_at=None)
        touched = await self._touched(change, ReminderTable.id)
        if not touched:
            return None
        return await self._repeated(await self.get(touched[0]))

    async def _repeated(self, row: ReminderRow) -> ReminderRow:
        """The reminder, notified again as often as the person wished, from now on."""
        if row.repeat_s is None or row.is_given_up:
            return row
        repeat = self._change(ReminderTable).where(ReminderTable.id == row.id)
        await self.session.execute(repeat.values(again_at=self.clock() + timedelta(seconds=row.repeat_s)))
        return await self.get(row.id)

    def _at(self, id: str) -> Update:
        return self._counted_up(ReminderTable.id == id, ReminderTable.removed_at.is_(None))

    def _counted_up(self, *which: ColumnElement[bool]) -> Update:
        change = self._change(ReminderTable).where(*which)
        return change.values(version=ReminderTable.version + 1, updated_at=self.clock())

    def _standing(self) -> Select[Any]:
        return self._mine(ReminderRow, ReminderTable).where(ReminderTable.removed_at.is_(None))


class AllRemindersRepository(SharedRepository):
    """The reminders of everybody."""

    @reading
    async def armed(self, until: datetime | None = None) -> Sequence[ArmedReminder]:
        """Return what is due next, by `until` at the latest, soonest first; none of a closed account."""
        wakes = _wakes()
        clocks = (ReminderTable.next_at, ReminderTable.again_at)
        statement = (
            selected(ArmedReminder, ReminderTable)
            .join(AccountTable, AccountTable.id == ReminderTable.owner_id)
            .where(AccountTable.is_active, ReminderTable.removed_at.is_(None))
            .where(or_(*(clock.is_not(None) if until is None else clock <= until for clock in clocks)))
        )
        return await self._all(ArmedReminder, statement.order_by(wakes, ReminderTable.id))

    async def prune(self, done_before: datetime | None = None) -> int:
        """Forget those removed a day ago, and those that were over before then (90 days ago); how many."""
        at = self.clock()
        is_gone = ReminderTable.removed_at < at - KEPT_FOR_RESTORE
        is_over = and_(ReminderTable.state == "done", ReminderTable.updated_at < (done_before or at - DONE_KEPT_FOR))
        return len(await self._touched(delete(ReminderTable).where(or_(is_gone, is_over)), ReminderTable.id))


def _wakes() -> ColumnElement[datetime | None]:
    """The sooner of the two clocks; null when both stand."""
    sooner, later = ReminderTable.next_at, ReminderTable.again_at
    return case((sooner.is_(None), later), (later.is_(None), sooner), (sooner <= later, sooner), else_=later)
