"""The health page and `/metrics`: what each check says, who may look, and that nobody is named."""

import logging
import re
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from sqlalchemy import update

from cortex.app import Cortex
from cortex.base.messages import Usage
from cortex.services.jobs.forms import JobForm
from cortex.storage.rounds import RoundsRepository
from cortex.storage.schema import JobTable
from tests.databases import house_settings
from tests.living_house import PASSWORD, LivingHouse, living_house
from tests.web.conftest import Browser, logged_in
from web.app import create_app

CLOUD = {"name": "cloud", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}
TOKEN = "metrics-0123456789abcdef"
WORDS = "truffles at midnight"
SAMPLE = re.compile(r'[a-z_]+(\{[a-z]+="[a-z_]+"(,[a-z]+="[a-z_]+")*\})? [0-9.e+-]+')


def visitor(house: Cortex) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(create_app(house)), base_url="http://localhost")


async def test_an_admin_sees_every_check_and_a_member_none(house: Cortex, ada: Browser, bob: Browser) -> None:
    page = await ada.get("/admin/health")
    names = ["Disk", "Database", "Engine", "Secret key", "Scheduler", "Running turns", "Model endpoints", "Push keys"]
    assert [name for name in [*names, "Https", "Last error"] if f"<b>{name}</b>" not in page.text] == []
    assert (await bob.get("/admin/health")).status_code == 403
    plain = await bob.get("/health")
    assert (plain.status_code, "<b>Disk</b>" in plain.text) == (200, False)


async def test_nothing_is_bad_while_a_daemon_runs_well(tmp_path: Path) -> None:
    async with living_house(tmp_path) as house:
        await house.say(await house.conversation(), "hello")
        findings = {one.name: one for one in await house.cortex.live_health.findings()}
        assert [one.name for one in findings.values() if one.state == "bad"] == []
        assert findings["running turns"].text in ("No turns running.", "1 turn running.")
        assert "Only this machine" in findings["https"].text


@pytest.mark.parametrize(("minutes", "state"), [(-5, "good"), (2, "warn"), (60, "bad")])
async def test_what_is_due_and_waits_is_seen(house: Cortex, ada: Browser, minutes: int, state: str) -> None:
    job = await house.jobs.add(ada.user, JobForm(name="late", prompt="Dig.", when="every day at 7"))
    due = house.runtime.clock() - timedelta(minutes=minutes)
    async with house.runtime.db.session_scope() as session:
        await session.execute(update(JobTable).where(JobTable.id == job.id).values(next_at=due))
    assert (await house.live_health.scheduler()).state == state
    await house.jobs.enable(ada.user, job.id, job.version, is_enabled=False)
    assert (await house.live_health.scheduler()).state == "good"


async def test_what_a_closed_account_has_waits_for_nothing(house: Cortex, bob: Browser) -> None:
    job = await house.jobs.add(bob.user, JobForm(name="late", prompt="Dig.", when="every day at 7"))
    due = house.runtime.clock() - timedelta(days=1)
    async with house.runtime.db.session_scope() as session:
        await session.execute(update(JobTable).where(JobTable.id == job.id).values(next_at=due))
    assert (await house.live_health.scheduler()).state == "bad"
    await house.accounts.set_active("Bob", False)
    assert (await house.live_health.scheduler()).state == "good"


async def test_a_model_that_failed_last_is_named_until_it_answers(tmp_path: Path) -> None:
    async with living_house(tmp_path) as house:
        live = house.cortex.live_health
        assert "No model" in (await live.models()).text
        turn = await house.say(await house.conversation(), "hello")
        rounds = house.rows(RoundsRepository)
        await rounds.failed(turn, 7, "cloud", 10)
        failed = await live.models()
        assert (failed.state, "cloud: 0 answers, 1 failures" in failed.text) == ("warn", True)
        assert failed.mend.startswith("cloud failed last")
        await rounds.answered(turn, 8, "cloud", Usage(), None)
        assert (await live.models()).state == "good"


