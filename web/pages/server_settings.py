"""Admin: the settings of the server, each with its value and where it comes from. They are changed outside."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.base.settings_view import SettingLine, setting_lines
from web.deps import ReauthedAdmin, Services
from web.frame import frame_of
from web.render import ADMIN, Context, NavEntry, described, respond
from web.routes import LazyRoute

router = APIRouter(route_class=LazyRoute)
HREF = "/admin/settings"
NAV = NavEntry(
    title="Settings",
    href=HREF,
    icon="gear",
    order=82,
    under=ADMIN,
    about="All settings of this server and where each value comes from.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettingsContext(Context):
    """The settings."""

    lines: Sequence[SettingLine] = described("every setting by name")


@router.get(HREF)
async def show(request: Request, services: Services, user: ReauthedAdmin) -> Response:
    """All of them."""
    context = ServerSettingsContext(
        frame=await frame_of(request, services, user, here=HREF), lines=setting_lines(services.settings)
    )
    return respond(request, "server_settings.html", context)
