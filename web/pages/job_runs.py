"""A job at work: its runs with what each took and told; run now, pause and go on, delete and bring back."""

from collections.abc import Callable, Sequence, Set
from datetime import datetime
from functools import partial

from fastapi.responses import Response

from cortex.base.job import SlotState
from cortex.services.chat.transcript_views import key_of
from cortex.services.jobs.jobs import HISTORY, JobRun, JobView
from web.deps import FormNumber, Number, Text
from web.job_words import LIVE, STATES, JobWordsContext, said_at
from web.render import address, described
from web.routes import PageRouter
from web.security import local_path
from web.visit import UserVisit

router = PageRouter()
HOME = "/jobs"
SHOWN: dict[str, tuple[str, tuple[SlotState, ...]]] = {
    "": ("All", ()),
    "done": ("Done", ("done",)),
    "failed": ("Failed", ("failed", "denied", "stopped")),
    "missed": ("Did not run", ("missed", "skipped")),
}


class JobRunsContext(JobWordsContext, frozen=True, kw_only=True):
    """The runs of a job."""

    job: JobView = described("the job")
    runs: Sequence[JobRun] = described("this page's runs, the newest first, each with how it was told")
    show: str = described("which ones are shown, empty for all")
    shown: dict[str, tuple[str, tuple[SlotState, ...]]] = described(
        "which there are to show", default_factory=SHOWN.copy
    )
    newest: str = described("address of the first page, or empty there")
    older: str = described("address of the runs before, or empty")
    here: str = described("this page's own address, to look again")
    is_live: bool = described("whether a run is still to end, so that the page looks again")
    moment: int = described("a number that differs each time, so that the next look is a new one")
    asking: Set[str] = described("the turns that wait for the reader's approval", default=frozenset())
    states: dict[SlotState, str] = described("a run's state in words", default_factory=STATES.copy)
    live: Sequence[str] = described("the states of a run that is still to end", default=LIVE)
    label_of: Callable[[str], str] = described("a channel's name in words")
    key_of: Callable[[str], str] = described("a turn's id as addresses have it", default=key_of)


@router.get(HOME + "/{job_id}/runs")
async def show(visit: UserVisit, job_id: str, show: str = "", before: str = "") -> Response:
    """Its runs, 50 at a time."""
    show, until = show if show in SHOWN else "", _moment(before)
    runs = await visit.services.jobs.history(visit.user, job_id, states=SHOWN[show][1], before=until)
    place = partial(address, f"{HOME}/{job_id}/runs", show=show)
    context = JobRunsContext(
        job=await visit.services.jobs.get(visit.user, job_id),
        runs=runs,
        show=show,
        newest=place() if until else "",
        older=place(before=runs[-1].slot.due_at.isoformat()) if len(runs) == HISTORY else "",
        here=place(before=before if until else ""),
        label_of=visit.services.channels.label,
        is_live=any(run.slot.state in LIVE for run in runs),
        asking={one.turn_id for one in await visit.services.approvals.pending(visit.user)},
        moment=round(visit.services.runtime.ticks_s() * 1000),
    )
    return await visit.show("job_runs.html", context)


@router.post(HOME + "/{job_id}/run")
async def run_now(visit: UserVisit, job_id: str) -> Response:
    """Begin a run by hand; its page shows what becomes of it."""
    await visit.services.jobs.run_now(visit.user, job_id)
    return visit.redirect(f"{HOME}/{job_id}/runs", "Starting…")


@router.post(HOME + "/{job_id}/toggle")
async def toggle(visit: UserVisit, job_id: str, version: FormNumber = 0, on: Text = "", back: Text = "") -> Response:
    """Pause it, or let it go on from now."""
    row = await visit.services.jobs.enable(visit.user, job_id, version, is_enabled=bool(on))
    if row.next_at:
        words = f"On: {row.name}, next {said_at(row.next_at, row.time_zone, visit.user.time_zone)}"
    else:
        waits = row.timing_kind in ("called", "appointment")
        begun = f"On: {row.name}" if waits else f"On: {row.name}, but it has no more runs"
        words = begun if row.is_enabled else f"Paused: {row.name}"
    return visit.redirect(local_path(back, f"{HOME}/{job_id}"), words)


@router.get(HOME + "/{job_id}/delete")
async def ask_delete(visit: UserVisit, job_id: str) -> Response:
    """The question before it goes."""
    job = (await visit.services.jobs.get(visit.user, job_id)).job
    return await visit.ask(
        title=f"Delete {job.name}?",
        text="Deletes the job and its history. You can undo this for a day.",
        action=f"{HOME}/{job_id}/delete?version={job.version}",
        words="Delete",
        back=f"{HOME}/{job_id}",
    )


@router.post(HOME + "/{job_id}/delete")
async def delete(visit: UserVisit, job_id: str, version: Number = 0) -> Response:
    """Delete it, as it stood when that was asked; the next page offers it back."""
    row = await visit.services.jobs.remove(visit.user, job_id, version)
    return visit.redirect(HOME, f"Deleted: {row.name}", undo_href=f"{HOME}/{job_id}/restore")


@router.post(HOME + "/{job_id}/restore")
async def restore(visit: UserVisit, job_id: str) -> Response:
    """Bring a deleted one back as it was."""
    row = await visit.services.jobs.restore(visit.user, job_id)
    return visit.redirect(f"{HOME}/{job_id}", f"Restored: {row.name}")


def _moment(text: str) -> datetime | None:
    """The moment that an address names; None for what is none, which shows the newest."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else None
