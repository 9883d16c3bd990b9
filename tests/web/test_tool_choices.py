"""What a person chooses of tools for one chat, reports of a wrong choice, and what a model does not take."""

import html
import io
import re
from urllib.parse import urlencode

import httpx
from PIL import Image

from cortex.services.models.files import FileTold
from cortex.services.workshop.learning import NOT_NEEDED
from cortex.storage.learning import AnswersRepository
from tests.scripted_server import Fault, Use, rule
from tests.web.marks import marks
from tests.web.talks import LAMP, Talks

LEARN = "/admin/tools/learn"
NEVER = "you chose “never” for this chat"


async def begun(page: httpx.AsyncClient, **fields: str) -> str:
    """The new conversation that this message begins."""
    answer = await page.post("/c/new/messages", data={"mode": "auto", **fields})
    return answer.headers["location"].rpartition("/")[2]


def chosen(page: str) -> dict[str, str]:
    """Tool -> what its select says, of those that say something."""
    selects = re.findall(r'<select name="use\.(\w+)".*?</select>', page, re.DOTALL)
    picked = re.findall(r'name="use\.(\w+)"(?:(?!</select>).)*?value="(\w+)" selected', page, re.DOTALL)
    assert len(selects) == len(set(selects))
    return dict(picked)


async def test_a_choice_made_on_a_draft_goes_along_holds_and_is_revoked(talks: Talks, page: httpx.AsyncClient) -> None:
    talks.model.rules = [rule("descale", Use("task_create", {"title": "lamp"}, is_blind=True), "It is off here.")]
    fields = {"use.git_log": "always", "use.task_create": "never"}
    draft = (
        await page.post("/why", data={"text": LAMP, "mode": "auto", **fields}, headers={"HX-Request": "true"})
    ).text
    assert chosen(draft) == {"git_log": "always", "task_create": "never"}
    assert 'form="composer"' in draft
    cid = await begun(page, text=LAMP, **fields)
    turn = await talks.ended(cid)
    (receipt,) = (await talks.living.receipts(cid))[:1]
    sent = {one["name"]: one["reason"] for one in receipt["sent"]}
    assert "“always”" in sent["git_log"]
    assert "task_create" not in sent
    assert "task_create" not in receipt["reachable"]
    assert "reminders_add" in sent
    (result,) = await talks.living.events(cid, "tool.result")
    assert result.payload["state"] == "refused"
    assert "“never”" in result.payload["text"]
    told = (await page.get(f"/turns/{turn.key}/why?c={cid}")).text
    assert chosen(told) == {"git_log": "always", "task_create": "never"}
    assert NEVER in told
    assert f'action="/c/{cid}/tools"' in told
    answer = await page.post(f"/c/{cid}/tools", data={"use.git_log": "", "use.task_create": "never"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/c/{cid}")
    kept = (await page.get(f"/c/{cid}/export.json")).json()["tool_choices"]
    assert kept == {"task_create": "never"}
    branch = (await page.post(f"/c/{cid}/branch/{turn.key}")).headers["location"].rpartition("/")[2]
    assert (await page.get(f"/c/{branch}/export.json")).json()["tool_choices"] == kept


async def test_a_choice_of_no_tool_or_in_a_strangers_chat_is_refused(talks: Talks, page: httpx.AsyncClient) -> None:
    cid = talks.held.kitchen
    for fields in ({"use.ghost": "always"}, {"use.tool_call": "never"}, {"use.git_log": "perhaps"}):
        assert (await page.post(f"/c/{cid}/tools", data=fields)).status_code == 422
        refused = await page.post("/c/new/messages", data={"text": "Keep my words", "mode": "auto", **fields})
        assert refused.status_code == 422
        assert "Keep my words" in refused.text
    theirs = await talks.living.conversation(talks.living.member)
    assert (await page.post(f"/c/{theirs}/tools", data={"use.git_log": "always"})).status_code == 404


async def test_reports_are_seen_on_the_learn_page_and_answered_there(talks: Talks, page: httpx.AsyncClient) -> None:
    key, place = talks.held.keys[-1], f"/turns/{talks.held.keys[-1]}/report"
    receipt = (await talks.living.receipts(talks.held.kitchen))[1]
    carried = (*receipt["sent"], *receipt["noted"])
    unneeded = next(
        one["name"] for one in carried if one.get("category", "tasks") == "tasks" and one["name"][:4] == "task"
    )
    told = (await page.get(f"/turns/{key}/why?c={talks.held.kitchen}")).text
    assert f'<option value="unneeded {unneeded}">' in told
    assert "missing git_log" in told
    for wrong in (f"unneeded {unneeded}", "missing git_log", "missing git_log"):
        assert (await page.post(place, data={"wrong": wrong})).status_code == 303
    for wrong in ("", "missing", f"missing {unneeded}", "unneeded git_log"):
        assert (await page.post(place, data={"wrong": wrong})).status_code == 422
    assert (await page.post(place, data={"wrong": "missing ghost"})).status_code == 404
    shown = re.sub(r"\s+", " ", (await page.get(LEARN)).text)
    assert "reported as missing" in shown
    assert "Reported as not" in shown
    named = rf'name="tool" value="{unneeded}"><input type="hidden" name="wording" value="(\w+)"'
    wording = re.findall(named, shown)[0]
    answer = await page.post(LEARN, data={"do": "agree", "tool": unneeded, "wording": wording})
    assert answer.status_code == 303
    assert unneeded not in re.findall(r'name="tool" value="(\w+)"', (await page.get(LEARN)).text)
    house = talks.living.cortex
    (kept,) = await house.runtime.db.repository(AnswersRepository).all()
    assert (kept.kind, kept.tool, kept.text) == (NOT_NEEDED, unneeded, LAMP)
    assert [(case.text, case.not_tools) for case in await house.refits.cases()] == [(LAMP, (unneeded,))]
    await page.post(LEARN, data={"do": "undo", "answer": kept.id})
    assert unneeded in re.findall(r'name="tool" value="(\w+)"', (await page.get(LEARN)).text)


async def test_an_admin_sees_that_others_reported_and_not_their_words(talks: Talks, page: httpx.AsyncClient) -> None:
    living = talks.living
    theirs = await living.conversation(living.member)
    turn = await living.say(theirs, LAMP, user=living.member)
    await living.cortex.reports.report(living.member, turn, "scratch_clear", is_missing=True)
    await living.cortex.reports.report(living.member, turn, "reminders_add", is_missing=False)
    shown = (await page.get(LEARN)).text
    assert LAMP not in shown
    assert "not shared" in shown
    assert 'value="agree"' not in shown


async def test_a_message_without_an_answer_saved_nothing(talks: Talks, page: httpx.AsyncClient) -> None:
    talks.model.fail(Fault(kind="status", status=401))
    cid = await begun(page, text=LAMP)
    turn = await talks.ended(cid)
    assert turn.ending
    assert turn.ending.tokens_saved == 0
    shown = (await page.get(f"/c/{cid}")).text
    foot = re.findall(r'<footer class="foot">.*?</footer>', shown, re.DOTALL)[-1]
    assert ("saved" in foot, 'class="place' in foot, "Answered" in foot) == (False, False, False)
    failure = re.findall(r'<div class="fail".*?</form>', shown, re.DOTALL)[-1]
    where = urlencode({"name": turn.model})
    assert f"/models/edit?{where}" in marks(failure).links


async def test_a_model_that_takes_no_tools_is_named_as_the_reason(talks: Talks, page: httpx.AsyncClient) -> None:
    models, user = talks.living.cortex.models, talks.living.admin
    file, version = await models.store.read(user.id)
    (model,) = file.models
    off = file.model_copy(update={"models": (model.model_copy(update={"tools": False}),)})
    await models.store.write(user.id, file, off, version)
    assert "set to take no tools" in (await page.get("/c/new")).text
    draft = {"text": LAMP, "mode": "auto"}
    assert "set to take no tools" in (await page.post("/preview-tools", data=draft)).text
    cid = await begun(page, text=LAMP)
    turn = await talks.ended(cid)
    assert turn.ending
    assert (turn.ending.tools_sent, turn.ending.tokens_saved) == (0, 0)
    for why in ((await page.post("/why", data=draft)).text, (await page.get(f"/turns/{turn.key}/why")).text):
        assert "to take no tools" in why
        assert f"/models/edit?{urlencode({'name': model.name})}" in marks(why).links
        assert "Switch to Auto" not in why
    own_choice = (await page.post("/why", data={**draft, "mode": "chat"})).text
    assert ("Switch to Auto" in own_choice, "no tools." in own_choice) == (True, False)


async def test_a_template_that_takes_no_tools_is_named_as_the_reason(talks: Talks, page: httpx.AsyncClient) -> None:
    models, user = talks.living.cortex.models, talks.living.admin
    file, version = await models.store.read(user.id)
    (model,) = file.models
    dropping = model.model_copy(update={"told": FileTold(tools=False, slots=2)})
    await models.store.write(user.id, file, file.model_copy(update={"models": (dropping,)}), version)
    assert "cannot use tools, its server says" in (await page.get("/c/new")).text
    draft = html.unescape((await page.post("/why", data={"text": LAMP, "mode": "auto"})).text)
    assert "cannot use tools" in draft
    card = (await page.get("/models")).text
    assert "cannot use them" in card
    assert "2 requests at a time" in card
    await models.send_tools(user, model.name)
    assert "cannot use them" not in (await page.get("/models")).text


async def test_a_model_of_which_nobody_knows_whether_it_sees_is_tried_and_its_refusal_is_learnt(
    talks: Talks, page: httpx.AsyncClient
) -> None:
    drawn = io.BytesIO()
    Image.new("RGB", (8, 8)).save(drawn, "PNG")
    assert "only the name" not in (await page.get("/c/new")).text
    talks.model.refuses = lambda body: (
        (400, {"error": {"message": "Unexpected part."}}) if "image_url" in str(body) else None
    )
    card = await page.post("/files", files={"files": ("photo.png", drawn.getvalue())}, headers={"HX-Request": "true"})
    cid = await begun(page, text="what is this?", attached=re.findall(r'name="attached" value="(\w+)"', card.text)[0])
    turn = await talks.ended(cid)
    assert turn.ending
    assert turn.ending.state == "done"
    assert "does not take pictures: asking again without them." in (await page.get(f"/c/{cid}")).text
    composer = (await page.get("/c/new")).text
    assert ("local/qwen cannot see pictures" in composer, "only the name" in composer) == (True, True)
    assert f"/models/edit?{urlencode({'name': 'local/qwen'})}" in marks(composer).links
