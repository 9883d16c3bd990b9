"""Coming in and going out: set-up, login, logout, invitations, the password again."""

import re

import httpx
import pytest
from fastapi import FastAPI

from cortex.app import Cortex
from cortex.storage.accounts import LoginsRepository
from tests.web.conftest import PASSWORD, Browser, browser, logged_in
from tests.web.marks import marks
from web.security import COOKIE, SECURE_COOKIE


async def test_the_first_visitor_sets_up_and_is_logged_in(
    empty_house: Cortex, first_visitor: httpx.AsyncClient
) -> None:
    token = await empty_house.accounts.setup_link()
    page = await first_visitor.get("/setup")
    assert page.status_code == 200
    assert token not in page.text
    answer = await first_visitor.post("/setup", data={"token": f"#{token}", "name": "Ada", "password": PASSWORD})
    assert answer.headers["location"] == "/start"
    assert "Hello Ada. Four questions." in (await first_visitor.get("/start")).text
    assert [user.name for user in await empty_house.accounts.users()] == ["Ada"]


async def test_who_sets_up_lives_where_the_browser_says(empty_house: Cortex, first_visitor: httpx.AsyncClient) -> None:
    token = await empty_house.accounts.setup_link()
    assert 'name="time_zone"' in (await first_visitor.get("/setup")).text
    data = {"token": token, "name": "Ada", "password": PASSWORD, "time_zone": "Europe/Berlin"}
    await first_visitor.post("/setup", data=data)
    assert (await empty_house.accounts.named("Ada")).time_zone == "Europe/Berlin"


async def test_who_logs_in_lives_where_the_browser_says(house: Cortex, visitor: httpx.AsyncClient) -> None:
    assert 'name="time_zone"' in (await visitor.get("/login")).text
    await visitor.post("/login", data={"name": "Ada", "password": PASSWORD, "time_zone": "Mars"})
    assert (await house.accounts.named("Ada")).time_zone == "UTC"
    await visitor.post("/login", data={"name": "Ada", "password": PASSWORD, "time_zone": "Europe/Berlin"})
    assert (await house.accounts.named("Ada")).time_zone == "Europe/Berlin"


@pytest.mark.parametrize(
    ("token", "name", "password", "field"),
    [("wrong", "Ada", PASSWORD, "f-token-e"), ("", "", PASSWORD, "f-name-e"), ("", "Ada", "short", "f-password-e")],
    ids=["a dead code", "no name", "a short password"],
)
async def test_a_refused_set_up_says_which_field_and_keeps_the_code(
    token: str, name: str, password: str, field: str, empty_house: Cortex, first_visitor: httpx.AsyncClient
) -> None:
    good = await empty_house.accounts.setup_link()
    data = {"token": token or good, "name": name, "password": password}
    answer = await first_visitor.post("/setup", data=data)
    assert answer.status_code == 422
    assert f'id="{field}"' in answer.text
    assert (
        await first_visitor.post("/setup", data={"token": good, "name": "Ada", "password": PASSWORD})
    ).status_code == 303


async def test_set_up_is_closed_once_there_is_an_account(house: Cortex, visitor: httpx.AsyncClient) -> None:
    assert (await visitor.get("/setup")).headers["location"] == "/login"
    for address in ("/setup", "/setup/restore"):
        answer = await visitor.post(address, data={"token": "x", "name": "Eve", "password": PASSWORD})
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert len(await house.accounts.users()) == 2


async def test_login_goes_on_to_where_the_visitor_wanted(house: Cortex, visitor: httpx.AsyncClient) -> None:
    asked = await visitor.get("/tasks?list=home")
    assert asked.headers["location"] == "/login?next=/tasks%3Flist%3Dhome"
    answer = await visitor.post("/login", data={"name": "ada", "password": PASSWORD, "next": "/tasks?list=home"})
    assert answer.headers["location"] == "/tasks?list=home"
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie


