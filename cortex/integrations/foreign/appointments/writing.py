"""Writes an appointment, and changes one without losing what other programs wrote into it. Runs in `program.py` only.

What others are told by counts up `SEQUENCE` (RFC 5546, section 2.1.4); everything that is not named stays as it was.
"""

from collections.abc import Mapping
from copy import deepcopy
from datetime import UTC, date, datetime, timedelta
from typing import Any, cast
from zoneinfo import ZoneInfo

from icalendar import Calendar, Event, vCalAddress, vRecur, vText

from cortex.integrations.documents.kinds import UnreadableError
from cortex.integrations.foreign.appointments.moments import Moments, is_day, length_of, value_of
from cortex.integrations.foreign.appointments.moving import Move, has_exceptions, move_dates, move_rule
from cortex.integrations.foreign.appointments.series import is_onwards, recurrence

PROGRAM = "-//Cortex//Calendar//EN"
GONE = "This date is not in the series any more."
ONWARDS = (
    "Another program changed this series from one date on. Change it there, or take all of it out and add it anew."
)
_TEXTS = {"title": "SUMMARY", "place": "LOCATION", "text": "DESCRIPTION"}
Order = Mapping[str, Any]


def written(order: Order) -> str:
    """The resource after the edit. UnreadableError, in words, where it cannot be made."""
    moments, now = Moments(ZoneInfo(order["zone"])), datetime.fromisoformat(order["now"]).astimezone(UTC)
    if not order["data"]:
        calendar = _empty()
        calendar.add_component(_new(order["edit"], now))
    else:
        calendar = Calendar.from_ical(order["data"])
        _edited(calendar, order["edit"], moments, now)
    calendar.add_missing_timezones()
    return str(calendar.to_ical().decode())


def _empty() -> Calendar:
    calendar = Calendar()
    calendar.add("prodid", PROGRAM)
    calendar.add("version", "2.0")
    return calendar


def _new(edit: Order, now: datetime) -> Event:
    event = Event()
    event.add("uid", edit["uid"])
    _stamp(event, now)
    _set(event, edit["fields"])
    return event


def _edited(calendar: Calendar, edit: Order, moments: Moments, now: datetime) -> None:
    events: dict[str, Any] = {
        recurrence(one, moments): one for one in calendar.walk("VEVENT") if str(one.get("UID", "")) == edit["uid"]
    }
    key, kind = edit.get("key", ""), edit["kind"]
    if kind != "answer" and any(map(is_onwards, events.values())):  # what "from here on" means then has no one meaning
        raise UnreadableError(ONWARDS)
    if kind == "remove":
        _taken_out(calendar, events, key, moments, now)
        return
    for event in _meant(calendar, events, key, moments):
        if kind == "answer":
            touched = [event]
            _answered(event, edit)
        elif not key and "" in events and (event.get("RRULE") or event.get("RDATE") or len(events) > 1):
            touched = [event, *_series_set(event, events, edit, moments)]
        else:
            touched = [event]
            _set(event, edit["fields"])
        for one in touched:
            if kind != "answer":
                one["SEQUENCE"] = _sequence(one) + 1
            _stamp(one, now)


def _series_set(series: Event, events: dict[str, Any], edit: Order, moments: Moments) -> list[Event]:
    """Change a whole series; its single dates that changed along. Times are meant of the date `of`."""
    fields: Order = edit["fields"]
    changed = [one for key, one in events.items() if key]
    touched = [one for one in changed if _follow(one, series, fields)]
    had_exceptions = has_exceptions(series, changed)
    _set(series, {name: value for name, value in fields.items() if name not in ("starts", "ends")})
    if "starts" not in fields:
        return touched
    new, ends = _times(fields)
    move = _move(series, events, edit.get("of", ""), new, moments)
    length = ends - new  # type: ignore[operator]  # both days or both times
    for name in ("DTSTART", "DTEND", "DURATION"):
        series.pop(name, None)
    series.add("dtstart", move.new)
    series.add("dtend", move.new + length)
    if "rule" not in fields:
        move_rule(series, move, has_exceptions=had_exceptions)
    moved = move_dates(series, changed, move, moments)
    return [one for one in changed if one in touched or one in moved]


def _move(series: Event, events: dict[str, Any], of: str, new: date | datetime, moments: Moments) -> Move:
    """Where the series goes when its date `of`, or its first one, goes there. It keeps the zone that it has."""
    first = value_of(series, "DTSTART")
    if first is None:
        raise UnreadableError(GONE)
    was = _at(of, series, moments) if of else first
    stands = value_of(events[of], "DTSTART") if of in events else was
    zone = first.tzinfo if isinstance(first, datetime) else None
    if isinstance(new, datetime) and zone is not None:
        new = new.astimezone(zone)
    if stands is not None and is_day(stands) == is_day(new) and moments.key(stands) == moments.key(new):
        return Move(first, first, zone or moments.zone)  # its length alone changes
    by = Move(was, new, zone or moments.zone)
    return Move(first, by.of(first), zone or moments.zone)


