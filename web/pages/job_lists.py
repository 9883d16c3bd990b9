"""Where a job may write although others read it: the shared lists that its person allows beforehand."""

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.services.jobs.jobs import JobView
from cortex.services.turns.reader_grants import ListChoice
from web.deps import CurrentUser, Services, Texts
from web.frame import frame_of
from web.job_words import JobWordsContext
from web.render import described, respond
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)
HOME = "/jobs"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobListsContext(JobWordsContext):
    """The shared lists of the job's person."""

    job: JobView = described("the job")
    lists: Sequence[ListChoice] = described("the person's shared lists, and which of them the job may write to")


@router.get(HOME + "/{job_id}/lists")
async def show(request: Request, services: Services, user: CurrentUser, job_id: str) -> Response:
    """The lists to choose from."""
    context = JobListsContext(
        frame=await frame_of(request, services, user, here=HOME),
        job=await services.jobs.get(user, job_id),
        lists=await services.approvals.reader_grants.of_job(user, job_id),
    )
    return respond(request, "job_lists.html", context)


@router.post(HOME + "/{job_id}/lists")
async def save(
    request: Request,
    services: Services,
    user: CurrentUser,
    job_id: str,
    lists: Texts = None,
) -> Response:
    """Let it write to exactly these without asking."""
    await services.approvals.reader_grants.allow(user, job_id, lists or ())
    return redirect(request, f"{HOME}/{job_id}/lists", "Saved.")
