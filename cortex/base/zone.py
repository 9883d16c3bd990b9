"""Moments in a person's own time zone, in words. Nothing here reads the clock."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


def local(at: datetime, time_zone: str) -> datetime:
    """The same moment in this IANA zone; in UTC when the name is unknown."""
    return at.astimezone(_zone(time_zone))


def moment(at: datetime, time_zone: str) -> str:
    """Date and minute as a person there writes them: `2026-11-21 09:05`."""
    return local(at, time_zone).strftime("%Y-%m-%d %H:%M")


def short_moment(at: datetime, time_zone: str, now: datetime) -> str:
    """Day and minute as people say them: `Mon 23 Nov 07:30`, with the year where it is another than now's."""
    there = local(at, time_zone)
    year = "" if there.year == local(now, time_zone).year else f" {there.year}"
    return f"{there:%a} {there.day} {there:%b}{year} {there:%H:%M}"


def day(due: date, today: date) -> str:
    """A date with the word people use for it: `2026-11-22 (tomorrow)`, `2026-11-20 (overdue by 1 day)`."""
    away = (due - today).days
    if away < 0:
        return f"{due.isoformat()} (overdue by {-away} day{'' if away == -1 else 's'})"
    near = {0: "today", 1: "tomorrow"}.get(away) or (due.strftime("%A") if away < 7 else "")
    return f"{due.isoformat()} ({near})" if near else due.isoformat()


def midnight(at: datetime, time_zone: str, days: int = 0) -> datetime:
    """When the local day of this moment began, in UTC; `days` further on or back, clock changes included."""
    there = local(at, time_zone)
    on = there.date() + timedelta(days=days)
    return datetime.combine(on, time(), there.tzinfo).astimezone(UTC)


def day_begins(day: date | None, time_zone: str) -> datetime | None:
    """The first moment of a day there."""
    return None if day is None else datetime.combine(_near(day), time(), _zone(time_zone))


def day_ends(day: date | None, time_zone: str) -> datetime | None:
    """The first moment behind a day there."""
    return None if day is None else day_begins(_near(day) + timedelta(days=1), time_zone)


def _near(day: date) -> date:
    """The day, if its moments can be said in every zone; else the first or the last of which that is so."""
    return min(max(day, date(2, 1, 1)), date(9998, 12, 31))


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")
