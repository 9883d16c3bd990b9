"""Says what a change of the clock means for a timing, in a line for the page and the command line.

`the clock jumps 02:00 -> 03:00 on 2027-03-28; 02:30 does not exist then, so it runs at 03:30`.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import takewhile
from zoneinfo import ZoneInfo

from msgspec import Struct

from cortex.ports.schedule import Timing
from cortex.schedule.cron import parse, wall_times
from cortex.schedule.moments import OffsetChange, changes, utc_of, zone_of

TIMES_NAMED = 3


class ClockChange(Struct, frozen=True, kw_only=True):
    """A day on which the zone's clock jumps or goes back, and what the timing does then, as one sentence."""

    day: date
    words: str


def clock_changes(timing: Timing, times: Sequence[datetime], since: datetime) -> tuple[ClockChange, ...]:
    """The changes of the clock from the day of `since` to that of the last time, where the timing names that day.

    `times`: moments of this timing in order, as `following` gives them.
    """
    if not times:
        return ()
    zone = zone_of(timing.time_zone)
    since, until = _midnight(since, zone, 0), _midnight(times[-1], zone, 1)
    shown = [
        _change_shown(timing, change, zone, times) for change in changes(zone, since, until - timedelta(seconds=1))
    ]
    return tuple(one for one in shown if one)


def _change_shown(
    timing: Timing, change: OffsetChange, zone: ZoneInfo, times: Sequence[datetime]
) -> ClockChange | None:
    """The sentence of one change; None where the timing has nothing to do that day."""
    shows, becomes = _shown(change.at, change.before), _shown(change.at, change.after)
    day = min(shows, becomes).date()
    runs = [at for at in times if at.astimezone(zone).date() == day]
    effect = _effect(timing, change, zone, runs)
    if not effect:
        return None
    verb = "jumps" if change.shift > timedelta() else "goes back"
    head = f"the clock {verb} {shows:%H:%M} -> {becomes:%H:%M} on {day}"
    return ClockChange(day=day, words=f"{head}; {effect}")


def _effect(timing: Timing, change: OffsetChange, zone: ZoneInfo, runs: Sequence[datetime]) -> str:
    """Return what the timing does that day; "" for nothing at all."""
    named = _named(timing, change)
    is_wall = timing.kind != "cron" or parse(timing.expression).is_wall
    if named and is_wall:
        return _by_wall(named, change, zone)
    if named and change.shift > timedelta() and not runs:
        return f"{_clocks(named)} {_do(named)} not exist then, so it does not run that day"
    if not runs:
        return ""
    if not named and not _is_interval(timing):
        return "its times stand"
    return "it goes on by real time" + ("" if change.shift > timedelta() else ", also in the time that comes twice")


def _by_wall(named: Sequence[datetime], change: OffsetChange, zone: ZoneInfo) -> str:
    if change.shift > timedelta():
        later = [utc_of(wall, zone).astimezone(zone) for wall in named]
        return f"{_clocks(named)} {_do(named)} not exist then, so it runs at {_clocks(later)} instead"
    return f"{_clocks(named)} {'comes' if len(named) == 1 else 'come'} twice, and it runs the first time only"


def _named(timing: Timing, change: OffsetChange) -> list[datetime]:
    """The wall-clock times of the timing that the change skips or shows twice."""
    low, high = sorted((_shown(change.at, change.before), _shown(change.at, change.after)))
    match timing.kind, _is_interval(timing):
        case "cron", _:
            found = wall_times(parse(timing.expression), low - timedelta(seconds=1))
            return list(takewhile(lambda wall: wall < high, found))
        case "every", False:
            return _day_times(timing, low, high)
        case _:
            return []


def _day_times(timing: Timing, low: datetime, high: datetime) -> list[datetime]:
    """The same for every so many days."""
    count, _, first = timing.expression.partition(" days from ")
    start = datetime.fromisoformat(first)
    days = {low.date(), high.date()}
    walls = [datetime.combine(day, start.time()) for day in sorted(days)]
    return [w for w in walls if low <= w < high and w >= start and (w.date() - start.date()).days % int(count) == 0]


def _is_interval(timing: Timing) -> bool:
    """Tell whether it counts real time from its first moment."""
    return timing.kind == "every" and " days from " not in timing.expression


def _clocks(walls: Sequence[datetime]) -> str:
    shown = [f"{wall:%H:%M}" for wall in walls[:TIMES_NAMED]]
    return ", ".join(shown) + (f" and {len(walls) - TIMES_NAMED} more" if len(walls) > TIMES_NAMED else "")


def _do(walls: Sequence[datetime]) -> str:
    return "does" if len(walls) == 1 else "do"


def _shown(at: datetime, offset: timedelta) -> datetime:
    """Return what a clock of this offset shows."""
    return (at + offset).replace(tzinfo=None)


def _midnight(at: datetime, zone: ZoneInfo, days: int) -> datetime:
    on = at.astimezone(zone).date() + timedelta(days=days)
    return datetime.combine(on, datetime.min.time(), zone).astimezone(UTC)
