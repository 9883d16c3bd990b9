"""Admin: backups. How old the last one is, what is kept, and one at once."""

from collections.abc import Sequence
from datetime import datetime

from fastapi.responses import Response

from cortex.app import Cortex
from cortex.base.disk_faults import is_full
from cortex.base.errors import Conflict, UserError
from cortex.base.user import User
from cortex.services.backup.backups import BackupState
from cortex.services.backup.places import Stored
from web import figures
from web.render import ADMIN, Context, NavEntry, described, zone_of
from web.routes import PageRouter
from web.visit import ReauthedAdminVisit, Visit

router = PageRouter()
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
    icon="box",
    order=78,
    under=ADMIN,
    about="Make a backup, and see where they are kept.",
    state=_state,
)


class BackupsContext(Context, frozen=True, kw_only=True):
    """The backups."""

    kept: Sequence[Stored] = described("what is kept, the newest first")
    state: BackupState = described("how the last tries went")
    place: str = described("where they are kept")
    is_encrypted: bool = described("whether there is a passphrase")
    is_nightly: bool = described("whether one is made every night")


@router.get(HREF)
async def show(visit: ReauthedAdminVisit) -> Response:
    """Return what is kept."""
    return await _page(visit)


@router.post(HREF)
async def make(visit: ReauthedAdminVisit) -> Response:
    """Make one now."""
    try:
        made = await visit.services.backups.make()
    except (UserError, Conflict) as refused:
        status = 507 if refused.__cause__ and is_full(refused.__cause__) else refused.status
        return await _page(visit, error=refused.message, status=status)
    removed = f" Removed as no longer needed: {', '.join(made.removed)}." if made.removed else ""
    return visit.redirect(HREF, f"{made.name} was created and verified.{removed}")


async def _page(visit: Visit, *, error: str = "", status: int = 200) -> Response:
    backups = visit.services.backups
    await visit.services.end_view()  # the place may be far away
    kept: Sequence[Stored] = ()
    try:
        kept = await backups.kept()
    except UserError as failed:
        error = error or failed.message
    context = BackupsContext(
        kept=kept,
        state=backups.state(),
        place=backups.place,
        is_encrypted=backups.is_encrypted,
        is_nightly=visit.services.settings.backup_nightly,
        error=error,
    )
    return await visit.show("backups.html", context, status=status)
