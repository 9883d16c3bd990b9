"""One's data: chats of another program taken over and that taken back; everything that is one's own as an archive."""

from typing import Annotated

from fastapi import File as FormFile
from fastapi import UploadFile
from fastapi.responses import FileResponse, Response
from starlette.background import BackgroundTask

from cortex.base.errors import CortexError, NotFound, UserError
from cortex.services.chat.imports import ImportState
from web.bodies import takes
from web.render import MORE, Context, NavEntry, described
from web.routes import PageRouter
from web.visit import ReauthedVisit, UserVisit, Visit

router = PageRouter()
IMPORTS = "/account/import"
MOST_BYTES = 52_000_000  # of one file of chats, with what a form puts around it
NAV = NavEntry(
    title="Import chats",
    href=IMPORTS,
    icon="tray",
    order=46,
    under=MORE,
    about="Take over chats from ChatGPT or Open WebUI.",
)
NO_FILE = "Choose a file first."


class ChatImportContext(Context, frozen=True, kw_only=True):
    """The import."""

    state: ImportState | None = described("the import that waits, runs or is done; None for none")
    runs: bool = described("whether the page goes on by itself", default=False)


@router.get(IMPORTS)
async def show(visit: UserVisit) -> Response:
    """The field for a file, or how far the import is."""
    return await _page(visit)


@router.post(IMPORTS)
@takes(MOST_BYTES, has_files=True)
async def read(visit: UserVisit, file: Annotated[UploadFile | None, FormFile()] = None) -> Response:
    """Read the file; nothing is taken over yet."""
    try:
        if file is None or not file.filename:
            raise UserError(NO_FILE)
        await visit.services.chat_imports.read(visit.user, file.file)
    except UserError as error:
        return await _page(visit, refused=error)
    return visit.redirect(IMPORTS)


@router.post(f"{IMPORTS}/go-on")
async def go_on(visit: UserVisit) -> Response:
    """Take over the next ones; the page asks again until all are."""
    try:
        state = await visit.services.chat_imports.go_on(visit.user)
    except NotFound as error:
        return await _page(visit, refused=error)
    return await _page(visit, runs=not state.is_done)


@router.post(f"{IMPORTS}/forget")
async def forget(visit: UserVisit) -> Response:
    """Let go of the file."""
    await visit.services.chat_imports.forget(visit.user)
    return visit.redirect(IMPORTS)


@router.post(f"{IMPORTS}/take-back")
async def take_back(visit: UserVisit) -> Response:
    """Delete what was taken over."""
    count = await visit.services.chat_imports.take_back(visit.user)
    return visit.redirect(IMPORTS, f"{count} imported chats deleted.")


@router.get("/account/everything")
async def everything(visit: ReauthedVisit) -> Response:
    """Everything that is theirs; it asks for the password, for it is all of it."""
    path = await visit.services.belongings.archive(visit.user)
    name = f"cortex-{visit.user.id}-{visit.services.runtime.clock().date().isoformat()}.zip"
    gone = BackgroundTask(path.unlink, missing_ok=True)
    headers = {"Cache-Control": "no-store"}
    return FileResponse(path, media_type="application/zip", filename=name, headers=headers, background=gone)


async def _page(visit: Visit, *, runs: bool = False, refused: CortexError | None = None) -> Response:
    context = ChatImportContext(state=await visit.services.chat_imports.state(visit.user), runs=runs)
    return await visit.show("chat_import.html", context, block="progress", refused=refused)
