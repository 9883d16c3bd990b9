"""The first steps: what is done and what is left, on a page of their own and in a new chat until they are hidden."""

import httpx

from cortex.app import Cortex
from tests.web.conftest import PASSWORD, Browser

MODEL = {"name": "local", "provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9/v1"}


async def test_the_steps_say_what_is_done_and_what_is_left(house: Cortex, ada: Browser, bob: Browser) -> None:
    (house.settings.home / "secret.key").touch()
    page = (await ada.get("/start")).text
    assert "1 of 5" in page
    assert "Set-up: 1 of 5" in (await ada.get("/c/new")).text
    assert "1 of 4" in (await bob.get("/start")).text
    assert "Integrations" not in (await bob.get("/start")).text
    for tip in ("Set CORTEX_BACKUP_TO", "Set CORTEX_BACKUP_PASSPHRASE", "Keep a copy of secret.key"):
        assert (tip in page, tip in (await bob.get("/start")).text) == (True, False)
    await house.models.save(ada.user, MODEL)
    await house.conversations.new(ada.user)
    assert "3 of 5" in (await ada.get("/start")).text


async def test_who_hides_the_steps_meets_them_no_more_in_a_new_chat(ada: Browser) -> None:
    await ada.post("/start", hidden="1")
    assert "Set-up:" not in (await ada.get("/c/new")).text
    assert "Show this in" in (await ada.get("/start")).text
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
    assert "round, no tools" in (await ada.http.post("/preview-tools", data=one)).text
    assert "One round:" in (await ada.http.post("/why", data=one)).text
    assert "one round" not in (await ada.http.post("/preview-tools", data={**one, "mode": "chat"})).text
    assert (await ada.http.post("/preview-tools", data={**words, "max_rounds": "many"})).status_code == 200
