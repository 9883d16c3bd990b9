"""From one resource of a calendar to its appointment and its single dates. Runs in `program.py` only."""

from bisect import bisect_right
from collections.abc import Iterable
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from icalendar import Calendar, vRecur

from cortex.integrations.foreign.appointments.moments import Moments, is_day, length_of, value_of
from cortex.integrations.foreign.appointments.moving import Move
from cortex.integrations.foreign.appointments.series import Window, dates_of, is_onwards, recurrence

TEXT_CHARACTERS = 4_000
NAME_CHARACTERS = 500
PEOPLE_MOST = 100
EVENTS_MOST = 20_000  # of one resource: an address of a whole calendar holds all of it in one
LATE = "cannot be read as an appointment"


def appointments_of(data: str, window: Window, zone: ZoneInfo) -> list[dict[str, Any]]:
    """Each appointment of the resource, with its dates in the window. ValueError for what is no calendar.

    Of a whole calendar those alone that have any.
    """
    moments = Moments(zone)
    by_uid: dict[str, list[Any]] = {}
    for calendar in Calendar.from_ical(data, multiple=True):
        for event in calendar.walk("VEVENT"):
            by_uid.setdefault(_text(event, "UID", NAME_CHARACTERS), []).append(event)
    made = [_appointment(uid, events, window, moments) for uid, events in by_uid.items()]
    return made if len(made) == 1 else [one for one in made if one.get("dates")][:EVENTS_MOST]


def _appointment(uid: str, events: list[Any], window: Window, moments: Moments) -> dict[str, Any]:
    series = [one for one in events if not recurrence(one, moments)]
    master = series[-1] if series else events[0]
    starts = value_of(master, "DTSTART")
    if starts is None:
        return {"uid": uid, "fault": LATE}
    changed = {recurrence(one, moments): one for one in events if recurrence(one, moments)}
    dates, note = [], ""
    if series:
        made = dates_of(master, starts, length_of(master, starts), window, moments)
        note = made.note
        repeats = bool(master.get("RRULE") or master.get("RDATE"))
        onwards = _onwards(changed.values(), starts, moments)
        since = [moments.utc(move.old) for move, _ in onwards]
        for one in made.starts:
            if (key := moments.key(one)) in changed:
                continue
            if (place := bisect_right(since, moments.utc(one))) > 0:  # as it is from a date on
                move, event = onwards[place - 1]
                dates.append({**_date(event, move.of(one), key, moments), **_differs(event, master)})
            else:
                dates.append(_date(master, one, key if repeats else "", moments))
    for key, event in changed.items():
        own = value_of(event, "DTSTART")
        if own is not None:
            dates.append({**_date(event, own, key, moments), **_differs(event, master)})
    inside = [one for one in dates if window.has(_at(one["starts_at"]), _at(one["ends_at"])) and not one["is_off"]]
    return {
        "uid": uid,
        "note": note,
        **_fields(master, starts, moments),
        "dates": sorted(inside, key=lambda one: str(one["starts_at"])),
    }


def _onwards(changed: Iterable[Any], starts: date | datetime, moments: Moments) -> list[tuple[Move, Any]]:
    """Return the components that change all that follows, the earliest first, each with how far it moves a date."""
    zone = starts.tzinfo if isinstance(starts, datetime) else None
    found = []
    for event in changed:
        was, own = value_of(event, "RECURRENCE-ID"), value_of(event, "DTSTART")
        if not is_onwards(event) or was is None or own is None:
            continue
        if isinstance(own, datetime) and zone is not None:
            own = own.astimezone(zone)
        found.append((Move(was, own, zone or moments.zone), event))
    return sorted(found, key=lambda one: moments.utc(one[0].old))


def _fields(event: Any, starts: date | datetime, moments: Moments) -> dict[str, Any]:
    zone = getattr(event.get("DTSTART"), "params", {}).get("TZID", "") if isinstance(starts, datetime) else ""
    rule = event.get("RRULE")
    return {
        "title": _text(event, "SUMMARY", NAME_CHARACTERS),
        "place": _text(event, "LOCATION", NAME_CHARACTERS),
        "text": _text(event, "DESCRIPTION", TEXT_CHARACTERS),
        "starts": starts.isoformat(),
        "is_all_day": is_day(starts),
        "zone": str(zone)[:80],
        "is_zone_unknown": bool(zone) and isinstance(starts, datetime) and starts.tzinfo is None,
        "rule": rule.to_ical().decode()[:NAME_CHARACTERS] if isinstance(rule, vRecur) else "",
        "sequence": _number(event, "SEQUENCE"),
        "organizer": _address(event.get("ORGANIZER")),
        "people": [made for one in _people(event) if (made := _person(one))["address"]],
        "is_free": str(event.get("TRANSP", "")).upper() == "TRANSPARENT",
        "is_private": str(event.get("CLASS", "")).upper() in ("PRIVATE", "CONFIDENTIAL"),
        "is_tentative": str(event.get("STATUS", "")).upper() == "TENTATIVE",
    }


def _date(event: Any, starts: date | datetime, key: str, moments: Moments) -> dict[str, Any]:
    """One date. `day` and `last_day`: of a whole day, its days themselves, in no zone."""
    length = length_of(event, value_of(event, "DTSTART") or starts)
    begin = moments.utc(starts)
    whole = is_day(starts)
    end = moments.utc(starts + length) if whole else begin + length
    return {
        "key": key,
        "starts_at": begin.isoformat(),
        "ends_at": end.isoformat(),
        "day": starts.isoformat() if whole else "",
        "last_day": max(starts, starts + length - starts.resolution).isoformat() if whole else "",
        "is_off": str(event.get("STATUS", "")).upper() == "CANCELLED",
    }


def _differs(event: Any, master: Any) -> dict[str, Any]:
    """Return what a changed date says otherwise than its series."""
    said = {"title": _text(event, "SUMMARY", NAME_CHARACTERS), "place": _text(event, "LOCATION", NAME_CHARACTERS)}
    usual = {"title": _text(master, "SUMMARY", NAME_CHARACTERS), "place": _text(master, "LOCATION", NAME_CHARACTERS)}
    return {name: value for name, value in said.items() if value != usual[name]}


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _text(event: Any, name: str, most: int) -> str:
    found = event.get(name)
    found = found[0] if isinstance(found, list) and found else found
    return "" if found is None else str(found).strip()[:most]


def _number(event: Any, name: str) -> int:
    try:
        return int(event.get(name, 0))
    except (TypeError, ValueError):
        return 0


def _people(event: Any) -> list[Any]:
    found = event.get("ATTENDEE")
    return (found if isinstance(found, list) else [found] if found is not None else [])[:PEOPLE_MOST]


def _person(value: Any) -> dict[str, str]:
    params = getattr(value, "params", {})
    return {
        "address": _address(value),
        "name": str(params.get("CN", ""))[:NAME_CHARACTERS],
        "answer": str(params.get("PARTSTAT", "NEEDS-ACTION")).lower()[:20],
    }


def _address(value: Any) -> str:
    text = "" if value is None else str(value).strip()
    return text[7:].lower()[:NAME_CHARACTERS] if text.lower().startswith("mailto:") else ""
