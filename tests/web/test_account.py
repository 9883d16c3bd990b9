"""My settings: each form changes what it says, and a refused one changes nothing."""

from fastapi import FastAPI

from cortex.app import Cortex
from tests.web.conftest import PASSWORD, Browser, logged_in


async def test_preferences_are_kept_and_shape_the_page(house: Cortex, ada: Browser) -> None:
    await ada.post(
        "/account/preferences", theme="dark", role="coder", mode="chat", max_rounds="7", time_zone="Europe/Berlin"
    )
    chosen = await house.preferences.get(ada.user)
    assert (chosen.theme, chosen.role, chosen.mode, chosen.max_rounds, chosen.keys) == (
        "dark",
        "coder",
        "chat",
        7,
        False,
    )
    assert (await house.accounts.named("Ada")).time_zone == "Europe/Berlin"
    page = await ada.get("/account")
    assert 'data-theme="dark"' in page.text
    assert 'data-keys="off"' in page.text


async def test_an_emptied_preference_is_the_default_again(house: Cortex, ada: Browser) -> None:
    await ada.post("/account/preferences", theme="dark", role="coder", keys="1", time_zone="UTC")
    await ada.post("/account/preferences", theme="", role="", keys="1", time_zone="UTC")
    chosen = await house.preferences.get(ada.user)
    assert (chosen.theme, chosen.role, chosen.max_rounds) == ("auto", "orchestrator", None)
    assert (await house.preferences.origins(ada.user))["theme"] == "default"


async def test_a_wrong_value_changes_nothing_and_says_where(house: Cortex, ada: Browser) -> None:
    answer = await ada.post("/account/preferences", theme="dark", max_rounds="99", time_zone="UTC")
    assert answer.status_code == 422
    assert 'id="f-max_rounds-e"' in answer.text
    assert (await house.preferences.get(ada.user)).theme == "auto"
    zone = await ada.post("/account/preferences", theme="dark", time_zone="Mars")
    assert 'id="f-time_zone-e"' in zone.text


async def test_the_persona_is_what_the_assistant_is_told(house: Cortex, ada: Browser) -> None:
    await ada.post("/account/persona", persona="Answer in rhymes.", version="")
    assert await house.roles.persona(ada.user) == "Answer in rhymes."
    stale = await ada.post("/account/persona", persona="Never rhyme.", version="")
    assert stale.status_code == 409
    assert "Never rhyme." in stale.text
    assert await house.roles.persona(ada.user) == "Answer in rhymes."


async def test_a_new_password_ends_the_other_logins(app: FastAPI, house: Cortex, ada: Browser) -> None:
    other = await logged_in(app, house, "Ada")
    wrong = await ada.post("/account/password", old="wrong", new="several new words here")
    assert wrong.status_code == 422
    await ada.post("/account/password", old=PASSWORD, new="several new words here")
    async with other.http:
        assert (await other.get("/tasks")).status_code == 303
    assert (await ada.get("/tasks")).status_code == 200
    assert await house.accounts.login("Ada", "several new words here", "", "")


async def test_a_login_elsewhere_can_be_ended(app: FastAPI, house: Cortex, ada: Browser) -> None:
    other = await logged_in(app, house, "Ada")
    mine = await house.accounts.logins(ada.user)
    assert (await ada.get("/account")).text.count("/end") == len(mine) == 2
    async with other.http:
        for login in mine:
            await other.post(f"/account/logins/{login.id}/end")
    assert await house.accounts.logins(ada.user) != mine


async def test_the_fragment_is_the_content_alone(ada: Browser) -> None:
    part = await ada.fragment("/account")
    assert part.status_code == 200
    assert "<html" not in part.text
    assert 'action="/account/preferences"' in part.text
