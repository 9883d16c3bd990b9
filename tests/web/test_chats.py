"""The list of all chats, its boxes and buttons, the archived ones, and the page of a search."""

import io
import re
import zipfile
from urllib.parse import unquote

import httpx
import pytest

from cortex.app import Cortex
from tests.web.conftest import Browser
from tests.web.sender import costs


@pytest.fixture
async def chats(house: Cortex, ada: Browser) -> list[str]:
    """Three chats of Ada's."""
    made = []
    for title in ("Plums", "Medlars", "Quinces"):
        made.append((await house.conversations.new(ada.user)).id)
        await house.conversations.rename(ada.user, made[-1], title)
    return made


def listed(page: httpx.Response) -> set[str]:
    """The chats with a box, by title."""
    return set(re.findall(r'</label><a href="/c/\w+"><span class="ct"[^>]*>(\w+)<', page.text))


async def press(person: Browser, act: str, *ids: str, back: str = "") -> httpx.Response:
    """The button of the list, with these boxes ticked; the page after it."""
    answer = await person.http.post(f"/chats?back={back}", data={"act": act, "id": list(ids)}, follow_redirects=True)
    assert answer.status_code == 200
    return answer


async def undone(person: Browser, page: httpx.Response) -> httpx.Response:
    """The page after its Undo was pressed."""
    place = re.search(r'action="(/chats/undo[^"]*)"', page.text)
    assert place
    return await person.http.post(place[1].replace("&amp;", "&"), follow_redirects=True)


async def test_several_are_archived_and_deleted_and_each_is_undone_in_one_press(ada: Browser, chats: list[str]) -> None:
    page = await press(ada, "archive", *chats[:2])
    assert "2 chats archived." in page.text
    assert listed(page) == {"Quinces"}
    assert listed(await ada.get("/chats?archived=1")) == {"Plums", "Medlars"}
    assert listed(await undone(ada, page)) == {"Plums", "Medlars", "Quinces"}
    page = await press(ada, "delete", *chats[1:])
    assert listed(page) == {"Plums"}
    assert listed(await undone(ada, page)) == {"Plums", "Medlars", "Quinces"}
    assert "Pinned" in (await press(ada, "pin", chats[0])).text
    unchosen = await press(ada, "delete")
    assert "one chat first" in unchosen.text


async def test_a_deleted_chat_is_restored_long_after_the_message_is_gone(
    ada: Browser, bob: Browser, chats: list[str]
) -> None:
    assert "For a day" in (await ada.get(f"/c/{chats[0]}/delete")).text
    assert not re.findall(r'action="/c/(\w+)/restore"', (await ada.get("/chats")).text)
    await press(ada, "delete", *chats)
    page = await ada.get("/chats")
    assert listed(page) == set()
    assert re.findall(r'action="/c/(\w+)/restore"', page.text)
    assert "last day" in page.text
    assert not re.findall(r'action="/c/(\w+)/restore"', (await bob.get("/chats")).text)
    await ada.post(f"/c/{chats[1]}/restore")
    page = await ada.get("/chats")
    assert listed(page) == {"Medlars"}
    assert set(re.findall(r'action="/c/(\w+)/restore"', page.text)) == {chats[0], chats[2]}


async def test_an_exported_chat_is_named_after_title_and_day(house: Cortex, ada: Browser, chats: list[str]) -> None:
    await house.conversations.rename(ada.user, chats[0], 'Äpfel/"Birnen": 2 kg\\')
    for ending in ("md", "json"):
        named = (await ada.get(f"/c/{chats[0]}/export.{ending}")).headers["content-disposition"]
        words, day = unquote(named).removeprefix("attachment; filename*=utf-8''").rsplit(" ", 1)
        assert words == "Äpfel Birnen 2 kg"
        assert re.fullmatch(rf"20\d\d-\d\d-\d\d\.{ending}", day)


