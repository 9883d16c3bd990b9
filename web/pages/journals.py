"""Journals: the list, search over all of them, and one journal with its entries."""

from collections.abc import Sequence

from fastapi.responses import Response, StreamingResponse

from cortex.base.errors import Conflict, CortexError, ToolFailed, UserError
from cortex.ports.aether import Journal
from cortex.services.content.journals import EntryHit
from web.deps import FormNumber, Number, Text
from web.render import Context, NavEntry, address, described, saved_as
from web.routes import PageRouter
from web.stretch import Stretch, cut
from web.visit import UserVisit, Visit

router = PageRouter()
NAV = NavEntry(
    title="Journals",
    href="/journals",
    icon="book",
    order=21,
    under="/notes",
    about="Dated entries, sorted into journals.",
)


NO_JOURNALS: Stretch[Journal] = Stretch(rows=(), newer="", older="")


class JournalsContext(Context, frozen=True, kw_only=True):
    """The list of journals, or what a search over all of them found."""

    journals: Stretch[Journal] = described("the journals in use, by name")
    removed: Stretch[Journal] = described("those taken away")
    query: str = described("words to look for in every entry", default="")
    hits: Sequence[EntryHit] = described("entries that hold the words, the newest first", default=())
    newer: str = described("address of the first page of hits, or empty", default="")
    older: str = described("address of the next page of hits, or empty", default="")
    draft: str = described("a name that was refused", default="")


class JournalContext(Context, frozen=True, kw_only=True):
    """One journal with its entries."""

    journal: Journal = described("the journal")
    hits: Sequence[EntryHit] = described("this page's entries, the newest first")
    query: str = described("words to look for")
    is_removed: bool = described("whether entries that were taken away are shown")
    newer: str = described("address of the first page, or empty")
    older: str = described("address of the next page, or empty")


class JournalNameContext(Context, frozen=True, kw_only=True):
    """A journal's name to change."""

    journal: Journal = described("the journal as it stands")
    name: str = described("the name, with what was typed when that was refused")


@router.get("/journals")
async def show(visit: UserVisit, q: str = "", after: str = "", start: Number = 0, removed: Number = 0) -> Response:
    """All journals, or what was found in them."""
    if not q.strip():
        return await visit.show("journals.html", await _list(visit, start=start, removed=removed))
    page = await visit.services.journals.entries(visit.user, None, q, after)
    context = JournalsContext(
        journals=NO_JOURNALS,
        removed=NO_JOURNALS,
        query=q,
        hits=page.hits,
        newer=address("/journals", q=q) if after else "",
        older=address("/journals", q=q, after=page.after) if page.after else "",
    )
    return await visit.show("journals.html", context)


@router.post("/journals")
async def create(visit: UserVisit, name: Text = "") -> Response:
    """A new journal, opened."""
    try:
        made = await visit.services.journals.create(visit.user, name)
    except (UserError, ToolFailed) as refused:
        context = await _list(visit, name)
        return await visit.show("journals.html", context, refused=refused)
    return visit.redirect(f"/journals/{made.id}")


@router.get("/journals/{journal_id}")
async def show_one(visit: UserVisit, journal_id: str, q: str = "", after: str = "", removed: bool = False) -> Response:
    """A journal's entries, the newest first."""
    journal = await visit.services.journals.journal(visit.user, journal_id)
    page = await visit.services.journals.entries(visit.user, journal_id, q, after, is_enabled=not removed)
    here, asked = f"/journals/{journal_id}", {"q": q, "removed": "1" if removed else ""}
    context = JournalContext(
        journal=journal,
        hits=page.hits,
        query=q,
        is_removed=removed,
        newer=address(here, **asked) if after else "",
        older=address(here, **asked, after=page.after) if page.after else "",
    )
    return await visit.show("journal.html", context)


@router.get("/journals/{journal_id}/rename")
async def ask_rename(visit: UserVisit, journal_id: str) -> Response:
    """The form with its name."""
    journal = await visit.services.journals.journal(visit.user, journal_id)
    return await _name_form(visit, journal, journal.name)


@router.post("/journals/{journal_id}/rename")
async def rename(visit: UserVisit, journal_id: str, version: FormNumber, name: Text = "") -> Response:
    """Give it another name."""
    try:
        await visit.services.journals.rename(visit.user, journal_id, version, name)
    except (UserError, Conflict, ToolFailed) as refused:
        journal = await visit.services.journals.journal(visit.user, journal_id)
        return await _name_form(visit, journal, name, refused)
    return visit.redirect(f"/journals/{journal_id}", "Renamed.")


@router.post("/journals/{journal_id}/remove")
async def remove(visit: UserVisit, journal_id: str, version: FormNumber) -> Response:
    """Take it away with its entries; the next page offers it back."""
    gone = await visit.services.journals.remove(visit.user, journal_id, version)
    return visit.redirect("/journals", f"Removed: {gone.name}", undo_href=f"/journals/{journal_id}/bring-back")


@router.post("/journals/{journal_id}/bring-back")
async def bring_back(visit: UserVisit, journal_id: str) -> Response:
    """Bring it back with its entries; where its name is taken by now, another one is asked for first."""
    try:
        back = await visit.services.journals.bring_back(visit.user, journal_id)
    except UserError as refused:
        journal = await visit.services.journals.journal(visit.user, journal_id)
        return await _name_form(visit, journal, journal.name, refused)
    return visit.redirect(f"/journals/{journal_id}", f"Restored: {back.name}")


@router.get("/journals/{journal_id}/export.md")
async def export(visit: UserVisit, journal_id: str) -> Response:
    """The whole journal as a Markdown file."""
    journals = visit.services.journals
    journal = await journals.journal(visit.user, journal_id)  # before the answer begins: it may not be there
    body = journals.export(visit.user, journal_id)
    return StreamingResponse(body, media_type="text/markdown", headers=saved_as(f"journal-{journal.id}.md"))


async def _list(visit: Visit, draft: str = "", **starts: int) -> JournalsContext:
    def place(**other: int) -> str:
        return address("/journals", **{**starts, **other})

    used = await visit.services.journals.shelf(visit.user)
    gone = await visit.services.journals.shelf(visit.user, is_enabled=False)
    return JournalsContext(
        journals=cut(used, starts.get("start", 0), place),
        removed=cut(gone, starts.get("removed", 0), place, by="removed", at="removed-h"),
        draft=draft,
    )


async def _name_form(visit: Visit, journal: Journal, name: str, refused: CortexError | None = None) -> Response:
    return await visit.show("journal_name.html", JournalNameContext(journal=journal, name=name), refused=refused)
