"""My settings: each form changes what it says, and a refused one changes nothing."""

import re
from datetime import timedelta

from fastapi import FastAPI
from markupsafe import escape

from cortex.app import Cortex
from cortex.base.messages import Usage
from cortex.services.api.tokens import TOLD
from cortex.services.jobs.forms import JobForm
from cortex.services.roles.roles import PERSONA
from cortex.storage.api_tokens import ApiTokensRepository
from cortex.storage.approvals import GrantsRepository
from cortex.storage.preferences import PreferencesRepository
from cortex.storage.rounds import RoundsRepository
from cortex.storage.shared_lists import SharedListsRepository
from tests.sharing import share
from tests.web.conftest import PASSWORD, Browser, logged_in
from tests.web.marks import marks
from web.pages.sign_in import ENDS


async def test_preferences_are_kept_and_shape_the_page(house: Cortex, ada: Browser) -> None:
    await ada.post("/account/look", theme="dark")
    await ada.post("/account/you", time_zone="Europe/Berlin")
    await ada.post("/account/chats", role="coder", mode="chat", max_rounds="7")
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


async def test_a_text_size_is_on_every_page_and_costs_nobody_else_anything(ada: Browser, bob: Browser) -> None:
    await ada.post("/account/look", text_size="large")
    for path in ("/account/look", "/today", "/tasks", "/c/new"):
        page = (await ada.get(path)).text
        assert ('data-size="large"' in page, page.count("/size.css")) == (True, 1), path
    assert "data-size" not in (await bob.get("/today")).text
    assert "/size.css" not in (await bob.get("/today")).text
    assert 'value="large" checked' in (await ada.get("/account/look")).text
    assert (await ada.post("/account/look", text_size="giant")).status_code == 422
    await ada.post("/account/look", text_size="")
    assert "data-size" not in (await ada.get("/today")).text


async def test_a_chat_follows_its_answers_only_where_that_is_wanted(ada: Browser) -> None:
    assert "/follow.js" not in (await ada.get("/c/new")).text
    await ada.post("/account/look", follows="1")
    assert "/follow.js" in (await ada.get("/c/new")).text


async def test_an_emptied_preference_is_the_default_again(house: Cortex, ada: Browser) -> None:
    await ada.post("/account/look", theme="dark", keys="1")
    await ada.post("/account/look", theme="", keys="1")
    await ada.post("/account/chats", role="coder", max_rounds="7")
    await ada.post("/account/chats", role="")
    chosen = await house.preferences.get(ada.user)
    assert (chosen.theme, chosen.role, chosen.max_rounds) == ("auto", "orchestrator", None)
    assert (await house.preferences.origins(ada.user))["theme"] == "default"


async def test_a_wrong_value_changes_nothing_and_says_where(house: Cortex, ada: Browser) -> None:
    answer = await ada.post("/account/chats", role="coder", max_rounds="99")
    assert answer.status_code == 422
    assert 'id="f-max_rounds-e"' in answer.text
    assert 'value="99"' in answer.text
    zone = await ada.post("/account/you", time_zone="Mars")
    assert 'id="f-time_zone-e"' in zone.text
    assert "&#39;Mars&#39;" in zone.text
    chosen = await house.preferences.get(ada.user)
    assert chosen.role == "orchestrator"


async def test_a_city_typed_as_the_hint_says_is_taken(house: Cortex, ada: Browser) -> None:
    assert "such as Berlin" in (await ada.get("/account")).text
    await ada.post("/account/you", time_zone="Berlin")
    assert (await house.accounts.named("Ada")).time_zone == "Europe/Berlin"


async def test_a_name_and_a_password_that_were_refused_say_so_beside_their_field(ada: Browser) -> None:
    wrong = await ada.post("/account/password", old="wrong", new="several new words here")
    assert 'aria-describedby="f-old-e"' in wrong.text
    weak = await ada.post("/account/password", old=PASSWORD, new="short")
    assert 'aria-describedby="f-new-e f-new-h"' in weak.text


async def test_what_was_allowed_is_listed_and_can_be_taken_back(house: Cortex, ada: Browser) -> None:
    assert "None. When" in (await ada.get("/account/keys")).text
    conversation = await house.conversations.new(ada.user)
    later = house.runtime.clock() + timedelta(hours=1)
    grants = house.runtime.db.repository(GrantsRepository, ada.user.id)
    made = await grants.add("shell_exec", "df -h #ab12", conversation.id, later)
    assert "df -h #ab12" in (await ada.get("/account/keys")).text
    await ada.post(f"/account/grants/{made.id}/revoke")
    assert await grants.list() == []


async def test_the_persona_in_force_is_shown_while_there_is_no_own_one(ada: Browser) -> None:
    assert f'placeholder="{escape(PERSONA)}"' in (await ada.get("/account/chats")).text
    await ada.post("/account/persona", persona="Answer in rhymes.", version="")
    page = (await ada.get("/account/chats")).text
    assert ">Answer in rhymes." in page
    assert "Clear it" in page


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
    assert (await ada.get("/account/sign-in")).text.count("/end") == len(mine) - 1 == 1, (
        "this very login is ended by Log out"
    )
    async with other.http:
        for login in mine:
            await other.post(f"/account/logins/{login.id}/end")
    assert await house.accounts.logins(ada.user) != mine


