"""The page Contacts over a real server: found, added, changed, taken away, undone; what may be done with each book."""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from cortex.app import Cortex
from tests.databases import copy_home, house_settings
from tests.dav_servers import DavServer, radicale
from tests.web.conftest import Browser, Seed
from tests.web.test_calendar import connect


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavServer]:
    with radicale(tmp_path_factory.mktemp("dav")) as running:
        yield running


@pytest.fixture
async def house(tmp_path: Path, seed: Seed, server: DavServer) -> AsyncIterator[Cortex]:
    copy_home(seed.home, tmp_path / "home")
    settings = house_settings(tmp_path / "home", offline_delay_ms=0, calendar_servers=server.place)
    async with Cortex.at_rest(settings) as cortex:
        yield cortex


def undo_of(page: httpx.Response) -> str:
    found = re.search(r'action="(/contacts/undo/[\w-]+)"', page.text)
    assert found, page.text
    return found[1]


async def place_of(who: Browser, name: str) -> str:
    page = (await who.get(f"/contacts?q={name}")).text
    found = re.search(r'href="(/contacts/[0-9a-f]{32})">', page)
    assert found, page
    return found[1]


def version_of(page: httpx.Response) -> str:
    found = re.search(r'name="version" value="(\w+)"', page.text)
    assert found
    return found[1]


async def test_without_an_address_book_the_page_says_where_to_get_one(ada: Browser) -> None:
    page = await ada.get("/contacts")
    assert "No address book is connected." in page.text
    assert 'href="/calendar/accounts"' in page.text
    assert "<html" not in (await ada.fragment("/contacts")).text
    assert "may write to none" in (await ada.get("/contacts/new")).text
    refused = await ada.post("/contacts/new", name="Ola", once="x")
    assert "may write to none" in refused.text


async def test_a_contact_is_added_found_changed_removed_and_each_undone(
    house: Cortex, ada: Browser, server: DavServer
) -> None:
    server.make_book("people")
    await connect(house, ada, server)
    card = {
        "name": "Ola Berg",
        "emails": "ola@example.org\r\nberg@example.org",
        "phones": "0151 22",
        "birthday": "05-03",
    }
    for _ in range(2):  # a press too many
        answer = await ada.post("/contacts/new", **card, once="one-form")
        assert answer.status_code == 303, answer.text
    page = await ada.get("/contacts?q=berg")
    assert page.text.count(">Ola Berg<") == 1
    place = await place_of(ada, "ola")
    shown = await ada.get(place)
    for words in ("berg@example.org", "0151 22", "05-03", 'href="tel:'):
        assert words in shown.text
    answer = await ada.post(place, **card | {"phones": "0172"}, version=version_of(shown))
    assert answer.status_code == 303, answer.text
    page = await ada.get(answer.headers["location"])
    assert "0172" in page.text
    await ada.post(undo_of(page))
    assert "0151 22" in (await ada.get(place)).text
    assert "Remove Ola Berg?" in (await ada.get(f"{place}/remove")).text
    answer = await ada.post(f"{place}/remove")
    page = await ada.get(answer.headers["location"])
    assert ">Ola Berg<" not in page.text
    undo = undo_of(page)
    await ada.post(undo)
    assert ">Ola Berg<" in (await ada.get("/contacts?q=berg")).text
    assert "no longer be undone" in (await ada.post(undo)).text


async def test_what_is_wrong_is_said_beside_its_field_and_stays(house: Cortex, ada: Browser, server: DavServer) -> None:
    server.make_book("wrong")
    await connect(house, ada, server)
    for field, value, said in (
        ("name", "", "Give them a name"),
        ("emails", "nobody", "nobody is no e-mail address"),
        ("birthday", "24.12.", "Write the day as"),
        ("note", "x" * 4_001, "too long"),
    ):
        page = await ada.post("/contacts/new", **{"name": "Ola", "once": "x", field: value})
        assert page.status_code == 422, field
        assert said in page.text
    assert 'value="Ola"' in page.text


async def test_a_contact_that_was_changed_meanwhile_is_not_overwritten(
    house: Cortex, ada: Browser, server: DavServer
) -> None:
    url = server.make_book("meanwhile")
    server.put_card(url, "meanwhile-1", "FN:Karim Haddad", "N:Haddad;Karim;;;", "TEL:0160")
    account = await connect(house, ada, server)
    place = await place_of(ada, "karim")
    shown = await ada.get(place)
    server.put_card(url, "meanwhile-1", "FN:Karim Haddad", "N:Haddad;Karim;;;", "TEL:0161")
    await house.calendar_sync.sync(ada.user.id, account)
    answer = await ada.post(place, name="Karim Haddad", phones="0162", version=version_of(shown))
    assert "changed while you were writing" in answer.text
    assert "TEL:0161" in server.get(f"{url}meanwhile-1.vcf")


async def test_each_address_book_says_what_may_be_done_and_who_sees_it(
    house: Cortex, ada: Browser, bob: Browser, server: DavServer
) -> None:
    url = server.make_book("shown")
    server.put_card(url, "shown-1", "FN:Sven Chimney", "N:Chimney;Sven;;;", "TEL:0160")
    await connect(house, ada, server)
    page = (await ada.get("/calendar/accounts")).text
    book = re.search(r'action="(/contacts/books/\w+)" class="acct-c">\s*<b dir="auto">shown<', page)
    assert book, page
    assert (await bob.post(book[1], access="read", is_shared="1")).status_code == 404
    assert (await ada.post(book[1], access="sideways")).status_code == 422
    place = await place_of(ada, "sven")
    assert (await bob.get(place)).status_code == 404
    assert (await ada.post(book[1], access="read", is_shared="1")).status_code == 303
    shown = await bob.get(place)
    assert f"Only {ada.user.name} can change it." in shown.text
    assert 'class="form"' not in shown.text
    assert "Cortex only reads this address book." in (await ada.get(place)).text


async def test_what_a_card_says_is_text_on_the_page(house: Cortex, ada: Browser, server: DavServer) -> None:
    url = server.make_book("hostile")
    name = "<script>alert(1)</script>\u202egnp"
    server.put_card(url, "hostile-1", f"FN:{name}", "N:x;Zed;;;", 'TEL:"><img src=x>', "NOTE:javascript:alert(1)")
    await connect(house, ada, server)
    for page in (await ada.get("/contacts?q=script"), await ada.get(await place_of(ada, "script"))):
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
        assert "\u202e" not in page.text.split("<form")[0]
