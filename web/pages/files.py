"""The files that a person gave: listed, searched, opened, deleted and brought back; and the way in for new ones."""

from collections.abc import Iterator, Mapping, Sequence
from io import BufferedReader
from os import fstat
from types import MappingProxyType
from urllib.parse import quote

from fastapi.responses import FileResponse, HTMLResponse, PlainTextResponse, Response, StreamingResponse
from msgspec.structs import replace
from starlette.datastructures import FormData, UploadFile

from cortex.app import Cortex
from cortex.base.errors import UserError
from cortex.base.media import ACCEPTED, KINDS, PDF, PLAIN, TAKEN, safe_name
from cortex.services.content.documents import PAGES_SHOWN, DocumentRow, FileSpace, PageText
from cortex.services.search.search import Hit
from web.bodies import TEXT_BYTES, takes
from web.chat_view import chat_context
from web.deps import Number, Text
from web.render import Context, Frame, NavEntry, address, described
from web.routes import PageRouter
from web.security import INERT, local_path
from web.stretch import PAGE_ROWS, Stretch, cut, part
from web.visit import UserVisit, Visit

router = PageRouter()
UPLOADS = "/files"
SHARE = "/share"
AT_ONCE = 5  # whole ones in one form; a script sends each by itself
NAV = NavEntry(title="Files", href=UPLOADS, icon="folder", order=25)
NO_STARTS: Mapping[str, int] = MappingProxyType({"start": 0, "deleted": 0})
NO_FILE = "Choose a file first."
PIECE_BYTES = 262_144


class FilesContext(Context, frozen=True, kw_only=True):
    """The list."""

    files: Stretch[DocumentRow] = described("the person's files, the newest first")
    deleted: Stretch[DocumentRow] = described("those that can be restored, the latest deleted first")
    deleted_count: int = described("how many of them there are")
    query: str = described("what was searched for", default="")
    hits: Sequence[Hit] = described("where the words stand in the texts of files, the best places alone")
    is_cut: bool = described("whether there are more such places")
    space: FileSpace = described("how much of what is allowed they take")
    kinds: dict[str, str] = described("what the types are called", default_factory=lambda: KINDS)
    accepted: str = described("what the dialog of the browser offers", default=ACCEPTED)
    taken: str = described("the sentence on what is taken", default=TAKEN)
    limit_mb: int = described("what one file may have")
    at_once_mb: int = described("what the files of one form may have together")
    errors: Sequence[str] = described("why some were not taken", default=())


class FileContext(Context, frozen=True, kw_only=True):
    """One file."""

    file: DocumentRow = described("the file")
    kind: str = described("what its type is called")
    pages: Sequence[PageText] = described("its text by page, as much as is shown at once; none for a picture")
    earlier: int = described("the page from which those ahead of these are shown, 0 for none")
    later: int = described("the page from which those behind these are shown, 0 for none")


class DeletedFileContext(Context, frozen=True, kw_only=True):
    """One file that was deleted and can be restored."""

    file: DocumentRow = described("the file")


@router.get(UPLOADS)
async def show(visit: UserVisit, q: str = "", start: Number = 0, deleted: Number = 0) -> Response:
    """The list, or what has the words in its name; of each list the rows from these on."""
    starts = {"start": max(0, start), "deleted": deleted}
    return await visit.show("files.html", await _list(visit, query=q, starts=starts))


def _most(cortex: Cortex) -> int:
    return AT_ONCE * cortex.documents.limit_bytes + TEXT_BYTES


@router.post(UPLOADS)
@takes(_most, has_files=True)
async def take(visit: UserVisit) -> Response:
    """Take the files of the form."""
    form = await visit.request.form()
    try:
        return await _answer(visit, form)
    finally:
        await form.close()


@router.get(SHARE)
async def shared_again(visit: UserVisit) -> Response:
    """Where a login or *Back* leads after something was shared: it was not kept meanwhile."""
    return visit.redirect("/c/new", "What you shared did not arrive. Share it once more.")


@router.post(SHARE)
@takes(_most, has_files=True)
async def share(visit: UserVisit) -> Response:
    """Put what another app shares (a page, a text, files) into the composer of a new chat; the person sends it.

    A browser makes this request when its person chose Cortex where apps share. A page of another site cannot:
    `web/security.py` refuses it, so that nobody puts words into a person's mouth.
    """
    form = await visit.request.form()
    try:
        kept, errors = await _taken(visit, form)
    finally:
        await form.close()
    given = dict.fromkeys(str(form.get(name, "")).strip() for name in ("title", "text", "url"))
    words = [word for word in given if word and not any(word in other for other in given if other != word)]
    context = await chat_context(visit, None, draft="\n".join(words), attached=[row.id for row in kept])
    error = " ".join(one for one in errors if one != NO_FILE)
    return await visit.show("chat.html", replace(context, error=error), status=422 if error else 200)


@router.get(UPLOADS + "/{file_id}/picture")
async def picture(visit: UserVisit, file_id: str, small: Number = 0) -> Response:
    """A picture as it was encoded anew: nothing of the file itself."""
    path = await visit.services.documents.picture(visit.user, file_id, is_small=bool(small))
    return FileResponse(path, headers={"Cache-Control": "private, max-age=31536000, immutable", **INERT})


