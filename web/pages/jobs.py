"""Jobs: `/jobs`, the form of a new one and of one that stands, and the reading of its times while they are typed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from fastapi import Request
from fastapi.responses import Response
from msgspec.structs import replace

from cortex.base.errors import Conflict, UserError
from cortex.base.numbers import whole_number
from cortex.services.jobs.forms import SETTINGS, JobChoices, JobForm, JobSetting
from cortex.services.jobs.jobs import JobFilter, JobList, JobView
from cortex.services.jobs.tools import JobToolPlan
from cortex.services.notices.addresses import ChannelView
from web.bodies import TEXT_BYTES, takes
from web.deps import Number
from web.job_words import JobWordsContext, PreviewLine, is_live, lines, said_at
from web.render import Frame, NavEntry, address, described, wants_fragment
from web.routes import PageRouter
from web.visit import UserVisit, Visit

router = PageRouter()
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


class JobsContext(JobWordsContext, frozen=True, kw_only=True):
    """The list."""

    view: JobList = described("this page's jobs with their last runs, and how many there are of each state")
    wanted: JobFilter = described("the filter")
    labels: Sequence[tuple[str, str]] = described("states to filter by, each with its word", default=LABELS)
    examples: Sequence[tuple[str, JobForm]] = described("jobs to begin with", default=EXAMPLES)
    place: Callable[..., str] = described("the address of this list with other values of the filter, first page")
    is_live: bool = described("whether a run is still to end, so that the page looks again")
    moment: int = described("a number that differs each time, so that the next look is a new one")


class JobReadingContext(JobWordsContext, frozen=True, kw_only=True):
    """The meaning of a time's words and of the names of tools, which the page shows while they are typed."""

    form: JobForm = described("what is typed, or what stands")
    settings: Mapping[str, JobSetting] = described("what the settings say, by name", default_factory=SETTINGS.copy)
    words: str = described("the reading of the time, empty for none", default="")
    zone: str = described("its time zone", default="")
    cron: str = described("its cron line, empty where it has none", default="")
    lines: Sequence[PreviewLine] = described("the next times, and what changes of the clock mean", default=())
    is_beside: bool = described("whether it stands beside appointments, so that more may come", default=False)
    unread: str = described("why the time could not be read", default="")
    carried: JobToolPlan | None = described("what a list of own tools comes to, None for the role's", default=None)


class JobContext(JobReadingContext, frozen=True, kw_only=True):
    """The form of a job."""

    job: JobView | None = described("the job, None for a new one", default=None)
    known: JobChoices = described("roles, models and tools to choose from")
    channels: Sequence[ChannelView] = described("ways to be told, and what each still lacks")
    is_stale: bool = described("whether the job was changed while the person was writing", default=False)


@router.get(HOME)
async def show_all(visit: UserVisit, state: str = "", q: str = "", page: Number = 1) -> Response:
    """The jobs that fit, the next to run first."""
    chosen = cast("Any", state if state in dict(LABELS) else "")  # Any: mypy does not see that it is one of them
    wanted = JobFilter(state=chosen, words=q.strip()[:200])
    view = await visit.services.jobs.list(visit.user, wanted, page=page)

    def place(**values: object) -> str:
        asked = {"state": wanted.state, "q": wanted.words, **values}
        return address(HOME, **{name: value for name, value in asked.items() if value != 1})

    context = JobsContext(
        view=view,
        wanted=wanted,
        place=place,
        is_live=any(is_live(one.bars) for one in view.jobs),
        moment=round(visit.services.runtime.ticks_s() * 1000),
    )
    return await visit.show("jobs.html", context)


@router.get(f"{HOME}/new")
async def new(visit: UserVisit, example: Number = 0) -> Response:
    """An empty form, or one with an example in it."""
    form = EXAMPLES[example - 1][1] if 0 < example <= len(EXAMPLES) else JobForm()
    return await visit.show("job.html", await _context(visit, form))


@router.post(f"{HOME}/preview")
@takes(TEXT_BYTES)
async def preview_new(visit: UserVisit, part: str = "") -> Response:
    """Return how the words of a new job are read now, or its list of tools (`part`: tools); nothing is saved."""
    return await _preview(visit, await typed(visit.request), None, part)


@router.post(f"{HOME}/new")
@takes(TEXT_BYTES)
async def add(visit: UserVisit) -> Response:
    """Save a new job, and say when it runs first."""
    form = await typed(visit.request)
    try:
        row = await visit.services.jobs.add(visit.user, form)
    except UserError as refused:
        context = await _context(visit, form, refused=refused)
        return await visit.show("job.html", context, refused=refused)
    first = said_at(row.next_at, row.time_zone, visit.user.time_zone) if row.next_at else row.words
    return visit.redirect(f"{HOME}/{row.id}", f"Saved: {row.name}, first {first}")


