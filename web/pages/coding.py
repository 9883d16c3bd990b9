"""Admin: the coding agent. Its runs, one of them live with its diff to merge or drop, the folders it was given."""

from collections.abc import Sequence
from urllib.parse import quote

from fastapi.responses import Response

from cortex.base.errors import CortexError, ToolFailed
from cortex.base.hidden import show_hidden
from cortex.ports.agents import CodeRepository
from cortex.services.agents.coding import PAGE
from cortex.services.agents.coding import CodingRow as CodingRow
from web.deps import Number, Text
from web.render import ADMIN, Context, NavEntry, address, described
from web.routes import PageRouter
from web.stretch import PAGE_ROWS, Stretch, cut, part
from web.visit import AdminVisit, ReauthedAdminVisit, Visit

router = PageRouter()
NAV = NavEntry(
    title="Coding agent",
    href=PAGE,
    icon="code",
    order=76,
    under=ADMIN,
    about="Folders it may work in, and what it changed.",
)


class CodingContext(Context, frozen=True, kw_only=True):
    """The list."""

    runs: Stretch[CodingRow] = described("the newest runs of this admin")
    here: str = described("this page's own address, to look again")
    repositories: Stretch[CodeRepository] = described("what the agent may be sent to work in")
    folders: Stretch[str] = described("folders that were allowed besides the card's")
    lacks: str = described("why it cannot work now, '' = it can", default="")
    is_live: bool = described("whether one runs, so that the page looks again")


class CodingRunContext(Context, frozen=True, kw_only=True):
    """One run."""

    run: CodingRow = described("the run")
    diff: Sequence[tuple[str, str]] = described("lines of its diff: kind, text")
    said: str = described("what the agent wrote, with nothing hidden")


@router.get(PAGE)
async def show(visit: AdminVisit, start: Number = 0, repositories: Number = 0, folders: Number = 0) -> Response:
    """Runs, repositories, folders."""
    lacks: str = ""
    starts = {"start": max(0, start), "repositories": repositories, "folders": folders}
    found: Sequence[CodeRepository] = ()
    try:
        found = await visit.services.coding.repositories(visit.user.id)
    except ToolFailed as error:
        lacks = error.message
    runs = await visit.services.coding.newest(visit.user.id, PAGE_ROWS + 1, skip=starts["start"])
    allowed = await visit.services.coding.folders()

    def place(**other: int) -> str:
        return address(PAGE, **{**starts, **other})

    context = CodingContext(
        here=place(),
        runs=part(runs, starts["start"], place),
        repositories=cut(found, repositories, place, by="repositories", at="h-repositories"),
        folders=cut(allowed, folders, place, by="folders", at="h-folders"),
        lacks=lacks,
        is_live=any(run.state == "running" for run in runs),
    )
    return await visit.show("coding.html", context)


@router.post(PAGE + "/folders/remove")
async def revoke(visit: ReauthedAdminVisit, folder: Text = "") -> Response:
    """Take a folder away from it."""
    await visit.services.coding.revoke(visit.user, folder)
    return visit.redirect(PAGE, "The coding agent can no longer use this folder.")


@router.get(PAGE + "/{coding_id}")
async def one(visit: AdminVisit, coding_id: str) -> Response:
    """Return how it stands; the page looks again while it runs."""
    return await _one(visit, coding_id)


@router.post(PAGE + "/{coding_id}/merge")
async def merge(visit: ReauthedAdminVisit, coding_id: str) -> Response:
    """Bring what it made into its repository."""
    await visit.services.end_view()
    try:
        await visit.services.coding.merge(visit.user, coding_id)
    except CortexError as error:
        return await _one(visit, coding_id, error)
    return visit.redirect(f"{PAGE}/{quote(coding_id)}", "Merged.")


@router.post(PAGE + "/{coding_id}/stop")
async def stop(visit: AdminVisit, coding_id: str) -> Response:
    """End the work, or drop what it made."""
    await visit.services.end_view()
    await visit.services.coding.stop(visit.user.id, coding_id)
    return visit.redirect(f"{PAGE}/{quote(coding_id)}", "Stopped. Nothing was merged.")


async def _one(visit: Visit, id: str, refused: CortexError | None = None) -> Response:
    run = await visit.services.coding.get(visit.user.id, id)
    context = CodingRunContext(
        run=run,
        diff=[(_kind(line), show_hidden(line)) for line in run.diff.splitlines()],
        said=show_hidden(run.said),
    )
    return await visit.show("coding_run.html", context, refused=refused)


def _kind(line: str) -> str:
    if line.startswith(("+++", "---", "diff ", "index ", "@@")):
        return "head"
    return "new" if line.startswith("+") else "old" if line.startswith("-") else ""
