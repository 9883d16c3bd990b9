"""How the server is doing: the doctor's findings for admins, a plain yes or no for everybody else."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.base.user import User
from cortex.services.health.doctor import Finding
from web.deps import Admin, CurrentUser, Services
from web.frame import frame_of
from web.render import Context, described, respond
from web.routes import LazyRoute

router = APIRouter(route_class=LazyRoute)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthContext(Context):
    """The health page."""

    is_ready: bool = described("whether the database answers with the newest tables")
    findings: Sequence[Finding] = described("every check, for admins; else none")
    has_proxy: bool = described("whether a proxy may stand in front, which can be tried", default=False)


@router.get("/health")
async def show(request: Request, services: Services, user: CurrentUser) -> Response:
    """Whether it works, for everybody; for admins every check."""
    return await _page(request, services, user, await _findings(services, user) if user.is_admin else ())


@router.get("/admin/health")
async def show_all(request: Request, services: Services, user: Admin) -> Response:
    """What `cortex doctor` says, and what only the running daemon knows."""
    return await _page(request, services, user, await _findings(services, user))


@router.post("/admin/health/proxy")
async def try_proxy(request: Request, services: Services, user: Admin) -> Response:
    """See whether the proxy in front holds answers back."""
    return await _page(request, services, user, [await services.live_health.proxy()])


async def _findings(services: Services, user: User) -> Sequence[Finding]:
    return [*await services.doctor.examine(of=user), *await services.live_health.findings()]


async def _page(request: Request, services: Services, user: User, findings: Sequence[Finding]) -> Response:
    context = HealthContext(
        frame=await frame_of(request, services, user, here="/health"),
        is_ready=await services.doctor.is_ready(),
        findings=findings,
        has_proxy=bool(user.is_admin and services.settings.public_url),
    )
    return respond(request, "health.html", context)
