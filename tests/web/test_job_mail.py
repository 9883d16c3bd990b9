"""The page on which a person says which mails begin a job, as forms send it."""

from datetime import UTC, datetime, timedelta

import pytest

from cortex.app import Cortex
from cortex.base.ids import new_id
from cortex.base.user import User
from cortex.services.jobs.forms import JobForm
from cortex.storage.mail import MailAccountRow, MailAccountsRepository
from tests.web.conftest import Browser

AT = datetime(2026, 11, 28, 12, tzinfo=UTC)
LETTER = JobForm(name="Letter", kind="message", prompt="The school wrote.", when="only when called")


async def add_account(house: Cortex, user: User, address: str) -> None:
    """An account as it stands once it was connected."""
    row = MailAccountRow(
        id=new_id(lambda: AT), owner_id=user.id, address=address, host="imap.example.org", port=993, security="tls",
        username=address, way="password", created_at=AT, next_at=AT + timedelta(days=9_000),
        worked_at=None, failure="", failures=0,
    )  # fmt: skip
    await house.runtime.db.repository(MailAccountsRepository, user.id).add(row, [])


async def test_which_mails_begin_a_job_is_said_shown_and_taken_back(house: Cortex, ada: Browser) -> None:
    job = await house.jobs.add(ada.user, LETTER)
    page = f"/jobs/{job.id}/mail"
    assert "have not connected a mail account" in (await ada.get(page)).text
    refused = await ada.post(page, sender=" ", subject="")
    assert refused.status_code == 422
    assert "Say which mails" in refused.text
    kept = await ada.post(page, sender="school.example", subject="trip <b>", words="parents@school.example")
    assert kept.status_code in (200, 303)
    shown = (await ada.get(page)).text
    assert 'value="school.example"' in shown
    assert "trip &lt;b&gt;" in shown
    trigger = await house.mail_triggers.get(ada.user, job.id)
    assert trigger is not None
    said = trigger.sender, trigger.subject, trigger.words
    assert said == ("school.example", "trip <b>", "parents@school.example")
    assert 'value="parents@school.example"' in shown
    assert "Mail account</label>" not in shown  # there is none to choose from
    await ada.post(f"{page}/remove")
    assert await house.mail_triggers.get(ada.user, job.id) is None


async def test_the_mails_of_one_account_begin_it_and_one_that_was_removed_is_told(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    job = await house.jobs.add(ada.user, LETTER)
    page = f"/jobs/{job.id}/mail"
    for who, address in ((ada, "ada@example.org"), (ada, "ada@office.example"), (bob, "bob@example.org")):
        await add_account(house, who.user, address)
    rows = {row.address: row.id for row, _ in await house.mail_accounts.list(ada.user)}
    (foreign,) = [row.id for row, _ in await house.mail_accounts.list(bob.user)]
    assert (await ada.post(page, sender="x", account=foreign)).status_code == 404
    await ada.post(page, sender="x", account=rows["ada@office.example"])
    trigger = await house.mail_triggers.get(ada.user, job.id)
    assert trigger is not None
    assert trigger.account_id == rows["ada@office.example"]
    assert f'value="{trigger.account_id}" selected' in (await ada.get(page)).text
    await house.mail_accounts.remove(ada.user, trigger.account_id)
    assert "no mail starts the job" in (await ada.get(page)).text


@pytest.mark.parametrize("page", ["mail", "mail/remove"])
async def test_anothers_job_is_not_there(house: Cortex, ada: Browser, bob: Browser, page: str) -> None:
    job = await house.jobs.add(ada.user, LETTER)
    assert (await bob.post(f"/jobs/{job.id}/{page}", sender="x")).status_code == 404
    assert await house.mail_triggers.get(ada.user, job.id) is None
