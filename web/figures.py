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


def plain_day(on: date | str) -> str:
    """24 Dec 2026, for a field that reads it again; what was typed there and is no written day stays as it is."""
    if isinstance(on, str):
        try:
            on = date.fromisoformat(on)
        except ValueError:
            return str(on)
    return f"{on.day} {on:%b} {on.year}"


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


def exact(at: datetime, zone: tzinfo) -> str:
    """Sat 21 Nov 2026, 08:54."""
    return f"{day(at, zone)}, {clock(at, zone)}"


def spoken(at: datetime, zone: tzinfo, today_at: datetime) -> str:
    """A moment as people say it: today 08:54, Monday 07:30 within six days, Sat 21 Nov, 08:54, else with its year."""
    on, today = local_day(at, zone), local_day(today_at, zone)
    return f"{due(on, today)}{' ' if -2 < (on - today).days < 7 else ', '}{clock(at, zone)}"


def moment(at: datetime, zone: tzinfo) -> str:
    """The same as it is now, for the midst of a sentence."""
    return spoken(at, zone, now())


def when(at: datetime, zone: tzinfo, more: str = "") -> Markup:
    """A moment that stands for itself, exactly in its title; `more`: what is to be said behind it."""
    words = moment(at, zone)
    return _timed(at, zone, words[:1].upper() + words[1:], more)


def within(at: datetime, zone: tzinfo) -> Markup:
    """The same in the midst of a sentence."""
    return _timed(at, zone, moment(at, zone))


def _timed(at: datetime, zone: tzinfo, words: str, more: str = "") -> Markup:
    title = exact(at, zone) + more
    return Markup('<time datetime="{}" title="{}">{}</time>').format(at.isoformat(), title, words + more)


def _short(on: date) -> str:
    return f"{weekday(on)[:3]} {on.day} {_MONTHS[on.month - 1]}"
