"""Jobs: `/jobs`, the form of a new one and of one that stands, and the reading of its times while they are typed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cortex.base.errors import Conflict, UserError
from cortex.base.numbers import whole_number
from cortex.base.user import User
from cortex.services.jobs.forms import JobChoices, JobForm
from cortex.services.jobs.jobs import JobFilter, JobList, JobView
from cortex.services.jobs.tools import JobToolPlan
from cortex.services.notices.addresses import ChannelView
from web.bodies import TEXT_BYTES, takes
from web.deps import CurrentUser, Number, Services
from web.frame import frame_of
from web.job_words import LIVE, JobWordsContext, PreviewLine, at_zone, is_live, lines
from web.render import Frame, NavEntry, described, respond, wants_fragment
from web.routes import LazyRoute
from web.toast import redirect

router = APIRouter(route_class=LazyRoute)
HOME = "/jobs"
NAV = NavEntry(title="Jobs", href=HOME, icon="repeat", order=14)
LABELS = (("", "All"), ("enabled", "On"), ("over", "Over"), ("paused", "Paused"), ("failing", "Failing"))
EXAMPLES = (
    (
        "A brief every weekday morning",
        JobForm(
            name="Morning brief",
            prompt="Look at my tasks that are due and my reminders for today, and sum them up in five lines.",
            when="every weekday at half past seven",
        ),
    ),
    (
        "A message on Sunday evening, without a model",
        JobForm(
            name="Week ahead", kind="message", prompt="Ten minutes to plan the week.", when="every Sunday at 18:00"
        ),
    ),
    (
        "A list of open tasks, without a model",
        JobForm(name="Open tasks", kind="call", tool="task_list", arguments="{}", when="on the 1st at 9:00"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsContext(JobWordsContext):
    """The list."""

    view: JobList = described("this page's jobs with their last runs, and how many there are of each state")
    wanted: JobFilter = described("the filter")
    labels: Sequence[tuple[str, str]] = described("states to filter by, each with its word", default=LABELS)
    examples: Sequence[tuple[str, JobForm]] = described("jobs to begin with", default=EXAMPLES)
    place: Callable[..., str] = described("the address of this list with other values of the filter, first page")
    is_live: bool = described("whether a run is still to end, so that the page looks again")
    moment: int = described("a number that differs each time, so that the next look is a new one")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReadingContext(JobWordsContext):
    """What the words of a time, and the names of tools, come to; the page shows it while they are typed."""

    form: JobForm = described("what is typed, or what stands")
    words: str = described("the reading of the time, empty for none", default="")
    zone: str = described("its time zone", default="")
    cron: str = described("its cron line, empty where it has none", default="")
    lines: Sequence[PreviewLine] = described("the next times, and what changes of the clock mean", default=())
    unread: str = described("why the time could not be read", default="")
    carried: JobToolPlan | None = described("what a list of own tools comes to, None for the role's", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext(JobReadingContext):
    """The form of a job."""

    job: JobView | None = described("the job, None for a new one", default=None)
    known: JobChoices = described("roles, models and tools to choose from")
    channels: Sequence[ChannelView] = described("ways to be told, and what each still lacks")
    is_stale: bool = described("whether the job was changed while the person was writing", default=False)
    error: str = described("why saving was refused", default="")
    error_field: str = described("the field the error is about, or empty", default="")
    live: Sequence[str] = described("the states of a run that is still to end", default=LIVE)


@router.get(HOME)
async def show_all(
    request: Request, services: Services, user: CurrentUser, state: str = "", q: str = "", page: Number = 1
) -> Response:
    """The jobs that fit, the next to run first."""
    chosen = cast("Any", state if state in dict(LABELS) else "")  # Any: mypy does not see that it is one of them
    wanted = JobFilter(state=chosen, words=q.strip()[:200])
    view = await services.jobs.list(user, wanted, page=page)

    def place(**values: object) -> str:
        asked = {"state": wanted.state, "q": wanted.words, "page": "", **values}
        query = urlencode({name: value for name, value in asked.items() if value not in ("", 1)})
        return HOME + (f"?{query}" if query else "")

    context = JobsContext(
        frame=await frame_of(request, services, user, here=HOME),
        view=view,
        wanted=wanted,
        place=place,
        is_live=any(is_live(one.bars) for one in view.jobs),
        moment=round(services.runtime.ticks_s() * 1000),
    )
    return respond(request, "jobs.html", context)


@router.get(f"{HOME}/new")
async def new(request: Request, services: Services, user: CurrentUser, example: Number = 0) -> Response:
    """An empty form, or one with an example in it."""
    form = EXAMPLES[example - 1][1] if 0 < example <= len(EXAMPLES) else JobForm()
    return respond(request, "job.html", await _context(request, services, user, form))


@router.post(f"{HOME}/preview")
@takes(TEXT_BYTES)
async def preview_new(request: Request, services: Services, user: CurrentUser, part: str = "") -> Response:
    """Return how the words of a new job are read now, or its list of tools (`part`: tools); nothing is saved."""
    return await _preview(request, services, user, await typed(request), None, part)


@router.post(f"{HOME}/new")
@takes(TEXT_BYTES)
async def add(request: Request, services: Services, user: CurrentUser) -> Response:
    """Save a new job, and say when it runs first."""
    form = await typed(request)
    try:
        row = await services.jobs.add(user, form)
    except UserError as refused:
        context = await _context(request, services, user, form, refused=refused)
        return respond(request, "job.html", context, status=refused.status)
    first = at_zone(row.next_at, row.time_zone) if row.next_at else row.words
    return redirect(request, f"{HOME}/{row.id}", f"Saved: {row.name}, first {first}")


@router.get(HOME + "/{job_id}")
async def show(request: Request, services: Services, user: CurrentUser, job_id: str) -> Response:
    """One job, to look at and to change."""
    job = await services.jobs.get(user, job_id)
    return respond(request, "job.html", await _context(request, services, user, JobForm.of(job.job), job))


@router.post(HOME + "/{job_id}/preview")
@takes(TEXT_BYTES)
async def preview(request: Request, services: Services, user: CurrentUser, job_id: str, part: str = "") -> Response:
    """The same of one that stands; nothing is saved."""
    job = await services.jobs.get(user, job_id)
    return await _preview(request, services, user, await typed(request), job, part)


@router.post(HOME + "/{job_id}")
@takes(TEXT_BYTES)
async def save(request: Request, services: Services, user: CurrentUser, job_id: str) -> Response:
    """Save it, unless it was changed in between: then what was typed stands beside what is there."""
    jobs = services.jobs
    await jobs.get(user, job_id)
    form, version = await typed(request), str((await request.form()).get("version", ""))
    try:
        number = whole_number(version)
        if number is None:
            raise UserError("Say which version was changed, as the page does.")
        row = await jobs.change(user, job_id, number, form)
    except (UserError, Conflict) as refused:
        context = await _context(request, services, user, form, await jobs.get(user, job_id), refused)
        return respond(request, "job.html", context, status=refused.status)
    after = f", next {at_zone(row.next_at, row.time_zone)}" if row.next_at else ""
    return redirect(request, f"{HOME}/{row.id}", f"Saved: {row.name}{after}")


async def typed(request: Request) -> JobForm:
    """The form as the browser sent it; the ticked ways to be told become one line."""
    given = await request.form()
    plain = {name: str(value) for name, value in given.items()}
    return JobForm.typed({**plain, "deliver_to": " ".join(str(one) for one in given.getlist("deliver_to"))})


async def _preview(
    request: Request, services: Services, user: User, form: JobForm, job: JobView | None, part: str
) -> Response:
    if wants_fragment(request):
        reading = JobReadingContext(frame=Frame(user=user), form=form, **await _read(services, user, form, job))
        return respond(request, "job.html", reading, block="carried" if part == "tools" else "reading")
    return respond(request, "job.html", await _context(request, services, user, form, job))


async def _read(services: Services, user: User, form: JobForm, job: JobView | None) -> dict[str, Any]:
    """The fields of `JobReadingContext`; Any: they differ in type. As it stands, a job keeps its own rhythm."""
    jobs, found = services.jobs, dict[str, Any]()
    if form.own_tools and form.kind != "call":
        found["carried"] = await jobs.carried(user, form)
    if not form.when:
        return found
    try:
        stands = JobForm.of(job.job) if job else None
        if job and stands and (form.when, form.time_zone) == (stands.when, stands.time_zone):
            reading = jobs.coming(job.job)
        else:
            reading = jobs.preview(user, form.when, form.time_zone)
    except UserError as refused:
        return {**found, "unread": refused.message}
    timing = reading.timing
    cron = timing.expression if timing.kind == "cron" else ""
    return {**found, "words": timing.words, "cron": cron, "zone": timing.time_zone, "lines": lines(reading)}


async def _context(
    request: Request,
    services: Services,
    user: User,
    form: JobForm,
    job: JobView | None = None,
    refused: UserError | Conflict | None = None,
) -> JobContext:
    form = form if form.time_zone else replace(form, time_zone=user.time_zone)
    devices = ", ".join(device.name for device in await services.devices.list(user))
    push = ChannelView(name="web_push", lacks=(await services.devices.key()).lacks, address=devices)
    reading = await _read(services, user, form, job)
    if isinstance(refused, UserError) and refused.field in ("when", "time_zone"):
        reading.pop("unread", None)  # the same words stand at the field
    return JobContext(
        frame=await frame_of(request, services, user, here=HOME),
        form=form,
        job=job,
        known=await services.jobs.known(user),
        channels=(push, *await services.addresses.views(user)),
        is_stale=isinstance(refused, Conflict),
        error=refused.message if refused else "",
        error_field=refused.field if isinstance(refused, UserError) else "",
        **reading,
    )
