"""Today: what waits, what is due and ticked, what comes next, and a part that fails alone."""

import re
from datetime import UTC, datetime, timedelta

import httpx
from sqlalchemy import text

from cortex.app import Cortex
from cortex.services.jobs.forms import JobForm
from cortex.services.notices.notices import NoticeDraft
from tests.scripted_server import Use, rule
from tests.web.conftest import Browser
from tests.web.talks import Talks


def _day(days: int = 0) -> datetime:
    return datetime.now(UTC) + timedelta(days=days)


def _content(page: httpx.Response) -> str:
    return page.text.split('id="today"')[1].split("</main>")[0]


async def test_the_first_address_leads_to_today(ada: Browser) -> None:
    answer = await ada.get("/")
    assert answer.headers["location"] == "/today"
    page = await ada.get("/today")
    assert f"{_day():%A}</h1>" in page.text
    assert "<html" not in (await ada.fragment("/today")).text


async def test_an_empty_day_offers_three_sentences_that_begin_a_chat(ada: Browser) -> None:
    page = await ada.get("/today")
    assert "Nothing is due. Try one of these:" in page.text
    tries = re.findall(r'<button name="text" value="([^"]+)">', page.text)
    assert len(tries) == 3
    assert "<h2" not in _content(page), "a part with nothing is not drawn"


async def test_the_day_says_how_far_the_set_up_is_until_that_is_hidden(house: Cortex, bob: Browser) -> None:
    assert re.search(r'href="/start">\s*Set-up: \d of 2 done', (await bob.get("/today")).text)
    await house.first_steps.hide(bob.user, is_hidden=True)
    assert "Set-up:" not in (await bob.get("/today")).text


async def test_late_tasks_stand_first_and_reminders_by_their_time(house: Cortex, ada: Browser) -> None:
    await house.tasks.create(ada.user, "Sign the form", list_name="family", due=_day().date())
    await house.tasks.create(ada.user, "Call the engineer", due=_day(-1).date())
    await house.tasks.create(ada.user, "Next week", due=_day(7).date())
    await house.reminders.add(ada.user, "take the bin out today at 23:59")
    page = (await ada.get("/today")).text.split("Due today")[1].split("</section>")[0]
    assert re.findall(r'class="t"[^>]*>([^<]+)</a>', page) == ["Call the engineer", "Take the bin out", "Sign the form"]
    assert re.search(r'class="x late">.*?Yesterday', page, re.DOTALL)
    assert "23:59" in page


async def test_what_is_ticked_is_gone_and_comes_back_by_undo(house: Cortex, ada: Browser) -> None:
    task = await house.tasks.create(ada.user, "Pay the bill", due=_day().date())
    answer = await ada.post(f"/tasks/{task.id}/complete", back="/today")
    assert answer.headers["location"] == "/today"
    page = await ada.get("/today")
    assert "All done for today." in page.text
    assert "Pay the bill" not in _content(page)
    assert f'action="/tasks/{task.id}/reopen"' in page.text
    await ada.post(f"/tasks/{task.id}/reopen", back="/today")
    assert "Pay the bill" in (await ada.get("/today")).text


async def test_a_task_put_off_is_due_tomorrow_and_undo_puts_it_back(house: Cortex, ada: Browser) -> None:
    task = await house.tasks.create(ada.user, "Pay the bill", due=_day(-3).date())
    await ada.post(f"/tasks/{task.id}/tomorrow", back="/today")
    assert (await house.tasks.get(ada.user, task.id)).due == _day(1).date()
    undo = re.search(r'action="(/tasks/\w+/due\?day=[\d-]+)"', (await ada.get("/today")).text)
    assert undo
    await ada.post(undo[1])
    assert (await house.tasks.get(ada.user, task.id)).due == _day(-3).date()


async def test_a_reminder_ticked_ahead_of_its_time_is_not_told_then(house: Cortex, ada: Browser) -> None:
    row = await house.reminders.add(ada.user, "take the bin out today at 23:59")
    page = (await ada.get("/today")).text
    at = re.search(r'name="at" value="([^"]+)"', page)
    assert at
    await ada.post(f"/reminders/{row.id}/skip", at=at[1], back="/today")
    skipped = await house.reminders.get(ada.user, row.id)
    assert (skipped.state, skipped.next_at) == ("done", None)
    undo = re.search(r'action="(/reminders/\w+/unskip\?at=[^"]+)"', (await ada.get("/today")).text)
    assert undo
    await ada.post(undo[1])
    assert (await house.reminders.get(ada.user, row.id)).next_at == row.next_at


