"""An entry of a journal: read, written, changed, taken away and brought back, and what it was before."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.base.errors import Conflict, ToolFailed, UserError
from cortex.base.journal_rules import ENTRY_CHARS_MAX, TITLE_CHARS_MAX
from cortex.ports.aether import Journal, JournalEntry
from cortex.ports.journals import EntryVersion
from cortex.services.content.journals import ComparedVersion
from web.bodies import TEXT_BYTES, takes
from web.deps import CurrentUser, FormNumber, Number, Services, Text
from web.frame import frame_of
from web.render import Context, described, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryContext(Context):
    """An entry to read."""

    entry: JournalEntry = described("the entry")
    is_whole: bool = described("whether a long text is shown whole, as it was written")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFormContext(Context):
    """An entry to write or to change."""

    action: str = described("where the form posts")
    back: str = described("where the way up leads")
    heading: str = described("the page's heading")
    title: str = described("the title, with what was typed when that was refused")
    text: str = described("the text, likewise")
    key: str = described("the id that a new entry will have; empty for one that is there", default="")
    version: int = described("the version that was read; 0 for a new entry", default=0)
    theirs: JournalEntry | None = described("what stands there now, when it was changed in between", default=None)
    error: str = described("why saving was refused", default="")
    error_field: str = described("the field the error is about, or empty", default="")
    title_most: int = described("how long a title may be", default=TITLE_CHARS_MAX)
    text_most: int = described("how long a text may be", default=ENTRY_CHARS_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryHistoryContext(Context):
    """What an entry was before."""

    entry: JournalEntry = described("the entry as it stands")
    versions: Sequence[EntryVersion] = described("as it stands and as it stood, the newest first")
    compared: ComparedVersion | None = described("an earlier version beside what stands now", default=None)


@router.get("/journals/{journal_id}/new")
async def show_new(request: Request, services: Services, user: CurrentUser, journal_id: str) -> Response:
    """The form for a new entry."""
    journal = await services.journals.journal(user, journal_id)
    return await _new_form(request, services, user, journal, services.journals.new_key())


@router.post("/journals/{journal_id}/new")
@takes(TEXT_BYTES)
async def write(
    request: Request,
    services: Services,
    user: CurrentUser,
    journal_id: str,
    key: Text = "",
    title: Text = "",
    text: Text = "",
) -> Response:
    """Write it down; sent twice, it is written once."""
    journal = await services.journals.journal(user, journal_id)
    try:
        made = await services.journals.write(user, key, journal_id, title, text)
    except (UserError, Conflict, ToolFailed) as refused:
        return await _new_form(request, services, user, journal, key, title, text, refused)
    return redirect(request, f"/journal-entries/{made.id}", "Saved.")


@router.get("/journal-entries/{entry_id}")
async def show(request: Request, services: Services, user: CurrentUser, entry_id: str, whole: bool = False) -> Response:
    """An entry to read."""
    entry = await services.journals.entry(user, entry_id)
    frame = await frame_of(request, services, user, here="/journals")
    return respond(request, "journal_entry.html", EntryContext(frame=frame, entry=entry, is_whole=whole))


@router.get("/journal-entries/{entry_id}/edit")
async def show_form(request: Request, services: Services, user: CurrentUser, entry_id: str) -> Response:
    """An entry to change."""
    entry = await services.journals.entry(user, entry_id)
    return await _form(request, services, user, entry, entry.title, entry.text, entry.version)


@router.post("/journal-entries/{entry_id}/edit")
@takes(TEXT_BYTES)
async def save(
    request: Request,
    services: Services,
    user: CurrentUser,
    entry_id: str,
    version: FormNumber,
    title: Text = "",
    text: Text = "",
) -> Response:
    """Save it; when it was changed in between, show both and lose neither."""
    entry = await services.journals.entry(user, entry_id)
    try:
        await services.journals.save(user, entry_id, version, title, text)
    except Conflict:
        theirs = await services.journals.entry(user, entry_id)
        return await _form(request, services, user, theirs, title, text, theirs.version, theirs=theirs, status=409)
    except (UserError, ToolFailed) as refused:
        return await _form(request, services, user, entry, title, text, version, error=refused, status=refused.status)
    return redirect(request, f"/journal-entries/{entry_id}", "Saved.")


@router.post("/journal-entries/{entry_id}/remove")
async def remove(
    request: Request, services: Services, user: CurrentUser, entry_id: str, version: FormNumber
) -> Response:
    """Take it away; the next page offers it back."""
    gone = await services.journals.remove_entry(user, entry_id, version)
    undo = f"/journal-entries/{entry_id}/bring-back"
    return redirect(request, f"/journals/{gone.journal_id}", f"Removed: {gone.title}", undo_href=undo)


@router.post("/journal-entries/{entry_id}/bring-back")
async def bring_back(request: Request, services: Services, user: CurrentUser, entry_id: str) -> Response:
    """Bring it back."""
    back = await services.journals.bring_back_entry(user, entry_id)
    return redirect(request, f"/journal-entries/{entry_id}", f"Restored: {back.title}")


@router.get("/journal-entries/{entry_id}/history")
async def show_history(request: Request, services: Services, user: CurrentUser, entry_id: str) -> Response:
    """Return what it was before."""
    return await _history(request, services, user, entry_id, None)


@router.get("/journal-entries/{entry_id}/history/{number}")
async def show_version(
    request: Request, services: Services, user: CurrentUser, entry_id: str, number: Number
) -> Response:
    """One version beside what stands now."""
    return await _history(request, services, user, entry_id, number)


@router.post("/journal-entries/{entry_id}/history/{number}")
async def restore(
    request: Request, services: Services, user: CurrentUser, entry_id: str, number: Number, version: FormNumber
) -> Response:
    """Let it be again what it was in that version."""
    await services.journals.restore(user, entry_id, version, number)
    return redirect(request, f"/journal-entries/{entry_id}", f"Version {number} restored.")


async def _new_form(
    request: Request,
    services: Services,
    user: CurrentUser,
    journal: Journal,
    key: str,
    title: str = "",
    text: str = "",
    error: UserError | Conflict | ToolFailed | None = None,
) -> Response:
    context = EntryFormContext(
        frame=await frame_of(request, services, user, here="/journals"),
        action=f"/journals/{journal.id}/new",
        back=f"/journals/{journal.id}",
        heading=f"New entry: {journal.name}",
        title=title,
        text=text,
        key=key,
        error=error.message if error else "",
        error_field=error.field if isinstance(error, UserError) else "",
    )
    return respond(request, "journal_entry_form.html", context, status=error.status if error else 200)


async def _form(
    request: Request,
    services: Services,
    user: CurrentUser,
    entry: JournalEntry,
    title: str,
    text: str,
    version: int,
    *,
    theirs: JournalEntry | None = None,
    error: UserError | ToolFailed | None = None,
    status: int = 200,
) -> Response:
    here = f"/journal-entries/{entry.id}"
    context = EntryFormContext(
        frame=await frame_of(request, services, user, here="/journals"),
        action=f"{here}/edit",
        back=here,
        heading=entry.title,
        title=title,
        text=text,
        version=version,
        theirs=theirs,
        error=error.message if error else "",
        error_field=error.field if isinstance(error, UserError) else "",
    )
    return respond(request, "journal_entry_form.html", context, status=status)


async def _history(
    request: Request, services: Services, user: CurrentUser, entry_id: str, number: int | None
) -> Response:
    entry = await services.journals.entry(user, entry_id)
    context = EntryHistoryContext(
        entry=entry,
        versions=await services.journals.history(user, entry_id),
        compared=await services.journals.compared(user, entry_id, number) if number is not None else None,
        frame=await frame_of(request, services, user, here="/journals"),
    )
    return respond(request, "journal_history.html", context)
