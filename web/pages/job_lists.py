"""Where a job may write although others read it: the shared lists that its person allows beforehand."""

from collections.abc import Sequence

from fastapi.responses import Response

from cortex.services.jobs.jobs import JobView
from cortex.services.turns.reader_grants import ListChoice
from web.deps import Texts
from web.job_words import JobWordsContext
from web.render import described
from web.routes import PageRouter
from web.visit import UserVisit

router = PageRouter()
HOME = "/jobs"


class JobListsContext(JobWordsContext, frozen=True, kw_only=True):
    """The shared lists of the job's person."""

    job: JobView = described("the job")
    lists: Sequence[ListChoice] = described("the person's shared lists, and which of them the job may write to")


@router.get(HOME + "/{job_id}/lists")
async def show(visit: UserVisit, job_id: str) -> Response:
    """The lists to choose from."""
    context = JobListsContext(
        job=await visit.services.jobs.get(visit.user, job_id),
        lists=await visit.services.approvals.reader_grants.of_job(visit.user, job_id),
    )
    return await visit.show("job_lists.html", context)


@router.post(HOME + "/{job_id}/lists")
async def save(visit: UserVisit, job_id: str, lists: Texts = None) -> Response:
    """Let it write to exactly these without asking."""
    await visit.services.approvals.reader_grants.allow(visit.user, job_id, lists or ())
    return visit.redirect(f"{HOME}/{job_id}/lists", "Saved.")
