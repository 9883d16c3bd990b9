"""Jobs out of a crontab: paste it, read what each line would be or why it is none, choose, save them switched off."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Form
from fastapi.responses import Response

from cortex.base.errors import UserError
from cortex.services.jobs.crontab import CrontabLine
from web.bodies import TEXT_BYTES, takes
from web.deps import Text
from web.job_words import JobWordsContext
from web.render import described
from web.routes import PageRouter
from web.visit import UserVisit, Visit

router = PageRouter()
HREF = "/jobs/import"
CHARACTERS = 60_000


class JobImportContext(JobWordsContext, frozen=True, kw_only=True):
    """The crontab and its reading."""

    text: str = described("what was pasted")
    time_zone: str = described("the zone of its times")
    lines: Sequence[CrontabLine] = described("what each line would be as a job, or why it is none", default=())
    chosen: Sequence[int] = described("the numbers of the lines that are ticked", default=())


@router.get(HREF)
async def show(visit: UserVisit) -> Response:
    """The field to paste into."""
    return await _page(visit, "", visit.user.time_zone)


@router.post(f"{HREF}/reading")
@takes(TEXT_BYTES)
async def read(visit: UserVisit, text: Text = "", time_zone: Text = "") -> Response:
    """Return what the lines are read as; nothing is saved."""
    try:
        lines = await _lines(visit, text, time_zone)
    except UserError as refused:
        return await _page(visit, text, time_zone, refused=refused)
    jobs = [line.number for line in lines if line.timing]
    return await _page(visit, text, time_zone, lines, jobs)


@router.post(HREF)
@takes(TEXT_BYTES)
async def save(
    visit: UserVisit, text: Text = "", time_zone: Text = "", numbers: Annotated[list[int] | None, Form()] = None
) -> Response:
    """Save the chosen lines as jobs that are switched off."""
    try:
        _check(text)
        made = await visit.services.jobs.add_crontab(visit.user, text, time_zone.strip(), numbers=numbers or [])
        lines = () if made else await _lines(visit, text, time_zone)
    except UserError as refused:
        return await _page(visit, text, time_zone, refused=refused)
    if not made:
        nothing = UserError("Select at least one line that is a job.")
        return await _page(visit, text, time_zone, lines, refused=nothing)
    words = f"Imported: {len(made)} job{'' if len(made) == 1 else 's'}, paused. Review and resume them."
    return visit.redirect("/jobs?state=paused", words)


def _check(text: str) -> None:
    if len(text) > CHARACTERS:
        raise UserError(f"At most {CHARACTERS:,} characters; these are {len(text):,}.", field="text")


async def _lines(visit: Visit, text: str, time_zone: str) -> Sequence[CrontabLine]:
    _check(text)
    lines = await visit.services.jobs.crontab(visit.user, text, time_zone.strip())
    if not lines:
        raise UserError("Paste the lines of a crontab, such as: 0 9 * * 1 echo hello", field="text")
    return lines


async def _page(
    visit: Visit,
    text: str,
    time_zone: str,
    lines: Sequence[CrontabLine] = (),
    chosen: Sequence[int] = (),
    refused: UserError | None = None,
) -> Response:
    context = JobImportContext(
        text=text,
        time_zone=time_zone,
        lines=lines,
        chosen=chosen,
    )
    return await visit.show("job_import.html", context, refused=refused)
