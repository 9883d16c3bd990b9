"""The first day's questions: tried on their page, and in a new chat until they are hidden."""

import asyncio
import re
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from msgspec.structs import replace

from cortex.app import Cortex
from cortex.base.errors import UserError
from cortex.services.accounts.device_links import DEVICE_LINK_LIFE
from cortex.services.health.first_steps import FirstSteps
from cortex.storage.accounts import AccountsRepository
from tests.databases import house_settings
from tests.web.conftest import PASSWORD, Browser, browser
from web.security import COOKIE, SECURE_COOKIE

EVERYWHERE = "0.0.0.0"  # noqa: S104 - as the page sets it
MODEL = {"name": "local", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}


async def test_each_question_is_done_only_when_its_answer_was_tried(house: Cortex, ada: Browser, bob: Browser) -> None:
    page = (await ada.get("/start")).text
    assert "Hello Ada. Four questions." in page
    assert "Set-up: 1 of 4" in (await ada.get("/c/new")).text
    await house.models.save(ada.user, MODEL)
    assert "Added, not tried" in (await ada.get("/start")).text
    assert state_of(await house.first_steps.all(ada.user)) == {
        "open": "todo",
        "notify": "todo",
        "model": "found",
        "people": "works",  # Bob chose a password
    }
    member = (await bob.get("/start")).text
    assert "Hello Bob. Two questions." in member
    assert ("How will others open this?" in member, "Who else?" in member) == (False, False)


def polled(page: str) -> str:
    """Return where the page asks for its states."""
    found = re.search(r'hx-get="(/start/states[^"]*)"', page)
    assert found
    return found[1].replace("&amp;", "&")


def state_of(first: FirstSteps) -> dict[str, str]:
    return {step.name: step.state for step in first.steps}


async def test_who_wants_nobody_else_says_so(house: Cortex, ada: Browser) -> None:
    assert (await ada.post("/start/open", way="here")).status_code == 303
    assert state_of(await house.first_steps.all(ada.user))["open"] == "works"
    assert "This machine only" in (await ada.get("/start")).text


async def test_opening_it_to_the_network_sets_what_that_needs_and_is_done_when_a_phone_came(
    house: Cortex, ada: Browser
) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(house.restarts.until_due())
        await asyncio.sleep(0)  # whoever serves waits for it now
        page = await ada.post("/start/open", way="network")
        assert (page.status_code, "Cortex restarts" in page.text) == (200, True)
    assert house.restarts.is_asked
    texts = {name: row.value for name, row in (await house.server_settings.rows()).items()}
    assert texts == {"host": EVERYWHERE, "allow_plain_http": "lan"}
    house.settings.hold({"host": EVERYWHERE, "allow_plain_http": "lan"})  # as the start behind it does
    opening = house.first_steps.opening
    assert (await opening.look(8484)).works is False
    await house.accounts.login("Ada", PASSWORD, "192.168.1.30", "Mozilla/5.0 (Linux; Android 15) Firefox/140.0")
    seen = await opening.look(8484)
    assert (seen.way, seen.works, "Firefox" in seen.agent) == ("network", True, True)


async def test_a_name_with_https_is_set_without_a_restart_and_a_wrong_one_is_refused(
    house: Cortex, ada: Browser
) -> None:
    for wrong in ("", "no name", "a/b", "localhost", "-x.example.org", "cortex.example.org/path"):
        refused = await ada.post("/start/open", way="anywhere", name=wrong)
        assert (refused.status_code, "Write a host name" in refused.text) == (422, True), wrong
    await ada.post("/start/open", way="anywhere", name="https://Cortex.example.org/")
    assert (house.settings.public_url, house.settings.trusted_proxies) == (
        "https://cortex.example.org",
        ("127.0.0.1",),
    )
    page = (await ada.get("/start?open=open")).text
    assert ("cortex.example.org {" in page, "unless you keep it" in page) == (True, True)
    await ada.post("/start/keep")
    assert "unless you keep it" not in (await ada.get("/start")).text
    tested = (await ada.post("/start/test")).text
    assert "does not answer this machine" in tested, "what is missing is said"
    assert state_of(await house.first_steps.all(ada.user))["open"] == "waiting"
    await house.opening.note(ada.user, "https://cortex.example.org", "a phone")
    assert state_of(await house.first_steps.all(ada.user))["open"] == "works"


