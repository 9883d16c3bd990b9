"""Notes, the scratchpad, and what the assistant keeps for itself."""

from collections.abc import Sequence
from urllib.parse import quote

from fastapi.responses import Response
from msgspec.structs import replace

from cortex.base.errors import Conflict, UserError
from cortex.base.plain_text import plain_text
from cortex.services.content.notes import AgentNotes, Note
from web.bodies import TEXT_BYTES, takes
from web.deps import Number, Text
from web.render import Context, NavEntry, described
from web.routes import PageRouter
from web.visit import UserVisit, Visit

router = PageRouter()
LINE_CHARACTERS = 1_000  # of the line that a search led to; the page shows 200
NAV = NavEntry(title="Notes", href="/notes", icon="note", order=20)


class NotesContext(Context, frozen=True, kw_only=True):
    """The list of everything."""

    notes: Sequence[Note] = described("the person's notes, latest first")
    scratchpad: str = described("the scratchpad's text")
    deleted: Sequence[Note] = described("notes that can be brought back, latest first")
    agent_notes: Sequence[AgentNotes] = described("what the assistant keeps, by role")
    draft: str = described("a name that was refused", default="")


class NoteContext(Context, frozen=True, kw_only=True):
    """One text."""

    title: str = described("heading of the page")
    edit: str = described("address where it is edited, empty while it is, and for what is only shown", default="")
    label: str = described("what the text is, for its label")
    text: str = described("the text, with what was typed when that was refused")
    version: str = described("the tag of the text as it stands", default="")
    action: str = described("where saving posts, empty for a text that is only shown", default="")
    is_editable: bool = described("whether the person may write here", default=True)
    theirs: str | None = described("what stands there now, when it was changed in between", default=None)
    error_field: str = described("the field the error is about, or empty", default="text")
    delete: str = described("address of the confirm page that deletes it, or empty", default="")
    delete_words: str = described("the link to it, a verb", default="")
    line: int = described("the line that a search found, which note.js selects; 0 for none", default=0)
    line_text: str = described("that line", default="")


@router.get("/notes")
async def show(visit: UserVisit) -> Response:
    """The notes, the scratchpad's first words, the assistant's notes."""
    return await visit.show("notes.html", await _list(visit))


@router.post("/notes")
async def create(visit: UserVisit, name: Text = "") -> Response:
    """A new note, opened."""
    try:
        made = await visit.services.notes.create(visit.user, name)
    except UserError as refused:
        context = await _list(visit, name)
        return await visit.show("notes.html", context, refused=refused)
    return visit.redirect(f"/notes/{quote(made, safe='')}?edit=1")


@router.get("/notes/{name}")
async def show_note(visit: UserVisit, name: str, line: Number = 0, edit: str = "") -> Response:
    """One note to read; to `edit`, also at the `line` that a search found."""
    kept = await visit.services.notes.read(visit.user, name)
    return await _edited(visit, _opened(_editor(kept.text, kept.version, name=name, line=line), line, edit))


@router.post("/notes/{name}")
@takes(TEXT_BYTES)
async def save_note(visit: UserVisit, name: str, text: Text = "", version: Text = "") -> Response:
    """Save it; when it was changed in between, show both and lose neither."""
    try:
        await visit.services.notes.write(visit.user, name, text, version)
    except Conflict:
        kept = await visit.services.notes.read(visit.user, name)
        return await _edited(visit, replace(_editor(text, kept.version, name=name), theirs=kept.text))
    except UserError as refused:
        return await _edited(visit, _editor(text, version, name=name), refused)
    return visit.redirect(f"/notes/{quote(name, safe='')}", "Saved.")


@router.get("/notes/{name}/delete")
async def ask_delete(visit: UserVisit, name: str) -> Response:
    """Really?"""
    await visit.services.notes.read(visit.user, name)
    return await visit.ask(
        title=f"Delete the note “{name}”?",
        text="You can undo this for a day.",
        words="Delete it",
        back=f"/notes/{quote(name, safe='')}",
    )


@router.post("/notes/{name}/delete")
async def delete(visit: UserVisit, name: str) -> Response:
    """Delete the note."""
    await visit.services.notes.remove(visit.user, name)
    return visit.redirect("/notes", f"Deleted: {name}", undo_href=f"/notes/{quote(name, safe='')}/restore")


