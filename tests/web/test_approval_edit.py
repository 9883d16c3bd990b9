"""Edit before allowing through the pages: the form of the arguments, what it says of wrong ones, what then runs."""

import html
import json
import re

import httpx

from cortex.services.chat.transcript_views import CallCard
from tests.scripted_server import Asked, Use, rule
from tests.web.marks import marks
from tests.web.talks import Talks

JOB = {"prompt": "Water the flowers.", "when": "every day at 9"}
RESULTS: list[str] = []


def told(asked: Asked) -> str:
    """Keeps what the model reads of its call."""
    RESULTS.extend(asked.results)
    return "Planned."


async def asked_for(talks: Talks, page: httpx.AsyncClient, call: Use) -> tuple[str, str]:
    """A conversation whose model has asked for this call: its id and the request's."""
    talks.model.rules.insert(0, rule("the flowers", call, told))
    cid = await talks.living.conversation()
    await page.post(f"/c/{cid}/messages", data={"text": "the flowers please"})
    return cid, (await talks.living.until(cid, "approval", state="asked")).payload["approval"]


async def test_a_card_speaks_and_what_its_person_edits_is_what_runs(talks: Talks, page: httpx.AsyncClient) -> None:
    RESULTS.clear()
    cid, request = await asked_for(talks, page, Use("cron_add", JOB, is_blind=True))
    card = (await page.get(f"/c/{cid}")).text
    assert "Needs your OK" in card
    asked = re.search(r'<h3 class="ask-q".*?</h3>', card, re.DOTALL)
    assert asked
    assert re.sub("<[^>]+>", "", asked[0]) == "Schedule “Water the flowers.” every day at 09:00?"
    assert re.search(r"<dt>Next</dt><dd[^>]*>\w{3} \d+ \w{3} 09:00", card)
    assert f'href="/approvals/{request}/edit?back=/c/{cid}"' in card
    form = (await page.get(f"/approvals/{request}/edit?back=/c/{cid}")).text
    assert 'for="f-when"' in form
    assert marks(form).values["a.when"] == "every day at 9"
    assert form.index("<button hidden disabled>") < form.index('value="deny"'), "Enter in a field presses nothing"
    assert re.search(r'value="deny"[^>]* autofocus', form)

    fields = {"a.prompt": "Water the flowers.", "a.when": "when it suits", "choice": "changed", "back": f"/c/{cid}"}
    wrong = await page.post(f"/approvals/{request}/edit", data=fields)
    assert wrong.status_code == 422
    assert marks(wrong).values["a.when"] == "when it suits"
    assert "when it suits" in html.unescape(re.findall(r'role="alert"[^>]*>(.*?)</', wrong.text, re.DOTALL)[0])
    assert 'aria-invalid="true"' in (await page.post(f"/approvals/{request}/edit", data={**fields, "a.when": ""})).text

    done = await page.post(f"/approvals/{request}/edit", data={**fields, "a.when": "every Friday at 8"})
    assert done.headers["location"] == f"/c/{cid}"
    turn = await talks.ended(cid)
    calls = [part for part in turn.parts if isinstance(part, CallCard)]
    assert [(call.state, call.decision) for call in calls] == [("ok", "changed")]
    assert "every Friday at 08:00" in calls[0].title
    assert json.loads(calls[0].arguments)["when"] == "every Friday at 8"
    assert "changed the arguments" in RESULTS[-1]
    assert "every Friday at 08:00" in RESULTS[-1]
    assert "changed and allowed" in (await page.get(f"/c/{cid}")).text
    assert "was answered" in (await page.get(f"/approvals/{request}/edit")).text


async def test_a_request_can_be_denied_from_the_form_and_returns_to_no_foreign_place(
    talks: Talks, page: httpx.AsyncClient
) -> None:
    cid, request = await asked_for(talks, page, Use("cron_add", JOB, is_blind=True))
    denied = await page.post(f"/approvals/{request}/edit", data={"choice": "deny", "back": "//evil.example/"})
    assert denied.headers["location"] == "/"
    card = next(part for part in (await talks.ended(cid)).parts if isinstance(part, CallCard))
    assert card.state == "refused"
    shown = (await page.get(f"/c/{cid}")).text
    assert card.words in shown
    assert "without it" not in shown, "what is for the model reaches no person"


async def test_a_request_that_was_set_aside_is_answered_on_its_card_and_one_that_ran_out_is_asked_again(
    talks: Talks, page: httpx.AsyncClient
) -> None:
    talks.model.rules.insert(0, rule("meanwhile", "Of course."))
    cid, request = await asked_for(talks, page, Use("cron_add", JOB, is_blind=True))
    await page.post(f"/c/{cid}/messages", data={"text": "what else meanwhile?"})
    assert (await talks.ended(cid)).text == "what else meanwhile?"
    shown = (await page.get(f"/c/{cid}")).text
    assert f'action="/approvals/{request}"' in shown, "it can still be answered"
    assert f'data-looked="{request}"' in shown
    assert "Waits until" in shown
    assert (await page.post(f"/approvals/{request}/looked")).status_code == 204
    await page.post(f"/approvals/{request}", data={"choice": "once", "back": f"/c/{cid}"})
    await talks.living.until(cid, "tool.result", state="ok")
    shown = (await page.get(f"/c/{cid}")).text
    assert "You allowed: Schedule" in shown
    assert "on below</small>" in shown, "not that it was not run"
    assert "I have now allowed" not in shown, "what is for the model reaches no person"


async def test_a_request_that_a_stop_closed_is_asked_again_by_a_button(talks: Talks, page: httpx.AsyncClient) -> None:
    cid, request = await asked_for(talks, page, Use("cron_add", JOB, is_blind=True))
    await page.post(f"/c/{cid}/stop")
    shown = (await page.get(f"/c/{cid}")).text
    assert f'action="/approvals/{request}/again"' in shown
    assert "outcome unknown" not in shown, "it never began"
    asked = await page.post(f"/approvals/{request}/again", data={"back": f"/c/{cid}"})
    assert asked.headers["location"] == f"/c/{cid}"
    made = (await talks.turns(cid))[-1]
    again = (await talks.living.until(cid, "approval", state="asked", turn=made.id)).payload["approval"]
    shown = (await page.get(f"/c/{cid}")).text
    assert "again: Schedule" in shown
    assert f'action="/approvals/{again}"' in shown
    assert f'action="/approvals/{request}/again"' not in shown
    assert (await page.post(f"/approvals/{request}/again")).status_code == 409