@router.get(HOME + "/{job_id}")
async def show(visit: UserVisit, job_id: str) -> Response:
    """One job, to look at and to change."""
    job = await visit.services.jobs.get(visit.user, job_id)
    return await visit.show("job.html", await _context(visit, JobForm.of(job.job), job))


@router.post(HOME + "/{job_id}/preview")
@takes(TEXT_BYTES)
async def preview(visit: UserVisit, job_id: str, part: str = "") -> Response:
    """The same of one that stands; nothing is saved."""
    job = await visit.services.jobs.get(visit.user, job_id)
    return await _preview(visit, await typed(visit.request), job, part)


@router.post(HOME + "/{job_id}")
@takes(TEXT_BYTES)
async def save(visit: UserVisit, job_id: str) -> Response:
    """Save it, unless it was changed in between: then what was typed stands beside what is there."""
    jobs = visit.services.jobs
    await jobs.get(visit.user, job_id)
    form, version = await typed(visit.request), str((await visit.request.form()).get("version", ""))
    try:
        number = whole_number(version)
        if number is None:
            raise UserError("Say which version was changed, as the page does.")
        row = await jobs.change(visit.user, job_id, number, form)
    except (UserError, Conflict) as refused:
        context = await _context(visit, form, await jobs.get(visit.user, job_id), refused)
        return await visit.show("job.html", context, refused=refused)
    after = f", next {said_at(row.next_at, row.time_zone, visit.user.time_zone)}" if row.next_at else ""
    return visit.redirect(f"{HOME}/{row.id}", f"Saved: {row.name}{after}")


async def typed(request: Request) -> JobForm:
    """The form as the browser sent it; the ticked ways to be told become one line."""
    given = await request.form()
    plain = {name: str(value) for name, value in given.items()}
    return JobForm.typed({**plain, "deliver_to": " ".join(str(one) for one in given.getlist("deliver_to"))})


async def _preview(visit: Visit, form: JobForm, job: JobView | None, part: str) -> Response:
    if wants_fragment(visit.request):
        reading = JobReadingContext(frame=Frame(user=visit.user), form=form, **await _read(visit, form, job))
        return await visit.show("job.html", reading, block="carried" if part == "tools" else "reading")
    return await visit.show("job.html", await _context(visit, form, job))


async def _read(visit: Visit, form: JobForm, job: JobView | None) -> dict[str, Any]:
    """The fields of `JobReadingContext`; Any: they differ in type. As it stands, a job keeps its own rhythm."""
    jobs, found = visit.services.jobs, dict[str, Any]()
    if form.own_tools and form.kind != "call":
        found["carried"] = await jobs.carried(visit.user, form)
    if not form.when:
        return found
    try:
        stands = JobForm.of(job.job) if job else None
        if job and stands and (form.when, form.time_zone) == (stands.when, stands.time_zone):
            reading = await jobs.coming(visit.user, job.job)
        else:
            reading = await jobs.preview(visit.user, form.when, form.time_zone)
    except UserError as refused:
        return {**found, "unread": refused.message}
    timing = reading.timing
    cron = timing.expression if timing.kind == "cron" else ""
    found["is_beside"] = timing.kind == "appointment"
    return {**found, "words": timing.words, "cron": cron, "zone": timing.time_zone, "lines": lines(reading)}


async def _context(
    visit: Visit, form: JobForm, job: JobView | None = None, refused: UserError | Conflict | None = None
) -> JobContext:
    form = form if form.time_zone else replace(form, time_zone=visit.user.time_zone)
    devices = ", ".join(device.name for device in await visit.services.devices.list(visit.user))
    pushes = [
        ChannelView(name=name, kind=kind, lacks=visit.services.channels.lacks(name), address=devices)
        for name, kind in visit.services.channels.kinds.items()
        if kind.reaches_devices
    ]
    reading = await _read(visit, form, job)
    if isinstance(refused, UserError) and refused.field in ("when", "time_zone"):
        reading.pop("unread", None)  # the same words stand at the field
    return JobContext(
        form=form,
        job=job,
        known=await visit.services.jobs.known(visit.user),
        channels=(*pushes, *await visit.services.addresses.views(visit.user)),
        is_stale=isinstance(refused, Conflict),
        **reading,
    )
