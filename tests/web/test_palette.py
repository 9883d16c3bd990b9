"""The palette (Ctrl K): one route finds chats, pages and deeds; nobody is shown what is not theirs to open or do."""

import re

import pytest

from cortex.app import Cortex
from tests.web.conftest import Browser
from web.deeds import DEEDS, Deed


async def lines(browser: Browser, typed: str) -> str:
    answer = await browser.http.get("/palette", params={"q": typed}, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    return answer.text


def headings(shown: str) -> list[str]:
    return [one.strip() for one in re.findall(r"<h3[^>]*>([^<]*)</h3>", shown)]


async def test_it_finds_a_chat_a_list_and_a_deed_in_this_order(house: Cortex, ada: Browser) -> None:
    chat = await house.conversations.new(ada.user)
    await house.conversations.rename(ada.user, chat.id, "Storm damage")
    await house.tasks.create(ada.user, "Nails", list_name="Storeroom")
    shown = await lines(ada, "sto")
    assert headings(shown) == ["Chats", "Pages and things", "Do"]
    assert re.search(rf'href="/c/{chat.id}".*<mark>Storm</mark> damage', re.sub(r"\s*\n\s*", "", shown))
    assert "list, 1 open" in shown
    assert 'href="/stop-all"' in shown


async def test_a_task_and_a_job_are_found_by_the_palette_and_by_the_page(house: Cortex, ada: Browser) -> None:
    task = await house.tasks.create(ada.user, "Prune the quince")
    for shown in (await lines(ada, "quin"), (await ada.get("/search?q=quin")).text):
        assert f'href="/tasks/{task.id}"' in shown


async def test_nothing_typed_shows_the_five_chats_used_last(house: Cortex, ada: Browser) -> None:
    for number in range(7):
        chat = await house.conversations.new(ada.user)
        await house.conversations.rename(ada.user, chat.id, f"Talk {number}")
    shown = await lines(ada, "")
    assert headings(shown) == ["Recent chats", "Do"]
    assert len(re.findall(r'href="/c/[0-9a-f]', shown)) == 5


async def test_an_arrow_in_front_leaves_only_deeds_and_a_question_mark_asks(house: Cortex, ada: Browser) -> None:
    chat = await house.conversations.new(ada.user)
    await house.conversations.rename(ada.user, chat.id, "New curtains")
    assert headings(await lines(ada, ">new")) == ["Do"]
    asked = await lines(ada, "?how high is the house")
    assert 'action="/c/new/messages"' in asked
    assert 'name="text" value="how high is the house"' in asked


async def test_what_is_nowhere_can_be_asked_and_nothing_is_sent_by_a_link(ada: Browser) -> None:
    shown = await lines(ada, 'xyzzy "<b>')
    assert "Nothing found." in shown
    assert 'method="post" action="/c/new/messages"' in shown
    assert "<b>" not in shown
    assert "/c/new?" not in shown


async def test_a_sign_alone_or_with_words_that_fit_nothing_is_no_question_of_its_own(ada: Browser) -> None:
    assert "/c/new/messages" not in await lines(ada, "?")
    assert 'name="text" value="xyzzy"' in await lines(ada, "> xyzzy")


async def test_another_persons_things_and_an_admins_pages_are_not_found(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    chat = await house.conversations.new(ada.user)
    await house.conversations.rename(ada.user, chat.id, "People I envy")
    await house.tasks.create(ada.user, "People to call", list_name="People")
    assert "/admin/users" in await lines(ada, "people")
    shown = await lines(bob, "people")
    assert "/admin" not in shown
    assert "/c/" not in shown.replace("/c/new/messages", "")
    assert "/tasks/" not in shown
    assert "/admin" not in await lines(bob, ">")


@pytest.mark.parametrize("deed", DEEDS, ids=lambda deed: deed.title)
async def test_each_deed_leads_to_a_page_that_is_there(ada: Browser, deed: Deed) -> None:
    if deed.posts is None:
        assert (await ada.get(deed.href)).status_code == 200
    else:
        assert (await ada.post(deed.href, **deed.posts)).status_code == 303


async def test_the_engine_is_shown_and_hidden_from_where_one_is(house: Cortex, ada: Browser, bob: Browser) -> None:
    async def offered(browser: Browser) -> list[str]:
        return re.findall(r"(Show|Hide) the <mark>engine", await lines(browser, "engine"))

    assert await offered(ada) == ["Hide"], "an admin's default is to see it"
    assert await offered(bob) == ["Show"]
    back = {"Referer": "http://cortex.test/tasks?list=Home"}
    answer = await bob.http.post("/account/engine", data={"on": "1"}, headers=back)
    assert (answer.status_code, answer.headers["location"]) == (303, "/tasks?list=Home")
    assert (await house.preferences.get(bob.user)).engine
    assert await offered(bob) == ["Hide"]
    away = await bob.http.post("/account/engine", data={"on": ""}, headers={"Referer": "http://cortex.test//evil.test"})
    assert away.headers["location"] == "/"
    assert not (await house.preferences.get(bob.user)).engine


async def test_a_browser_without_script_is_led_to_the_search_page_which_does_as_much(ada: Browser) -> None:
    led = await ada.get("/palette?q=dark")
    assert (led.status_code, led.headers["location"]) == (303, "/search?q=dark")
    page = (await ada.get("/search?q=dark")).text
    assert "Change how Cortex looks" in page
    assert "Log out" in (await ada.get("/search")).text
