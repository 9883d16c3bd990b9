"""One's data: chats of another program taken over and that taken back; everything that is one's own as an archive."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Request, UploadFile
from fastapi import File as FormFile
from fastapi.responses import FileResponse, Response
from starlette.background import BackgroundTask

from cortex.base.errors import NotFound, UserError
from cortex.services.chat.imports import ImportState
from web.bodies import takes
from web.deps import CurrentUser, ReauthedUser, Services
from web.frame import frame_of
from web.render import MORE, Context, NavEntry, described, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)
IMPORTS = "/account/import"
MOST_BYTES = 52_000_000  # of one file of chats, with what a form puts around it
NAV = NavEntry(
    title="Import chats",
    href=IMPORTS,
    icon="chat",
    order=46,
    under=MORE,
    about="Take over chats from ChatGPT or Open WebUI.",
)
NO_FILE = "Choose a file first."


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatImportContext(Context):
    """The import."""

    state: ImportState | None = described("the import that waits, runs or is done; None for none")
    runs: bool = described("whether the page goes on by itself", default=False)
    error: str = described("why the file was not taken", default="")


@router.get(IMPORTS)
async def show(request: Request, services: Services, user: CurrentUser) -> Response:
    """The field for a file, or how far the import is."""
    return await _page(request, services, user)


@router.post(IMPORTS)
@takes(MOST_BYTES, has_files=True)
async def read(
    request: Request, services: Services, user: CurrentUser, file: Annotated[UploadFile | None, FormFile()] = None
) -> Response:
    """Read the file; nothing is taken over yet."""
    try:
        if file is None or not file.filename:
            raise UserError(NO_FILE)
        await services.chat_imports.read(user, file.file)
    except UserError as error:
        return await _page(request, services, user, error=error.message, status=422)
    return redirect(request, IMPORTS)


@router.post(f"{IMPORTS}/go-on")
async def go_on(request: Request, services: Services, user: CurrentUser) -> Response:
    """Take over the next ones; the page asks again until all are."""
    try:
        state = await services.chat_imports.go_on(user)
    except NotFound as error:
        return await _page(request, services, user, error=error.message, status=404)
    return await _page(request, services, user, runs=not state.is_done)


@router.post(f"{IMPORTS}/forget")
async def forget(request: Request, services: Services, user: CurrentUser) -> Response:
    """Let go of the file."""
    await services.chat_imports.forget(user)
    return redirect(request, IMPORTS)


@router.post(f"{IMPORTS}/take-back")
async def take_back(request: Request, services: Services, user: CurrentUser) -> Response:
    """Delete what was taken over."""
    count = await services.chat_imports.take_back(user)
    return redirect(request, IMPORTS, f"{count} imported chats deleted.")


@router.get("/account/everything")
async def everything(services: Services, user: ReauthedUser) -> Response:
    """Everything that is theirs; it asks for the password, for it is all of it."""
    path = await services.belongings.archive(user)
    name = f"cortex-{user.id}-{services.runtime.clock().date().isoformat()}.zip"
    gone = BackgroundTask(path.unlink, missing_ok=True)
    headers = {"Cache-Control": "no-store"}
    return FileResponse(path, media_type="application/zip", filename=name, headers=headers, background=gone)


async def _page(
    request: Request, services: Services, user: CurrentUser, *, runs: bool = False, error: str = "", status: int = 200
) -> Response:
    context = ChatImportContext(
        frame=await frame_of(request, services, user, here=IMPORTS),
        state=await services.chat_imports.state(user),
        runs=runs,
        error=error,
    )
    return respond(request, "chat_import.html", context, block="progress", status=status)