async def test_over_https_the_cookie_belongs_to_this_host_alone(app: FastAPI, house: Cortex) -> None:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(
        transport=transport, base_url="https://localhost", headers={"Sec-Fetch-Site": "same-origin"}
    ) as client:
        answer = await client.post("/login", data={"name": "Ada", "password": PASSWORD})
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith(f"{SECURE_COOKIE}=")
        assert "Secure" in cookie
        assert (await client.get("/tasks")).status_code == 200


async def test_a_wrong_password_says_no_more_than_that(house: Cortex, visitor: httpx.AsyncClient) -> None:
    known = await visitor.post("/login", data={"name": "Ada", "password": "wrong"})
    unknown = await visitor.post("/login", data={"name": "Eve", "password": "wrong"})
    assert known.status_code == unknown.status_code == 422
    assert marks(known).alerts == marks(unknown).alerts != []


async def test_too_many_tries_say_how_long_to_wait(house: Cortex, visitor: httpx.AsyncClient) -> None:
    answers = [await visitor.post("/login", data={"name": "Ada", "password": "wrong"}) for _ in range(8)]
    last = answers[-1]
    assert last.status_code == 429
    assert int(last.headers["retry-after"]) > 0
    assert "Wait" in last.text


async def test_logging_out_ends_the_login_and_clears_the_browser(ada: Browser) -> None:
    answer = await ada.post("/logout")
    assert answer.headers["location"] == "/login"
    assert "cache" in answer.headers["clear-site-data"]
    assert (await ada.get("/tasks")).headers["location"].startswith("/login")


@pytest.mark.parametrize("next", ["https://evil.example", "//evil.example", "//[", "/\\evil.example", "tasks", ""])
async def test_login_never_leads_to_another_site(house: Cortex, visitor: httpx.AsyncClient, next: str) -> None:
    answer = await visitor.post("/login", data={"name": "Ada", "password": PASSWORD, "next": next})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


async def test_an_invited_person_chooses_a_password_and_is_in(
    app: FastAPI, house: Cortex, ada: Browser, visitor: httpx.AsyncClient
) -> None:
    page = await ada.post("/admin/users", name="Cleo", rank="member")
    found = re.search(r"/welcome#([\w-]+)", page.text)
    assert found
    token = found.group(1)
    assert token not in (await ada.get("/admin/users")).text
    assert "this computer" in page.text
    assert page.text.count(">invited<") == 1 == (await ada.get("/admin/users")).text.count(">invited<")
    shown = (await visitor.get("/welcome")).text
    assert marks(shown).values.keys() >= {"time_zone"}
    assert ("/welcome/who" in shown, "Ada" in shown) == (True, False)
    who = await visitor.post("/welcome/who", data={"token": token})
    assert ("Ada invited you" in who.text, "<b>Cleo</b>" in who.text) == (True, True)
    again = await visitor.post("/welcome", data={"token": token, "password": "x"})
    assert (again.status_code, "<b>Cleo</b>" in again.text) == (422, True)
    assert "15 letters or more" in again.text, "what is asked for stays beside what was wrong"
    assert "too old" in (await visitor.post("/welcome/who", data={"token": "no"})).text
    data = {"token": token, "password": PASSWORD, "time_zone": "Asia/Tokyo"}
    answer = await visitor.post("/welcome", data=data)
    assert answer.headers["location"] == "/start?open=notify", "who is new is not told anywhere yet"
    assert "Turn on notifications" in (await visitor.get("/start?open=notify")).text
    assert (await house.accounts.named("Cleo")).time_zone == "Asia/Tokyo"
    assert (await visitor.get("/tasks")).status_code == 200
    assert ">invited<" not in (await ada.get("/admin/users")).text
    async with browser(app) as late:
        assert (await late.post("/welcome", data={"token": token, "password": PASSWORD})).status_code == 422


async def test_a_new_password_of_somebody_who_hid_the_questions_leads_to_their_day(
    house: Cortex, ada: Browser, bob: Browser, visitor: httpx.AsyncClient
) -> None:
    await house.first_steps.hide(bob.user, is_hidden=True)
    link = re.search(r"/welcome#([\w-]+)", (await ada.post(f"/admin/users/{bob.user.id}/reset")).text)
    assert link
    answer = await visitor.post("/welcome", data={"token": link.group(1), "password": PASSWORD})
    assert answer.headers["location"] == "/"