@router.get(UPLOADS + "/{file_id}")
async def show_file(visit: UserVisit, file_id: str, page: Number = 1) -> Response:
    """One file, with what could be read of it from a page on; of a deleted one, that it is, and the way back."""
    if lost := await visit.services.documents.was_deleted(visit.user, file_id):
        deleted = DeletedFileContext(file=lost)
        return await visit.show("file_deleted.html", deleted, block="card", status=410)
    file, pages = await visit.services.documents.text(visit.user, file_id, page)
    context = FileContext(
        file=file,
        kind=KINDS.get(file.media_type, file.media_type),
        pages=pages,
        earlier=max(1, pages[0].number - PAGES_SHOWN) if pages and pages[0].number > 1 else 0,
        later=pages[-1].number + 1 if pages and pages[-1].number < file.pages else 0,
    )
    return await visit.show("file.html", context, block="card")


@router.get(UPLOADS + "/{file_id}/content")
async def content(visit: UserVisit, file_id: str) -> Response:
    """The file itself, to be saved: never shown as a part of this site, whatever it holds."""
    file, opened = await visit.services.documents.opened(visit.user, file_id)
    is_text = file.media_type.startswith(("text/", "message/"))
    media_type = f"{PLAIN}; charset=utf-8" if is_text else file.media_type if file.media_type == PDF else ""
    size_bytes = fstat(opened.fileno()).st_size
    headers = {
        "Cache-Control": "private, no-store",
        "Content-Length": str(size_bytes),
        "Content-Disposition": f"attachment; filename*=utf-8''{quote(file.name, safe='')}",
        **INERT,
    }
    pieces = _pieces(opened, size_bytes)
    return StreamingResponse(pieces, media_type=media_type or "application/octet-stream", headers=headers)


@router.post(UPLOADS + "/{file_id}/delete")
async def delete(visit: UserVisit, file_id: str) -> Response:
    """Delete it; the news have the way back."""
    file = await visit.services.documents.delete(visit.user, file_id)
    return visit.redirect(UPLOADS, f"Deleted: {file.name}", undo_href=f"{UPLOADS}/{file_id}/restore")


@router.post(UPLOADS + "/{file_id}/restore")
async def restore(visit: UserVisit, file_id: str, back: Text = UPLOADS) -> Response:
    """Bring a deleted one back; go on to where that was asked for."""
    file = await visit.services.documents.bring_back(visit.user, file_id)
    return visit.redirect(local_path(back, UPLOADS), f"Restored: {file.name}")


def _pieces(file: BufferedReader, size_bytes: int) -> Iterator[bytes]:
    """Yield what the file held when its length was said."""
    with file:
        while size_bytes and (piece := file.read(min(PIECE_BYTES, size_bytes))):
            size_bytes -= len(piece)
            yield piece


async def _answer(visit: Visit, form: FormData) -> Response:
    """Return what became of the files of the form: for a script, for a composer without one, for this page."""
    kept, errors = await _taken(visit, form)
    if visit.request.headers.get("HX-Request") == "true":
        macros = visit.pages.macros("ui.html", Context(frame=Frame(user=visit.user)))
        chips = "".join(macros.file(row) for row in kept)
        return HTMLResponse(chips) if kept else PlainTextResponse(" ".join(errors), 422)
    if "cid" in form:
        return await _with_composer(visit, form, [row.id for row in kept], errors)
    if errors:
        context = await _list(visit, errors=errors)
        return await visit.show("files.html", context, status=422)
    return visit.redirect(UPLOADS, "Added." if len(kept) == 1 else f"{len(kept)} files are added.")


async def _taken(visit: Visit, form: FormData) -> tuple[list[DocumentRow], list[str]]:
    """The files of the form that are kept now, and why others are not."""
    kept: list[DocumentRow] = []
    errors: list[str] = []
    given = [one for one in form.getlist("files") if isinstance(one, UploadFile) and one.filename]
    for one in given:
        try:
            kept.append(await visit.services.documents.give(visit.user, one.filename or "", one.file, one.size or 0))
        except UserError as refused:
            errors.append(f"{safe_name(one.filename or '')}: {refused.message}")
    return kept, errors if given or "drop" in form else [NO_FILE]


async def _with_composer(visit: Visit, form: FormData, kept: list[str], errors: list[str]) -> Response:
    """Back in the conversation, where there is no script: the draft with its files."""
    cid = str(form["cid"])
    page = await visit.services.chat.log(visit.user, cid) if cid else None
    before = [str(id) for id in form.getlist("attached") if id != form.get("drop")]
    context = await chat_context(
        visit,
        page,
        role=str(form.get("role", "")),
        draft=str(form.get("text", "")),
        attached=[*before, *kept],
    )
    return await visit.show("chat.html", replace(context, error=" ".join(errors)), status=422 if errors else 200)


async def _list(
    visit: Visit, *, query: str = "", errors: Sequence[str] = (), starts: Mapping[str, int] = NO_STARTS
) -> FilesContext:
    def place(**other: int) -> str:
        return address(UPLOADS, **{"q": query, **starts, **other})

    documents, start = visit.services.documents, starts["start"]
    files = await documents.list(visit.user, query, skip=start, limit=PAGE_ROWS + 1)
    hits, is_cut = await visit.services.file_hits.pages(visit.user, query) if query else ((), False)
    deleted = await documents.deleted(visit.user)
    return FilesContext(
        files=part(files, start, place),
        deleted=cut(deleted, starts["deleted"], place, by="deleted", at="deleted"),
        deleted_count=len(deleted),
        query=query,
        hits=hits,
        is_cut=is_cut,
        space=await visit.services.documents.space(visit.user),
        limit_mb=visit.services.settings.upload_mb,
        at_once_mb=AT_ONCE * visit.services.settings.upload_mb,
        errors=errors,
    )
