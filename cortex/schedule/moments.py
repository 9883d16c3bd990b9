"""When a timing is due: its moments in order, through changes of the clock. No policy (`slots.py`), no words.

A wall-clock time that a change skips comes later by what was skipped (02:30 becomes 03:30: RFC 5545, 3.3.5), one that
comes twice counts the first time; a cron line with a star for minutes or hours goes by real time instead.
"""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from heapq import heappop, heappush
from itertools import islice
from typing import assert_never
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

from cortex.base.errors import ToolFailed
from cortex.ports.schedule import Timing
from cortex.schedule.cron import CronLine, parse, wall_times

LONGEST_GAP = timedelta(hours=3)  # the clock of Troll jumps by two hours, no other of today by more
STEP = timedelta(days=7)  # clocks change no oftener than that: Morocco's four weeks are the least
HORIZON = timedelta(days=366)
GIVES_UP_AFTER = timedelta(days=50 * 366)


class OffsetChange(Struct, frozen=True, kw_only=True):
    """The clock's offset is another from this moment on (UTC)."""

    at: datetime
    before: timedelta
    after: timedelta

    @property
    def shift(self) -> timedelta:
        """Return how far the clock jumps; negative when it goes back."""
        return self.after - self.before


def zone_of(name: str) -> ZoneInfo:
    """The zone of this IANA name; ToolFailed when there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ToolFailed(f"{name!r} is not a time zone. Enter one such as Europe/Berlin.") from error


def following(timing: Timing, after: datetime, count: int) -> tuple[datetime, ...]:
    """The next moments after this one, aware UTC, at most `count`; () when it is never due again."""
    return tuple(islice(moments(timing, after), count))


def moments(timing: Timing, after: datetime) -> Iterator[datetime]:
    """All moments after this one in order, aware UTC; for kind `at` one, for others as long as the calendar goes."""
    with suppress(OverflowError):  # the year 10000
        yield from _moments(timing, after.astimezone(UTC))


def _moments(timing: Timing, since: datetime) -> Iterator[datetime]:
    match timing.kind:
        case "at":
            at = datetime.fromisoformat(timing.expression).astimezone(UTC)
            return iter((at,) if at > since else ())
        case "every":
            return _every(timing, since)
        case "cron":
            line, zone = parse(timing.expression), zone_of(timing.time_zone)
            return _by_wall(line, zone, since) if line.is_wall else _by_real_time(line, zone, since)
        case "called" | "appointment":
            return iter(())
        case _:
            assert_never(timing.kind)


def first_change(zone: ZoneInfo, since: datetime, until: datetime) -> OffsetChange | None:
    """The first change of the clock after `since` and not after `until`, both UTC."""
    at, before = since, _offset(zone, since)
    while at < until:
        later = min(at + STEP, until)
        if _offset(zone, later) != before:
            return _bisected(zone, at, later)
        at = later
    return None


def changes(zone: ZoneInfo, since: datetime, until: datetime) -> Iterator[OffsetChange]:
    """Every change of the clock after `since` and not after `until`, both UTC."""
    at = since
    while found := first_change(zone, at, until):
        yield found
        at = found.at


def utc_of(wall: datetime, zone: ZoneInfo) -> datetime:
    """The moment of a wall-clock time (without a zone): the first of two, a skipped one later by what was skipped."""
    return wall.replace(tzinfo=zone, fold=0).astimezone(UTC)


def every_seconds(seconds: int, first: datetime) -> str:
    """The expression of kind `every` in real time: so many seconds from its first moment."""
    return f"{seconds} from {first.astimezone(UTC).isoformat(timespec='minutes')}"


def every_days(days: int, first: datetime) -> str:
    """The expression of kind `every` by the calendar: each so many days at the wall-clock time of the first."""
    return f"{days} days from {first.replace(tzinfo=None).isoformat(timespec='minutes')}"


def _every(timing: Timing, since: datetime) -> Iterator[datetime]:
    """Counted from the first moment, so that nothing drifts; bare seconds are counted from 1970."""
    step, _, first = timing.expression.partition(" from ")
    count, _, unit = step.partition(" ")
    if unit == "days":
        return _every_days(int(count), datetime.fromisoformat(first), zone_of(timing.time_zone), since)
    anchor = datetime.fromisoformat(first).astimezone(UTC) if first else datetime(1970, 1, 1, tzinfo=UTC)
    return _every_seconds(timedelta(seconds=int(count)), anchor, since)


def _every_seconds(step: timedelta, first: datetime, since: datetime) -> Iterator[datetime]:
    number = max(0, (since - first) // step + 1)
    while True:
        yield first + number * step
        number += 1


def _every_days(days: int, first: datetime, zone: ZoneInfo, since: datetime) -> Iterator[datetime]:
    here = since.astimezone(zone).date()
    on: date = first.date() + max(0, (here - first.date()).days // days - 1) * timedelta(days=days)
    clock: time = first.time()
    while True:
        at = utc_of(datetime.combine(on, clock), zone)
        if at > since:
            yield at
        on += timedelta(days=days)


def _by_wall(line: CronLine, zone: ZoneInfo, since: datetime) -> Iterator[datetime]:
    """Each wall-clock time once. A skipped one comes late, so what is found waits until nothing can overtake it."""
    waiting: list[datetime] = []
    last = since
    for wall in wall_times(line, _wall(since, zone) - LONGEST_GAP):
        at = utc_of(wall, zone)
        while waiting and waiting[0] + LONGEST_GAP < at:
            if (ripe := heappop(waiting)) > last:
                yield (last := ripe)
        heappush(waiting, at)
    while waiting:
        if (ripe := heappop(waiting)) > last:
            yield (last := ripe)


def _by_real_time(line: CronLine, zone: ZoneInfo, since: datetime) -> Iterator[datetime]:
    """Every minute that the clock shows and the line names: twice in an hour that comes twice, never in a skipped one.

    Between two changes the clock is a plain one, so the line is followed there without a zone.
    """
    at, gives_up = since, since + GIVES_UP_AFTER
    while at < gives_up:
        change = first_change(zone, at, at + HORIZON)
        until = change.at if change else at + HORIZON
        offset = _offset(zone, at)
        for wall in wall_times(line, (at + offset).replace(tzinfo=None)):
            found = wall.replace(tzinfo=UTC) - offset
            if found >= until:
                break
            yield found
            gives_up = found + GIVES_UP_AFTER
        at = until - timedelta(seconds=1)
        if change:
            yield from _at_change(line, change)
            at = change.at


def _at_change(line: CronLine, change: OffsetChange) -> Iterator[datetime]:
    """The moment of the change itself, if the line names what the clock shows then."""
    wall = (change.at + change.after).replace(tzinfo=None)
    if next(wall_times(line, wall - timedelta(seconds=1)), None) == wall:
        yield change.at


def _bisected(zone: ZoneInfo, since: datetime, until: datetime) -> OffsetChange:
    """The change between two moments, to the second."""
    before = _offset(zone, since)
    low, high = 0, int((until - since).total_seconds()) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(zone, since + timedelta(seconds=middle)) == before:
            low = middle
        else:
            high = middle
    at = (since + timedelta(seconds=high)).replace(microsecond=0)
    return OffsetChange(at=at, before=before, after=_offset(zone, at))


def _wall(at: datetime, zone: ZoneInfo) -> datetime:
    return at.astimezone(zone).replace(tzinfo=None)


def _offset(zone: ZoneInfo, at: datetime) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta()