def _follow(one: Event, series: Event, fields: Order) -> bool:
    """Have a changed date say what its series says now, where it said what the series said before."""
    found = [name for field, name in _TEXTS.items() if field in fields and one.get(name) == series.get(name)]
    _set(one, {field: fields[field] for field, name in _TEXTS.items() if name in found})
    return bool(found)


def _meant(calendar: Calendar, events: dict[str, Any], key: str, moments: Moments) -> list[Any]:
    """The component that is meant: the series with "", else its date, which is made where none is there yet."""
    if key in events:
        return [events[key]]
    if not key:
        return list(events.values())[:1]
    return [_date_of(calendar, _series(events), key, moments)]


def _date_of(calendar: Calendar, series: Event, key: str, moments: Moments) -> Event:
    """A component of its own for one date of the series, as the series has it."""
    starts = value_of(series, "DTSTART")
    at = _at(key, series, moments)
    made = deepcopy(series)
    for name in ("RRULE", "RDATE", "EXDATE", "EXRULE", "DTEND", "DURATION", "DTSTART"):
        made.pop(name, None)
    made.add("dtstart", at)
    if starts is not None:
        made.add("dtend", at + length_of(series, starts))
    made.add("recurrence-id", at)
    calendar.add_component(made)
    return made


def _taken_out(calendar: Calendar, events: dict[str, Any], key: str, moments: Moments, now: datetime) -> None:
    """Have the series pass over one date."""
    series = _series(events)
    if key in events:
        calendar.subcomponents.remove(events[key])
    series.add("exdate", _at(key, series, moments))
    series["SEQUENCE"] = _sequence(series) + 1
    _stamp(series, now)


def _series(events: dict[str, Any]) -> Event:
    if "" not in events:
        raise UnreadableError(GONE)
    return cast("Event", events[""])


def _at(key: str, series: Event, moments: Moments) -> date | datetime:
    """The time that a key names, in the kind and the zone of the series."""
    starts = value_of(series, "DTSTART")
    if starts is None or is_day(starts):
        return date.fromisoformat(key[:10])
    at = datetime.fromisoformat(key)
    zone = starts.tzinfo if isinstance(starts, datetime) else None
    return at.astimezone(zone) if zone is not None else at.astimezone(moments.zone).replace(tzinfo=None)


def _set(event: Event, fields: Order) -> None:
    for field, name in _TEXTS.items():
        if field in fields:
            event.pop(name, None)
            if fields[field]:
                event[name] = vText(fields[field])
    if "starts" in fields and "ends" in fields:
        _set_times(event, fields)
    if "rule" in fields:
        event.pop("RRULE", None)
        if fields["rule"]:
            event.add("rrule", vRecur.from_ical(fields["rule"]))
    if "is_free" in fields:
        event["TRANSP"] = vText("TRANSPARENT" if fields["is_free"] else "OPAQUE")
    if "people" in fields:
        _set_people(event, fields)


def _set_times(event: Event, fields: Order) -> None:
    starts, ends = _times(fields)
    for name in ("DTSTART", "DTEND", "DURATION"):
        event.pop(name, None)
    event.add("dtstart", starts)
    event.add("dtend", ends)


def _times(fields: Order) -> tuple[date | datetime, date | datetime]:
    """Its begin and its end, which of whole days is the day behind the last."""
    if fields["is_all_day"]:
        day = date.fromisoformat(fields["starts"])
        return day, max(date.fromisoformat(fields["ends"]), day) + timedelta(days=1)
    zone = ZoneInfo(fields["zone"])
    starts = datetime.fromisoformat(fields["starts"]).replace(tzinfo=zone)
    return starts, datetime.fromisoformat(fields["ends"]).replace(tzinfo=zone)


def _set_people(event: Event, fields: Order) -> None:
    """Set who is invited, each with the answer that they gave already."""
    found = event.pop("ATTENDEE", [])
    known = {str(one).lower(): one for one in (found if isinstance(found, list) else [found])}
    for person in fields["people"]:
        address = f"mailto:{person['address'].lower()}"
        made = known.get(address) or vCalAddress(address)
        if address not in known:
            made.params.update({"CN": person["name"] or person["address"], "PARTSTAT": "NEEDS-ACTION", "RSVP": "TRUE"})
        event.add("attendee", made, encode=False)
    if fields["people"] and fields.get("organizer") and "ORGANIZER" not in event:
        event["ORGANIZER"] = vCalAddress(f"mailto:{fields['organizer']}")


def _answered(event: Event, edit: Order) -> None:
    own = {f"mailto:{one.lower()}" for one in edit["addresses"]}
    found = event.get("ATTENDEE", [])
    mine = [one for one in (found if isinstance(found, list) else [found]) if str(one).lower() in own]
    if not mine:
        raise UnreadableError("You are not among those who are invited to it.")
    for one in mine:
        one.params["PARTSTAT"] = edit["answer"].upper()
        one.params.pop("RSVP", None)


def _stamp(event: Event, now: datetime) -> None:
    for name in ("DTSTAMP", "LAST-MODIFIED"):
        event.pop(name, None)
        event.add(name, now.replace(microsecond=0))


def _sequence(event: Event) -> int:
    try:
        return int(event.get("SEQUENCE", 0))
    except (TypeError, ValueError):
        return 0
