"""Finds the slots that are due between two moments, and what becomes of each: it runs, or it is missed and why.

The table of slots is `storage`'s; this decides from the last slot, the present moment and the job's policy.
"""

from datetime import datetime, timedelta
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from cortex.ports.schedule import Timing
from cortex.schedule.moments import following, moments
from cortex.schedule.policies import MissedPolicy

LISTED_MOST = 1_000
MADE_UP = "a later one ran for it"


class MissedSlot(Struct, frozen=True, kw_only=True):
    """A slot that will not run; `why` is shown."""

    slot: datetime
    why: str


class DueSlots(Struct, frozen=True, kw_only=True):
    """The decision for a job. `run` and `missed` are in order, aware UTC; `next_at` is None when it is never due again.

    `unlisted`: (after, until) of older slots that were missed too, too many to name one by one; None as a rule.
    """

    run: tuple[datetime, ...] = ()
    missed: tuple[MissedSlot, ...] = ()
    unlisted: tuple[datetime, datetime] | None = None
    next_at: datetime | None = None

    @property
    def last_slot(self) -> datetime | None:
        """The newest slot that is decided: from here on the next decision looks."""
        slots = [*self.run, *(one.slot for one in self.missed)]
        return max(slots, default=None)


def slots_between(timing: Timing, after: datetime, until: datetime) -> tuple[datetime, ...]:
    """Every slot after the first moment and not after the second, in order, aware UTC."""
    return tuple(takewhile(lambda at: at <= until, moments(timing, after)))


def newest_slots(timing: Timing, after: datetime, until: datetime, most: int) -> tuple[tuple[datetime, ...], datetime]:
    """The newest slots of that span, a few more than `most` at times, and from when on they are complete.

    Looks back in growing steps, so that a year of minutes costs no more than a day of them.
    """
    back = timedelta(hours=1)
    while True:
        since = max(after, until - back)
        found = slots_between(timing, since, until)
        if len(found) >= most or since == after:
            return found, since
        back *= 2


def due(timing: Timing, last_slot: datetime, now: datetime, policy: MissedPolicy) -> DueSlots:
    """Return what becomes of the slots after `last_slot` up to `now`. Every slot ends in `run`, `missed` or `unlisted`.

    `last_slot`: the newest slot that was decided before, or when the job was made or switched on.
    """
    slots, since = newest_slots(timing, last_slot, now, LISTED_MOST)
    found = decided(slots, now, policy, next(iter(following(timing, now, 1)), None))
    is_more = since > last_slot and _has_slots(timing, last_slot, since)
    return replace(found, unlisted=(last_slot, since)) if is_more else found


def decided(slots: tuple[datetime, ...], now: datetime, policy: MissedPolicy, next_at: datetime | None) -> DueSlots:
    """Return what becomes of these slots, none of which is still to come."""
    run, missed = _sorted_out(slots, now, policy)
    return DueSlots(run=run, missed=missed, next_at=next_at)


def _has_slots(timing: Timing, after: datetime, until: datetime) -> bool:
    first = next(moments(timing, after), None)
    return first is not None and first <= until


def _sorted_out(
    slots: tuple[datetime, ...], now: datetime, policy: MissedPolicy
) -> tuple[tuple[datetime, ...], tuple[MissedSlot, ...]]:
    """The slots that run and the others with their reason."""
    within_s = policy.fire_within_s if policy.on_miss != "skip" else min(policy.grace_s, policy.fire_within_s)
    late = timedelta(seconds=within_s)
    in_time = [slot for slot in slots if now - slot <= late]
    most = policy.catchup_most if policy.on_miss == "catchup" else 1
    run = in_time[len(in_time) - min(most, len(in_time)) :]
    kept = set(run)
    why_late = f"it was more than {_length(within_s)} late"
    why_more = f"{most} at most are caught up" if policy.on_miss == "catchup" else MADE_UP
    missed = tuple(
        MissedSlot(slot=slot, why=why_late if now - slot > late else why_more) for slot in slots if slot not in kept
    )
    return tuple(run), missed


def _length(seconds: int) -> str:
    """`15 minutes`, `24 hours`, `90 seconds`."""
    for size, name in ((3600, "hour"), (60, "minute")):
        if seconds >= size and seconds % size == 0:
            count = seconds // size
            return f"{count} {name}{'' if count == 1 else 's'}"
    return f"{seconds} second{'' if seconds == 1 else 's'}"
