"""Lays out what stands in a stretch of time: days, whole days above, hours as rows of a quarter, lanes side by side.

Where a line stands is said by classes (`static/calendar.css`), as no page has styles of its own. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Literal
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from cortex.ports.calendars import Occasion
from cortex.services.calendars.agenda import AgendaLine
from cortex.services.calendars.birthdays import CALENDAR as BIRTHDAYS
from cortex.services.calendars.edits import AppointmentForm
from web.figures import clock, long_day, weekday

View = Literal["day", "week", "month"]
HOME = "/calendar"
HOUR = timedelta(hours=1)
FIRST_HOUR, LAST_HOUR = 7, 21  # shown at least
QUARTER = timedelta(minutes=15)
LEAST_QUARTERS = 3  # so that it can be pressed
LANES_MOST = 4
DAY_MOST: dict[View, int] = {"day": 60, "week": 12, "month": 12}  # lines of a day; appointments first
COLORS = 5
WEEKDAYS = {"monday": 0, "sunday": 6, "saturday": 5}
# Where the week begins otherwise than on Monday, by the place that a browser names with its language (CLDR).
SUNDAY = (
    "AG AS AU BD BR BS BT BW BZ CA CO DM DO ET GT GU HK HN ID IL IN JM JP KE KH KR LA MH MM MO MT MX MZ NI NP PA PE PH "
    "PK PR PT PY SA SG SV TH TT TW UM US VE VI WS YE ZA ZW"
)
SATURDAY = "AE AF BH DJ DZ EG IQ IR JO KW LY OM QA SD SY"


class CalendarBlock(Struct, frozen=True, kw_only=True):
    """One thing on one day. `title`: all of it in words; `color`: the person's; `place`: classes that say where."""

    kind: Literal["appointment", "reminder", "job"]
    text: str
    title: str
    href: str
    who: str
    color: int
    starts_at: datetime
    at: str
    until: str = ""
    where: str = ""
    is_whole: bool = False
    is_busy: bool = False
    first: int = 0
    last: int = 0
    place: str = ""


class DayColumn(Struct, frozen=True, kw_only=True):
    """A day with what stands on it: `whole` above the hours, `timed` beside them; `more`: how many are not shown."""

    day: date
    is_today: bool
    is_other: bool
    whole: Sequence[CalendarBlock]
    timed: Sequence[CalendarBlock]
    more: int = 0
    now: str = ""

    @property
    def count(self) -> int:
        """Return how many lines it has, shown or not."""
        return len(self.whole) + len(self.timed) + self.more

    @property
    def blocks(self) -> Sequence[CalendarBlock]:
        """All of it, in the order in which a list says it."""
        return [*self.whole, *self.timed]


class ShownDays(Struct, frozen=True, kw_only=True):
    """The days that a view shows: so many from `begins` on, around the `day` that was asked for."""

    view: View
    day: date
    begins: date
    count: int

    @property
    def last(self) -> date:
        """The last of them."""
        return self.begins + timedelta(days=self.count - 1)

    @property
    def words(self) -> str:
        """Return what is shown, in words: November 2026, or 23 to 29 November."""
        if self.view == "day":
            return f"{weekday(self.day)} {long_day(self.day)}"
        if self.view == "month":
            return f"{long_day(self.day).partition(' ')[2]} {self.day.year}"
        begin = str(self.begins.day) if self.begins.month == self.last.month else long_day(self.begins)
        return f"{begin} to {long_day(self.last)}"


class CalendarSheet(Struct, frozen=True, kw_only=True):
    """The days of a view. `hours`: those that are drawn."""

    view: View
    day: date
    days: Sequence[DayColumn]
    hours: Sequence[int]
    people: Sequence[tuple[int, str]]

    @property
    def weeks(self) -> Sequence[Sequence[DayColumn]]:
        """The days in rows of seven."""
        return [self.days[start : start + 7] for start in range(0, len(self.days), 7)]


