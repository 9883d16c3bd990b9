"""Admin: the coding agent. Its runs, one of them live with its diff to merge or drop, the folders it was given."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.base.errors import CortexError, ToolFailed
from cortex.base.hidden import show_hidden
from cortex.base.user import User
from cortex.ports.agents import CodeRepository
from cortex.services.agents.coding import PAGE
from cortex.services.agents.coding import CodingRow as CodingRow
from web.deps import Admin, ReauthedAdmin, Services, Text
from web.frame import frame_of
from web.render import ADMIN, Context, NavEntry, described, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)
NAV = NavEntry(
    title="Coding agent",
    href=PAGE,
    icon="pen",
    order=76,
    under=ADMIN,
    about="Folders it may work in, and what it changed.",
)
SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class CodingContext(Context):
    """The list."""

    runs: Sequence[CodingRow] = described("the newest runs of this admin")
    repositories: Sequence[CodeRepository] = described("what the agent may be sent to work in")
    folders: Sequence[str] = described("folders that were allowed besides the card's")
    lacks: str = described("why it cannot work now, '' = it can", default="")
    is_live: bool = described("whether one runs, so that the page looks again")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodingRunContext(Context):
    """One run."""

    run: CodingRow = described("the run")
    diff: Sequence[tuple[str, str]] = described("lines of its diff: kind, text")
    said: str = described("what the agent wrote, with nothing hidden")
    error: str = described("why it was not merged just now", default="")


@router.get(PAGE)
async def show(request: Request, services: Services, user: Admin) -> Response:
    """Runs, repositories, folders."""
    lacks: str = ""
    repositories: Sequence[CodeRepository] = ()
    try:
        repositories = await services.coding.repositories(user.id)
    except ToolFailed as error:
        lacks = error.message
    runs = await services.coding.newest(user.id, SHOWN)
    context = CodingContext(
        frame=await frame_of(request, services, user, here=PAGE),
        runs=runs,
        repositories=repositories,
        folders=await services.coding.folders(),
        lacks=lacks,
        is_live=any(run.state == "running" for run in runs),
    )
    return respond(request, "coding.html", context)


@router.post(PAGE + "/folders/remove")
async def revoke(request: Request, services: Services, user: ReauthedAdmin, folder: Text = "") -> Response:
    """Take a folder away from it."""
    await services.coding.revoke(user, folder)
    return redirect(request, PAGE, "The coding agent can no longer use this folder.")


@router.get(PAGE + "/{coding_id}")
async def one(request: Request, services: Services, user: Admin, coding_id: str) -> Response:
    """Return how it stands; the page looks again while it runs."""
    return await _one(request, services, user, coding_id)


@router.post(PAGE + "/{coding_id}/merge")
async def merge(request: Request, services: Services, user: ReauthedAdmin, coding_id: str) -> Response:
    """Bring what it made into its repository."""
    await services.end_view()
    try:
        await services.coding.merge(user, coding_id)
    except CortexError as error:
        return await _one(request, services, user, coding_id, error.message, error.status)
    return redirect(request, f"{PAGE}/{quote(coding_id)}", "Merged.")


@router.post(PAGE + "/{coding_id}/stop")
async def stop(request: Request, services: Services, user: Admin, coding_id: str) -> Response:
    """End the work, or drop what it made."""
    await services.end_view()
    await services.coding.stop(user.id, coding_id)
    return redirect(request, f"{PAGE}/{quote(coding_id)}", "Stopped. Nothing was merged.")


async def _one(
    request: Request, services: Services, user: User, id: str, error: str = "", status: int = 200
) -> Response:
    run = await services.coding.get(user.id, id)
    context = CodingRunContext(
        frame=await frame_of(request, services, user, here=PAGE),
        run=run,
        diff=[(_kind(line), show_hidden(line)) for line in run.diff.splitlines()],
        said=show_hidden(run.said),
        error=error,
    )
    return respond(request, "coding_run.html", context, status=status)


def _kind(line: str) -> str:
    if line.startswith(("+++", "---", "diff ", "index ", "@@")):
        return "head"
    return "new" if line.startswith("+") else "old" if line.startswith("-") else ""
