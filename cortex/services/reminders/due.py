"""Tells reminders when they are due: a notice, once for each due moment, without a model. Called by the alarm clock.

The row moves on by compare-and-set in the transaction that writes the notice, so that two processes, a restart and a
late alarm tell it once. What came due while Cortex was down is told at the start and marked as late.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from cortex.base.errors import NotFound
from cortex.base.zone import local
from cortex.ports.schedule import Timings
from cortex.services.notifier import Notifier
from cortex.services.runtime import Runtime
from cortex.storage.db import Opener
from cortex.storage.notices import NoticeValues
from cortex.storage.reminders import TOLD_MOST, AllRemindersRepository, ReminderRow, RemindersRepository

LATE_AFTER = timedelta(minutes=2)
TITLE_CHARACTERS = 120


class Waking(Struct, frozen=True, kw_only=True):
    """A reminder as the alarm clock arms it: at the sooner of its two clocks. `fire` reads all else anew."""

    id: str
    owner_id: str
    next_at: datetime
    version: int = 0


class DueReminders(Struct, frozen=True, kw_only=True):
    """Reminders as the alarm clock sees them: those that are near, and each told when its time has come."""

    runtime: Runtime
    timings: Timings
    notifier: Notifier

    async def armed(self, until: datetime) -> Sequence[Waking]:
        """The reminders of everybody that are told by then, the soonest first."""
        rows = await self.runtime.db.repository(AllRemindersRepository).armed(until)
        moments = [(row, [at for at in (row.next_at, row.again_at) if at is not None]) for row in rows]
        return [Waking(id=row.id, owner_id=row.owner_id, next_at=min(at)) for row, at in moments]

    async def fire(self, waking: Waking) -> None:
        """Its time has come."""
        await self.tell_one(waking)

    async def tell_one(self, waking: Waking) -> bool:
        """Tell this one if it is due and nobody told it yet."""
        user_id, reminder_id = waking.owner_id, waking.id
        try:
            row = await self.runtime.db.repository(RemindersRepository, user_id).get(reminder_id)
        except NotFound:
            return False  # removed since the alarm was set
        now = self.runtime.clock()
        moments = [at for at in (row.next_at, row.again_at) if at is not None and at <= now]
        if not moments:
            return False
        key = f"reminder:{reminder_id}:{max(moments).isoformat()}"
        draft = await self.notifier.draft(user_id, key, _notice(row, now))
        async with self.runtime.db.transaction(user_id) as repository:
            is_told = await self._move_on(repository, row, now)
            if is_told:
                await draft.write(repository)
        if is_told:
            self.notifier.wake(user_id)
        return is_told

    async def _move_on(self, repository: Opener, row: ReminderRow, now: datetime) -> bool:
        """Note in the row that it is told now; False when somebody else did, or it was changed or answered."""
        if row.next_at is not None and row.next_at <= now:
            following = self.timings.following(row.timing, now, 1)
            return (
                await repository(RemindersRepository).come_due(row.id, row.next_at, next(iter(following), None))
                is not None
            )
        return (
            row.again_at is not None
            and await repository(RemindersRepository).come_again(row.id, row.again_at) is not None
        )


def _notice(row: ReminderRow, now: datetime) -> NoticeValues:
    return NoticeValues(
        kind="reminder",
        title=row.text[:TITLE_CHARACTERS],
        text=_words(row, now),
        path="/reminders",
        tag=f"reminder-{row.id}",
        urgency="important",
        actions=("ack", "snooze"),
        subject_id=row.id,
        is_tainted=row.is_tainted,
    )


def _words(row: ReminderRow, now: datetime) -> str:
    """Return what stands below the title: since when it is due, and that it is late or told again."""
    is_new = row.next_at is not None and row.next_at <= now
    due = row.next_at if is_new else row.due_at
    if due is None:
        return "Reminder."
    here = local(due, row.time_zone)
    is_today = here.date() == local(now, row.time_zone).date()
    moment = f"{here:%H:%M}" if is_today else f"{here:%A} {here.date().isoformat()} at {here:%H:%M}"
    since = f"it was due {'at' if is_today else 'on'} {moment}."
    if is_new:
        return f"Late: {since}" if now - due > LATE_AFTER else f"Reminder for {moment}."
    if row.repeat_s is not None and row.told_count + 1 == TOLD_MOST:
        return f"Again, for the last time: {since} It stays under Reminders until you mark it done."
    return f"Again: {since}"
