"""Admin: backups. How old the last one is, what is kept, and one at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.app import Cortex
from cortex.base.disk_faults import is_full
from cortex.base.errors import Conflict, UserError
from cortex.base.user import User
from cortex.services.backup.backups import BackupState
from cortex.services.backup.places import Stored
from web import figures
from web.deps import ReauthedAdmin, Services
from web.frame import frame_of
from web.render import ADMIN, Context, NavEntry, described, respond, zone_of
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)
HREF = "/admin/backups"


async def _state(services: Cortex, user: User) -> str:
    """Return how the last one went."""
    state = services.backups.state()
    if state.error:
        return "The last one failed"
    if not state.made_at:
        return "None yet"
    return f"Last: {figures.day(datetime.fromisoformat(state.made_at), zone_of(user))}"


NAV = NavEntry(
    title="Backups",
    href=HREF,
    icon="copy",
    order=78,
    under=ADMIN,
    about="Make a backup, and see where they are kept.",
    state=_state,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupsContext(Context):
    """The backups."""

    kept: Sequence[Stored] = described("what is kept, the newest first")
    state: BackupState = described("how the last tries went")
    place: str = described("where they are kept")
    is_encrypted: bool = described("whether there is a passphrase")
    is_nightly: bool = described("whether one is made every night")
    error: str = described("why the list or a new backup failed", default="")


@router.get(HREF)
async def show(request: Request, services: Services, user: ReauthedAdmin) -> Response:
    """Return what is kept."""
    return await _page(request, services, user)


@router.post(HREF)
async def make(request: Request, services: Services, user: ReauthedAdmin) -> Response:
    """Make one now."""
    try:
        made = await services.backups.make()
    except (UserError, Conflict) as refused:
        status = 507 if refused.__cause__ and is_full(refused.__cause__) else refused.status
        return await _page(request, services, user, error=refused.message, status=status)
    removed = f" Removed as no longer needed: {', '.join(made.removed)}." if made.removed else ""
    return redirect(request, HREF, f"{made.name} was created and verified.{removed}")


async def _page(
    request: Request, services: Services, user: ReauthedAdmin, *, error: str = "", status: int = 200
) -> Response:
    backups = services.backups
    await services.end_view()  # the place may be far away
    kept: Sequence[Stored] = ()
    try:
        kept = await backups.kept()
    except UserError as failed:
        error = error or failed.message
    context = BackupsContext(
        frame=await frame_of(request, services, user, here=HREF),
        kept=kept,
        state=backups.state(),
        place=backups.place,
        is_encrypted=backups.is_encrypted,
        is_nightly=services.settings.backup_nightly,
        error=error,
    )
    return respond(request, "backups.html", context, status=status)