def first_day_of(chosen: str | None, languages: str) -> str:
    """The first day of a week: as chosen, else as where the browser's first language says that it is from."""
    if chosen:
        return chosen
    first = languages.partition(",")[0].partition(";")[0].strip()
    place = first.rpartition("-")[2].upper() if "-" in first else ""
    return "sunday" if place in SUNDAY.split() else "saturday" if place in SATURDAY.split() else "monday"


def shown_days(view: View, day: date, first_day: str) -> ShownDays:
    """The days of a view."""
    if view == "day":
        return ShownDays(view=view, day=day, begins=day, count=1)
    start = day.replace(day=1) if view == "month" else day
    begins = start - timedelta(days=(start.weekday() - WEEKDAYS[first_day]) % 7)
    if view == "week":
        return ShownDays(view=view, day=day, begins=begins, count=7)
    after = (start.replace(day=28) + timedelta(days=4)).replace(day=1)
    return ShownDays(view=view, day=day, begins=begins, count=-(-((after - begins).days) // 7) * 7)


def moved(view: View, day: date, by: int) -> date:
    """The same view further on or back."""
    if view != "month":
        return day + timedelta(days=by * (7 if view == "week" else 1))
    month = day.year * 12 + day.month - 1 + by
    return date(month // 12, month % 12 + 1, 1)


def sheet_of(shown: ShownDays, lines: Sequence[AgendaLine], now: datetime, zone: ZoneInfo, own: str) -> CalendarSheet:
    """The days with all that stands on them. `own`: the name of the person who looks."""
    people = _people(lines, own)
    days = [shown.begins + timedelta(days=count) for count in range(shown.count)]
    all_of = {one: [b for line in lines if (b := _on(line, one, people, own, zone))] for one in days}
    found = {one: _shown(blocks, DAY_MOST[shown.view]) for one, blocks in all_of.items()}
    timed = [one for blocks in found.values() for one in blocks if not one.is_whole]
    first = min([FIRST_HOUR, *(one.first // 4 for one in timed)])
    last = max([LAST_HOUR, *(-(-one.last // 4) for one in timed)])
    here = now.astimezone(zone)
    return CalendarSheet(
        view=shown.view,
        day=shown.day,
        days=[
            DayColumn(
                day=one,
                is_today=one == here.date(),
                is_other=shown.view == "month" and one.month != shown.day.month,
                whole=[b for b in blocks if b.is_whole],
                timed=list(_placed([b for b in blocks if not b.is_whole], first)),
                more=len(all_of[one]) - len(blocks),
                now=_line_of(here, first, last) if one == here.date() else "",
            )
            for one, blocks in found.items()
        ],
        hours=range(first, last),
        people=[(color, who) for who, color in people.items()],
    )


def _shown(blocks: Sequence[CalendarBlock], most: int) -> Sequence[CalendarBlock]:
    """So many of a day in their order, appointments rather than what Cortex itself does."""
    kept = sorted(range(len(blocks)), key=lambda place: blocks[place].kind != "appointment")[:most]
    return [blocks[place] for place in sorted(kept)]


def _people(lines: Sequence[AgendaLine], own: str) -> Mapping[str, int]:
    """Each person's colour: the reader's own first, then by name, so that it stays the same."""
    names = sorted({one.occasion.calendar.owner for one in lines if one.occasion and one.occasion.calendar.owner})
    has_own = any(one.occasion and not one.occasion.calendar.owner for one in lines)
    others = {who: 1 + count % (COLORS - 1) for count, who in enumerate(names)}
    return {own: 0, **others} if has_own or not names else others


def _on(line: AgendaLine, day: date, people: Mapping[str, int], own: str, zone: ZoneInfo) -> CalendarBlock | None:
    """The part of it that stands on this day; None for nothing."""
    one = line.occasion
    begins, ends = line.starts_at.astimezone(zone), line.ends_at.astimezone(zone)
    if one and one.day:
        if not one.day <= day.isoformat() <= (one.last_day or one.day):
            return None
        return replace(_block(line, people, own, "", ""), is_whole=True)
    midnight = datetime.combine(day, datetime.min.time(), zone)
    tomorrow = datetime.combine(day + timedelta(days=1), datetime.min.time(), zone)
    if begins >= tomorrow or (ends <= midnight and begins < midnight) or (begins.date() < day and ends <= midnight):
        return None
    at = clock(line.starts_at, zone) if begins.date() == day else ""
    until = clock(line.ends_at, zone) if line.kind == "appointment" and ends <= tomorrow and ends > begins else ""
    block = _block(line, people, own, at, until)
    if begins < midnight and ends >= tomorrow:  # all of this day
        return replace(block, is_whole=True)
    first = 0 if begins.date() < day else begins.hour * 4 + begins.minute // 15
    last = 96 if ends >= tomorrow else ends.hour * 4 + -(-ends.minute // 15)
    last = min(96, max(last, first + LEAST_QUARTERS))
    return replace(block, first=min(first, last - LEAST_QUARTERS), last=last)


def _block(line: AgendaLine, people: Mapping[str, int], own: str, at: str, until: str) -> CalendarBlock:
    one = line.occasion
    if one is None:
        name = "reminders" if line.kind == "reminder" else "jobs"
        words = f"{line.text}, {'reminder' if line.kind == 'reminder' else 'job'} at {at}"
        return CalendarBlock(
            kind=line.kind, text=line.text, title=words, href=f"/{name}/{line.id}", who="", color=0,
            starts_at=line.starts_at, at=at,
        )  # fmt: skip
    who = one.calendar.owner or own
    text = one.title or "No title"
    span = f"{at} to {until}" if at and until else at or (f"until {until}" if until else "all day")
    return CalendarBlock(
        kind="appointment",
        text=text,
        title=", ".join(filter(None, (text, span, who, one.place, one.calendar.name))),
        href=_href(line, one),
        who=who,
        color=people[who],
        starts_at=line.starts_at,
        at=at,
        until=until,
        where=one.place,
        is_busy=not one.id,
    )


def _href(line: AgendaLine, one: Occasion) -> str:
    """Where it is shown: an appointment by itself, a birthday as its contact; "" for what is only busy."""
    if one.id:
        return f"{HOME}/appointments/{one.id}?{urlencode({'at': line.starts_at.isoformat()})}"
    return f"/contacts/{one.key}" if one.calendar.id == BIRTHDAYS.id else ""


def _placed(blocks: Sequence[CalendarBlock], first_hour: int) -> Iterator[CalendarBlock]:
    """Each with the classes of its place: rows of a quarter, and its lane among those at the same time."""
    group: list[tuple[CalendarBlock, int]] = []
    lanes: list[int] = []
    for one in sorted(blocks, key=lambda one: (one.first, -one.last)):
        if lanes and one.first >= max(lanes):
            yield from _laned(group, len(lanes), first_hour)
            group, lanes = [], []
        free = next((lane for lane, until in enumerate(lanes) if until <= one.first), len(lanes))
        lanes[free : free + 1] = [one.last]
        group.append((one, free))
    yield from _laned(group, len(lanes), first_hour)


def _laned(group: Sequence[tuple[CalendarBlock, int]], lanes: int, first_hour: int) -> Iterator[CalendarBlock]:
    most = min(lanes, LANES_MOST)
    for one, lane in group:
        rows = f"a{one.first - first_hour * 4} z{one.last - first_hour * 4}"
        yield replace(one, place=rows if most < 2 else f"{rows} of{most} n{min(lane, most - 1)}")


def _line_of(here: datetime, first: int, last: int) -> str:
    if not first <= here.hour < last:
        return ""
    return f"a{(here.hour - first) * 4 + here.minute // 15} m{here.minute % 15 // 5}"


def form_at(title: str, begins: datetime, *, is_all_day: bool = False) -> AppointmentForm:
    """The form of an hour from then on, or of that day."""
    ends = begins + HOUR
    last = begins if is_all_day else ends
    return AppointmentForm(
        title=title,
        day=begins.date().isoformat(),
        starts=f"{begins:%H:%M}",
        last_day=last.date().isoformat(),
        ends=f"{ends:%H:%M}",
        is_all_day=is_all_day,
    )


def undo_of(key: str) -> str:
    """The address that takes a change back; "" for none."""
    return f"{HOME}/undo/{key}" if key else ""
