"""An entry of a journal: read, written, changed, taken away and brought back, and what it was before."""

from collections.abc import Sequence

from fastapi.responses import Response
from msgspec.structs import replace

from cortex.base.errors import Conflict, CortexError, ToolFailed, UserError
from cortex.base.journal_rules import ENTRY_CHARS_MAX, TITLE_CHARS_MAX
from cortex.ports.aether import Journal, JournalEntry
from cortex.ports.journals import EntryVersion
from cortex.services.content.journals import ComparedVersion
from web.bodies import TEXT_BYTES, takes
from web.deps import FormNumber, Number, Text
from web.render import Context, described
from web.routes import PageRouter
from web.visit import UserVisit, Visit

router = PageRouter()
JOURNALS = "/journals"


class EntryContext(Context, frozen=True, kw_only=True):
    """An entry to read."""

    entry: JournalEntry = described("the entry")
    is_whole: bool = described("whether a long text is shown whole, as it was written")


class EntryFormContext(Context, frozen=True, kw_only=True):
    """An entry to write or to change."""

    action: str = described("where the form posts")
    back: str = described("where the way up leads")
    heading: str = described("the page's heading")
    title: str = described("the title, with what was typed when that was refused")
    text: str = described("the text, likewise")
    key: str = described("the id that a new entry will have; empty for one that is there", default="")
    version: int = described("the version that was read; 0 for a new entry", default=0)
    theirs: JournalEntry | None = described("what stands there now, when it was changed in between", default=None)
    title_most: int = described("how long a title may be", default=TITLE_CHARS_MAX)
    text_most: int = described("how long a text may be", default=ENTRY_CHARS_MAX)


class EntryHistoryContext(Context, frozen=True, kw_only=True):
    """An entry as it was before."""

    entry: JournalEntry = described("the entry as it stands")
    versions: Sequence[EntryVersion] = described("as it stands and as it stood, the newest first")
    compared: ComparedVersion | None = described("an earlier version beside what stands now", default=None)


@router.get("/journals/{journal_id}/new")
async def show_new(visit: UserVisit, journal_id: str) -> Response:
    """The form for a new entry."""
    journal = await visit.services.journals.journal(visit.user, journal_id)
    return await _form(visit, _new(journal, visit.services.journals.new_key()))


@router.post("/journals/{journal_id}/new")
@takes(TEXT_BYTES)
async def write(visit: UserVisit, journal_id: str, key: Text = "", title: Text = "", text: Text = "") -> Response:
    """Write it down; sent twice, it is written once."""
    journal = await visit.services.journals.journal(visit.user, journal_id)
    try:
        made = await visit.services.journals.write(visit.user, key, journal_id, title, text)
    except (UserError, Conflict, ToolFailed) as refused:
        return await _form(visit, _new(journal, key, title, text), refused)
    return visit.redirect(f"/journal-entries/{made.id}", "Saved.")


@router.get("/journal-entries/{entry_id}")
async def show(visit: UserVisit, entry_id: str, whole: bool = False) -> Response:
    """An entry to read."""
    entry = await visit.services.journals.entry(visit.user, entry_id)
    return await visit.show("journal_entry.html", EntryContext(entry=entry, is_whole=whole), here=JOURNALS)


@router.get("/journal-entries/{entry_id}/edit")
async def show_form(visit: UserVisit, entry_id: str) -> Response:
    """An entry to change."""
    entry = await visit.services.journals.entry(visit.user, entry_id)
    return await _form(visit, _kept(entry))


@router.post("/journal-entries/{entry_id}/edit")
@takes(TEXT_BYTES)
async def save(visit: UserVisit, entry_id: str, version: FormNumber, title: Text = "", text: Text = "") -> Response:
    """Save it; when it was changed in between, show both and lose neither."""
    entry = await visit.services.journals.entry(visit.user, entry_id)
    try:
        await visit.services.journals.save(visit.user, entry_id, version, title, text)
    except Conflict:
        theirs = await visit.services.journals.entry(visit.user, entry_id)
        context = replace(_kept(theirs), title=title, text=text, theirs=theirs)
        return await visit.show("journal_entry_form.html", context, here=JOURNALS, status=409)
    except (UserError, ToolFailed) as refused:
        return await _form(visit, replace(_kept(entry), title=title, text=text, version=version), refused)
    return visit.redirect(f"/journal-entries/{entry_id}", "Saved.")


@router.post("/journal-entries/{entry_id}/remove")
async def remove(visit: UserVisit, entry_id: str, version: FormNumber) -> Response:
    """Take it away; the next page offers it back."""
    gone = await visit.services.journals.remove_entry(visit.user, entry_id, version)
    undo = f"/journal-entries/{entry_id}/bring-back"
    return visit.redirect(f"/journals/{gone.journal_id}", f"Removed: {gone.title}", undo_href=undo)


@router.post("/journal-entries/{entry_id}/bring-back")
async def bring_back(visit: UserVisit, entry_id: str) -> Response:
    """Bring it back."""
    back = await visit.services.journals.bring_back_entry(visit.user, entry_id)
    return visit.redirect(f"/journal-entries/{entry_id}", f"Restored: {back.title}")


@router.get("/journal-entries/{entry_id}/history")
async def show_history(visit: UserVisit, entry_id: str) -> Response:
    """Return what it was before."""
    return await _history(visit, entry_id, None)


@router.get("/journal-entries/{entry_id}/history/{number}")
async def show_version(visit: UserVisit, entry_id: str, number: Number) -> Response:
    """One version beside what stands now."""
    return await _history(visit, entry_id, number)


@router.post("/journal-entries/{entry_id}/history/{number}")
async def restore(visit: UserVisit, entry_id: str, number: Number, version: FormNumber) -> Response:
    """Let it be again what it was in that version."""
    await visit.services.journals.restore(visit.user, entry_id, version, number)
    return visit.redirect(f"/journal-entries/{entry_id}", f"Version {number} restored.")


def _new(journal: Journal, key: str, title: str = "", text: str = "") -> EntryFormContext:
    here = f"/journals/{journal.id}"
    heading = f"New entry: {journal.name}"
    return EntryFormContext(action=f"{here}/new", back=here, heading=heading, title=title, text=text, key=key)


def _kept(entry: JournalEntry) -> EntryFormContext:
    here = f"/journal-entries/{entry.id}"
    return EntryFormContext(
        action=f"{here}/edit",
        back=here,
        heading=entry.title,
        title=entry.title,
        text=entry.text,
        version=entry.version,
    )


async def _form(visit: Visit, context: EntryFormContext, refused: CortexError | None = None) -> Response:
    return await visit.show("journal_entry_form.html", context, here=JOURNALS, refused=refused)


async def _history(visit: Visit, entry_id: str, number: int | None) -> Response:
    entry = await visit.services.journals.entry(visit.user, entry_id)
    context = EntryHistoryContext(
        entry=entry,
        versions=await visit.services.journals.history(visit.user, entry_id),
        compared=await visit.services.journals.compared(visit.user, entry_id, number) if number is not None else None,
    )
    return await visit.show("journal_history.html", context, here=JOURNALS)
