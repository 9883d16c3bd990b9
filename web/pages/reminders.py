"""Reminders: `/reminders`, one reminder's own page, and the reading of words while they are typed."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from fastapi.responses import Response
from msgspec.structs import replace

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
from web.deps import FormNumber, Number, Text
from web.figures import moment
from web.render import Context, Frame, NavEntry, address, described, wants_fragment, zone_of
from web.routes import PageRouter
from web.security import local_path
from web.stretch import PAGE_ROWS, Stretch, cut, part
from web.visit import UserVisit, Visit

router = PageRouter()
HOME = "/reminders"
NAV = NavEntry(title="Reminders", href=HOME, icon="alarm", order=12, under="/tasks")
NO_STARTS: Mapping[str, int] = MappingProxyType({"start": 0, "due": 0, "next": 0, "repeating": 0})


def _rhythm(seconds: int) -> str:
    """Return how it may be told, and where that ends."""
    each = f"{seconds // 3600} h" if seconds >= 3600 else f"{seconds // 60} min"
    hours = round(seconds * TOLD_MOST / 3600)
    return f"every {each} until it is marked done (max {f'{hours // 24} days' if hours > 24 else f'{hours} h'})"


REPEATS = (("", "once"), *((str(seconds), _rhythm(seconds)) for seconds in REPEATS_S))


class ReminderReadingContext(Context, frozen=True, kw_only=True):
    """The meaning of words, which the page shows while they are typed."""

    reading: Reading | None = described("what was read, None when nothing could be", default=None)
    times: Sequence[datetime] = described("the next times", default=())
    when: str = described("the same in words", default="")


class RemindersContext(ReminderReadingContext, frozen=True, kw_only=True):
    """The list."""

    listing: ReminderListing = described("whether there are any at all")
    due: Stretch[ReminderRow] = described("what waits for an answer")
    next: Stretch[ReminderRow] = described("what comes next")
    repeating: Stretch[ReminderRow] = described("what repeats")
    past: Stretch[ReminderRow] = described("what is over")
    query: str = described("words to filter by")
    here: str = described("this page's own address, for forms to come back to")
    repeats: Sequence[tuple[str, str]] = described("how it may be told: seconds, words")
    draft: str = described("words that were typed and not saved", default="")
    draft_repeat: str = described("how they were to be told", default="")
    people: Sequence[str] = described("names of the others of the house, who can be reminded", default=())
    draft_person: str = described("who was to be told", default="")


class ReminderContext(ReminderReadingContext, frozen=True, kw_only=True):
    """One reminder."""

    reminder: ReminderRow = described("the reminder as it stands")
    text: str = described("its text, as typed when that was refused")
    typed_when: str = described("its time in words, likewise")
    repeat_s: str = described("how often it is told again, likewise")
    repeats: Sequence[tuple[str, str]] = described("how it may be told: seconds, words")
    snoozes: dict[Snooze, str] = described("ready choices to put it off: value, words")
    is_stale: bool = described("whether it was told or changed while the person was writing", default=False)


@router.get(HOME)
async def show(
    visit: UserVisit, q: str = "", start: Number = 0, due: Number = 0, next: Number = 0, repeating: Number = 0
) -> Response:
    """Return what waits, what is next, what repeats and what is over, each from a row on."""
    starts = {"start": max(0, start), "due": due, "next": next, "repeating": repeating}
    return await visit.show("reminders.html", await _context(visit, q, starts))


@router.post(HOME)
async def add(
    visit: UserVisit, words: Text = "", repeat_s: Text = "", person: Text = "", back: Text = HOME
) -> Response:
    """Add one, for oneself or another person of the house, and say how it was read."""
    reminders = visit.services.reminders
    others = await reminders.others(visit.user.id)
    for_id = next((id for id, name in others.items() if name == person), person)
    try:
        row = await reminders.add(visit.user, words, repeat_s=_seconds(repeat_s), for_id=for_id)
    except UserError as refused:
        context = await _context(visit)
        context = replace(context, draft=words, draft_repeat=repeat_s, draft_person=person)
        return await visit.show("reminders.html", context, refused=refused)
    at = _timing_words(visit, row)
    place = local_path(back, HOME) + "#words"  # the browser puts the focus there, for the next one
    if row.owner_id == visit.user.id:
        return visit.redirect(place, f"Will remind: {row.text}, {at}", undo_href=f"{HOME}/{row.id}/remove")
    return visit.redirect(place, f"Will remind {person}: {row.text}, {at}", undo_href=f"{HOME}/given/remove")


@router.post(f"{HOME}/given/remove")
async def take_given_back(visit: UserVisit) -> Response:
    """Take away what was given to another person last, unless it was told or changed since."""
    is_gone = await visit.services.reminders.take_last_back(visit.user)
    return visit.redirect(HOME, "Removed." if is_gone else "It was sent or changed since, so it was left as it is.")


@router.post(f"{HOME}/reading")
async def read(visit: UserVisit, words: Text = "", when: Text = "", repeat_s: Text = "") -> Response:
    """Return how the words, or the time alone, are read now; nothing is saved."""
    found = _read(visit, words, when)
    if wants_fragment(visit.request):
        return await visit.show("reminders.html", found, block="reading")
    context = replace(
        await _context(visit),
        **{name: getattr(found, name) for name in ("reading", "times", "when", "error", "error_field")},
        draft=words,
        draft_repeat=repeat_s,
    )
    return await visit.show("reminders.html", context)


@router.get(f"{HOME}/clear")
async def ask_clear(visit: UserVisit) -> Response:
    """The question before all are taken away."""
    return await visit.ask(
        title="Remove all reminders?",
        text="Deletes all upcoming reminders. You can undo this for a day.",
        words="Remove all",
        back=HOME,
    )


@router.post(f"{HOME}/clear")
async def clear(visit: UserVisit) -> Response:
    """Take all away, and offer to take that back."""
    count = await visit.services.reminders.clear(visit.user)
    words = f"Removed: {count} reminder{'' if count == 1 else 's'}"
    return visit.redirect(HOME, words, undo_href=f"{HOME}/restore" if count else "")


@router.post(f"{HOME}/restore")
async def restore_cleared(visit: UserVisit) -> Response:
    """Bring back what was taken away together."""
    count = await visit.services.reminders.restore_cleared(visit.user)
    return visit.redirect(HOME, f"Restored: {count} reminder{'' if count == 1 else 's'}")


@router.get(HOME + "/{reminder_id}")
async def show_one(visit: UserVisit, reminder_id: str) -> Response:
    """One reminder to change."""
    return await visit.show("reminder.html", await _one(visit, reminder_id))


@router.post(HOME + "/{reminder_id}")
async def save(
    visit: UserVisit, reminder_id: str, version: FormNumber, text: Text = "", when: Text = "", repeat_s: Text = ""
) -> Response:
    """Save it, unless it was told or changed in between: then what was typed stands beside what is there."""
    try:
        row = await visit.services.reminders.change(
            visit.user, reminder_id, version, text=text, when=when, repeat_s=_seconds(repeat_s)
        )
    except (UserError, Conflict) as refused:
        context = replace(
            await _one(visit, reminder_id),
            text=text,
            typed_when=when,
            repeat_s=repeat_s,
            is_stale=isinstance(refused, Conflict),
        )
        return await visit.show("reminder.html", context, refused=refused)
    return visit.redirect(HOME, f"Saved: {row.text}, {row.timing.words_in(visit.user.time_zone)}")


@router.post(HOME + "/{reminder_id}/ack")
async def acknowledge(visit: UserVisit, reminder_id: str, back: Text = HOME) -> Response:
    """Heard: it is not told again before its next time."""
    row = await visit.services.reminders.acknowledge(visit.user.id, reminder_id)
    undo = f"{HOME}/{reminder_id}/again"
    return visit.redirect(local_path(back, HOME), f"Done: {row.text}", undo_href=undo)


@router.post(HOME + "/{reminder_id}/snooze")
async def snooze(
    visit: UserVisit, reminder_id: str, choice: Text = "", words: Text = "", back: Text = HOME
) -> Response:
    """Tell it again later."""
    chosen: Snooze = next((one for one in SNOOZES if one == choice), "words")
    try:
        row = await visit.services.reminders.snooze(visit.user, reminder_id, chosen, words)
    except UserError as refused:
        context = replace(await _one(visit, reminder_id))
        return await visit.show("reminder.html", context, refused=refused)
    again = SNOOZES.get(chosen, words.strip())
    undo = f"{HOME}/{reminder_id}/again"
    return visit.redirect(local_path(back, HOME), f"Again {again}: {row.text}", undo_href=undo)


@router.post(HOME + "/{reminder_id}/again")
async def wait_again(visit: UserVisit, reminder_id: str, back: Text = HOME) -> Response:
    """Not done after all, nor put off: it waits for an answer."""
    row = await visit.services.reminders.wait_again(visit.user, reminder_id)
    return visit.redirect(local_path(back, HOME), f"Restored: {row.text}")


@router.post(HOME + "/{reminder_id}/skip")
async def skip(visit: UserVisit, reminder_id: str, at: Text = "", back: Text = HOME) -> Response:
    """Done ahead of its time `at`, at which it is not told then."""
    row = await visit.services.reminders.skip(visit.user, reminder_id, at)
    undo = address(f"{HOME}/{reminder_id}/unskip", at=at)
    return visit.redirect(local_path(back, HOME), f"Done: {row.text}", undo_href=undo)


@router.post(HOME + "/{reminder_id}/unskip")
async def unskip(visit: UserVisit, reminder_id: str, at: str = "", back: Text = HOME) -> Response:
    """Not done after all: it is told at `at` again."""
    row = await visit.services.reminders.unskip(visit.user, reminder_id, at)
    return visit.redirect(local_path(back, HOME), f"Restored: {row.text}")


@router.post(HOME + "/{reminder_id}/remove")
async def remove(visit: UserVisit, reminder_id: str, back: Text = HOME) -> Response:
    """Take it away; the next page offers it back."""
    row = await visit.services.reminders.get(visit.user, reminder_id)
    await visit.services.reminders.remove(visit.user.id, [reminder_id])
    undo = f"{HOME}/{reminder_id}/restore"
    return visit.redirect(local_path(back, HOME), f"Removed: {row.text}", undo_href=undo)


@router.post(HOME + "/{reminder_id}/restore")
async def restore(visit: UserVisit, reminder_id: str) -> Response:
    """Bring a removed one back."""
    await visit.services.reminders.restore(visit.user.id, [reminder_id])
    row = await visit.services.reminders.get(visit.user, reminder_id)
    return visit.redirect(HOME, f"Restored: {row.text}")


def _read(visit: Visit, words: str, when: str) -> ReminderReadingContext:
    frame = Frame(user=visit.user)
    try:
        if when:
            timing, times = visit.services.reminders.read_time(visit.user, when)
            return ReminderReadingContext(frame=frame, when=timing.words, times=times)
        if not words.strip():
            return ReminderReadingContext(frame=frame)
        reading = visit.services.reminders.read(visit.user, words)
        return ReminderReadingContext(frame=frame, reading=reading, when=reading.timing.words, times=reading.times)
    except UserError as refused:
        return ReminderReadingContext(frame=frame, error=refused.message, error_field=refused.field)


async def _context(visit: Visit, query: str = "", starts: Mapping[str, int] = NO_STARTS) -> RemindersContext:
    start = starts["start"]
    listing = await visit.services.reminders.listing(visit.user, query=query, start=start, most=PAGE_ROWS + 1)
    here = address(HOME, **{"q": query, **starts})

    def place(**other: int) -> str:
        return address(HOME, **{"q": query, **starts, **other})

    return RemindersContext(
        listing=listing,
        due=cut(listing.due, starts["due"], place, by="due", at="due-h"),
        next=cut(listing.next, starts["next"], place, by="next", at="next-h"),
        repeating=cut(listing.repeating, starts["repeating"], place, by="repeating", at="repeating-h"),
        past=part(listing.past, start, place, at="past-h"),
        query=query,
        here=here,
        repeats=REPEATS,
        people=tuple((await visit.services.reminders.others(visit.user.id)).values()),
    )


async def _one(visit: Visit, reminder_id: str) -> ReminderContext:
    row = await visit.services.reminders.get(visit.user, reminder_id)
    return ReminderContext(
        reminder=row,
        text=row.text,
        typed_when=row.words if row.next_at else "",
        repeat_s=str(row.repeat_s or ""),
        repeats=REPEATS,
        snoozes=SNOOZES,
    )


def _timing_words(visit: Visit, row: ReminderRow) -> str:
    """Return when it comes, as people say it; what was made of an unclear hour stays behind it."""
    words = row.timing.words_in(visit.user.time_zone)
    if row.timing.kind != "at" or row.next_at is None:
        return words
    _, opened, note = words.partition(" (")
    return moment(row.next_at, zone_of(visit.user)) + opened + note


def _seconds(typed: str) -> int | None:
    """The interval chosen; UserError for what is none."""
    if not typed:
        return None
    number = whole_number(typed)
    if number is None:
        raise UserError("Choose one of the intervals.", field="repeat_s")
    return number