@router.post("/notes/{name}/restore")
async def restore(visit: UserVisit, name: str) -> Response:
    """Bring a deleted note back."""
    try:
        await visit.services.notes.restore(visit.user, name)
    except UserError as refused:
        return await visit.show("notes.html", await _list(visit), refused=refused)
    return visit.redirect(f"/notes/{quote(name, safe='')}", "Note restored.")


@router.get("/scratchpad")
async def show_scratchpad(visit: UserVisit, line: Number = 0, edit: str = "") -> Response:
    """The scratchpad to read; to `edit`, also at the `line` that a search found, and while it is empty."""
    kept = await visit.services.notes.scratchpad(visit.user)
    return await _edited(visit, _opened(_editor(kept.text, kept.version, line=line), line, edit))


@router.post("/scratchpad")
@takes(TEXT_BYTES)
async def save_scratchpad(visit: UserVisit, text: Text = "", version: Text = "") -> Response:
    """Save it; when it was changed in between, show both and lose neither."""
    try:
        await visit.services.notes.write_scratchpad(visit.user, text, version)
    except Conflict:
        kept = await visit.services.notes.scratchpad(visit.user)
        return await _edited(visit, replace(_editor(text, kept.version), theirs=kept.text))
    except UserError as refused:
        return await _edited(visit, _editor(text, version), refused)
    return visit.redirect("/scratchpad", "Saved.")


@router.get("/agent-notes/{role}")
async def show_agent_notes(visit: UserVisit, role: str) -> Response:
    """Return what the assistant keeps, to read."""
    kept = await visit.services.notes.agent_notes_of(visit.user, role)
    context = NoteContext(
        title=f"The assistant's notes: {role}",
        label="Notes",
        text=kept.text,
        is_editable=False,
        delete=f"/agent-notes/{quote(role, safe='')}/clear",
        delete_words="Clear",
    )
    return await visit.show("note.html", context, here="/notes")


@router.get("/agent-notes/{role}/clear")
async def ask_clear(visit: UserVisit, role: str) -> Response:
    """Really?"""
    await visit.services.notes.agent_notes_of(visit.user, role)
    return await visit.ask(
        title=f"Clear the assistant's notes for {role}?",
        text="The assistant's own notes for this role are deleted. Your chats stay.",
        words="Clear it",
        back=f"/agent-notes/{quote(role, safe='')}",
        here="/notes",
    )


@router.post("/agent-notes/{role}/clear")
async def clear(visit: UserVisit, role: str) -> Response:
    """Forget them."""
    await visit.services.notes.clear_agent_notes(visit.user, role)
    return visit.redirect("/notes", "Cleared.")


async def _list(visit: Visit, draft: str = "") -> NotesContext:
    return NotesContext(
        notes=await visit.services.notes.list(visit.user),
        scratchpad=(await visit.services.notes.scratchpad(visit.user)).text,
        deleted=await visit.services.notes.deleted(visit.user),
        agent_notes=await visit.services.notes.agent_notes(visit.user),
        draft=draft,
    )


def _editor(text: str, version: str, *, name: str = "", line: int = 0) -> NoteContext:
    """A note to edit, or the scratchpad where no name is given."""
    lines = text.split("\n")
    line = line if 0 < line <= len(lines) else 0
    here = f"/notes/{quote(name, safe='')}" if name else "/scratchpad"
    return NoteContext(
        title=name or "Scratchpad",
        label="Note (Markdown)" if name else "Scratchpad (Markdown)",
        text=text,
        version=version,
        action=f"{here}?edit=1",
        delete=f"{here}/delete" if name else "",
        delete_words="Delete" if name else "",
        line=line,
        line_text=plain_text(lines[line - 1][:LINE_CHARACTERS]) if line else "",
    )


def _opened(context: NoteContext, line: int, edit: str) -> NoteContext:
    """Return it to read, its name said once, unless there is nothing to read, or it is to be edited."""
    text = context.text.removeprefix(f"# {context.title}\n")
    return replace(context, edit=context.action, text=text) if text.strip() and not line and not edit else context


async def _edited(visit: Visit, context: NoteContext, refused: UserError | None = None) -> Response:
    """The text or its editor; with 409 where the text was changed in between, beside what stands there."""
    status = 200 if context.theirs is None else 409
    return await visit.show("note.html", context, here="/notes", status=status, refused=refused)
