"""The page on which a person says which mails begin a job, as forms send it."""

import pytest

from cortex.app import Cortex
from cortex.services.jobs.forms import JobForm
from tests.web.conftest import Browser

LETTER = JobForm(name="Letter", kind="message", prompt="The school wrote.", when="only when called")


async def test_which_mails_begin_a_job_is_said_shown_and_taken_back(house: Cortex, ada: Browser) -> None:
    job = await house.jobs.add(ada.user, LETTER)
    page = f"/jobs/{job.id}/mail"
    assert "have not connected a mail account" in (await ada.get(page)).text
    refused = await ada.post(page, sender=" ", subject="")
    assert refused.status_code == 422
    assert "Say which mails" in refused.text
    kept = await ada.post(page, sender="school.example", subject="trip <b>")
    assert kept.status_code in (200, 303)
    shown = (await ada.get(page)).text
    assert 'value="school.example"' in shown
    assert "trip &lt;b&gt;" in shown
    trigger = await house.mail_triggers.get(ada.user, job.id)
    assert trigger is not None
    assert (trigger.sender, trigger.subject) == ("school.example", "trip <b>")
    await ada.post(f"{page}/remove")
    assert await house.mail_triggers.get(ada.user, job.id) is None


@pytest.mark.parametrize("page", ["mail", "mail/remove"])
async def test_anothers_job_is_not_there(house: Cortex, ada: Browser, bob: Browser, page: str) -> None:
    job = await house.jobs.add(ada.user, LETTER)
    assert (await bob.post(f"/jobs/{job.id}/{page}", sender="x")).status_code == 404
    assert await house.mail_triggers.get(ada.user, job.id) is None
