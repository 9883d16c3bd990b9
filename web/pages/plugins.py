"""Admin: plug-ins. Which packages bring tools or channels, what they say of themselves, and which may be loaded."""

from collections.abc import Sequence

from fastapi.responses import Response

from cortex.app import Cortex
from cortex.base.errors import CortexError
from cortex.base.user import User
from cortex.services.tools.plugins import Plugin
from web.deps import Text
from web.render import ADMIN, Context, NavEntry, described
from web.routes import PageRouter
from web.visit import ReauthedAdminVisit, Visit

PAGE = "/admin/plugins"
router = PageRouter()


async def _state(services: Cortex, user: User) -> str:
    """Return how many are allowed; installed ones are only looked at on the page itself."""
    count = await services.plugins.count()
    return f"{count} allowed" if count else ""


NAV = NavEntry(
    title="Plug-ins",
    href=PAGE,
    icon="piece",
    order=67,
    under=ADMIN,
    about="Python packages that add tools or notification channels.",
    state=_state,
)


class PluginsContext(Context, frozen=True, kw_only=True):
    """The packages."""

    plugins: Sequence[Plugin] = described("the packages that bring tools or channels, and those that were allowed")


@router.get(PAGE)
async def show(visit: ReauthedAdminVisit) -> Response:
    """Show what is installed."""
    return await _page(visit)


@router.post(PAGE + "/allow")
async def allow(visit: ReauthedAdminVisit, name: Text = "", digest: Text = "") -> Response:
    """Allow a package as it was shown."""
    try:
        await visit.services.plugins.allow(visit.user, name, digest)
    except CortexError as refused:
        return await _page(visit, refused)
    return visit.redirect(PAGE, f"{name} is allowed.")


@router.post(PAGE + "/revoke")
async def revoke(visit: ReauthedAdminVisit, name: Text = "") -> Response:
    """Keep a package from being used."""
    try:
        await visit.services.plugins.revoke(visit.user, name)
    except CortexError as refused:
        return await _page(visit, refused)
    return visit.redirect(PAGE, f"{name} is not used any more. What is in memory of it goes with the next restart.")


async def _page(visit: Visit, refused: CortexError | None = None) -> Response:
    await visit.services.end_view()  # a package that was just allowed is imported
    await visit.services.tool_settings.in_force()
    context = PluginsContext(plugins=await visit.services.plugins.list())
    return await visit.show("plugins.html", context, refused=refused)
