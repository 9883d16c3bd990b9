"""Admin: the settings of the server, each with its value and where it comes from. They are changed outside."""

from collections.abc import Sequence

from fastapi.responses import Response

from cortex.base.settings_view import SettingLine, setting_lines
from web.render import ADMIN, Context, NavEntry, described
from web.routes import PageRouter
from web.visit import ReauthedAdminVisit

router = PageRouter()
HREF = "/admin/settings"
NAV = NavEntry(
    title="Settings",
    href=HREF,
    icon="gear",
    order=82,
    under=ADMIN,
    about="All settings of this server and where each value comes from.",
)


class ServerSettingsContext(Context, frozen=True, kw_only=True):
    """The settings."""

    lines: Sequence[SettingLine] = described("every setting by name")


@router.get(HREF)
async def show(visit: ReauthedAdminVisit) -> Response:
    """All of them."""
    context = ServerSettingsContext(lines=setting_lines(visit.services.settings))
    return await visit.show("server_settings.html", context)