async def test_an_admin_who_came_by_the_new_address_has_shown_that_it_works_so_it_stays(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    await ada.post("/start/open", way="anywhere", name="cortex.example.org")
    page = (await ada.get("/start")).text
    assert ("unless you keep it" in page, "New settings are on trial" in page) == (True, False), "asked in one place"

    async def come(who: Browser) -> httpx.Response:
        cookie = {"cookie": f"{SECURE_COOKIE}={who.http.cookies[COOKIE]}"}
        return await who.http.get("https://cortex.example.org/start", headers=cookie)

    assert "Hello Bob" in (await come(bob)).text
    assert "unless you keep it" in (await ada.get("/start")).text, "only who may change it keeps it"
    came = await come(ada)
    assert (came.status_code, "unless you keep it" in came.text) == (200, False)
    assert house.server_settings.trial_ends_at is None
    assert house.settings.public_url == "https://cortex.example.org"


async def test_what_was_given_outside_is_not_asked_for_and_says_so(tmp_path: Path) -> None:
    async with Cortex.at_rest(house_settings(tmp_path / "given", public_url="https://given.example")) as house:
        with pytest.raises(UserError, match="CORTEX_PUBLIC_URL is set outside"):
            house.opening.changes("here")


async def test_a_code_logs_one_more_device_in_once_and_sets_no_password(
    house: Cortex, app: FastAPI, ada: Browser
) -> None:
    here = await ada.post("/start/device", open="notify")
    assert (here.status_code, "/join#" in here.text) == (422, False), "nobody else can open it"
    house.settings.hold({"public_url": "https://localhost"})
    page = (await ada.post("/start/device", open="notify")).text
    found = re.search(r"/join#([\w-]+)", page)
    assert found
    assert '<span class="qr" role="img"' in page
    assert found.group(1) not in (await ada.get("/start")).text
    async with browser(app) as phone:
        assert (await phone.get("/join")).status_code == 200
        assert (await phone.post("/welcome", data={"token": found.group(1), "password": PASSWORD})).status_code == 422
        came = await phone.post("/join", data={"token": found.group(1)})
        assert came.headers["location"] == "/start?open=notify"
        assert "Hello Ada" in (await phone.get("/start")).text
        assert (await phone.get("/admin/users")).headers["location"].startswith("/confirm"), "the password is not given"
    async with browser(app) as late:
        again = await late.post("/join", data={"token": found.group(1)})
        assert (again.status_code, "used already" in again.text) == (403, True)


async def test_whoever_is_logged_in_is_not_made_somebody_else_by_a_code(
    house: Cortex, app: FastAPI, ada: Browser, bob: Browser
) -> None:
    token = await house.device_links.new(bob.user)
    answer = await ada.post("/join", token=token)
    assert answer.status_code == 403
    assert "You are logged in as Ada" in answer.text
    assert "set-cookie" not in answer.headers
    async with browser(app) as phone:
        assert (await phone.post("/join", data={"token": token})).status_code == 303, "it is not used up"


async def test_a_code_for_a_device_ends_with_the_password_and_in_ten_minutes(
    house: Cortex, app: FastAPI, ada: Browser
) -> None:
    token = await house.device_links.new(ada.user)
    await house.accounts.sign_out_everywhere(ada.http.cookies[COOKIE])
    assert await house.device_links.owner(token) is None
    newer = await house.device_links.new(ada.user)
    assert await house.device_links.owner(newer) == ada.user
    later = replace(house.device_links, clock=lambda: house.runtime.clock() + DEVICE_LINK_LIFE)
    late = AccountsRepository(house.runtime.db, clock=later.clock)
    assert await late.link(newer, "device") is None


async def test_somebody_is_invited_by_a_code_and_the_question_is_done_when_they_came(
    house: Cortex, ada: Browser, visitor: httpx.AsyncClient
) -> None:
    await house.accounts.set_active("Bob", False)
    assert state_of(await house.first_steps.all(ada.user))["people"] == "todo"
    page = (await ada.post("/start/invite", name="Mia")).text
    link = re.search(r"/welcome#([\w-]+)", page)
    assert link
    assert ("Let Mia scan this" in page, "Waiting for Mia" in page) == (True, True)
    assert "on this computer only" in page, "nobody else can open it yet"
    assert (await ada.post("/start/invite", name="Mia")).status_code == 409
    assert "#answer" not in (await ada.fragment(polled(page))).text, "the code stays until it was used"
    await visitor.post("/welcome", data={"token": link.group(1), "password": PASSWORD})
    assert state_of(await house.first_steps.all(ada.user))["people"] == "works"
    assert "Mia is in." in (await ada.fragment(polled(page))).text
    second = (await ada.post("/start/invite", name="Ola")).text
    assert "#answer" not in (await ada.fragment(polled(second))).text, "that Mia came says nothing of Ola"
    states = (await ada.fragment("/start/states?was=here")).text
    assert 'hx-target="#state-people"' in states
    assert "Mia" in states


async def test_a_page_that_waits_loads_itself_anew_once_another_way_is_open(ada: Browser) -> None:
    assert "hx-redirect" not in (await ada.fragment("/start/states?was=here")).headers
    assert (await ada.fragment("/start/states?was=network")).headers["hx-redirect"] == "/start?open=open"


async def test_a_phone_is_asked_for_itself_and_scans_nothing(ada: Browser) -> None:
    desk = (await ada.get("/start")).text
    assert ("This phone" in desk, "A phone" in desk) == (False, True)
    ada.http.headers["User-Agent"] = "Mozilla/5.0 (Linux; Android 15; Mobile) Firefox/140.0 Mobi"
    phone = (await ada.get("/start")).text
    assert ("This phone" in phone, "A phone" in phone) == (True, False)


async def test_where_nobody_can_restart_it_nothing_is_changed(house: Cortex, ada: Browser) -> None:
    refused = await ada.post("/start/open", way="network")
    assert (refused.status_code, "restart them" in refused.text) == (422, True)
    assert await house.server_settings.rows() == {}


async def test_mail_is_done_when_a_test_went_out(house: Cortex, ada: Browser) -> None:
    refused = await ada.post("/start/tell", channel="email", address="ada@example.org")
    assert refused.status_code in (422, 200)
    assert state_of(await house.first_steps.all(ada.user))["notify"] == "todo"


async def test_who_hides_the_questions_meets_them_no_more_in_a_new_chat(ada: Browser) -> None:
    await ada.post("/start", hidden="1")
    assert "Set-up:" not in (await ada.get("/c/new")).text
    assert "Show this on" in (await ada.get("/start")).text
    await ada.post("/start")
    assert "Set-up:" in (await ada.get("/c/new")).text


async def test_a_code_that_came_by_the_link_is_asked_for_once(
    empty_house: Cortex, first_visitor: httpx.AsyncClient
) -> None:
    good = await empty_house.accounts.setup_link()
    field = 'id="f-token"'
    assert field in (await first_visitor.get("/setup")).text
    again = await first_visitor.post("/setup", data={"token": good, "name": "", "password": PASSWORD})
    assert field not in again.text
    assert again.text.count(f'<input type="hidden" name="token" value="{good}">') == 2
    dead = await first_visitor.post("/setup", data={"token": "dead", "name": "Ada", "password": PASSWORD})
    assert field in dead.text


async def test_one_round_says_that_it_carries_no_tools(ada: Browser) -> None:
    words = {"text": "add milk to my shopping list", "mode": "auto"}
    assert "tool" in (await ada.http.post("/preview-tools", data={**words, "max_rounds": "2"})).text
    one = {**words, "max_rounds": "1"}
    assert "One round is the answer itself: no tools" in (await ada.http.post("/preview-tools", data=one)).text
    assert "One round:" in (await ada.http.post("/why", data=one)).text
    assert "One round" not in (await ada.http.post("/preview-tools", data={**words, "max_rounds": "2"})).text
    assert (await ada.http.post("/preview-tools", data={**words, "max_rounds": "many"})).status_code == 200
