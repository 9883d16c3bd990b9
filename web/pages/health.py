"""How the server is doing: the doctor's findings for admins, a plain yes or no for everybody else."""

from collections.abc import Iterator, Sequence

from fastapi import Request
from fastapi.responses import Response

from cortex.app import Cortex
from cortex.base.user import User
from cortex.services.health.finding import Finding
from web.connections import Connections
from web.render import ADMIN, Context, NavEntry, described
from web.routes import PageRouter
from web.visit import AdminVisit, ReauthedAdminVisit, UserVisit, Visit

router = PageRouter()


async def _state(services: Cortex, user: User) -> str:
    """Tell whether all checks are green."""
    is_well = await services.doctor.is_well() and not await services.doctor.failing_model(user)
    return "All good" if is_well else "Needs attention"


NAV = NavEntry(
    title="Health",
    href="/admin/health",
    icon="pulse",
    order=60,
    under=ADMIN,
    about="Every check of the server, and a restart.",
    state=_state,
)


class HealthContext(Context, frozen=True, kw_only=True):
    """The health page."""

    is_ready: bool = described("whether the database answers with the newest tables")
    findings: Sequence[Finding] = described("every check, for admins; else none")
    failing_model: str = described("the model that did not answer this person's last request, or empty", default="")
    has_proxy: bool = described("whether a proxy may stand in front, which can be tried", default=False)


@router.get("/health")
async def show(visit: UserVisit) -> Response:
    """Tell whether it works, for everybody; for admins every check."""
    return await _page(visit, await _findings(visit) if visit.user.is_admin else ())


@router.get("/admin/health")
async def show_all(visit: AdminVisit) -> Response:
    """Return what `cortex doctor` says, and what only the running daemon knows."""
    return await _page(visit, await _findings(visit))


@router.get("/admin/health/restart")
async def ask_restart(visit: ReauthedAdminVisit) -> Response:
    """The question before it is restarted."""
    return await visit.ask(
        title="Restart Cortex?",
        text="Running answers get up to a minute to finish; the rest continues after the restart. Open pages reload "
        "by themselves.",
        words="Restart",
        back="/admin/health",
    )


@router.post("/admin/health/restart")
async def restart(visit: ReauthedAdminVisit) -> Response:
    """Restart it."""
    running = await visit.services.restarts.ask(visit.user, "by the button")
    ends = f" once {running} running answer{'' if running == 1 else 's'} ended" if running else ""
    return visit.redirect("/admin/health", f"Cortex restarts{ends}. This page reloads by itself.")


@router.post("/admin/health/proxy")
async def try_proxy(visit: AdminVisit) -> Response:
    """See whether the proxy in front holds answers back."""
    return await _page(visit, [await visit.services.live_health.proxy()])


async def _findings(visit: Visit) -> Sequence[Finding]:
    own = await visit.services.live_health.findings()
    return [*await visit.services.doctor.examine(of=visit.user), *own, *_connections(visit.request)]


async def _page(visit: Visit, findings: Sequence[Finding]) -> Response:
    context = HealthContext(
        is_ready=await visit.services.doctor.is_ready(),
        findings=findings,
        failing_model=await visit.services.doctor.failing_model(visit.user),
        has_proxy=bool(visit.user.is_admin and visit.services.settings.public_url),
    )
    return await visit.show("health.html", context, here=NAV.href)


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
