"""Numbers and moments as a reader of the page's language writes them. Loaded late by `web/render.py`, for babel."""

from datetime import date, datetime
from zoneinfo import ZoneInfo

from babel.dates import format_date, format_datetime, format_time
from babel.numbers import format_compact_decimal, format_decimal

LOCALE = "en_GB"  # the copy is English; catalogues come later, and with them the account's own locale


def number(value: float) -> str:
    """1234 -> 1,234."""
    return str(format_decimal(value, locale=LOCALE))


def compact(value: float) -> str:
    """12400 -> 12.4k."""
    return str(format_compact_decimal(value, fraction_digits=1, locale=LOCALE)).lower()


def clock(at: datetime, zone: ZoneInfo) -> str:
    """08:54 in the reader's zone."""
    return str(format_time(at, "HH:mm", tzinfo=zone, locale=LOCALE))


def day(at: datetime | date, zone: ZoneInfo) -> str:
    """Sat 21 Nov 2026; a plain date belongs to no zone and is shown as it is."""
    local = at.astimezone(zone).date() if isinstance(at, datetime) else at
    return str(format_date(local, "EEE d MMM y", locale=LOCALE))


def due(on: date, today: date) -> str:
    """A day as a list of tasks says it: today, tomorrow, yesterday, Thu 19 Nov, with the year when it is another."""
    near = {-1: "yesterday", 0: "today", 1: "tomorrow"}.get((on - today).days)
    return near or str(format_date(on, "EEE d MMM" if on.year == today.year else "EEE d MMM y", locale=LOCALE))


def moment(at: datetime, zone: ZoneInfo) -> str:
    """Sat 21 Nov 2026, 08:54."""
    return str(format_datetime(at, "EEE d MMM y, HH:mm", tzinfo=zone, locale=LOCALE))
