"""Another reader of cron lines, written to be obviously right and slow: it looks at every minute of the clock.

Shares nothing with `cortex.schedule`: fields are split here, a skipped hour is found by the minutes that are absent.
"""

import calendar
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
LIMITS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTHS = ("", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")


def unnamed(field: str, names: tuple[str, ...]) -> str:
    """A field with numbers for names."""
    for number, name in enumerate(names):
        field = field.upper().replace(name, str(number)) if name else field
    return field


@cache
def numbers(field: str, low: int, high: int) -> set[int]:
    """A field of plain numbers, ranges and steps."""
    out: set[int] = set()
    for term in field.split(","):
        span, _, step = term.partition("/")
        first, _, last = span.partition("-")
        start, end = (low, high) if first == "*" else (int(first), int(last or (high if step else first)))
        out |= set(range(start, end + 1, int(step or 1)))
    return out


@cache
def is_day(line: str, on: date) -> bool:
    """Whether the line's day, month and weekday fields name this date."""
    _, _, days, months, weekdays = line.split()
    months, weekdays = unnamed(months, MONTHS), unnamed(weekdays, WEEKDAYS)
    if on.month not in numbers(months, 1, 12):
        return False
    last = calendar.monthrange(on.year, on.month)[1]
    by_month = on.day == last if days == "L" else on.day in numbers(days, 1, 31)
    cron_day = (on.weekday() + 1) % 7
    if "#" in weekdays:
        wanted, nth = map(int, weekdays.split("#"))
        by_week = wanted % 7 == cron_day and (on.day - 1) // 7 + 1 == nth
    elif weekdays.endswith("L"):
        by_week = int(weekdays[:-1]) % 7 == cron_day and on.day + 7 > last
    else:
        by_week = cron_day in {one % 7 for one in numbers(weekdays, 0, 7)}
    either = not (days.startswith("*") or weekdays.startswith("*"))
    return (by_month or by_week) if either else (by_month and by_week)


def names(line: str, wall: datetime) -> bool:
    """Whether the line names this minute of a clock."""
    minutes, hours, *_ = line.split()
    if wall.minute not in numbers(minutes, 0, 59) or wall.hour not in numbers(hours, 0, 23):
        return False
    return is_day(line, wall.date())


def shown(zone: ZoneInfo, since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Each minute of real time with what the clock shows then."""
    at = since
    while at <= until:
        yield at, at.astimezone(zone).replace(tzinfo=None)
        at += MINUTE


def moments(line: str, zone: ZoneInfo, after: datetime, until: datetime) -> list[datetime]:
    """Every moment after the first and not after the second, both full minutes in UTC."""
    wide = list(shown(zone, after - timedelta(hours=6), until + MINUTE))
    minutes, hours, *_ = line.split()
    if minutes.startswith("*") or hours.startswith("*"):
        found = {at for at, wall in wide if names(line, wall)}
    else:
        found = {at for at, wall in _each_wall_minute_once(wide) if names(line, wall)}
    return sorted(at for at in found if after < at <= until)


def _each_wall_minute_once(wide: list[tuple[datetime, datetime]]) -> Iterator[tuple[datetime, datetime]]:
    """A clock that never jumps: repeated minutes left out, skipped ones put in as if the clock had gone on."""
    seen: set[datetime] = set()
    for (at, wall), (_, following) in pairwise(wide):
        if wall not in seen:
            yield at, wall
        seen.add(wall)
        away = 1
        while following > wall and wall + away * MINUTE < following:
            yield at + away * MINUTE, wall + away * MINUTE
            seen.add(wall + away * MINUTE)
            away += 1


@cache
def changes(zone: ZoneInfo, year: int) -> tuple[datetime, ...]:
    """The half hours of the year after which the clock of the zone shows another offset."""
    at, out = datetime(year, 1, 1, tzinfo=UTC), []
    while at.year == year:
        if at.astimezone(zone).utcoffset() != (at + 30 * MINUTE).astimezone(zone).utcoffset():
            out.append(at)
        at += 30 * MINUTE
    return tuple(out)
