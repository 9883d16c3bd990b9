"""Numbers and moments as the pages write them, in British English: the language of every page."""

from datetime import date, datetime, tzinfo
from decimal import Decimal

from markupsafe import Markup

from cortex.base.clock import now

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sept", "Oct", "Nov", "Dec")
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_LONG_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_NEAR = {-1: "yesterday", 0: "today", 1: "tomorrow"}
_SIZES = ((10**12, "t"), (10**9, "b"), (10**6, "m"), (1000, "k"))


def number(value: int) -> str:
    """1234 -> 1,234."""
    return f"{value:,}"


def counted(count: int, noun: str) -> str:
    """The number with its noun: 1 chat, 2 chats."""
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def compact(value: int) -> str:
    """12400 -> 12.4k."""
    size, unit = next((one for one in _SIZES if abs(value) >= one[0]), (1, ""))
    return f"{round(Decimal(value) / size, 1)}".removesuffix(".0") + unit


def clock(at: datetime, zone: tzinfo) -> str:
    """08:54 in the reader's zone."""
    return f"{at.astimezone(zone):%H:%M}"


def day(at: datetime | date, zone: tzinfo) -> str:
    """Sat 21 Nov 2026; a plain date belongs to no zone and is shown as it is."""
    local = at.astimezone(zone).date() if isinstance(at, datetime) else at
    return f"{_short(local)} {local.year}"


def weekday(on: date) -> str:
    """Friday."""
    return _WEEKDAYS[on.weekday()]


def long_day(on: date) -> str:
    """27 November."""
    return f"{on.day} {_LONG_MONTHS[on.month - 1]}"


def local_day(at: datetime, zone: tzinfo) -> date:
    """The day on which it is in the reader's zone."""
    return at.astimezone(zone).date()


def due(on: date, today: date) -> str:
    """A day as people say it: today, tomorrow, yesterday, Monday within six days, Thu 19 Nov, else with its year."""
    days = (on - today).days
    if days in _NEAR:
        return _NEAR[days]
    if 1 < days < 7:
        return weekday(on)
    return _short(on) if on.year == today.year else f"{_short(on)} {on.year}"


def moment(at: datetime, zone: tzinfo) -> str:
    """Sat 21 Nov 2026, 08:54."""
    return f"{day(at, zone)}, {clock(at, zone)}"


def brief(at: datetime, zone: tzinfo, today_at: datetime) -> str:
    """As short as it can be read: 08:54 today, Sat 08:54 this week, 21 Nov, 08:54, with the year when it is another."""
    on, today = at.astimezone(zone).date(), today_at.astimezone(zone).date()
    if on == today:
        return clock(at, zone)
    if abs((on - today).days) < 7:
        return f"{weekday(on)[:3]} {clock(at, zone)}"
    year = "" if on.year == today.year else f" {on.year}"
    return f"{on.day} {_MONTHS[on.month - 1]}{year}, {clock(at, zone)}"


def when(at: datetime, zone: tzinfo, words: str = "") -> Markup:
    """A moment in a list: whole, or as `words`; on a phone as short as it can be read, the whole in its title."""
    full = words or moment(at, zone)
    spans = Markup('<span class="wide-only">{}</span><span class="short">{}</span>')
    shown = spans.format(full, brief(at, zone, now()))
    return Markup('<time datetime="{}" title="{}">{}</time>').format(at.isoformat(), full, shown)


def _short(on: date) -> str:
    return f"{weekday(on)[:3]} {on.day} {_MONTHS[on.month - 1]}"
