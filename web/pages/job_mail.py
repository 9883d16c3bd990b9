"""The mails that begin a job: said by who sent them and what they are about, taken away."""

from collections.abc import Sequence
from typing import NamedTuple

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
    accounts: Sequence[tuple[str, str]] = described("id and address of each of the person's mail accounts")
    refusal: str = described("the reason why it was not kept, or empty", default="")
    sender: str = described("whose mails, as it stands in the form", default="")
    subject: str = described("about what, as it stands in the form", default="")
    words: str = described("what else stands in it, as it stands in the form", default="")
    account: str = described("to which account, as it stands in the form, empty for any", default="")


class MailForm(NamedTuple):
    """The mails that begin a job, as the form has them."""

    sender: str = ""
    subject: str = ""
    words: str = ""
    account: str = ""


@router.get(HOME + "/{job_id}/mail")
async def show(visit: UserVisit, job_id: str) -> Response:
    """Tell which mails begin it."""
    return await _page(visit, job_id)


@router.post(HOME + "/{job_id}/mail")
async def keep(
    visit: UserVisit, job_id: str, sender: Text = "", subject: Text = "", words: Text = "", account: Text = ""
) -> Response:
    """Have these mails begin it."""
    try:
        await visit.services.mail_triggers.put(
            visit.user, job_id, sender=sender, subject=subject, words=words, account_id=account
        )
    except UserError as error:
        return await _page(visit, job_id, error, MailForm(sender, subject, words, account))
    return visit.redirect(f"{HOME}/{job_id}/mail", "Saved")


@router.post(HOME + "/{job_id}/mail/remove")
async def remove(visit: UserVisit, job_id: str) -> Response:
    """Have no mail begin it any more."""
    await visit.services.mail_triggers.remove(visit.user, job_id)
    return visit.redirect(f"{HOME}/{job_id}/mail", "No mail starts this job any more")


async def _page(visit: Visit, job_id: str, error: UserError | None = None, asked: MailForm | None = None) -> Response:
    job = await visit.services.jobs.get(visit.user, job_id)
    trigger = await visit.services.mail_triggers.get(visit.user, job_id)
    if asked is None:
        asked = MailForm(trigger.sender, trigger.subject, trigger.words, trigger.account_id) if trigger else MailForm()
    accounts = [(row.id, row.address) for row, _ in await visit.services.mail_accounts.list(visit.user)]
    context = JobMailContext(
        job=job,
        trigger=trigger,
        accounts=accounts,
        refusal=error.message if error else "",
        sender=asked.sender,
        subject=asked.subject,
        words=asked.words,
        account=asked.account,
    )
    return await visit.show("job_mail.html", context, status=error.status if error else 200)