async def test_an_archived_chat_is_marked_in_search_and_comes_back_from_its_menu(
    ada: Browser, chats: list[str]
) -> None:
    answer = await ada.post(f"/c/{chats[0]}/archive")
    assert answer.headers["location"] == "/c/new"
    found = await ada.get("/search?q=plum")
    assert re.search(r"<mark>Plums</mark>.{0,20}archived", found.text)
    assert f'action="/c/{chats[0]}/unarchive"' in (await ada.get(f"/c/{chats[0]}")).text
    await ada.post(f"/c/{chats[0]}/unarchive")
    assert listed(await ada.get("/chats?archived=1")) == set()


async def test_the_chosen_chats_are_exported_in_one_archive(ada: Browser, bob: Browser, chats: list[str]) -> None:
    answer = await ada.http.post("/chats", data={"act": "export", "id": chats[:2]})
    assert sorted(zipfile.ZipFile(io.BytesIO(answer.content)).namelist()) == ["Medlars.md", "Plums.md"]
    assert (await bob.http.post("/chats", data={"act": "export", "id": chats[:2]})).status_code == 404
    await press(bob, "delete", *chats)
    assert listed(await ada.get("/chats")) == {"Plums", "Medlars", "Quinces"}


@pytest.mark.parametrize("at", ["", "x", "0001-01-01T00:00:00+14:00", "2026-11-24T00:00:00", "9" * 400])
async def test_a_moment_that_is_none_is_refused_in_words(ada: Browser, at: str) -> None:
    answer = await ada.http.post("/chats/undo", params={"what": "delete", "at": at})
    assert answer.status_code == 422
    assert (await ada.http.get("/chats", params={"before": at})).status_code == 200


async def test_a_search_leads_to_the_line_of_a_note(house: Cortex, ada: Browser) -> None:
    name = await house.notes.create(ada.user, "Fruit & nuts")
    text = "# Fruit & nuts\n\n- **Medlars** in <November>\n"
    await house.notes.write(ada.user, name, text, (await house.notes.read(ada.user, name)).version)
    found = await ada.get("/search?q=medlar")
    place = re.search(r'href="(/notes/[^"]*\?line=3)"', found.text)
    assert place
    assert unquote(place[1]) == "/notes/Fruit & nuts?line=3"
    assert ("<mark>Medlars</mark>" in found.text, "&lt;November&gt;" in found.text) == (True, True)
    page = await ada.get(place[1])
    assert 'data-line="3"' in page.text
    assert (await ada.get("/notes/Fruit%20%26%20nuts?line=99")).status_code == 200


@pytest.mark.parametrize("sign", ["-", " ", "[", "- ", "|", "*"])
async def test_a_note_is_opened_at_a_long_line_of_anything(house: Cortex, ada: Browser, sign: str) -> None:
    """A rule that somebody drew, 8,000 dashes and a word, held the loop for minutes."""
    name = await house.notes.create(ada.user, "Rules")
    version = (await house.notes.read(ada.user, name)).version
    await house.notes.write(ada.user, name, f"-{sign * 20_000}y", version)
    with costs() as cost:
        page = await ada.get("/notes/Rules?line=1")
    assert (page.status_code, cost.held_s < 0.5) == (200, True)
    nothing = await ada.get("/search?q=hazel")
    assert "“hazel”" in nothing.text


async def test_deleted_chats_have_pages(house: Cortex, ada: Browser) -> None:
    for _ in range(53):
        made = await house.conversations.new(ada.user)
        await house.conversations.delete(ada.user, made.id)
    first = (await ada.get("/chats")).text
    assert (first.count('/restore"'), "(50+)" in first) == (50, True)
    assert 'href="/chats?deleted=50#deleted"' in first
    assert (await ada.get("/chats?deleted=50")).text.count('/restore"') == 3
    ticked = (await ada.get("/chats?all=1")).text
    assert 'href="/chats?all=1&amp;deleted=50#deleted"' in ticked, "paging below unticks nothing above"
    await house.conversations.new(ada.user)
    behind = (await ada.get("/chats?all=1&deleted=50")).text
    assert 'href="/chats?all=1#deleted"' in behind