async def test_nothing_says_all_good_while_the_last_request_to_a_model_failed(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    rounds = house.runtime.db.repository(RoundsRepository, ada.user.id)
    await rounds.begin_alone("turn:alone", role="orchestrator", channel="api")
    await rounds.failed("turn:alone", 1, "cloud", 10)
    assert "Health: all good" in (await ada.get("/tasks")).text, "a model that she does not have"
    await house.models.save(ada.user, CLOUD)
    page = (await ada.get("/health")).text
    assert "model cloud" in page
    assert ("Health: all good" in page, "Health: all good" in (await bob.get("/tasks")).text) == (False, True)
    await rounds.answered("turn:alone", 1, "cloud", Usage(), None)
    assert "Health: all good" in (await ada.get("/health")).text


async def test_what_is_not_set_up_is_neutral_and_its_card_leads_to_its_settings(ada: Browser) -> None:
    row = re.search(r"<b>Web search</b>.*?</tr>", (await ada.get("/admin/health")).text, re.S)
    assert row
    assert ("not set up" in row[0], "good" in row[0]) == (True, False)
    page = (await ada.get("/admin/integrations")).text
    card = page[page.index('id="web_search"') : page.index('id="email"')]
    assert 'href="/admin/settings?open=search"' in card
    assert "An administrator sets" not in page


async def test_the_newest_error_is_shown_without_a_secret(house: Cortex) -> None:
    assert (await house.live_health.last_error()).state == "good"
    logging.getLogger("cortex.test").error("broke with %s", house.settings.secret_key)
    finding = await house.live_health.last_error()
    assert (finding.state, finding.text.endswith("broke with [secret]")) == ("warn", True)


async def test_push_needs_its_keys_and_nothing_else(tmp_path: Path) -> None:
    async with Cortex.at_rest(house_settings(tmp_path)) as house:
        assert (await house.live_health.push()).state == "good"
    async with Cortex.at_rest(house_settings(tmp_path, secret_key="k" * 40), is_migrating=False) as house:
        assert (await house.live_health.push()).state == "bad"


async def test_a_public_address_that_does_not_answer_is_said(tmp_path: Path) -> None:
    async with Cortex.at_rest(house_settings(tmp_path, public_url="http://127.0.0.1:1")) as house:
        finding = await house.live_health.proxy()
        assert (finding.state, "does not answer this machine" in finding.text) == ("warn", True)


async def test_the_settings_page_tells_of_a_secret_only_that_it_is_set(tmp_path: Path) -> None:
    async with living_house(tmp_path, metrics_token=TOKEN) as house:
        token = await house.cortex.accounts.login(house.admin.name, PASSWORD, "127.0.0.1", "browser")
        admin = await logged_in(create_app(house.cortex), house.cortex, house.admin.name, token)
        page = (await admin.get("/admin/settings")).text
    assert "CORTEX_METRICS_TOKEN" in page
    assert TOKEN not in page


async def test_without_a_token_there_are_no_metrics(house: Cortex) -> None:
    async with visitor(house) as asking:
        assert (await asking.get("/metrics")).status_code == 404
        assert (await asking.get("/metrics", headers={"Authorization": "Bearer "})).status_code == 404


async def measured(house: LivingHouse, token: str = TOKEN) -> httpx.Response:
    async with visitor(house.cortex) as asking:
        return await asking.get("/metrics", headers={"Authorization": f"Bearer {token}"})


async def test_metrics_count_and_name_nobody(tmp_path: Path) -> None:
    async with living_house(tmp_path, metrics_token=TOKEN) as house:
        cid = await house.conversation()
        turn = await house.say(cid, f"add {WORDS} to my shopping list")
        assert (await measured(house, TOKEN + "x")).status_code == 401
        answer = await measured(house)
        lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
        assert [line for line in lines if not SAMPLE.fullmatch(line)] == []
        values = dict(line.rsplit(" ", 1) for line in lines)
        assert float(values['cortex_turns{state="done"}']) == 1
        assert float(values['cortex_calls{state="done"}']) == 1
        assert float(values['cortex_model_calls_total{state="answered"}']) >= 2
        assert float(values['cortex_model_tokens_total{kind="output"}']) > 0
        for word in ("ada", "bob", house.admin.id, cid, turn, "truffles", "shopping", TOKEN, str(tmp_path)):
            assert word not in answer.text, word
        kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", answer.text, re.MULTILINE))
        assert {re.split(r"[{ ]", line)[0] for line in lines} <= kinds.keys()
        assert {name for name, kind in kinds.items() if kind == "counter" and not name.endswith("_total")} == set()
