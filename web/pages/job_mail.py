"""The mails that begin a job: said by who sent them and what they are about, taken away."""

from fastapi.responses import Response

from cortex.base.errors import UserError
from cortex.services.jobs.jobs import JobView
from cortex.services.jobs.mail_triggers import MailTriggerRow
from web.deps import Text
from web.job_words import JobWordsContext
from web.render import described
from web.routes import PageRouter
from web.visit import UserVisit, Visit

router = PageRouter()
HOME = "/jobs"


class JobMailContext(JobWordsContext, frozen=True, kw_only=True):
    """The mails that begin a job."""

    job: JobView = described("the job")
    trigger: MailTriggerRow | None = described("which mails begin it, None for none")
    has_mail: bool = described("tells whether the person has connected a mail account")
    refusal: str = described("the reason why it was not kept, or empty", default="")
    sender: str = described("whose mails, as it stands in the form", default="")
    subject: str = described("about what, as it stands in the form", default="")


@router.get(HOME + "/{job_id}/mail")
async def show(visit: UserVisit, job_id: str) -> Response:
    """Tell which mails begin it."""
    return await _page(visit, job_id)


@router.post(HOME + "/{job_id}/mail")
async def keep(visit: UserVisit, job_id: str, sender: Text = "", subject: Text = "") -> Response:
    """Have these mails begin it."""
    try:
        await visit.services.mail_triggers.put(visit.user, job_id, sender=sender, subject=subject)
    except UserError as error:
        return await _page(visit, job_id, error, sender, subject)
    return visit.redirect(f"{HOME}/{job_id}/mail", "Saved")


@router.post(HOME + "/{job_id}/mail/remove")
async def remove(visit: UserVisit, job_id: str) -> Response:
    """Have no mail begin it any more."""
    await visit.services.mail_triggers.remove(visit.user, job_id)
    return visit.redirect(f"{HOME}/{job_id}/mail", "No mail starts this job any more")


async def _page(
    visit: Visit, job_id: str, error: UserError | None = None, sender: str = "", subject: str = ""
) -> Response:
    job = await visit.services.jobs.get(visit.user, job_id)
    trigger = await visit.services.mail_triggers.get(visit.user, job_id)
    context = JobMailContext(
        job=job,
        trigger=trigger,
        has_mail=bool(await visit.services.mail_accounts.list(visit.user)),
        refusal=error.message if error else "",
        sender=sender or (trigger.sender if trigger else ""),
        subject=subject or (trigger.subject if trigger else ""),
    )
    return await visit.show("job_mail.html", context, status=error.status if error else 200)