async def test_what_stays_with_a_new_password_stays_unticked_after_a_refusal(
    ada: Browser, bob: Browser, visitor: httpx.AsyncClient
) -> None:
    link = re.search(r"/welcome#([\w-]+)", (await ada.post(f"/admin/users/{bob.user.id}/reset")).text)
    assert link
    kinds = {"token": link[1], "password": "short", "listed": ["token", "device"], "ends": ["device"]}
    page = (await visitor.post("/welcome", data=kinds)).text
    assert "device" in marks(page).chosen
    assert "token" not in marks(page).chosen


async def test_a_member_never_sees_the_people(bob: Browser) -> None:
    assert (await bob.get("/admin/users")).status_code == 403
    assert (await bob.post("/admin/users", name="Eve", rank="admin")).status_code == 403
    assert "People" not in (await bob.get("/tasks")).text


async def test_switching_a_person_off_ends_their_login(house: Cortex, ada: Browser, bob: Browser) -> None:
    assert "Switch off Bob?" in (await ada.get(f"/admin/users/{bob.user.id}/disable")).text
    await ada.post(f"/admin/users/{bob.user.id}/disable")
    assert (await bob.get("/tasks")).headers["location"].startswith("/login")
    await ada.post(f"/admin/users/{bob.user.id}/enable")
    assert [user.name for user in await house.accounts.users()] == ["Ada", "Bob"]


async def test_admin_pages_ask_for_the_password_after_a_while(house: Cortex, app: FastAPI, ada: Browser) -> None:
    person = await logged_in(app, house, "Ada")
    view = await house.accounts.who(person.http.cookies[COOKIE])
    assert view
    async with person.http:
        await _forget_confirmation(house, view.user.id, view.login_id)
        answer = await person.get("/admin/users")
        assert answer.headers["location"] == "/confirm?next=/admin/users"
        wrong = await person.post("/confirm", password="wrong", next="/admin/users")
        assert wrong.status_code == 422
        right = await person.post("/confirm", password=PASSWORD, next="/admin/users")
        assert right.headers["location"] == "/admin/users"
        assert (await person.get("/admin/users")).status_code == 200


async def test_a_press_that_met_the_question_for_the_password_is_said_to_be_lost(
    house: Cortex, app: FastAPI, ada: Browser
) -> None:
    person = await logged_in(app, house, "Ada")
    view = await house.accounts.who(person.http.cookies[COOKIE])
    assert view
    async with person.http:
        await _forget_confirmation(house, view.user.id, view.login_id)
        headers = {"Referer": "http://test/stop-all"}
        pressed = await person.http.post("/stop-all/outward", headers=headers)
        assert pressed.headers["location"] == "/confirm?next=/stop-all&again=1"
        assert "press the button" in (await person.get(pressed.headers["location"])).text
        wrong = await person.post("/confirm", password="wrong", next="/stop-all", again="1")
        assert "press the button" in wrong.text
        page = (await person.get("/confirm?next=/stop-all")).text
        assert "press the button" not in page
        assert re.search(r'<input[^>]*name="password"[^>]* autofocus', page), "what is typed would be single keys"


@pytest.mark.parametrize(
    ("next", "says"),
    [
        ("/admin/settings?open=mail", "Settings shows or changes things of everybody"),
        ("/account/tokens/new", "A token lets a program in as you."),
        ("/go/abc", "You answer an older question from a notification."),
        ("/nowhere", "This page shows or changes things of everybody"),
    ],
)
async def test_the_page_that_asks_for_the_password_says_why(ada: Browser, next: str, says: str) -> None:
    page = await ada.http.get("/confirm", params={"next": next})
    assert says in " ".join(page.text.split())
    refused = await ada.post("/confirm", password="wrong", next=next)
    assert (refused.status_code, says in " ".join(refused.text.split())) == (422, True)


async def _forget_confirmation(house: Cortex, user_id: str, login_id: str) -> None:
    await house.runtime.db.repository(LoginsRepository, user_id).confirm(login_id, house.runtime.clock())
