"""Contacts over real servers: found with the calendars, read, kept in step, written once, shut to everybody else."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cortex.base.errors import Conflict, NotFound, ToolFailed
from cortex.base.user import User
from cortex.ports.contacts import Contact, ContactDraft
from cortex.storage.audit import AuditFilter
from cortex.storage.calendars import CalendarsRepository
from cortex.storage.contacts import AddressBookRow, AddressBooksRepository, ContactsRepository
from tests.dav_servers import PASSWORD, DavServer, radicale, xandikos
from tests.living_house import LivingHouse, living_house
from tests.still_clock import StillClock

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
MIA = ["FN:Mia Keller", "N:Keller;Mia;;;", "EMAIL;TYPE=INTERNET;TYPE=HOME:mia@example.org", "TEL;TYPE=CELL:+49 151 22"]
MB = 1_000_000


@pytest.fixture(params=[radicale, xandikos], scope="module")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavServer]:
    with request.param(tmp_path_factory.mktemp("dav")) as running:
        yield running


@pytest.fixture
async def house(server: DavServer, tmp_path: Path) -> AsyncIterator[LivingHouse]:
    clock = StillClock(NOW)
    async with living_house(tmp_path / "home", clock=clock, calendar_servers=server.place) as opened:
        yield opened


async def connected(house: LivingHouse, server: DavServer, user: User | None = None) -> str:
    """The person's account, with its copy made."""
    owner = user or house.admin
    id = await house.cortex.calendar_accounts.add_server(owner, server.base, "ann", PASSWORD)
    await house.cortex.calendar_sync.sync(owner.id, id)
    row = await house.cortex.runtime.db.repository(CalendarsRepository, owner.id).account(id)
    assert row.failure == ""
    return id


async def book(house: LivingHouse, account: str, name: str) -> AddressBookRow:
    rows = await house.cortex.runtime.db.repository(AddressBooksRepository, house.admin.id).of_account(account)
    return next(row for row in rows if row.name == name)


async def found(house: LivingHouse, words: str, user: User | None = None) -> list[Contact]:
    return list(await house.cortex.contacts_of((user or house.admin).id).find(words))


async def test_one_account_brings_the_contacts_with_the_calendars(house: LivingHouse, server: DavServer) -> None:
    url = server.make_book("seen")
    server.put_card(url, "seen-3", *MIA, "BDAY:1990-05-09", "ORG:Bakery;Sales", "NOTE:likes rye\\, and tea")
    server.put_card(url, "seen-4", "FN:José Ortiz", "TEL;VALUE=uri;TYPE=work:tel:+34-600", "BDAY:--0229", version="4.0")
    server.put_card(url, "seen-5", "FN:Choir", "N:Choir;;;;", "X-ADDRESSBOOKSERVER-KIND:group")
    await connected(house, server)
    (mia,) = await found(house, "keller")
    assert (mia.name, mia.birthday, mia.organization) == ("Mia Keller", "1990-05-09", "Bakery, Sales")
    assert [(one.label, one.value) for one in mia.emails] == [("home", "mia@example.org")]
    assert mia.note == "likes rye, and tea"
    (jose,) = await found(house, "jose")
    assert ([one.value for one in jose.phones], jose.birthday) == (["+34-600"], "--02-29")
    assert [one.name for one in await found(house, "15122")] == ["Mia Keller"], "a number is found without its signs"
    assert await found(house, "choir") == [], "a group is nobody"


async def test_only_what_changed_is_read_again_and_what_is_gone_goes(house: LivingHouse, server: DavServer) -> None:
    url = server.make_book("steps")
    first = server.put_card(url, "steps-1", "FN:Step One", "N:One;Step;;;")
    server.put_card(url, "steps-2", "FN:Step Two", "N:Two;Step;;;")
    account = await connected(house, server)
    before = {one.name: one.id for one in await found(house, "step")}
    server.delete(first)
    server.put_card(url, "steps-2", "FN:Step Second", "N:Second;Step;;;")
    server.put_card(url, "steps-3", "FN:Step Three", "N:Three;Step;;;")
    await house.cortex.calendar_sync.sync(house.admin.id, account)
    after = {one.name: one.id for one in await found(house, "step")}
    assert sorted(after) == ["Step Second", "Step Three"]
    assert after["Step Second"] == before["Step Two"], "who is renamed stays the same row"


