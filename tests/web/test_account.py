"""My settings: each form changes what it says, and a refused one changes nothing."""

from datetime import timedelta

from fastapi import FastAPI
from markupsafe import escape

from cortex.app import Cortex
from cortex.services.roles.roles import PERSONA
from cortex.storage.approvals import GrantsRepository
from tests.web.conftest import PASSWORD, Browser, logged_in


async def test_preferences_are_kept_and_shape_the_page(house: Cortex, ada: Browser) -> None:
    await ada.post("/account/preferences", theme="dark", time_zone="Europe/Berlin")
    await ada.post("/account/start", role="coder", mode="chat", max_rounds="7")
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
    await ada.post("/account/preferences", theme="dark", keys="1", time_zone="UTC")
    await ada.post("/account/preferences", theme="", keys="1", time_zone="UTC")
    await ada.post("/account/start", role="coder", max_rounds="7")
    await ada.post("/account/start", role="")
    chosen = await house.preferences.get(ada.user)
    assert (chosen.theme, chosen.role, chosen.max_rounds) == ("auto", "orchestrator", None)
    assert (await house.preferences.origins(ada.user))["theme"] == "default"


async def test_a_wrong_value_changes_nothing_and_says_where(house: Cortex, ada: Browser) -> None:
    answer = await ada.post("/account/start", role="coder", max_rounds="99")
    assert answer.status_code == 422
    assert 'id="f-max_rounds-e"' in answer.text
    assert 'value="99"' in answer.text
    zone = await ada.post("/account/preferences", theme="dark", time_zone="Mars")
    assert 'id="f-time_zone-e"' in zone.text
    assert "&#39;Mars&#39; is not a time zone" in zone.text
    chosen = await house.preferences.get(ada.user)
    assert (chosen.role, chosen.theme) == ("orchestrator", "auto")


async def test_a_city_typed_as_the_hint_says_is_taken(house: Cortex, ada: Browser) -> None:
    assert "Type a city, such as Berlin." in (await ada.get("/account")).text
    await ada.post("/account/preferences", time_zone="Berlin")
    assert (await house.accounts.named("Ada")).time_zone == "Europe/Berlin"


async def test_a_name_and_a_password_that_were_refused_say_so_beside_their_field(ada: Browser) -> None:
    wrong = await ada.post("/account/password", old="wrong", new="several new words here")
    assert 'aria-describedby="f-old-e"' in wrong.text
    weak = await ada.post("/account/password", old=PASSWORD, new="short")
    assert 'aria-describedby="f-new-e f-new-h"' in weak.text


async def test_what_was_allowed_is_listed_and_can_be_taken_back(house: Cortex, ada: Browser) -> None:
    assert "None. When you allow" in (await ada.get("/account")).text
    conversation = await house.conversations.new(ada.user)
    later = house.runtime.clock() + timedelta(hours=1)
    grants = house.runtime.db.repository(GrantsRepository, ada.user.id)
    made = await grants.add("shell_exec", "df -h #ab12", conversation.id, later)
    assert "df -h #ab12" in (await ada.get("/account")).text
    await ada.post(f"/account/grants/{made.id}/revoke")
    assert await grants.list() == []


async def test_the_persona_in_force_is_shown_while_there_is_no_own_one(ada: Browser) -> None:
    assert f'placeholder="{escape(PERSONA)}"' in (await ada.get("/account")).text
    await ada.post("/account/persona", persona="Answer in rhymes.", version="")
    page = (await ada.get("/account")).text
    assert ">Answer in rhymes." in page
    assert "Clear it and save" in page


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
    assert (await ada.get("/account")).text.count("/end") == len(mine) - 1 == 1, "this very login is ended by Log out"
    async with other.http:
        for login in mine:
            await other.post(f"/account/logins/{login.id}/end")
    assert await house.accounts.logins(ada.user) != mine


async def test_the_fragment_is_the_content_alone(ada: Browser) -> None:
    part = await ada.fragment("/account")
    assert part.status_code == 200
    assert "<html" not in part.text
    assert 'action="/account/preferences"' in part.text