async def test_a_time_is_skipped_once_however_often_it_is_pressed(house: Cortex, ada: Browser) -> None:
    row = await house.reminders.add(ada.user, "water the plants every day at 23:59")
    assert row.next_at
    for status in (303, 409):
        assert (await ada.post(f"/reminders/{row.id}/skip", at=row.next_at.isoformat())).status_code == status
    assert (await house.reminders.get(ada.user, row.id)).next_at == row.next_at + timedelta(days=1)


async def test_one_that_repeats_goes_on_with_the_time_that_follows(house: Cortex, ada: Browser) -> None:
    row = await house.reminders.add(ada.user, "water the plants every day at 23:59")
    assert row.next_at
    await ada.post(f"/reminders/{row.id}/skip", at=row.next_at.isoformat())
    skipped = await house.reminders.get(ada.user, row.id)
    assert (skipped.state, skipped.next_at) == ("planned", row.next_at + timedelta(days=1))


async def test_what_a_job_found_stands_under_its_name(house: Cortex, ada: Browser) -> None:
    brief = NoticeDraft(
        key="b", kind="job", title="read me my list", text="On it:\n☐ milk\n☐ eggs", path="/jobs", is_tainted=False
    )
    await house.notices.notify(ada.user.id, brief)
    page = (await ada.get("/today")).text
    assert ("Read me my list" in page, "On it: ☐ milk ☐ eggs" in page) == (True, True)


async def test_jobs_come_next_and_what_happened_is_told(house: Cortex, ada: Browser, bob: Browser) -> None:
    await house.jobs.add(
        ada.user, JobForm.typed({"name": "Oven on", "prompt": "Turn it on", "when": "every day at 7:30"})
    )
    await house.notices.notify(
        ada.user.id,
        NoticeDraft(key="k", kind="job", title="Morning brief sent", text="", path="/jobs", is_tainted=False),
    )
    page = (await ada.get("/today")).text
    assert "Oven on" in page.split("Next</h2>")[1].split("</section>")[0]
    assert "Morning brief sent" in page.split("Since last night")[1].split("</section>")[0]
    others = _content(await bob.get("/today"))
    assert "Oven on" not in others
    assert "Morning brief" not in others


async def test_a_part_that_fails_is_named_and_the_rest_stands(house: Cortex, ada: Browser) -> None:
    await house.tasks.create(ada.user, "Pay the bill", due=_day().date())
    async with house.runtime.db.session_scope() as session:
        await session.execute(text("ALTER TABLE jobs RENAME TO gone"))
    page = (await ada.get("/today")).text
    assert "What comes next could not be read." in page
    assert "Pay the bill" in page


async def test_a_light_question_is_answered_from_today(talks: Talks, page: httpx.AsyncClient) -> None:
    job = {"prompt": "Water the flowers.", "when": "every day at 9"}
    talks.model.rules.insert(0, rule("the flowers", Use("cron_add", job, is_blind=True), "Planned."))
    cid = await talks.living.conversation()
    await page.post(f"/c/{cid}/messages", data={"text": "the flowers please"})
    asked = (await talks.living.until(cid, "approval", state="asked")).payload["approval"]
    assert f'action="/approvals/{asked}"' in _content(await page.get("/today"))
    answer = await page.post(f"/approvals/{asked}", data={"choice": "once", "back": "/today"})
    assert answer.headers["location"] == "/today"
    await talks.ended(cid)
    assert "Needs your OK" not in _content(await page.get("/today"))


async def test_a_heavy_one_leads_to_its_chat(talks: Talks, page: httpx.AsyncClient) -> None:
    cid = await talks.living.conversation()
    await page.post(f"/c/{cid}/messages", data={"text": "disk space, use the shell"})
    asked = (await talks.living.until(cid, "approval", state="asked")).payload["approval"]
    today = _content(await page.get("/today"))
    assert f'href="/c/{cid}" aria-describedby="ask-{asked}"' in today
    assert f'action="/approvals/{asked}"' not in today