async def test_the_fragment_is_the_content_alone(ada: Browser) -> None:
    part = await ada.fragment("/account/look")
    assert part.status_code == 200
    assert "<html" not in part.text
    assert 'action="/account/look"' in part.text


async def test_each_section_has_an_address_and_the_list_marks_it(ada: Browser) -> None:
    for name in ("you", "look", "chats", "notifications", "sign-in", "keys", "data"):
        page = (await ada.get(f"/account/{name}")).text
        assert page.count('aria-current="page">') >= 1, name
        assert re.search(rf'href="/account/{name}" aria-current="page"', page), name
    assert 'class="acc home"' in (await ada.get("/account")).text, "a phone shows the list there"


async def test_what_changes_saves_itself_and_says_so_in_its_place(house: Cortex, ada: Browser) -> None:
    script = {"HX-Request": "true", "HX-Request-Type": "partial"}
    part = await ada.http.post("/account/look", data={"theme": "dark", "engine": "1"}, headers=script)
    assert part.status_code == 200
    assert (">Saved" in part.text, "<html" in part.text) == (True, False)
    assert (await house.preferences.get(ada.user)).theme == "dark"
    wrong = await ada.http.post("/account/you", data={"time_zone": "Mars"}, headers=script)
    assert (wrong.status_code, 'id="f-time_zone-e"' in wrong.text, "Saved" in wrong.text) == (422, True, False)
    plain = await ada.post("/account/look", theme="light")
    assert (plain.status_code, plain.headers["location"]) == (303, "/account/look")
    for name in ("you", "look", "chats", "data"):
        page = (await ada.get(f"/account/{name}")).text
        assert f'hx-post="/account/{name}" hx-trigger="change, submit"' in page, name
        assert "<noscript>" in page, "without the script a button saves"


async def test_what_is_unticked_stays_when_the_password_changes(house: Cortex, ada: Browser) -> None:
    secrets = [await house.api_tokens.make(ada.user, {"name": name, "role": "orchestrator"}) for name in "ab"]
    keys = [one.key for one in await house.accounts.credentials(ada.user) if one.kind == "token"]
    page = (await ada.get("/account/sign-in")).text
    assert all(f'name="ends" value="{key}" checked' in page for key in keys)
    kept, ended = keys
    fields = {"old": "wrong", "new": "several new words here", "listed": keys, "ends": ended}
    refused = (await ada.http.post("/account/password", data=fields)).text
    assert f'name="ends" value="{ended}" checked' in refused
    assert f'name="ends" value="{kept}">' in refused, "a slip of the fingers ticks nothing again"
    fields["old"] = PASSWORD
    assert (await ada.http.post("/account/password", data=fields)).status_code == 303
    assert [f"token:{one.token.id}" for one in await house.api_tokens.list(ada.user)] == [kept]
    assert len(secrets) == 2


async def test_each_of_many_can_stay_when_the_password_changes(house: Cortex, ada: Browser) -> None:
    for number in range(40):
        await house.api_tokens.make(ada.user, {"name": f"program {number}", "role": "orchestrator"})
        await house.accounts.login("Ada", PASSWORD, "127.0.0.1", "browser")
    page = (await ada.get("/account/sign-in")).text
    keys = re.findall(r'name="ends" value="([^"]+)" checked', page)
    assert (len(keys), "not listed here" in page) == (80, False)
    fields = {"old": PASSWORD, "new": "several new words here", "listed": keys, "ends": keys[0]}
    assert (await ada.http.post("/account/password", data=fields)).status_code == 303
    left = {one.key for one in await house.accounts.credentials(ada.user)}
    assert left >= {*keys[1:]}
    assert keys[0] not in left


async def test_a_form_with_the_most_that_can_end_is_taken_and_says_what_ends_besides(
    house: Cortex, ada: Browser
) -> None:
    grants = house.runtime.db.repository(GrantsRepository, ada.user.id)
    conversation = await house.conversations.new(ada.user)
    later = house.runtime.clock() + timedelta(hours=1)
    for number in range(ENDS + 2):
        await grants.add("shell_exec", f"df {number}", conversation.id, later)
    page = (await ada.get("/account/sign-in")).text
    keys = re.findall(r'name="listed" value="([^"]+)"', page)
    assert (len(keys), "2 more are not listed here and end too." in page) == (ENDS, True)
    fields = {"old": PASSWORD, "new": "several new words here", "listed": keys, "ends": keys}
    assert (await ada.http.post("/account/password", data=fields)).status_code == 303
    assert await grants.list() == []


async def test_one_press_signs_out_everywhere(app: FastAPI, house: Cortex, ada: Browser) -> None:
    other = await logged_in(app, house, "Ada")
    await house.api_tokens.make(ada.user, {"name": "Editor", "role": "orchestrator"})
    assert (await ada.post("/account/sign-out")).status_code == 303
    async with other.http:
        assert (await other.get("/tasks")).status_code == 303
    assert await house.api_tokens.list(ada.user) == []
    assert (await ada.get("/account")).status_code == 200


