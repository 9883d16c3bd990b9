"""Reminders: `/reminders`, one reminder's own page, and the reading of words while they are typed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.base.errors import Conflict, UserError
from cortex.base.numbers import whole_number
from cortex.services.reminders.reminders import (
    REPEATS_S,
    SNOOZES,
    TOLD_MOST,
    Reading,
    ReminderListing,
    ReminderRow,
    Snooze,
)
from web.deps import CurrentUser, FormNumber, Number, Services, Text
from web.frame import frame_of
from web.render import ConfirmContext, Context, Frame, NavEntry, described, respond, wants_fragment
from web.routes import LazyRoute
from web.security import local_path
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)
HOME = "/reminders"
NAV = NavEntry(title="Reminders", href=HOME, icon="bell", order=12)
PAGE_ROWS = 50


def _rhythm(seconds: int) -> str:
    """Return how it may be told, and where that ends."""
    each = f"{seconds // 3600} h" if seconds >= 3600 else f"{seconds // 60} min"
    hours = round(seconds * TOLD_MOST / 3600)
    return f"every {each} until I mark it done (max {f'{hours // 24} days' if hours > 24 else f'{hours} h'})"


REPEATS = (("", "once"), *((str(seconds), _rhythm(seconds)) for seconds in REPEATS_S))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReminderReadingContext(Context):
    """What words were read as; the page shows it while they are typed."""

    reading: Reading | None = described("what was read, None when nothing could be", default=None)
    times: Sequence[datetime] = described("the next times", default=())
    when: str = described("the same in words", default="")
    error: str = described("why it could not be read", default="")
    error_field: str = described("the field the error is about, or empty", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemindersContext(ReminderReadingContext):
    """The list."""

    listing: ReminderListing = described("what waits for an answer, what is next, what repeats, a stretch of the past")
    query: str = described("words to filter by")
    here: str = described("this page's own address, for forms to come back to")
    newer: str = described("address of the past ones before, or empty")
    older: str = described("address of the past ones after, or empty")
    repeats: Sequence[tuple[str, str]] = described("how it may be told: seconds, words")
    draft: str = described("words that were typed and not saved", default="")
    draft_repeat: str = described("how they were to be told", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReminderContext(ReminderReadingContext):
    """One reminder."""

    reminder: ReminderRow = described("the reminder as it stands")
    text: str = described("its text, as typed when that was refused")
    typed_when: str = described("its time in words, likewise")
    repeat_s: str = described("how often it is told again, likewise")
    repeats: Sequence[tuple[str, str]] = described("how it may be told: seconds, words")
    snoozes: dict[Snooze, str] = described("ready choices to put it off: value, words")
    is_stale: bool = described("whether it was told or changed while the person was writing", default=False)


@router.get(HOME)
async def show(request: Request, services: Services, user: CurrentUser, q: str = "", start: Number = 0) -> Response:
    """Return what waits, what is next, what repeats and what is over."""
    return respond(request, "reminders.html", await _context(request, services, user, q, max(0, start)))


@router.post(HOME)
async def add(
    request: Request, services: Services, user: CurrentUser, words: Text = "", repeat_s: Text = "", back: Text = HOME
) -> Response:
    """Add one and say how it was read."""
    try:
        row = await services.reminders.add(user, words, repeat_s=_seconds(repeat_s))
    except UserError as refused:
        context = await _context(request, services, user, "", 0)
        context = replace(context, draft=words, draft_repeat=repeat_s, error=refused.message, error_field=refused.field)
        return respond(request, "reminders.html", context, status=422)
    told = f"Will remind: {row.text}, {row.words}, {row.time_zone}"
    place = local_path(back, HOME) + "#words"  # the browser puts the focus there, for the next one
    return redirect(request, place, told, undo_href=f"{HOME}/{row.id}/remove")


@router.post(f"{HOME}/reading")
async def read(
    request: Request, services: Services, user: CurrentUser, words: Text = "", when: Text = "", repeat_s: Text = ""
) -> Response:
    """Return how the words, or the time alone, are read now; nothing is saved."""
    found = _read(services, user, words, when)
    if wants_fragment(request):
        return respond(request, "reminders.html", found, block="reading")
    context = replace(
        await _context(request, services, user, "", 0),
        **{name: getattr(found, name) for name in ("reading", "times", "when", "error", "error_field")},
        draft=words,
        draft_repeat=repeat_s,
    )
    return respond(request, "reminders.html", context)


@router.get(f"{HOME}/clear")
async def ask_clear(request: Request, services: Services, user: CurrentUser) -> Response:
    """The question before all are taken away."""
    context = ConfirmContext(
        frame=await frame_of(request, services, user, here=HOME),
        title="Remove all reminders?",
        text="Deletes all upcoming reminders. You can undo this for a day.",
        action=f"{HOME}/clear",
        words="Remove all",
        back=HOME,
    )
    return respond(request, "confirm.html", context)


@router.post(f"{HOME}/clear")
async def clear(request: Request, services: Services, user: CurrentUser) -> Response:
    """Take all away, and offer to take that back."""
    count = await services.reminders.clear(user)
    words = f"Removed: {count} reminder{'' if count == 1 else 's'}"
    return redirect(request, HOME, words, undo_href=f"{HOME}/restore" if count else "")


@router.post(f"{HOME}/restore")
async def restore_cleared(request: Request, services: Services, user: CurrentUser) -> Response:
    """Bring back what was taken away together."""
    count = await services.reminders.restore_cleared(user)
    return redirect(request, HOME, f"Restored: {count} reminder{'' if count == 1 else 's'}")


@router.get(HOME + "/{reminder_id}")
async def show_one(request: Request, services: Services, user: CurrentUser, reminder_id: str) -> Response:
    """One reminder to change."""
    return respond(request, "reminder.html", await _one(request, services, user, reminder_id))


@router.post(HOME + "/{reminder_id}")
async def save(
    request: Request,
    services: Services,
    user: CurrentUser,
    reminder_id: str,
    version: FormNumber,
    text: Text = "",
    when: Text = "",
    repeat_s: Text = "",
) -> Response:
    """Save it, unless it was told or changed in between: then what was typed stands beside what is there."""
    try:
        row = await services.reminders.change(
            user, reminder_id, version, text=text, when=when, repeat_s=_seconds(repeat_s)
        )
    except (UserError, Conflict) as refused:
        context = replace(
            await _one(request, services, user, reminder_id),
            text=text,
            typed_when=when,
            repeat_s=repeat_s,
            is_stale=isinstance(refused, Conflict),
            error=refused.message,
            error_field=refused.field if isinstance(refused, UserError) else "",
        )
        return respond(request, "reminder.html", context, status=refused.status)
    return redirect(request, HOME, f"Saved: {row.text}, {row.words}, {row.time_zone}")


@router.post(HOME + "/{reminder_id}/ack")
async def acknowledge(
    request: Request, services: Services, user: CurrentUser, reminder_id: str, back: Text = HOME
) -> Response:
    """Heard: it is not told again before its next time."""
    row = await services.reminders.acknowledge(user.id, reminder_id)
    undo = f"{HOME}/{reminder_id}/again"
    return redirect(request, local_path(back, HOME), f"Done: {row.text}", undo_href=undo)


@router.post(HOME + "/{reminder_id}/snooze")
async def snooze(
    request: Request,
    services: Services,
    user: CurrentUser,
    reminder_id: str,
    choice: Text = "",
    words: Text = "",
    back: Text = HOME,
) -> Response:
    """Tell it again later."""
    chosen: Snooze = next((one for one in SNOOZES if one == choice), "words")
    try:
        row = await services.reminders.snooze(user, reminder_id, chosen, words)
    except UserError as refused:
        context = replace(
            await _one(request, services, user, reminder_id), error=refused.message, error_field=refused.field
        )
        return respond(request, "reminder.html", context, status=422)
    again = SNOOZES.get(chosen, words.strip())
    undo = f"{HOME}/{reminder_id}/again"
    return redirect(request, local_path(back, HOME), f"Again {again}: {row.text}", undo_href=undo)


@router.post(HOME + "/{reminder_id}/again")
async def wait_again(request: Request, services: Services, user: CurrentUser, reminder_id: str) -> Response:
    """Not done after all, nor put off: it waits for an answer."""
    row = await services.reminders.wait_again(user, reminder_id)
    return redirect(request, HOME, f"Restored: {row.text}")


@router.post(HOME + "/{reminder_id}/remove")
async def remove(
    request: Request, services: Services, user: CurrentUser, reminder_id: str, back: Text = HOME
) -> Response:
    """Take it away; the next page offers it back."""
    row = await services.reminders.get(user, reminder_id)
    await services.reminders.remove(user.id, [reminder_id])
    undo = f"{HOME}/{reminder_id}/restore"
    return redirect(request, local_path(back, HOME), f"Removed: {row.text}", undo_href=undo)


@router.post(HOME + "/{reminder_id}/restore")
async def restore(request: Request, services: Services, user: CurrentUser, reminder_id: str) -> Response:
    """Bring a removed one back."""
    await services.reminders.restore(user.id, [reminder_id])
    row = await services.reminders.get(user, reminder_id)
    return redirect(request, HOME, f"Restored: {row.text}")


def _read(services: Services, user: CurrentUser, words: str, when: str) -> ReminderReadingContext:
    frame = Frame(user=user)
    try:
        if when:
            timing, times = services.reminders.read_time(user, when)
            return ReminderReadingContext(frame=frame, when=timing.words, times=times)
        if not words.strip():
            return ReminderReadingContext(frame=frame)
        reading = services.reminders.read(user, words)
        return ReminderReadingContext(frame=frame, reading=reading, when=reading.timing.words, times=reading.times)
    except UserError as refused:
        return ReminderReadingContext(frame=frame, error=refused.message, error_field=refused.field)


async def _context(request: Request, services: Services, user: CurrentUser, query: str, start: int) -> RemindersContext:
    listing = await services.reminders.listing(user, query=query, start=start, most=PAGE_ROWS)

    def address(first: int) -> str:
        asked = {"q": query, "start": str(first) if first else ""}
        chosen = urlencode({name: value for name, value in asked.items() if value})
        return HOME + (f"?{chosen}" if chosen else "")

    return RemindersContext(
        frame=await frame_of(request, services, user, here=HOME),
        listing=listing,
        query=query,
        here=address(start),
        newer=address(max(0, start - PAGE_ROWS)) if start else "",
        older=address(start + PAGE_ROWS) if listing.has_more else "",
        repeats=REPEATS,
    )


async def _one(request: Request, services: Services, user: CurrentUser, reminder_id: str) -> ReminderContext:
    row = await services.reminders.get(user, reminder_id)
    return ReminderContext(
        frame=await frame_of(request, services, user, here=HOME),
        reminder=row,
        text=row.text,
        typed_when=row.words if row.next_at else "",
        repeat_s=str(row.repeat_s or ""),
        repeats=REPEATS,
        snoozes=SNOOZES,
    )


def _seconds(typed: str) -> int | None:
    """The interval chosen; UserError for what is none."""
    if not typed:
        return None
    number = whole_number(typed)
    if number is None:
        raise UserError("Choose one of the intervals.", field="repeat_s")
    return number
