"""The page of the server's settings: what may be set, on trial and back, by whom; what stands outside is only shown."""

from pathlib import Path

import httpx
import pytest

from cortex.app import Cortex
from tests.living_house import PASSWORD as LIVING_PASSWORD
from tests.living_house import living_house
from tests.web.conftest import PASSWORD, Browser, logged_in
from tests.web.marks import marks
from web.app import create_app

HREF = "/admin/settings"
ADDRESS = "https://cortex.example.org"


async def group(browser: Browser, name: str) -> str:
    """The words of one group's form."""
    page = " ".join((await browser.get(HREF)).text.split())
    return page.split(f'id="s-{name}"')[1].split("</details>")[0]


async def saved(browser: Browser, name: str, **fields: str) -> httpx.Response:
    """The answer to a form that is sent as the page filled it, but for these."""
    page = await browser.get(HREF)
    kept = {one.removeprefix("f-"): value for one, value in marks(page).fields.items()}
    shown = await group(browser, name)
    filled = {one: value for one, value in kept.items() if f'name="{one}"' in shown and value}
    return await browser.post(f"{HREF}/{name}", **{**filled, **fields})


async def test_a_form_sets_what_was_changed_and_says_by_whom(house: Cortex, ada: Browser) -> None:
    answer = await saved(ada, "limits", upload_mb="35")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{HREF}?open=limits")
    assert house.settings.upload_mb == 35
    assert set(await house.server_settings.rows()) == {"upload_mb"}
    assert "Set here by Ada" in await group(ada, "limits")
    await ada.post(f"{HREF}/limits/undo/upload_mb")
    assert house.settings.upload_mb == 20
    await ada.post(f"{HREF}/limits/undo/upload_mb")
    await ada.post(f"{HREF}/limits/default/upload_mb")
    assert house.settings.upload_mb == 20


async def test_a_switch_that_is_off_is_sent_as_nothing(house: Cortex, ada: Browser) -> None:
    await saved(ada, "models", memory_learns="")
    assert house.settings.memory_learns is False
    await ada.post(f"{HREF}/models", memory_learns="true", max_rounds="5")
    assert house.settings.memory_learns is True


async def test_a_wrong_value_is_said_at_its_field_and_what_was_typed_stays(house: Cortex, ada: Browser) -> None:
    answer = await saved(ada, "limits", upload_mb="0", files_mb="77")
    assert answer.status_code == 422
    assert 'id="f-upload_mb-e"' in answer.text
    assert marks(answer).fields["f-files_mb"] == "77"
    assert await house.server_settings.rows() == {}


async def test_an_address_is_on_trial_until_it_is_kept(house: Cortex, ada: Browser, bob: Browser) -> None:
    await saved(ada, "address", public_url=ADDRESS)
    page = (await ada.get(HREF)).text
    assert "Does it still work?" in page
    assert f"{ADDRESS}/admin/settings" in page
    assert (await ada.http.get("/login", headers={"host": "cortex.example.org"})).status_code in (200, 303)
    assert "New settings are on trial until" in (await ada.get("/tasks")).text
    assert "on trial" not in (await bob.get("/tasks")).text
    await ada.post(f"{HREF}/trial/back")
    assert "on trial" not in (await ada.get("/tasks")).text
    assert house.settings.public_url == ""
    assert (await ada.http.get("/login", headers={"host": "cortex.example.org"})).status_code == 400
    await saved(ada, "address", public_url=ADDRESS)
    await ada.post(f"{HREF}/trial/keep")
    assert "Does it still work?" not in (await ada.get(HREF)).text
    assert house.settings.public_url == ADDRESS


async def test_trusted_proxies_want_the_password_again(house: Cortex, ada: Browser) -> None:
    without = await saved(ada, "address", trusted_proxies="10.0.0.2")
    wrong = await saved(ada, "address", trusted_proxies="10.0.0.2", password="not this one")
    for answer in (without, wrong):
        assert answer.status_code == 422
        assert 'id="f-password-e"' in answer.text
    assert not house.settings.trusted_proxies
    await saved(ada, "address", trusted_proxies="10.0.0.2", password=PASSWORD)
    assert house.settings.trusted_proxies == ("10.0.0.2",)


async def test_a_secret_is_written_and_never_shown(house: Cortex, ada: Browser) -> None:
    await saved(ada, "search", brave_api_key="very-secret-key")
    assert "applies after a restart" in await group(ada, "search")
    assert "very-secret-key" not in (await ada.get(HREF)).text
    await saved(ada, "search", searxng_url="https://search.example.org")
    row = (await house.server_settings.rows())["brave_api_key"]
    assert (row.value, row.before) == ("sealed", None)


async def test_what_is_set_outside_is_shown_with_its_place_and_has_no_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORTEX_MAX_ROUNDS", "9")
    async with living_house(tmp_path, metrics_token="a-token-of-the-environment") as house:
        token = await house.cortex.accounts.login(house.admin.name, LIVING_PASSWORD, "127.0.0.1", "browser")
        admin = await logged_in(create_app(house.cortex), house.cortex, house.admin.name, token)
        page = (await admin.get(HREF)).text
        assert "Set in the environment, which wins. Change CORTEX_MAX_ROUNDS there" in page
        assert 'name="max_rounds"' not in page
        assert "a-token-of-the-environment" not in page
        assert "CORTEX_DATABASE_URL" in page
        answer = await admin.post(f"{HREF}/models", max_rounds="3")
        assert (answer.status_code, house.cortex.settings.max_rounds) == (303, 9)


async def test_a_member_sees_and_changes_nothing(house: Cortex, bob: Browser) -> None:
    assert (await bob.get(HREF)).status_code == 403
    for place in ("limits", "limits/undo/upload_mb", "limits/default/upload_mb", "trial/keep", "trial/back"):
        assert (await bob.post(f"{HREF}/{place}", upload_mb="9")).status_code == 403
    assert house.settings.upload_mb == 20
