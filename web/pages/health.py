"""How the server is doing: the doctor's findings for admins, a plain yes or no for everybody else."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.services.health.doctor import Finding
from web.deps import CurrentUser, Services
from web.frame import frame_of
from web.render import Context, described, respond
from web.routes import LazyRoute

router = APIRouter(route_class=LazyRoute)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthContext(Context):
    """The health page."""

    is_ready: bool = described("whether the database answers with the newest tables")
    findings: Sequence[Finding] = described("every check, for admins; else none")


@router.get("/health")
async def show(request: Request, services: Services, user: CurrentUser) -> Response:
    """What `cortex doctor` says."""
    context = HealthContext(
        frame=await frame_of(request, services, user, here="/health"),
        is_ready=await services.doctor.is_ready(),
        findings=await services.doctor.examine(of=user) if user.is_admin else (),
    )
    return respond(request, "health.html", context)
