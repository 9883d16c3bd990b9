"""Changes of appointments made ready and kept, ahead of any question: what was asked about is what is written, once.

Each gives what the call acts on (`Ctx.target`): the resource as it will be, the fact in words, where to (`aim`).
"""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from cortex.base.errors import ToolFailed
from cortex.base.ids import derived_id
from cortex.base.zone import local
from cortex.ports.calendars import Answer, Calendars, Details, Draft, Occasion, Person, Written
from cortex.toolkit.appointments import fact, news_of, rhythm_of, rule_of, span_of, timed, when_of
from cortex.toolkit.contacts import address_of
from cortex.toolkit.context import Ctx
from cortex.toolkit.occasions import PAST, MeantTime, calendars_of, meant, moment_of, writable
from cortex.toolkit.said_times import SaidTime, last_day_of, length_of, parted
from cortex.toolkit.server_changes import target_of
from cortex.toolkit.words import counted

TITLE_CHARACTERS = 300
TEXT_CHARACTERS = 4_000
GUESTS_MOST = 20
USUAL = timedelta(hours=1)
SENDS_NOTHING = "The server of {name} sends no invitations: nobody would be told. Add it without guests"
SENDS_NOTHING += ", and say that they have to be told another way."
NOT_TOLD = "its guests are not told, as the server of {name} sends nothing"


async def to_add(ctx: Ctx, given: Mapping[str, Any]) -> dict[str, Any]:
    """Make the appointment of these arguments ready; what "tomorrow" means does not change until the answer."""
    place, notes = given["place"], given["notes"]
    guests = [one for one in given["guests"].split(",") if one.strip()]

    async def ready() -> dict[str, Any]:
        there = writable(await calendars_of(ctx), given["calendar"])
        people = [Person(address=await _guest(ctx, one)) for one in guests]
        if people and not there.invites:
            raise ToolFailed(SENDS_NOTHING.format(name=there.label))
        if len(people) > GUESTS_MOST:
            raise ToolFailed(f"At most {GUESTS_MOST} guests are invited by one call.")
        rhythm, said = rhythm_of(given["repeat"]), parted(given["when"])
        when = moment_of(ctx, said.begin, repeats=rhythm is not None)
        last_day = last_day_of(ctx, when.at, said) if when.is_day else None
        length = USUAL if when.is_day else length_of(ctx, when.at, said) or USUAL
        draft = Draft(
            title=_bounded(given["title"], TITLE_CHARACTERS, "title"),
            place=_bounded(place, TITLE_CHARACTERS, "place") if place else None,
            text=_bounded(notes, TEXT_CHARACTERS, "notes") if notes else None,
            rule=rule_of(ctx, rhythm, when.at, whole=when.is_day) if rhythm else None,
            people=people or None,
        )
        draft = timed(ctx, draft, when.at, length, all_day=when.is_day, last_day=last_day)
        uid = f"{derived_id(ctx.call_id, 'appointment')}@cortex"
        written = await ctx.use(Calendars).ready_new(there.id, uid, draft)
        told = f"; invited: {', '.join(one.address for one in people)}" if people else ""
        told += "" if when.is_day else await _beside(ctx, when.at, length)
        often = f", {rhythm}" if rhythm else ""
        fact = f"{draft.title}, {when_of(draft)}{often}, in {there.label}{told}"
        return target_of(written, fact, f"{there.label}: {fact}", there)

    return await ctx.target(ready)


async def to_change(ctx: Ctx, given: Mapping[str, Any]) -> dict[str, Any]:
    """Make the change of one date, or of the whole series, ready and keep it."""
    title, when, all_dates = given["title"], given["when"], given["all_dates"]

    async def ready() -> dict[str, Any]:
        found, said = await _changed(ctx, given["appointment"], given["day"], tell_guests=given["tell_guests"])
        draft = Draft(title=None if title is None else _bounded(title, TITLE_CHARACTERS, "title"), place=given["place"])
        draft, beside = replace(draft, text=given["notes"]), ""
        if when:
            draft, beside = await _moved(ctx, draft, found, parted(when))
        if draft == Draft():
            raise ToolFailed("Say what is to change: title, when, place or notes.")
        written = await ctx.use(Calendars).ready_change(found, draft, all_dates=all_dates)
        _must_be_told(found, written, tell_guests=given["tell_guests"])
        told = f"{fact(ctx, found)}{_which(found, all_dates=all_dates)}: {news_of(draft)}{_untold(found, said)}"
        told += beside
        aim = f"{found.calendar.label}: {fact(ctx, found)}{_guests(found, said)}"
        return target_of(written, told, aim, found.calendar)

    return await ctx.target(ready)


async def _moved(ctx: Ctx, draft: Draft, found: Occasion, said: SaidTime) -> tuple[Draft, str]:
    """The draft with its new times, and what else is on then. What is not said of them stays as it was."""
    begins = _begin(ctx, found, said.begin) if said.begin else MeantTime(found.starts_at, is_day=bool(found.day))
    if begins.is_day:
        last_day = last_day_of(ctx, begins.at, said)
        return timed(ctx, draft, begins.at, span_of(found), all_day=True, last_day=last_day), ""
    length = length_of(ctx, begins.at, said) or (USUAL if found.day else span_of(found))
    return timed(ctx, draft, begins.at, length, all_day=False), await _beside(ctx, begins.at, length, found)


