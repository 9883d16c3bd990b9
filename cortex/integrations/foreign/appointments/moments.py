"""Times as calendars write them: with a zone, in UTC, floating, or whole days. Runs in `program.py` only."""

from datetime import UTC, date, datetime, timedelta
from typing import Any, cast
from zoneinfo import ZoneInfo

from msgspec import Struct

DAY = timedelta(days=1)
# All that the library, which asks each property for its own kind, raises of what is no calendar.
BROKEN = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


class Moments(Struct, frozen=True):
    """Reads times, the floating ones in this person's zone."""

    zone: ZoneInfo

    def utc(self, value: date | datetime) -> datetime:
        """The instant; a whole day begins at midnight in the person's zone. Naive values are meant in it too."""
        if not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - its zone comes below
        return (value.replace(tzinfo=self.zone) if value.tzinfo is None else value).astimezone(UTC)

    def key(self, value: date | datetime) -> str:
        """By what a date of a series is known, as `RECURRENCE-ID` names it: its day, or its instant in UTC."""
        return self.utc(value).isoformat() if isinstance(value, datetime) else value.isoformat()


def is_day(value: date | datetime) -> bool:
    """Tell whether it is a whole day."""
    return not isinstance(value, datetime)


def value_of(event: Any, name: str) -> date | datetime | None:
    """A single time of a component; None without one, and for one that cannot be read."""
    try:
        found = getattr(event.get(name), "dt", None)
    except BROKEN:
        return None
    return found if isinstance(found, date) else None


def listed(event: Any, name: str) -> list[date | datetime]:
    """Each time of a list such as EXDATE, which may stand several times; of a period its begin."""
    found = event.get(name)
    parts = found if isinstance(found, list) else [found] if found is not None else []
    dates = [one.dt for part in parts for one in getattr(part, "dts", [])]
    return [one[0] if isinstance(one, tuple) else one for one in dates]


def length_of(event: Any, starts: date | datetime) -> timedelta:
    """Return how long it takes: by its end, its duration, or, without both, a day where it is one and else nothing."""
    ends, usual = value_of(event, "DTEND"), DAY if is_day(starts) else timedelta()
    if ends is not None and is_day(ends) == is_day(starts):
        return max(_between(starts, ends), usual)
    duration = getattr(event.get("DURATION"), "td", None) if event.get("DURATION") is not None else None
    return max(duration, timedelta()) if isinstance(duration, timedelta) else usual


def _between(starts: date | datetime, ends: date | datetime) -> timedelta:
    if isinstance(starts, datetime) and isinstance(ends, datetime) and (starts.tzinfo is None) != (ends.tzinfo is None):
        starts, ends = starts.replace(tzinfo=None), ends.replace(tzinfo=None)
    elif isinstance(starts, datetime) and isinstance(ends, datetime) and starts.tzinfo is not None:
        starts, ends = starts.astimezone(UTC), ends.astimezone(UTC)
    return cast("datetime", ends) - cast("datetime", starts)  # both days or both times, which subtract alike
