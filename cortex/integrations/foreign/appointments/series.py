"""Unfolds a series to the single dates in a window of time, within bounds. Runs in `program.py` only.

Rules count in the wall time of the appointment's own zone, so a date stays at nine through a change of the clocks.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any

from dateutil.rrule import rrulestr
from icalendar import vRecur
from msgspec import Struct

from cortex.integrations.foreign.appointments.moments import Moments, is_day, listed, value_of

STEPS_MOST = 60_000  # of a rule, wherever it began
DATES_MOST = 1_200  # of one series in a window
UNREAD = "its rule of repetition cannot be read: only its first time is shown"
UNREAD_GAPS = "which of its dates are left out cannot be read: they are shown too"
TOO_FINE = ("SECONDLY", "MINUTELY")
_HOUR = timedelta(hours=1)


class Dates(Struct, frozen=True):
    """The begins of a series inside a window. `note`: what was left out, in words, or ""."""

    starts: list[date | datetime]
    note: str = ""


class Window(Struct, frozen=True):
    """From when to when, as instants; a date belongs to it that has begun by its end and has not ended at its begin."""

    since: datetime
    until: datetime

    def has(self, starts: datetime, ends: datetime) -> bool:
        """Tell whether any of it lies inside."""
        return starts < self.until and (ends > self.since or starts >= self.since)


def dates_of(event: Any, starts: date | datetime, length: timedelta, window: Window, moments: Moments) -> Dates:
    """Every begin in the window: by rules and single dates, without what was taken out."""
    taken_out = {moments.key(one) for one in listed(event, "EXDATE")}
    found, note = {moments.key(starts): starts}, ""
    for rule in _rules(event, "RRULE"):
        made = _unfolded(rule, starts, length, window, moments)
        note = note or made.note
        found.update({moments.key(one): one for one in made.starts})
    found.update({moments.key(one): _alike(one, starts) for one in listed(event, "RDATE")})
    for rule in _rules(event, "EXRULE"):  # of RFC 2445: older programs leave dates out by a rule
        made = _unfolded(rule, starts, length, window, moments)
        note = note or (UNREAD_GAPS if made.note else "")
        taken_out |= {moments.key(one) for one in made.starts}
    inside = [
        one
        for key, one in found.items()
        if key not in taken_out and window.has(moments.utc(one), moments.utc(one) + length)
    ]
    inside.sort(key=moments.utc)
    if len(inside) > DATES_MOST:
        note = f"only the first {DATES_MOST:,} dates of it are shown"
    return Dates(inside[:DATES_MOST], note)


def _rules(event: Any, name: str) -> list[Any]:
    found = event.get(name)
    return found if isinstance(found, list) else [found] if found else []


def _unfolded(rule: Any, starts: date | datetime, length: timedelta, window: Window, moments: Moments) -> Dates:
    if not isinstance(rule, vRecur):
        return Dates([], UNREAD)
    parts = {name.upper(): value for name, value in rule.items()}
    often = str((parts.get("FREQ") or [""])[0]).upper()
    if often in TOO_FINE:
        return Dates([], "repeats many times an hour: only its first time is shown")
    zone = starts.tzinfo if isinstance(starts, datetime) else None
    begin = starts.replace(tzinfo=None) if isinstance(starts, datetime) else datetime.combine(starts, time())
    last = _last(parts, starts, zone)
    text = ";".join(one for one in str(rule.to_ical().decode()).split(";") if not one.upper().startswith("UNTIL="))
    since = window.since - length - timedelta(days=2)
    try:
        walk = iter(rrulestr(text, dtstart=_near(begin, often, parts, since, zone or moments.zone)))
        naive = list(_walked(walk, last, since.replace(tzinfo=None), window.until.replace(tzinfo=None)))
    except (ValueError, TypeError, OverflowError):
        return Dates([], UNREAD)
    note = "" if len(naive) <= DATES_MOST * 2 else "not all of its dates are shown"
    whole = is_day(starts)
    return Dates([one.date() if whole else one.replace(tzinfo=zone) for one in naive[: DATES_MOST * 2]], note)


def _walked(walk: Iterator[datetime], last: datetime | None, since: datetime, until: datetime) -> Iterator[datetime]:
    """The dates near the window. Zones lie at most a day beside UTC, so two days more are taken at both ends."""
    taken = 0
    for step, one in enumerate(walk):
        if step > STEPS_MOST or (last is not None and one > last) or one > until + timedelta(days=2):
            return
        if one >= since:
            taken += 1
            yield one
            if taken > DATES_MOST * 2:
                return


def _near(begin: datetime, often: str, parts: dict[str, Any], since: datetime, zone: tzinfo) -> datetime:
    """Where the walk begins: an hourly rule without a count steps ahead to the window by whole steps."""
    if often != "HOURLY" or "COUNT" in parts:
        return begin
    step = _HOUR * max(1, int((parts.get("INTERVAL") or [1])[0]))
    ahead = since.astimezone(zone).replace(tzinfo=None) - begin
    return begin + step * (ahead // step) if ahead > step else begin


def _last(parts: dict[str, Any], starts: date | datetime, zone: tzinfo | None) -> datetime | None:
    """The end of the rule in the series' own wall time; a day alone is meant with the whole of it."""
    until = (parts.get("UNTIL") or [None])[0]
    if until is None:
        return None
    if not isinstance(until, datetime):
        return datetime.combine(until, time.max)
    if until.tzinfo is not None and not is_day(starts):
        return until.astimezone(zone or UTC).replace(tzinfo=None)
    return datetime.combine(until.date(), time.max) if is_day(starts) else until.replace(tzinfo=None)


def _alike(value: date | datetime, starts: date | datetime) -> date | datetime:
    """A single date in the kind of the series: a day of a series of days, a time of one with times."""
    if is_day(starts) and isinstance(value, datetime):
        return value.date()
    if isinstance(starts, datetime) and is_day(value):
        return datetime.combine(value, starts.timetz())
    return value


def recurrence(event: Any, moments: Moments) -> str:
    """Return the date of its series that a component stands for; "" for the series itself."""
    value = value_of(event, "RECURRENCE-ID")
    return "" if value is None else moments.key(value)


def is_onwards(event: Any) -> bool:
    """Tell whether a component stands for its date of the series and all that follow (RFC 5545, section 3.2.13)."""
    params = getattr(event.get("RECURRENCE-ID"), "params", {})
    return str(params.get("RANGE", "")).upper() == "THISANDFUTURE"