async def _beside(ctx: Ctx, begins: datetime, length: timedelta, moved: Occasion | None = None) -> str:
    """Say how many others of the user's there are then; "" for none. Whole days and free times leave room."""
    there = await ctx.use(Calendars).between(begins, begins + length)
    taken = [
        one
        for one in there
        if not (one.calendar.owner or one.day or one.is_free)
        and one.starts_at < begins + length
        and one.ends_at > begins
        and (moved is None or (one.id, one.key) != (moved.id, moved.key))
    ]
    return f"; at the same time as {counted(len(taken), 'other appointment')}" if taken else ""


def _begin(ctx: Ctx, found: Occasion, words: str) -> MeantTime:
    """When it begins then: at a time alone on its day, on a day alone at its time."""
    here = local(found.starts_at, ctx.user.time_zone)
    when = moment_of(ctx, words, on=here.date())
    if not when.is_day or found.day:
        return when
    at = datetime.combine(local(when.at, ctx.user.time_zone).date(), here.time(), here.tzinfo)
    if at <= ctx.now:
        raise ToolFailed(PAST.format(words=words))
    return MeantTime(at)


async def to_remove(
    ctx: Ctx, appointment: str, day: date | None = None, all_dates: bool = False, tell_guests: bool = False
) -> dict[str, Any]:
    """Make taking away one date, or the whole series, ready and keep it."""

    async def ready() -> dict[str, Any]:
        found, said = await _changed(ctx, appointment, day, tell_guests=tell_guests)
        written = await ctx.use(Calendars).ready_removal(found, all_dates=all_dates or not found.key)
        _must_be_told(found, written, tell_guests=tell_guests)
        told = f"{fact(ctx, found)}{_which(found, all_dates=all_dates)}"
        aim = f"{found.calendar.label}: {told}{_guests(found, said)}"
        return target_of(written, f"{told}{_untold(found, said)}", aim, found.calendar)

    return await ctx.target(ready)


async def to_answer(ctx: Ctx, appointment: str, answer: Answer, day: date | None = None) -> dict[str, Any]:
    """Make the answer to an invitation ready and keep it; ToolFailed where nobody invited the user."""

    async def ready() -> dict[str, Any]:
        found = await meant(ctx, appointment, day)
        said = await ctx.use(Calendars).details(found)
        if not said.is_invitation:
            raise ToolFailed("Nobody invited the user to it: there is nothing to answer.")
        written = await ctx.use(Calendars).ready_answer(found, answer)
        at, name = fact(ctx, found), found.calendar.label
        if found.calendar.invites:
            return target_of(written, f"{answer}: {at}", f"{said.organizer}: {at}", found.calendar)
        untold = f"{said.organizer} is not told, as the server of {name} sends nothing"
        return target_of(written, f"{answer}, in {name}: {at}; {untold}", f"{name}: {at}; {untold}", found.calendar)

    return await ctx.target(ready)


async def _changed(ctx: Ctx, appointment: str, day: date | None, *, tell_guests: bool) -> tuple[Occasion, Details]:
    """The one that is meant, which may be changed; ToolFailed where others are invited and nobody said so."""
    found = await meant(ctx, appointment, day)
    said = await ctx.use(Calendars).details(found)
    if said.is_invitation:
        raise ToolFailed(
            f"{said.organizer} made this appointment: only they can change it. It can be answered.", is_tainted=True
        )
    if said.people and found.calendar.invites and not tell_guests:
        names = ", ".join(one.name or one.address for one in said.people[:5])
        raise ToolFailed(f"{names} are invited to it and will be told. Call again with tell_guests.", is_tainted=True)
    return found, said


def _must_be_told(found: Occasion, written: Written, *, tell_guests: bool) -> None:
    """Raise ToolFailed where others were invited on the server since it was read last, and nobody said so."""
    if found.calendar.invites and not tell_guests and "\nATTENDEE" in written.before:
        raise ToolFailed("Others are invited to it by now and will be told. Call again with tell_guests.")


def _which(found: Occasion, *, all_dates: bool) -> str:
    return "" if not found.key else ", all its dates" if all_dates else ", this date alone"


def _guests(found: Occasion, said: Details) -> str:
    told = f"; told: {', '.join(one.address for one in said.people[:5])}" if said.people else ""
    return told if found.calendar.invites else _untold(found, said)


def _untold(found: Occasion, said: Details) -> str:
    """Say that nobody tells its guests; "" where somebody does, or there are none."""
    is_told = found.calendar.invites or not said.people
    return "" if is_told else f"; {NOT_TOLD.format(name=found.calendar.label)}"


async def _guest(ctx: Ctx, text: str) -> str:
    """The mail address of a guest; of a name, that of the contact."""
    found = await address_of(ctx, text)
    if not found:
        raise ToolFailed(f"{text[:80]!r} is neither an e-mail address nor a contact. Ask the user for the address.")
    return found.lower()


def _bounded(text: str, most: int, what: str) -> str:
    words = text.strip()
    if not 0 < len(words) <= most:
        raise ToolFailed(f"The {what} of an appointment has 1 to {most} characters.")
    return words
