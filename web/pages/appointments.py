"""One appointment: shown, added, changed, taken away, answered, and the last of these taken back."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Annotated, Literal

from fastapi import Form
from fastapi.responses import Response
from msgspec.structs import replace
from pydantic import BaseModel

from cortex.base.errors import Conflict, NotFound, UserError
from cortex.base.ids import new_id
from cortex.base.zone import local
from cortex.services.calendars.edits import CHANGED, GONE, AppointmentForm, ShownDate, form_of
from web.deps import Text
from web.render import Context, address, described
from web.routes import PageRouter
from web.visit import UserVisit, Visit
from web.week import HOME, form_at, undo_of

router = PageRouter()
ONE = HOME + "/appointments/{appointment_id}"
REPEATS = (
    ("", "Does not repeat"),
    ("daily", "Every day"),
    ("weekly", "Every week"),
    ("monthly", "Every month"),
    ("yearly", "Every year"),
)
ANSWERS: dict[str, Literal["accepted", "tentative", "declined"]] = {
    "accepted": "accepted",
    "tentative": "tentative",
    "declined": "declined",
}


class AppointmentFields(BaseModel):
    """An appointment as its form sends it; what is not ticked is not there."""

    once: str = ""
    at: str = ""
    version: str = ""
    dates: str = ""
    title: str = ""
    calendar: str = ""
    day: str = ""
    starts: str = ""
    last_day: str = ""
    ends: str = ""
    is_all_day: str = ""
    place: str = ""
    text: str = ""
    repeat: str = ""

    @property
    def form(self) -> AppointmentForm:
        """The appointment itself."""
        said = self.model_dump(exclude={"once", "at", "version", "dates", "is_all_day"})
        return AppointmentForm(**said, is_all_day=bool(self.is_all_day))


class AppointmentFormContext(Context, frozen=True, kw_only=True):
    """An appointment to write."""

    form: AppointmentForm = described("the fields as they stand, or as typed when that was refused")


class NewAppointmentContext(AppointmentFormContext, frozen=True, kw_only=True):
    """A new one."""

    once: str = described("by which the form is known, so that sent twice it adds once")
    calendars: Sequence[tuple[str, str]] = described("calendars to choose from: id, name")
    repeats: Sequence[tuple[str, str]] = described("how it may repeat: value, words")
    wanted: str = described("how a sentence wanted it repeated, or empty", default="")


class AppointmentContext(AppointmentFormContext, frozen=True, kw_only=True):
    """One that stands."""

    shown: ShownDate = described("one date of it, with what else it says")
    days: tuple[date, date] | None = described("its first and its last day, None of one with times")
    at: str = described("when this date begins, as the address names it")
    version: str = described("what the form was filled of")
    all_dates: bool = described("whether the whole series is meant", default=False)


@router.get(HOME + "/new")
async def show_new(
    visit: UserVisit, day: str = "", at: str = "", title: str = "", repeats: str = "", whole: str = ""
) -> Response:
    """Return the form, filled with the hour that was pressed."""
    form = replace(_form(visit, day, at, title), is_all_day=bool(whole))
    return await visit.show("appointment_new.html", await _new(visit, form, repeats))


@router.post(HOME + "/new")
async def add(visit: UserVisit, sent: Annotated[AppointmentFields, Form()]) -> Response:
    """Write it, and lead to its day."""
    form = sent.form
    try:
        done = await visit.services.calendar_edits.add(visit.user, sent.once, form)
    except UserError as refused:
        context = replace(await _new(visit, form), once=sent.once or new_id())
        return await visit.show("appointment_new.html", context, refused=refused)
    return visit.redirect(address(HOME, day=form.day), f"Added: {done.title}", undo_href=undo_of(done.undo))


@router.post(HOME + "/undo/{change_id}")
async def undo(visit: UserVisit, change_id: str) -> Response:
    """Take the last change back."""
    await visit.services.calendar_edits.undo(visit.user, change_id)
    return visit.redirect(HOME, "It is as it was before.")


@router.get(ONE)
async def show(visit: UserVisit, appointment_id: str, at: str = "") -> Response:
    """One appointment, to read or to change."""
    shown = await _found(visit, appointment_id, at)
    return await visit.show("appointment.html", _one(visit, shown, at))


@router.post(ONE)
async def save(visit: UserVisit, appointment_id: str, sent: Annotated[AppointmentFields, Form()]) -> Response:
    """Save it, unless it was changed in between: then what was typed stands beside what is there."""
    form, at, is_all = sent.form, sent.at, sent.dates == "all"
    edits, moment = visit.services.calendar_edits, _moment(at)
    try:
        done = await edits.change(visit.user, appointment_id, moment, sent.version, form, all_dates=is_all)
    except (UserError, Conflict) as refused:
        shown = await _found(visit, appointment_id, at)
        context = replace(_one(visit, shown, at), form=form, all_dates=is_all)
        said = refused if isinstance(refused, UserError) else Conflict(CHANGED)
        return await visit.show("appointment.html", context, refused=said)
    return visit.redirect(address(HOME, day=form.day), f"Saved: {done.title}", undo_href=undo_of(done.undo))


@router.get(ONE + "/remove")
async def ask_remove(visit: UserVisit, appointment_id: str, at: str = "", dates: str = "") -> Response:
    """The question before it goes."""
    shown = await _found(visit, appointment_id, at)
    one, is_all = shown.occasion, dates == "all"
    told = "your calendar server tells them" if one.calendar.invites else "your calendar server tells them nothing"
    guests = f" Others are invited: {told}." if shown.details.people else ""
    return await visit.ask(
        title=f"Remove {'all dates of ' if is_all else ''}{one.title or 'this appointment'}?",
        text=f"It is taken out of the calendar {one.calendar.name}. You can undo this.{guests}",
        words="Remove",
        back=address(f"{HOME}/appointments/{appointment_id}", at=at),
        action=address(f"{HOME}/appointments/{appointment_id}/remove", at=at, dates=dates),
    )


@router.post(ONE + "/remove")
async def remove(visit: UserVisit, appointment_id: str, at: str = "", dates: str = "") -> Response:
    """Take one date away, or all of them."""
    edits, moment = visit.services.calendar_edits, _moment(at)
    day = local(moment, visit.user.time_zone).date()
    done = await edits.remove(visit.user, appointment_id, moment, all_dates=dates == "all")
    return visit.redirect(address(HOME, day=day), f"Removed: {done.title}", undo_href=undo_of(done.undo))


@router.post(ONE + "/answer")
async def answer(visit: UserVisit, appointment_id: str, at: Text = "", choice: Text = "") -> Response:
    """Answer an invitation."""
    edits = visit.services.calendar_edits
    await _found(visit, appointment_id, at)
    if choice not in ANSWERS:
        raise UserError("Choose one of the answers.")
    done = await edits.answer(visit.user, appointment_id, _moment(at), ANSWERS[choice])
    place = address(f"{HOME}/appointments/{appointment_id}", at=at)
    return visit.redirect(place, f"Answered: {done.title}", undo_href=undo_of(done.undo))


def _form(visit: Visit, day: str, at: str, title: str) -> AppointmentForm:
    """The next whole hour, where nothing else was pressed."""
    now = local(visit.services.runtime.clock(), visit.user.time_zone)
    hour = now.replace(minute=0, second=0, microsecond=0, tzinfo=None) + timedelta(hours=1)
    try:
        begins = datetime.fromisoformat(f"{day or hour.date().isoformat()}T{at or f'{hour:%H:%M}'}")
    except ValueError:
        begins = hour
    return form_at(title[:300], begins)


async def _new(visit: Visit, form: AppointmentForm, wanted: str = "") -> NewAppointmentContext:
    agenda_calendars = await visit.services.agenda.calendars(visit.user)
    own = [(one.id, one.name) for one in agenda_calendars if one.access == "write" and not one.owner]
    return NewAppointmentContext(form=form, once=new_id(), calendars=own, repeats=REPEATS, wanted=wanted[:200])


async def _found(visit: Visit, id: str, at: str) -> ShownDate:
    return await visit.services.calendar_edits.find(visit.user, id, _moment(at))


def _one(visit: Visit, shown: ShownDate, at: str) -> AppointmentContext:
    one = shown.occasion
    days = (date.fromisoformat(one.day), date.fromisoformat(one.last_day or one.day)) if one.day else None
    form = form_of(shown, visit.user.time_zone)
    return AppointmentContext(form=form, shown=shown, days=days, at=at, version=shown.version)


def _moment(at: str) -> datetime:
    """When the date begins, as the address says; NotFound for what is no moment."""
    try:
        found = datetime.fromisoformat(at)
    except ValueError:
        raise NotFound(GONE) from None
    if found.tzinfo is None or not 1950 <= found.year <= 2200:
        raise NotFound(GONE)
    return found
