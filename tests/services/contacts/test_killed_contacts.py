"""A daemon that dies at any request of a change of a contact: one effect, once, and the copy holds it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cortex.integrations.dav.server import DavServer as Place
from cortex.ports.calendars import Written
from cortex.ports.contacts import Contact, ContactDraft, Contacts
from cortex.services.contacts.contacts import UserContacts
from tests.dav_servers import PASSWORD, DavServer, radicale, xandikos
from tests.living_house import LivingHouse, living_house
from tests.services.calendars.test_killed_writes import Killed, Life, Mortal
from tests.still_clock import StillClock

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
MOST = 10
STOOD = ["Mia Keller 0151"]


@pytest.fixture(params=[radicale, pytest.param(xandikos, marks=pytest.mark.full)], scope="module")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavServer]:
    with request.param(tmp_path_factory.mktemp("dav")) as running:
        yield running


@pytest.fixture
async def house(server: DavServer, tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home", clock=StillClock(NOW), calendar_servers=server.place) as opened:
        yield opened


def alive(house: LivingHouse, life: Life) -> UserContacts:
    kept = house.cortex.contacts_of(house.admin.id)
    assert isinstance(kept, UserContacts)

    def connect(place: Place) -> Any:
        return Mortal(kept.accounts.connect(place), life)

    return replace(kept, accounts=replace(kept.accounts, connect=connect))


Ready = Callable[[Contacts, Contact], Awaitable[Written]]


async def add(contacts: Contacts, one: Contact) -> Written:
    return await contacts.ready_new(one.book.id, "new@cortex", ContactDraft(name="Ola Berg", phones=["0160"]))


async def change(contacts: Contacts, one: Contact) -> Written:
    return await contacts.ready_change(one, ContactDraft(phones=["0172"]))


async def remove(contacts: Contacts, one: Contact) -> Written:
    return await contacts.ready_removal(one)


CASES: dict[Ready, list[str]] = {
    add: ["Mia Keller 0151", "Ola Berg 0160"],
    change: ["Mia Keller 0172"],
    remove: [],
}


@pytest.mark.parametrize("ready", CASES, ids=lambda one: one.__name__)
async def test_a_killed_change_is_made_once(house: LivingHouse, server: DavServer, ready: Ready) -> None:
    name = ready.__name__
    server.put_card(server.make_book(name), "mia", "FN:Mia Keller", "N:Keller;Mia;;;", "TEL:0151")
    account = await house.cortex.calendar_accounts.add_server(house.admin, server.base, "ann", PASSWORD)
    await house.cortex.calendar_sync.sync(house.admin.id, account)

    async def stands() -> list[Contact]:
        return [one for one in await house.cortex.contacts_of(house.admin.id).find("") if one.book.name == name]

    async def said() -> list[str]:
        return [f"{one.name} {one.phones[0].value}" for one in await stands()]

    for at in range(1, MOST):
        assert await said() == STOOD
        written = await ready(house.cortex.contacts_of(house.admin.id), (await stands())[0])
        try:
            await alive(house, Life(at)).write(written)
        except Killed:
            version = await alive(house, Life()).write(written)
        else:
            assert at > 3, "a change is at least a request that writes and one that reads"
            break
        assert await said() == CASES[ready]
        await house.cortex.calendar_sync.sync(house.admin.id, account)
        assert await said() == CASES[ready]
        with pytest.raises(Killed):
            await alive(house, Life(2)).put_back(written, version)
        await alive(house, Life()).put_back(written, version)
    else:
        pytest.fail("it has more points than are looked at")
