"""An address book that is larger than is kept, or larger than one answer: said in words, and nothing else suffers."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cortex.base.errors import ToolFailed
from cortex.integrations.dav.values import Changed, Collection, CollectionChanges, Resource
from cortex.services.calendars.accounts import book_row
from cortex.storage.calendars import CalendarAccountRow, CalendarsRepository
from cortex.storage.contacts import AddressBooksRepository
from tests.living_house import LivingHouse, living_house

BOOKS = ("https://dav.example.org/ann/huge/", "https://dav.example.org/ann/small/")


@dataclass
class ManyCards:
    """A server with one address book of so many contacts, and one of two."""

    count: int
    asked: list[int] = field(default_factory=list)

    async def changes(self, url: str, token: str) -> CollectionChanges:
        found = [Changed(href=f"{url}{number}.vcf", etag="1") for number in range(self.count if "huge" in url else 2)]
        return CollectionChanges(changed=found, token="t", is_all=True)

    async def resources(self, url: str, kind: str, hrefs: Sequence[str]) -> Sequence[Resource]:
        self.asked.append(len(hrefs))
        return [
            Resource(href=one, etag="1", data=f"BEGIN:VCARD\r\nUID:{one}\r\nFN:One {at}\r\nEND:VCARD\r\n")
            for at, one in enumerate(hrefs)
        ]


async def account(house: LivingHouse) -> CalendarAccountRow:
    now, owner = house.cortex.runtime.clock(), house.admin.id
    row = CalendarAccountRow(
        id="account-1", owner_id=owner, kind="caldav", title="dav.example.org", url="https://dav.example.org",
        username="ann", addresses="", created_at=now, next_at=now.replace(year=2999), worked_at=now, failure="",
        failures=0, schedules=False,
    )  # fmt: skip
    books = [book_row(row, Collection(url=url, name=url[28:32], is_contacts=True), url) for url in BOOKS]
    await house.cortex.runtime.db.repository(CalendarsRepository, owner).add(row, [])
    await house.cortex.runtime.db.repository(AddressBooksRepository, owner).add(books)
    return row


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home") as opened:
        yield opened


async def test_a_hundred_thousand_contacts_are_not_read_and_the_other_book_is(house: LivingHouse) -> None:
    dav = ManyCards(100_000)
    with pytest.raises(ToolFailed, match="more than 20,000 contacts"):
        await house.cortex.contact_sync.sync(await account(house), dav)  # type: ignore[arg-type]
    assert dav.asked == [2], "nothing of the large one was asked for"
    contacts = house.cortex.contacts_of(house.admin.id)
    assert await contacts.count() == 2


async def test_thousands_are_read_in_parts_and_found_by_pages(house: LivingHouse) -> None:
    dav = ManyCards(1_200)
    row = await account(house)
    await house.cortex.contact_sync.sync(row, dav)  # type: ignore[arg-type]
    assert sum(dav.asked) == 1_202
    assert max(dav.asked) <= 500
    contacts = house.cortex.contacts_of(house.admin.id)
    assert await contacts.count() == 1_202
    first = await contacts.find("", most=50)
    second = await contacts.find("", most=50, offset=50)
    assert len({one.id for one in (*first, *second)}) == 100
