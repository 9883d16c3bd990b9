"""Moves a series: what was said of its single dates moves along, by as much in wall time. Runs in `program.py` only.

A date is known by the time at which the series would have it (EXDATE, RECURRENCE-ID). Once the series has other times,
a date that was taken out would come back, and one that was moved would stand there twice.
"""

from calendar import monthrange
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any

from icalendar import Event, vRecur
from msgspec import Struct

from cortex.integrations.documents.kinds import UnreadableError
from cortex.integrations.foreign.appointments.moments import Moments, is_day, listed, value_of

FIXED = (
    "The rule by which this repeats cannot move to other days or hours by itself. Change single dates of it, or take"
)
FIXED += " it out and add it anew."
WEEK = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_HOURS = ("BYHOUR", "BYMINUTE", "BYSECOND")
_DAYS = ("BYMONTH", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYSETPOS", "BYEASTER")


class Move(Struct, frozen=True):
    """From where to where the first date of a series goes. `zone`: in which its wall times count."""

    old: date | datetime
    new: date | datetime
    zone: tzinfo

    @property
    def by(self) -> timedelta:
        """Return by how much, in wall time."""
        return self._wall(self.new) - self._wall(self.old)

    @property
    def days(self) -> int:
        """Return by how many days of the calendar."""
        return (self._wall(self.new).date() - self._wall(self.old).date()).days

    @property
    def is_none(self) -> bool:
        """Tell whether it all stays where it is."""
        return not self.by and is_day(self.old) == is_day(self.new)

    def of(self, value: date | datetime) -> date | datetime:
        """Where a date of the series is after it, in the kind of the new first one."""
        moved = self._wall(value) + self.by
        return moved.replace(tzinfo=self.new.tzinfo) if isinstance(self.new, datetime) else moved.date()

    def end(self, until: date | datetime) -> date | datetime:
        """The end of a rule after it: a day, or an instant in UTC where the series has a zone."""
        if is_day(until) and not is_day(self.old) and not is_day(self.new):
            return until + timedelta(days=self.days)
        moved = self.of(until)
        return moved.astimezone(UTC) if isinstance(moved, datetime) and moved.tzinfo else moved

    def _wall(self, value: date | datetime) -> datetime:
        if not isinstance(value, datetime):
            return datetime.combine(value, time())
        return (value.astimezone(self.zone) if value.tzinfo else value).replace(tzinfo=None)


def move_dates(series: Event, changed: Sequence[Event], move: Move, moments: Moments) -> list[Event]:
    """Move what was said of single dates of the series; the components that changed. UnreadableError, in words."""
    if move.is_none:
        return []
    if series.get("EXRULE") is not None:
        raise UnreadableError(FIXED)
    _move_list(series, "EXDATE", move)
    _move_list(series, "RDATE", move)
    for one in changed:
        was, own = value_of(one, "RECURRENCE-ID"), value_of(one, "DTSTART")
        if was is None or own is None:
            continue
        if moments.key(was) == moments.key(own):  # it stands where the series had it: other words, not another time
            _move_own(one, own, move)
        one.pop("RECURRENCE-ID")
        one.add("recurrence-id", move.of(was))
    return list(changed)


def move_rule(series: Event, move: Move, *, has_exceptions: bool) -> None:
    """Move the rule of the series: its end and its days. UnreadableError where that has no one meaning."""
    rule = series.get("RRULE")
    if rule is None or move.is_none:
        return
    if not isinstance(rule, vRecur):
        raise UnreadableError(FIXED)
    parts = {name.upper(): list(value) if isinstance(value, list) else [value] for name, value in rule.items()}
    if any(name in parts for name in _HOURS) and (move.by != timedelta(days=move.days) or is_day(move.new)):
        raise UnreadableError(FIXED)
    if move.days:
        if str(parts["FREQ"][0]).upper() in ("MONTHLY", "YEARLY"):
            if has_exceptions:  # the second Tuesday is no fixed number of days from the second Wednesday
                raise UnreadableError(FIXED)
            _move_in_month(parts, move)
        else:
            _move_in_week(parts, move.days)
    if "UNTIL" in parts:
        parts["UNTIL"] = [move.end(one) for one in parts["UNTIL"]]
    series.pop("RRULE")
    series.add("rrule", vRecur(parts))


def has_exceptions(series: Event, changed: Sequence[Event]) -> bool:
    """Tell whether anything is said of single dates."""
    return bool(changed) or any(series.get(name) is not None for name in ("EXDATE", "RDATE"))


def _move_in_week(parts: dict[str, list[Any]], days: int) -> None:
    """Turn the days of a rule by so many; with the begin of the week, by which every other week is counted."""
    named = [str(one).upper() for one in parts.get("BYDAY", [])]
    if any(name in parts for name in _DAYS) or any(one not in WEEK for one in named):
        raise UnreadableError(FIXED)
    if named:
        parts["BYDAY"] = [_turned(one, days) for one in named]
        parts["WKST"] = [_turned(str(parts.get("WKST", ["MO"])[0]).upper(), days)]


def _turned(day: str, days: int) -> str:
    return WEEK[(WEEK.index(day) + days) % 7]


def _move_in_month(parts: dict[str, list[Any]], move: Move) -> None:
    """Have the rule name the new day where it named the old one, alone; what names more has no one meaning."""
    named = {name: [str(one).upper() for one in parts[name]] for name in (*_DAYS, "BYDAY") if name in parts}
    meant, instead = _of_day(move.old, named), _of_day(move.new, named)
    if named and named != meant:
        raise UnreadableError(FIXED)
    for name, value in instead.items():
        parts[name] = [value[0] if name == "BYDAY" else int(value[0])]


def _of_day(day: date, named: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return these parts of a rule as they are where they mean this day alone."""
    length = monthrange(day.year, day.month)[1]
    is_from_end = named.get("BYDAY", [""])[0].startswith("-")
    place = -((length - day.day) // 7 + 1) if is_from_end else (day.day - 1) // 7 + 1
    said = {"BYMONTH": str(day.month), "BYMONTHDAY": str(day.day), "BYDAY": f"{place}{WEEK[day.weekday()]}"}
    return {name: [said[name]] for name in named if name in said}


def _move_list(series: Event, name: str, move: Move) -> None:
    if series.get(name) is None:
        return
    there: Any = series[name]
    found = there if isinstance(there, list) else [there]
    if any(isinstance(one.dt, tuple) for part in found for one in getattr(part, "dts", [])):
        raise UnreadableError(FIXED)  # dates with lengths of their own
    dates = listed(series, name)
    series.pop(name)
    for one in dates:
        series.add(name, move.of(one))


def _move_own(event: Event, starts: date | datetime, move: Move) -> None:
    ends = value_of(event, "DTEND")
    if ends is not None and is_day(ends) != is_day(move.new):
        ends = None
        event.pop("DTEND")
    event.pop("DTSTART")
    event.add("dtstart", move.of(starts))
    if ends is not None:
        event.pop("DTEND")
        event.add("dtend", move.of(ends))
