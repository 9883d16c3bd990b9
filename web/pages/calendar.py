"""The calendar: a week, a day or a month at the desk, an agenda on a phone; and a sentence that adds to it."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import date

from fastapi.responses import Response
from msgspec.structs import replace

from cortex.base.errors import UserError
from cortex.base.ids import new_id
from cortex.base.zone import day_begins, day_ends, local, midnight
from cortex.services.calendars.agenda import Agenda, SeenCalendar
from cortex.services.reminders.reminders import Reading
from web.deps import Text
from web.render import Context, NavEntry, address, described, zone_of
from web.routes import PageRouter
from web.visit import UserVisit, Visit
from web.week import (
    HOME,
    CalendarSheet,
    DayColumn,
    ShownDays,
    View,
    first_day_of,
    form_at,
    moved,
    sheet_of,
    shown_days,
    undo_of,
)

router = PageRouter()
NAV = NavEntry(title="Calendar", href=HOME, icon="calendar", order=12)
EARLIEST, LATEST = date(1990, 1, 1), date(2150, 1, 1)


class CalendarContext(Context, frozen=True, kw_only=True):
    """The days that are shown."""

    sheet: CalendarSheet = described(
        "the view: its days, each with what stands on it, hours, people with their colours"
    )
    words: str = described("what is shown, in words: the month, or from when to when")
    today: date = described("the day that it is for this person")
    strip: Sequence[DayColumn] = described("the seven days above a phone's agenda")
    agenda: Sequence[DayColumn] = described("the days that a phone lists")
    here: str = described("this page's own address, for forms to come back to")
    places: dict[str, str] = described("addresses: before, after, now, day, week, month")
    stale: Sequence[SeenCalendar] = described("calendars whose server is silent, with since when")
    has_calendar: bool = described("whether any calendar is seen")
    has_own: bool = described("whether one of them is this person's own")
    may_write: bool = described("whether Cortex may write to a calendar of this person")
    once: str = described("by which a sentence is known, so that sent twice it adds once")
    typed: str = described("a sentence that was refused", default="")


@router.get(HOME)
async def show(visit: UserVisit, view: str = "week", day: str = "") -> Response:
    """Return a week, or the day or the month that was asked for."""
    return await visit.show("calendar.html", await context_of(visit, view, day))


@router.post(HOME)
async def say(visit: UserVisit, words: Text = "", once: Text = "", view: Text = "week", day: Text = "") -> Response:
    """Add what a sentence says, and tell how it was read; one that repeats goes on in the form."""
    try:
        reading = _read(visit, words)
        begins, is_whole = local(reading.times[0], visit.user.time_zone), reading.timing.is_day
        form = form_at(reading.text, begins, is_all_day=is_whole)
        if reading.timing.kind in ("every", "cron"):
            where = {"title": form.title, "day": form.day, "at": form.starts, "repeats": reading.timing.words}
            return visit.redirect(address(f"{HOME}/new", **where, whole="1" if is_whole else ""))
        done = await visit.services.calendar_edits.add(visit.user, once, form)
    except UserError as refused:
        context = replace(await context_of(visit, view, day), typed=words)
        return await visit.show("calendar.html", context, refused=UserError(refused.message, field="words"))
    at = "all day" if is_whole else f"{begins:%H:%M}"
    told = f"Added: {done.title}, {begins:%A} {begins.day} {begins:%B}, {at}"
    return visit.redirect(address(HOME, view=view_of(view), day=form.day), told, undo_href=undo_of(done.undo))


def _read(visit: Visit, words: str) -> Reading:
    """Return what a sentence means; of today as a whole also once its usual hour has passed."""
    reminders = visit.services.reminders
    try:
        return reminders.read(visit.user, words)
    except UserError:
        today = midnight(visit.services.runtime.clock(), visit.user.time_zone)
        with suppress(UserError):
            found = reminders.read(visit.user, words, since=today)
            if found.timing.is_day:
                return found
        raise


async def context_of(visit: Visit, view: str, day: str) -> CalendarContext:
    """The days of a view."""
    zone, now = zone_of(visit.user), visit.services.runtime.clock()
    today = now.astimezone(zone).date()
    shown, on = view_of(view), _day(day, today)
    chosen = await visit.services.preferences.get(visit.user)
    first = first_day_of(chosen.first_day, visit.request.headers.get("accept-language", ""))
    days = shown_days(shown, on, first)
    agenda = await _between(visit, days)
    lines = [one for one in agenda.lines if shown != "month" or one.kind != "job"]  # a daily one fills a month
    sheet = sheet_of(days, lines, now, zone, visit.user.name)
    strip = sheet
    if shown == "day":
        week = shown_days("week", on, first)
        found = await _between(visit, week)
        strip = sheet_of(week, found.lines, now, zone, visit.user.name)
    return CalendarContext(
        sheet=sheet,
        words=days.words,
        today=today,
        strip=strip.days,
        agenda=[one for one in sheet.days if one.blocks or one.is_today or shown == "day"],
        here=address(HOME, view=shown, day=on),
        places={
            "before": address(HOME, view=shown, day=max(moved(shown, on, -1), EARLIEST)),
            "after": address(HOME, view=shown, day=min(moved(shown, on, 1), LATEST)),
            "now": address(HOME, view=shown),
            **{name: address(HOME, view=name, day=on) for name in ("day", "week", "month")},
        },
        stale=agenda.stale,
        has_calendar=bool(agenda.calendars),
        has_own=any(not one.owner for one in agenda.calendars),
        may_write=any(one.access == "write" and not one.owner for one in agenda.calendars),
        once=new_id(),
    )


def view_of(view: str) -> View:
    """The view that is meant; the week for what is none."""
    return "day" if view == "day" else "month" if view == "month" else "week"


async def _between(visit: Visit, days: ShownDays) -> Agenda:
    zone, now = visit.user.time_zone, visit.services.runtime.clock()
    since, until = day_begins(days.begins, zone), day_ends(days.last, zone)
    return await visit.services.agenda.of(visit.user, since or now, until or now)


def _day(typed: str, today: date) -> date:
    try:
        return min(max(date.fromisoformat(typed), EARLIEST), LATEST)
    except ValueError:
        return today
