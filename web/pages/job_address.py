"""The web address of a job: made, shown with its secret once, taken away; and what comes there from other programs."""

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from cortex.base.errors import CortexError, NotAllowed, Throttled
from cortex.services.jobs.hook_requests import BODY_BYTES, HookRequest
from cortex.services.jobs.hooks import HookRow
from cortex.services.jobs.jobs import JobView
from web.bodies import asked_by, takes
from web.deps import Services, Text
from web.job_words import JobWordsContext
from web.render import described
from web.routes import PageRouter
from web.security import HOOKS
from web.visit import UserVisit, Visit

router = PageRouter()
HOME = "/jobs"


class JobAddressContext(JobWordsContext, frozen=True, kw_only=True):
    """The job's address."""

    job: JobView = described("the job")
    hook: HookRow | None = described("its address and how it fared, None for none")
    url: str = described("the address whole, or empty")
    secret: str = described("the secret that was made just now, shown this once", default="")


@router.get(HOME + "/{job_id}/address")
async def show(visit: UserVisit, job_id: str) -> Response:
    """Tell whether it has one, and what came there."""
    return await _page(visit, job_id)


@router.post(HOME + "/{job_id}/address")
async def make(visit: UserVisit, job_id: str, way: Text = "secret") -> Response:
    """Make one, or another in its place; the secret is on the answer and nowhere else."""
    secret = await visit.services.hooks.open(visit.user, job_id, needs_secret=way != "address")
    return await _page(visit, job_id, secret)


@router.get(HOME + "/{job_id}/address/remove")
async def ask_remove(visit: UserVisit, job_id: str) -> Response:
    """The question before it goes."""
    job = (await visit.services.jobs.get(visit.user, job_id)).job
    return await visit.ask(
        title=f"Remove the web address of {job.name}?",
        text="Requests to it are refused at once. A new address will be different.",
        words="Remove",
        back=f"{HOME}/{job_id}/address",
    )


@router.post(HOME + "/{job_id}/address/remove")
async def remove(visit: UserVisit, job_id: str) -> Response:
    """Take it away."""
    await visit.services.hooks.close(visit.user, job_id)
    return visit.redirect(f"{HOME}/{job_id}/address", "Web address removed")


@router.post(HOOKS + "{address}")
@takes(BODY_BYTES)
async def receive(request: Request, services: Services, address: str) -> Response:
    """Return what another program sends: noted and answered with 202 and the run's id, or refused in a sentence."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    try:
        asked_by(request, await services.hooks.expect(address, headers))
        body = await request.body()
        run = await services.hooks.receive(address, HookRequest(headers=headers, body=body))
    except NotAllowed as error:
        return JSONResponse({"error": error.message}, 401, {"WWW-Authenticate": "Bearer"})
    except Throttled as error:
        return JSONResponse({"error": error.message}, 429, {"Retry-After": str(round(error.wait_s))})
    except CortexError as error:
        return JSONResponse({"error": error.message}, error.status)
    return JSONResponse({"run": run}, 202)


async def _page(visit: Visit, job_id: str, secret: str = "") -> Response:
    job, hook = await visit.services.jobs.get(visit.user, job_id), await visit.services.hooks.get(visit.user, job_id)
    root = visit.services.settings.public_url or str(visit.request.base_url)
    context = JobAddressContext(
        job=job,
        hook=hook,
        url=f"{root.rstrip('/')}{HOOKS}{hook.address}" if hook else "",
        secret=secret,
    )
    return await visit.show("job_address.html", context)
