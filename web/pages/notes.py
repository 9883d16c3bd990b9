"""Notes, the scratchpad, and what the assistant keeps for itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.base.errors import Conflict, UserError
from cortex.base.plain_text import plain_text
from cortex.services.content.notes import AgentNotes, Note
from web.bodies import TEXT_BYTES, takes
from web.deps import CurrentUser, Number, Services, Text
from web.frame import frame_of
from web.render import ConfirmContext, Context, NavEntry, described, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)
LINE_CHARACTERS = 1_000  # of the line that a search led to; the page shows 200
NAV = NavEntry(title="Notes", href="/notes", icon="note", order=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesContext(Context):
    """The list of everything."""

    notes: Sequence[Note] = described("the person's notes, latest first")
    scratchpad: str = described("the scratchpad's text")
    deleted: Sequence[Note] = described("notes that can be brought back, latest first")
    agent_notes: Sequence[AgentNotes] = described("what the assistant keeps, by role")
    draft: str = described("a name that was refused", default="")
    error: str = described("why it was refused", default="")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteContext(Context):
    """One text."""

    title: str = described("heading of the page")
    label: str = described("what the text is, for its label")
    text: str = described("the text, with what was typed when that was refused")
    version: str = described("the tag of the text as it stands", default="")
    action: str = described("where saving posts, empty for a text that is only shown", default="")
    is_editable: bool = described("whether the person may write here", default=True)
    theirs: str | None = described("what stands there now, when it was changed in between", default=None)
    error: str = described("why saving was refused", default="")
    error_field: str = described("the field the error is about, or empty", default="text")
    delete: str = described("address of the confirm page that deletes it, or empty", default="")
    delete_words: str = described("the link to it, a verb", default="")
    line: int = described("the line that a search found, which note.js selects; 0 for none", default=0)
    line_text: str = described("that line", default="")


@router.get("/notes")
async def show(request: Request, services: Services, user: CurrentUser) -> Response:
    """The notes, the scratchpad's first words, the assistant's notes."""
    return respond(request, "notes.html", await _list(request, services, user))


@router.post("/notes")
async def create(request: Request, services: Services, user: CurrentUser, name: Text = "") -> Response:
    """A new note, opened."""
    try:
        made = await services.notes.create(user, name)
    except UserError as refused:
        context = await _list(request, services, user, draft=name, error=refused.message)
        return respond(request, "notes.html", context, status=422)
    return redirect(request, f"/notes/{quote(made, safe='')}")


@router.get("/notes/{name}")
async def show_note(request: Request, services: Services, user: CurrentUser, name: str, line: Number = 0) -> Response:
    """One note to edit, at the `line` that a search found."""
    kept = await services.notes.read(user, name)
    return await _editor(request, services, user, kept.text, kept.version, name=name, line=line)


@router.post("/notes/{name}")
@takes(TEXT_BYTES)
async def save_note(
    request: Request, services: Services, user: CurrentUser, name: str, text: Text = "", version: Text = ""
) -> Response:
    """Save it; when it was changed in between, show both and lose neither."""
    try:
        await services.notes.write(user, name, text, version)
    except Conflict:
        kept = await services.notes.read(user, name)
        return await _editor(request, services, user, text, kept.version, name=name, theirs=kept.text, status=409)
    except UserError as refused:
        return await _editor(request, services, user, text, version, name=name, error=refused.message, status=422)
    return redirect(request, f"/notes/{quote(name, safe='')}", "Saved.")


@router.get("/notes/{name}/delete")
async def ask_delete(request: Request, services: Services, user: CurrentUser, name: str) -> Response:
    """Really?"""
    await services.notes.read(user, name)
    here = f"/notes/{quote(name, safe='')}"
    title = f"Delete the note “{name}”?"
    return await _ask(
        request, services, user, title, "You can undo this for a day.", "Delete it", here, f"{here}/delete"
    )


@router.post("/notes/{name}/delete")
async def delete(request: Request, services: Services, user: CurrentUser, name: str) -> Response:
    """Delete the note."""
    await services.notes.remove(user, name)
    return redirect(request, "/notes", f"Deleted: {name}", undo_href=f"/notes/{quote(name, safe='')}/restore")


@router.post("/notes/{name}/restore")
async def restore(request: Request, services: Services, user: CurrentUser, name: str) -> Response:
    """Bring a deleted note back."""
    try:
        await services.notes.restore(user, name)
    except UserError as refused:
        context = await _list(request, services, user, error=refused.message)
        return respond(request, "notes.html", context, status=422)
    return redirect(request, f"/notes/{quote(name, safe='')}", "Note restored.")


@router.get("/scratchpad")
async def show_scratchpad(request: Request, services: Services, user: CurrentUser, line: Number = 0) -> Response:
    """The scratchpad to edit, at the `line` that a search found."""
    kept = await services.notes.scratchpad(user)
    return await _editor(request, services, user, kept.text, kept.version, line=line)


@router.post("/scratchpad")
@takes(TEXT_BYTES)
async def save_scratchpad(
    request: Request, services: Services, user: CurrentUser, text: Text = "", version: Text = ""
) -> Response:
    """Save it; when it was changed in between, show both and lose neither."""
    try:
        await services.notes.write_scratchpad(user, text, version)
    except Conflict:
        kept = await services.notes.scratchpad(user)
        return await _editor(request, services, user, text, kept.version, theirs=kept.text, status=409)
    except UserError as refused:
        return await _editor(request, services, user, text, version, error=refused.message, status=422)
    return redirect(request, "/scratchpad", "Saved.")


@router.get("/agent-notes/{role}")
async def show_agent_notes(request: Request, services: Services, user: CurrentUser, role: str) -> Response:
    """Return what the assistant keeps, to read."""
    kept = await services.notes.agent_notes_of(user, role)
    context = NoteContext(
        frame=await frame_of(request, services, user, here="/notes"),
        title=f"The assistant's notes: {role}",
        label="Notes",
        text=kept.text,
        is_editable=False,
        delete=f"/agent-notes/{quote(role, safe='')}/clear",
        delete_words="Clear",
    )
    return respond(request, "note.html", context)


@router.get("/agent-notes/{role}/clear")
async def ask_clear(request: Request, services: Services, user: CurrentUser, role: str) -> Response:
    """Really?"""
    await services.notes.agent_notes_of(user, role)
    here = f"/agent-notes/{quote(role, safe='')}"
    title = f"Clear the assistant's notes for {role}?"
    text = "The assistant's own notes for this role are deleted. Your chats stay."
    return await _ask(request, services, user, title, text, "Clear it", here, f"{here}/clear")


@router.post("/agent-notes/{role}/clear")
async def clear(request: Request, services: Services, user: CurrentUser, role: str) -> Response:
    """Forget them."""
    await services.notes.clear_agent_notes(user, role)
    return redirect(request, "/notes", "Cleared.")


async def _ask(
    request: Request, services: Services, user: CurrentUser, title: str, text: str, words: str, back: str, action: str
) -> Response:
    """The page that asks before something is gone."""
    frame = await frame_of(request, services, user, here="/notes")
    context = ConfirmContext(frame=frame, title=title, text=text, action=action, words=words, back=back)
    return respond(request, "confirm.html", context)


async def _list(
    request: Request, services: Services, user: CurrentUser, *, draft: str = "", error: str = ""
) -> NotesContext:
    return NotesContext(
        frame=await frame_of(request, services, user, here="/notes"),
        notes=await services.notes.list(user),
        scratchpad=(await services.notes.scratchpad(user)).text,
        deleted=await services.notes.deleted(user),
        agent_notes=await services.notes.agent_notes(user),
        draft=draft,
        error=error,
    )


async def _editor(
    request: Request,
    services: Services,
    user: CurrentUser,
    text: str,
    version: str,
    *,
    name: str = "",
    theirs: str | None = None,
    error: str = "",
    line: int = 0,
    status: int = 200,
) -> Response:
    """A note to edit, or the scratchpad where no name is given."""
    lines = text.split("\n")
    line = line if 0 < line <= len(lines) else 0
    here = f"/notes/{quote(name, safe='')}" if name else "/scratchpad"
    context = NoteContext(
        frame=await frame_of(request, services, user, here="/notes"),
        title=name or "Scratchpad",
        label="Note (Markdown)" if name else "Scratchpad (Markdown)",
        text=text,
        version=version,
        action=here,
        theirs=theirs,
        error=error,
        delete=f"{here}/delete" if name else "",
        delete_words="Delete" if name else "",
        line=line,
        line_text=plain_text(lines[line - 1][:LINE_CHARACTERS]) if line else "",
    )
    return respond(request, "note.html", context, status=status)