async def test_it_is_said_once_that_older_tokens_send_text_from_outside(house: Cortex, ada: Browser) -> None:
    await house.runtime.db.repository(PreferencesRepository, ada.user.id).set(TOLD, True)
    for path in ("/account/keys", "/account/tokens"):
        assert "/account/tokens/seen" in marks(await ada.get(path)).forms
    await ada.post("/account/tokens/seen", back="/account/keys")
    for path in ("/account/keys", "/account/tokens"):
        assert "/account/tokens/seen" not in marks(await ada.get(path)).forms


async def test_a_token_says_on_its_page_whose_words_it_sends_and_when_it_ends(house: Cortex, ada: Browser) -> None:
    form = (await ada.get("/account/tokens/new")).text
    assert marks(form).values["days"] == "90"
    await ada.post("/account/tokens", name="Editor", role="orchestrator", days="30")
    (view,) = await house.api_tokens.list(ada.user)
    assert view.token.expires_at is not None
    assert not view.token.is_own_words
    here = f"/account/tokens/{view.token.id}"
    await ada.post(f"{here}/words", own_words="1")
    await ada.post(f"{here}/extend")
    (now,) = await house.api_tokens.list(ada.user)
    assert now.token.expires_at is not None
    assert now.token.is_own_words
    assert now.token.expires_at - view.token.expires_at > timedelta(days=59)
    assert "your own words" in (await ada.get("/account/tokens")).text
    await ada.post("/account/tokens", name="Old", role="orchestrator", never="1")
    assert [one.token.expires_at for one in await house.api_tokens.list(ada.user) if one.token.name == "Old"] == [None]


async def test_a_token_is_made_pass_through_and_changed_on_its_page(house: Cortex, ada: Browser, bob: Browser) -> None:
    assert "Pass-through" in (await ada.get("/account/tokens/new")).text
    await ada.post("/account/tokens", name="Editor", role="orchestrator", pass_through="1")
    (view,) = await house.api_tokens.list(ada.user)
    assert view.token.is_pass_through
    assert "(pass-through)" in (await ada.get("/account/tokens")).text
    here = f"/account/tokens/{view.token.id}/mode"
    assert (await bob.post(here)).status_code == 404
    await ada.post(here)
    assert [one.token.is_pass_through for one in await house.api_tokens.list(ada.user)] == [False]
    assert "(pass-through)" not in (await ada.get("/account/tokens")).text
    await ada.post(here, pass_through="1")
    assert [one.token.is_pass_through for one in await house.api_tokens.list(ada.user)] == [True]


async def test_what_was_asked_with_a_token_is_listed_and_summed(house: Cortex, ada: Browser, bob: Browser) -> None:
    await house.api_tokens.make(ada.user, {"name": "Editor", "role": "orchestrator", "pass_through": "1"})
    (view,) = await house.api_tokens.list(ada.user)
    here = f"/account/tokens/{view.token.id}"
    assert "Nothing asked yet" in (await ada.get(here)).text
    assert (await bob.get(here)).status_code == 404
    async with house.runtime.db.transaction(ada.user.id) as repository:
        await repository(ApiTokensRepository).take("api:1", view.token.id, "", "")
        await repository(RoundsRepository).begin_alone("api:1", role="orchestrator", channel="api")
        used = Usage(input_tokens=1_234, output_tokens=56)
        await repository(RoundsRepository).answered("api:1", 1, "small", used, 0.25, ms=1_500)
    listed = (await ada.get(here)).text
    for shown in ("small", "$0.2500", "1.5", "answered"):
        assert shown in listed
    usage = (await ada.get("/usage?by=token")).text
    assert "Editor" in usage
    assert "by token" in usage
    assert 'href="/runs/1"' not in usage, "a call that is no turn has no page"


async def test_a_job_is_allowed_to_write_to_a_shared_list_on_its_page(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    job = await house.jobs.add(ada.user, JobForm(name="Night", prompt="tidy", when="every day at 3:00"))
    here = f"/jobs/{job.id}/lists"
    assert 'name="lists"' not in (await ada.get(here)).text
    await house.tasks.create(ada.user, "Milk", list_name="shopping")
    await share(house.runtime.db, ada.user.id, "shopping", [bob.user.id])
    (row,) = await house.runtime.db.repository(SharedListsRepository, ada.user.id).list()
    assert f'name="lists" value="{row.id}"' in (await ada.get(here)).text
    assert (await ada.post(here, lists=row.id)).status_code == 303
    assert f'value="{row.id}" checked' in (await ada.get(here)).text
    assert "others, by a job" in (await ada.get("/account/keys")).text
    assert (await bob.get(here)).status_code == (await bob.post(here, lists=row.id)).status_code == 404
    (grant,) = await house.approvals.grants(ada.user)
    await ada.post(f"/account/grants/{grant.id}/revoke")
    assert f'value="{row.id}" checked' not in (await ada.get(here)).text