async def test_a_large_photo_takes_nobody_away(house: LivingHouse, server: DavServer) -> None:
    url = server.make_book("photos")
    for number in range(3):
        photo = "PHOTO;ENCODING=b;TYPE=JPEG:" + "QUJD" * (8 * MB // 4 if number == 0 else 100)
        server.put_card(url, f"photo-{number}", f"FN:Photo {number}", f"N:{number};Photo;;;", photo)
    await connected(house, server)
    assert [one.name for one in await found(house, "photo")] == ["Photo 0", "Photo 1", "Photo 2"]
    contacts = house.cortex.contacts_of(house.admin.id)
    (large,) = await found(house, "photo 0")
    with pytest.raises(ToolFailed, match="more than"):
        await contacts.ready_change(large, ContactDraft(note="x"))
    (small,) = await found(house, "photo 1")
    await contacts.write(await contacts.ready_change(small, ContactDraft(note="on the bench")))
    assert "QUJDQUJD" in server.get(f"{url}photo-1.vcf"), "what another program wrote stays"


async def test_a_contact_is_written_changed_and_taken_away_and_each_is_taken_back(
    house: LivingHouse, server: DavServer
) -> None:
    server.make_book("written")
    account = await connected(house, server)
    contacts, place = house.cortex.contacts_of(house.admin.id), await book(house, account, "written")
    draft = ContactDraft(name="Ola Berg", emails=["ola@example.org"], birthday="--05-03", note="two\nlines; and, more")
    made = await contacts.ready_new(place.id, "ola@cortex", draft)
    version = await contacts.write(made)
    assert await contacts.write(made) == version, "a second try finds itself"
    (ola,) = await found(house, "ola berg")
    assert (ola.birthday, ola.note) == ("--05-03", "two\nlines; and, more")
    change = await contacts.ready_change(ola, ContactDraft(emails=["ola@example.org", "o@work.example"], birthday=""))
    changed = await contacts.write(change)
    (ola,) = await found(house, "ola berg")
    assert ([one.value for one in ola.emails], ola.birthday) == (["ola@example.org", "o@work.example"], "")
    back = await contacts.put_back(change, changed)
    (ola,) = await found(house, "ola berg")
    assert (len(ola.emails), ola.birthday) == (1, "--05-03")
    await contacts.write(await contacts.ready_change(ola, ContactDraft(nickname="O")))
    with pytest.raises(Conflict):
        await contacts.put_back(change, changed)
    (ola,) = await found(house, "ola berg")
    removal = await contacts.ready_removal(ola)
    assert await contacts.write(removal) == ""
    assert (await found(house, "ola berg"), server.get(made.url)) == ([], "")
    await contacts.put_back(removal, "")
    assert len(await found(house, "ola berg")) == 1
    assert back


async def test_a_line_of_a_hostile_text_becomes_no_line_of_the_card(house: LivingHouse, server: DavServer) -> None:
    server.make_book("lines")
    account = await connected(house, server)
    contacts, place = house.cortex.contacts_of(house.admin.id), await book(house, account, "lines")
    name = "Eve\r\nEMAIL:evil@example.org\r\nEND:VCARD"
    made = await contacts.ready_new(place.id, "eve@cortex", ContactDraft(name=name, note="a\r\nTEL:1\x00\x07"))
    await contacts.write(made)
    (eve,) = await found(house, "eve")
    assert (list(eve.emails), list(eve.phones)) == ([], [])


async def test_off_keeps_nothing_and_read_writes_nothing(house: LivingHouse, server: DavServer) -> None:
    url = server.make_book("modes")
    server.put_card(url, "modes-1", "FN:Mode Person", "N:Person;Mode;;;")
    account = await connected(house, server)
    row, books = await book(house, account, "modes"), house.cortex.contact_books
    await books.set_access(house.admin, row.id, "read", is_shared=False)
    contacts = house.cortex.contacts_of(house.admin.id)
    (one,) = await found(house, "mode person")
    with pytest.raises(ToolFailed, match="not write there"):
        await contacts.ready_change(one, ContactDraft(note="x"))
    await books.set_access(house.admin, row.id, "off", is_shared=True)
    assert await found(house, "mode person") == []
    assert await house.cortex.runtime.db.repository(ContactsRepository, house.admin.id).count([row.id]) == 0
    assert not (await book(house, account, "modes")).is_shared
    await books.set_access(house.admin, row.id, "read", is_shared=False)
    await house.cortex.calendar_sync.sync(house.admin.id, account)
    assert (await house.cortex.calendar_accounts.list(house.admin))[0][0].failure == ""
    assert len(await found(house, "mode person")) == 1


async def test_others_read_what_is_shared_alone_and_change_nothing(house: LivingHouse, server: DavServer) -> None:
    url = server.make_book("shared")
    server.put_card(url, "shared-1", "FN:Shared Plumber", "N:Plumber;Shared;;;")
    account = await connected(house, server)
    row, contacts = await book(house, account, "shared"), house.cortex.contacts_of(house.member.id)
    (own,) = await found(house, "shared plumber")
    assert await found(house, "plumber", house.member) == []
    with pytest.raises(NotFound):
        await contacts.get(own.id)
    with pytest.raises(NotFound):
        await house.cortex.contact_books.set_access(house.member, row.id, "read", is_shared=True)
    await house.cortex.contact_books.set_access(house.admin, row.id, "write", is_shared=True)
    (seen,) = await found(house, "plumber", house.member)
    assert (seen.book.owner, seen.book.account) == (house.admin.name, "")
    with pytest.raises(ToolFailed, match="another person's"):
        await contacts.ready_change(seen, ContactDraft(note="x"))
    told = (await house.cortex.audit_log.page(AuditFilter(kind="contacts"))).rows
    assert [(one.action, one.subject) for one in told] == [("contacts.shared", "shared")]
    await house.cortex.contact_books.set_access(house.admin, row.id, "write", is_shared=False)
    assert await found(house, "plumber", house.member) == []


async def test_an_account_with_address_books_alone_is_taken(house: LivingHouse, server: DavServer) -> None:
    url = server.make_book("alone")
    accounts = house.cortex.calendar_accounts
    id = await accounts.add_server(house.admin, url, "ann", PASSWORD)
    assert "alone" in [one.name for one in await house.cortex.contact_books.of_account(house.admin, id)]


async def test_what_the_person_owns_goes_with_them(house: LivingHouse, server: DavServer) -> None:
    url = server.make_book("leaving")
    server.put_card(url, "leaving-1", "FN:Leaving Friend", "N:Friend;Leaving;;;")
    account = await connected(house, server)
    await house.cortex.calendar_accounts.remove(house.admin, account)
    db = house.cortex.runtime.db
    assert await found(house, "leaving") == []
    assert await db.repository(AddressBooksRepository, house.admin.id).of_account(account) == []
    assert server.get(f"{url}leaving-1.vcf"), "what stands on the server stays there"
