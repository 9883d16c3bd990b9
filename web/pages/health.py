"""How the server is doing: the doctor's findings for admins, a plain yes or no for everybody else."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.app import Cortex
from cortex.base.user import User
from cortex.services.health.finding import Finding
from web.connections import Connections
from web.deps import Admin, CurrentUser, ReauthedAdmin, Services
from web.frame import frame_of
from web.render import ADMIN, ConfirmContext, Context, NavEntry, described, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)


async def _state(services: Cortex, user: User) -> str:
    """Tell whether all checks are green."""
    is_well = await services.doctor.is_well() and not await services.doctor.failing_model(user)
    return "All good" if is_well else "Needs attention"


NAV = NavEntry(
    title="Health",
    href="/admin/health",
    icon="check",
    order=60,
    under=ADMIN,
    about="Every check of the server, and a restart.",
    state=_state,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthContext(Context):
    """The health page."""

    is_ready: bool = described("whether the database answers with the newest tables")
    findings: Sequence[Finding] = described("every check, for admins; else none")
    failing_model: str = described("the model that did not answer this person's last request, or empty", default="")
    has_proxy: bool = described("whether a proxy may stand in front, which can be tried", default=False)


@router.get("/health")
async def show(request: Request, services: Services, user: CurrentUser) -> Response:
    """Tell whether it works, for everybody; for admins every check."""
    return await _page(request, services, user, await _findings(request, services, user) if user.is_admin else ())


@router.get("/admin/health")
async def show_all(request: Request, services: Services, user: Admin) -> Response:
    """Return what `cortex doctor` says, and what only the running daemon knows."""
    return await _page(request, services, user, await _findings(request, services, user))


@router.get("/admin/health/restart")
async def ask_restart(request: Request, services: Services, user: ReauthedAdmin) -> Response:
    """The question before it is restarted."""
    context = ConfirmContext(
        frame=await frame_of(request, services, user, here=NAV.href),
        title="Restart Cortex?",
        text="Running answers get up to a minute to finish; the rest continues after the restart. Open pages reload "
        "by themselves.",
        action="/admin/health/restart",
        words="Restart",
        back="/admin/health",
    )
    return respond(request, "confirm.html", context)


@router.post("/admin/health/restart")
async def restart(request: Request, services: Services, user: ReauthedAdmin) -> Response:
    """Restart it."""
    running = await services.restarts.ask(user, "by the button")
    ends = f" once {running} running answer{'' if running == 1 else 's'} ended" if running else ""
    return redirect(request, "/admin/health", f"Cortex restarts{ends}. This page reloads by itself.")


@router.post("/admin/health/proxy")
async def try_proxy(request: Request, services: Services, user: Admin) -> Response:
    """See whether the proxy in front holds answers back."""
    return await _page(request, services, user, [await services.live_health.proxy()])


async def _findings(request: Request, services: Services, user: User) -> Sequence[Finding]:
    own = await services.live_health.findings()
    return [*await services.doctor.examine(of=user), *own, *_connections(request)]


async def _page(request: Request, services: Services, user: User, findings: Sequence[Finding]) -> Response:
    context = HealthContext(
        frame=await frame_of(request, services, user, here=NAV.href),
        is_ready=await services.doctor.is_ready(),
        findings=findings,
        failing_model=await services.doctor.failing_model(user),
        has_proxy=bool(user.is_admin and services.settings.public_url),
    )
    return respond(request, "health.html", context)


def _connections(request: Request) -> Iterator[Finding]:
    """Yield how much room for connections is left; nothing where no server runs."""
    connections: Connections | None = getattr(request.app.state, "connections", None)
    if connections is not None:
        is_near = len(connections) > 0.8 * connections.most
        yield Finding(
            name="connections",
            state="warn" if is_near else "good",
            text=f"{len(connections):,} open of at most {connections.most:,}.",
            mend="Allow the process more open files (ulimit -n, LimitNOFILE) and restart it." if is_near else "",
        )
