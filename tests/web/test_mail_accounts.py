"""Mail accounts on the page, over a real Dovecot: connect, folders, another password, remove, logins, refusals."""

import re
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from cortex.app import Cortex
from tests.databases import copy_home, house_settings
from tests.imap_servers import PASSWORD, ImapServer, dovecot, mail
from tests.web.conftest import Browser, Seed

_people = count()


@pytest.fixture(scope="module")
def server() -> Iterator[ImapServer]:
    with dovecot() as running:
        yield running


@pytest.fixture
def person(server: ImapServer) -> str:
    """Somebody with a mail, whose mailbox nobody else uses."""
    name = f"w{next(_people)}"
    server.deliver(mail("Truffles"), person=name)
    return name


@pytest.fixture
async def house(tmp_path: Path, seed: Seed, server: ImapServer) -> AsyncIterator[Cortex]:
    copy_home(seed.home, tmp_path / "home")
    servers = (f"127.0.0.1:{server.port}",)
    settings = house_settings(
        tmp_path / "home", offline_delay_ms=0, mail_servers=servers, google_client_id="cortex-of-ada"
    )
    async with Cortex.at_rest(settings) as cortex:
        yield cortex


async def connect(house: Cortex, who: Browser, server: ImapServer, person: str) -> str:
    """The person's account, connected by the page; its id."""
    fields = {"address": f"{person}@example.org", "password": PASSWORD, "host": "127.0.0.1", "port": server.port}
    answer = await who.post("/mail", **fields, security="none", username=person)
    assert answer.status_code == 303, answer.text
    ((row, _),) = await house.mail_accounts.list(who.user)
    return row.id


async def test_without_an_account_it_says_what_can_be_done(ada: Browser) -> None:
    page = (await ada.get("/mail")).text
    assert "It is no mail program and shows no mails here" in page
    assert page.index("<details") < page.index('name="password"')
    for name in ("Gmail", "Outlook", "iCloud", "Fastmail", "mailbox.org", "GMX", "Posteo"):
        assert f"<dt>{name}</dt>" in page
    assert 'href="/mail"' in (await ada.get("/more")).text
    assert "<html" not in (await ada.fragment("/mail")).text


async def test_an_account_is_connected_read_and_removed(
    house: Cortex, ada: Browser, server: ImapServer, person: str
) -> None:
    id = await connect(house, ada, server, person)
    await house.mail_watch.tend(ada.user.id, id, waits=False)
    page = (await ada.get("/mail")).text
    assert f"{person}@example.org" in page
    assert "Up to date" in page
    assert "Truffles" not in page, "no mail is shown here"
    ticked = re.findall(r'name="folders" value="(\w+)" checked><span dir="auto">([^<]+)<', page)
    assert {name for _, name in ticked} == {"Inbox", "Sent", "Archive"}
    inbox = next(one for one, name in ticked if name == "Inbox")
    assert (await ada.post(f"/mail/{id}/folders", folders=inbox)).status_code == 303
    ((_, folders),) = await house.mail_accounts.list(ada.user)
    assert [one.name for one in folders if one.is_read] == ["Inbox"]
    assert (await ada.post(f"/mail/{id}/sync")).status_code == 303
    assert "Nothing is deleted on the server" in (await ada.get(f"/mail/{id}/remove")).text
    assert (await ada.post(f"/mail/{id}/remove")).status_code == 303
    assert await house.mail_accounts.list(ada.user) == []
    assert len(server.mails(person=person)) == 1


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({"password": "wrong one"}, "", "password|login|refuse|Authentication"),
        ({"address": "ada"}, "address", "no mail address"),
        ({"host": ""}, "host", "Enter the server"),
        ({"port": "imap"}, "port", "A port is a number"),
        ({"host": "127.0.0.1", "port": "9"}, "", ""),
        ({"security": "tls!"}, "security", "Choose one of the values"),
    ],
    ids=["password", "address", "host", "port", "another port", "security"],
)
async def test_what_is_refused_stands_at_its_field_and_keeps_what_was_typed(
    house: Cortex, ada: Browser, server: ImapServer, person: str, fields: dict[str, str], field: str, said: str
) -> None:
    given = {"address": "x@example.org", "password": PASSWORD, "host": "127.0.0.1", "port": str(server.port)}
    answer = await ada.post("/mail", **(given | {"security": "none", "username": person} | fields))
    assert answer.status_code == 422
    assert re.search(said, answer.text)
    assert PASSWORD not in answer.text
    assert f'value="{person}"' in answer.text
    if field:
        assert f'id="f-{field}-e"' in answer.text
    assert await house.mail_accounts.list(ada.user) == []


async def test_another_password_is_tried_first(house: Cortex, ada: Browser, server: ImapServer, person: str) -> None:
    id = await connect(house, ada, server, person)
    assert (await ada.post(f"/mail/{id}/password", password="wrong one")).status_code == 422
    assert (await ada.post(f"/mail/{id}/password", password=PASSWORD)).status_code == 303


async def test_a_login_at_the_provider_begins_with_a_link_of_ones_own(ada: Browser) -> None:
    start = (await ada.get("/mail")).text
    assert re.findall(r'name="way" value="(\w+)"', start) == ["google"]
    told = {name: "client id" in says for name, says in re.findall(r"<dt>(\w+)</dt><dd>(.*?)</dd>", start, re.DOTALL)}
    assert (told["Gmail"], told["Outlook"], told["iCloud"]) == (False, True, False), "whose login is set up here"
    assert "client id" in (await ada.get("/help/mail")).text
    page = (await ada.post("/mail/login", way="google", address="ada@gmail.com")).text
    link = re.search(r'href="(https://accounts\.google\.com/[^"]+)"', page)
    assert link
    asked = parse_qs(urlsplit(link[1].replace("&amp;", "&")).query)
    assert asked["client_id"] == ["cortex-of-ada"]
    assert asked["code_challenge_method"] == ["S256"]
    answer = await ada.post("/mail/login/finish", way="google", pasted="http://127.0.0.1/?state=another&code=x")
    assert answer.status_code == 422
    assert "does not belong to the login" in answer.text
    assert (await ada.post("/mail/login", way="microsoft", address="ada@outlook.com")).status_code == 422


async def test_nobody_elses_account_is_found(
    house: Cortex, ada: Browser, bob: Browser, server: ImapServer, person: str
) -> None:
    id = await connect(house, ada, server, person)
    for path in (f"/mail/{id}/sync", f"/mail/{id}/remove", f"/mail/{id}/folders", f"/mail/{id}/password"):
        assert (await bob.post(path)).status_code == 404
    assert person not in (await bob.get("/mail")).text
