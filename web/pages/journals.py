"""Journals: the list, search over all of them, and one journal with its entries."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse

from cortex.base.errors import Conflict, ToolFailed, UserError
from cortex.ports.aether import Journal
from cortex.services.content.journals import EntryHit
from web.deps import CurrentUser, FormNumber, Services, Text
from web.frame import frame_of
from web.render import Context, NavEntry, described, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)
NAV = NavEntry(
    title="Journals",
    href="/journals",
    icon="book",
    order=21,
    under="/notes",
    about="Dated entries, sorted into journals.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalsContext(Context):
    """The list of journals, or what a search over all of them found."""

    journals: Sequence[Journal] = described("the journals in use, by name")
    removed: Sequence[Journal] = described("those taken away")
    query: str = described("words to look for in every entry", default="")
    hits: Sequence[EntryHit] = described("entries that hold the words, the newest first", default=())
    newer: str = described("address of the first page of hits, or empty", default="")
    older: str = described("address of the next page of hits, or empty", default="")
    draft: str = described("a name that was refused", default="")
    error: str = described("why it was refused", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalContext(Context):
    """One journal with its entries."""

    journal: Journal = described("the journal")
    hits: Sequence[EntryHit] = described("this page's entries, the newest first")
    query: str = described("words to look for")
    is_removed: bool = described("whether entries that were taken away are shown")
    newer: str = described("address of the first page, or empty")
    older: str = described("address of the next page, or empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalNameContext(Context):
    """A journal's name to change."""

    journal: Journal = described("the journal as it stands")
    name: str = described("the name, with what was typed when that was refused")
    error: str = described("why it was refused", default="")


@router.get("/journals")
async def show(request: Request, services: Services, user: CurrentUser, q: str = "", after: str = "") -> Response:
    """All journals, or what was found in them."""
    if not q.strip():
        return respond(request, "journals.html", await _list(request, services, user))
    page = await services.journals.entries(user, None, q, after)
    context = JournalsContext(
        frame=await frame_of(request, services, user, here="/journals"),
        journals=(),
        removed=(),
        query=q,
        hits=page.hits,
        newer=_address("/journals", q=q) if after else "",
        older=_address("/journals", q=q, after=page.after) if page.after else "",
    )
    return respond(request, "journals.html", context)


@router.post("/journals")
async def create(request: Request, services: Services, user: CurrentUser, name: Text = "") -> Response:
    """A new journal, opened."""
    try:
        made = await services.journals.create(user, name)
    except (UserError, ToolFailed) as refused:
        context = await _list(request, services, user, draft=name, error=refused.message)
        return respond(request, "journals.html", context, status=refused.status)
    return redirect(request, f"/journals/{made.id}")


@router.get("/journals/{journal_id}")
async def show_one(
    request: Request,
    services: Services,
    user: CurrentUser,
    journal_id: str,
    q: str = "",
    after: str = "",
    removed: bool = False,
) -> Response:
    """A journal's entries, the newest first."""
    journal = await services.journals.journal(user, journal_id)
    page = await services.journals.entries(user, journal_id, q, after, is_enabled=not removed)
    here, asked = f"/journals/{journal_id}", {"q": q, "removed": "1" if removed else ""}
    context = JournalContext(
        frame=await frame_of(request, services, user, here="/journals"),
        journal=journal,
        hits=page.hits,
        query=q,
        is_removed=removed,
        newer=_address(here, **asked) if after else "",
        older=_address(here, **asked, after=page.after) if page.after else "",
    )
    return respond(request, "journal.html", context)


@router.get("/journals/{journal_id}/rename")
async def ask_rename(request: Request, services: Services, user: CurrentUser, journal_id: str) -> Response:
    """The form with its name."""
    journal = await services.journals.journal(user, journal_id)
    return await _name_form(request, services, user, journal, journal.name)


@router.post("/journals/{journal_id}/rename")
async def rename(
    request: Request, services: Services, user: CurrentUser, journal_id: str, version: FormNumber, name: Text = ""
) -> Response:
    """Give it another name."""
    try:
        await services.journals.rename(user, journal_id, version, name)
    except (UserError, Conflict, ToolFailed) as refused:
        journal = await services.journals.journal(user, journal_id)
        return await _name_form(request, services, user, journal, name, refused.message, refused.status)
    return redirect(request, f"/journals/{journal_id}", "Renamed.")


@router.post("/journals/{journal_id}/remove")
async def remove(
    request: Request, services: Services, user: CurrentUser, journal_id: str, version: FormNumber
) -> Response:
    """Take it away with its entries; the next page offers it back."""
    gone = await services.journals.remove(user, journal_id, version)
    return redirect(request, "/journals", f"Removed: {gone.name}", undo_href=f"/journals/{journal_id}/bring-back")


@router.post("/journals/{journal_id}/bring-back")
async def bring_back(request: Request, services: Services, user: CurrentUser, journal_id: str) -> Response:
    """Bring it back with its entries; where its name is taken by now, another one is asked for first."""
    try:
        back = await services.journals.bring_back(user, journal_id)
    except UserError as refused:
        journal = await services.journals.journal(user, journal_id)
        return await _name_form(request, services, user, journal, journal.name, refused.message, refused.status)
    return redirect(request, f"/journals/{journal_id}", f"Restored: {back.name}")


@router.get("/journals/{journal_id}/export.md")
async def export(services: Services, user: CurrentUser, journal_id: str) -> Response:
    """The whole journal as a Markdown file."""
    journal = await services.journals.journal(user, journal_id)  # before the answer begins: it may not be there
    headers = {"Content-Disposition": f'attachment; filename="journal-{journal.id}.md"', "Cache-Control": "no-store"}
    body = services.journals.export(user, journal_id)
    return StreamingResponse(body, media_type="text/markdown; charset=utf-8", headers=headers)


async def _list(
    request: Request, services: Services, user: CurrentUser, *, draft: str = "", error: str = ""
) -> JournalsContext:
    return JournalsContext(
        journals=await services.journals.shelf(user),
        removed=await services.journals.shelf(user, is_enabled=False),
        frame=await frame_of(request, services, user, here="/journals"),
        draft=draft,
        error=error,
    )


async def _name_form(
    request: Request,
    services: Services,
    user: CurrentUser,
    journal: Journal,
    name: str,
    error: str = "",
    status: int = 200,
) -> Response:
    frame = await frame_of(request, services, user, here="/journals")
    context = JournalNameContext(frame=frame, journal=journal, name=name, error=error)
    return respond(request, "journal_name.html", context, status=status)


def _address(path: str, **asked: str) -> str:
    chosen = urlencode({name: value for name, value in asked.items() if value})
    return f"{path}?{chosen}" if chosen else path
