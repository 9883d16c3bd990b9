"""The local copy: it follows the person's time zone, forgets what is switched off, and reads whole addresses."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from msgspec.structs import replace

from cortex.storage.appointments import AppointmentsRepository
from cortex.storage.calendars import Access, CalendarsRepository
from tests.dav_servers import PASSWORD, DavServer, event, radicale
from tests.living_house import LivingHouse, living_house
from tests.plain_dav import PlainDav
from tests.still_clock import StillClock

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
WEEK = (datetime(2026, 11, 30, tzinfo=UTC), datetime(2026, 12, 7, tzinfo=UTC))
DENTIST = ["DTSTART:20261201T090000Z", "DTEND:20261201T100000Z"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavServer]:
    with radicale(tmp_path_factory.mktemp("dav")) as running:
        yield running


@pytest.fixture
def clock() -> StillClock:
    return StillClock(NOW)


@pytest.fixture
async def house(server: DavServer, clock: StillClock, tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home", clock=clock, calendar_servers=server.place) as opened:
        yield opened


async def connected(house: LivingHouse, server: DavServer) -> str:
    id = await house.cortex.calendar_accounts.add_server(house.admin, server.base, "ann", PASSWORD)
    await synced(house, id)
    return id


async def synced(house: LivingHouse, id: str) -> None:
    await house.cortex.calendar_sync.sync(house.admin.id, id)
    assert (await house.rows(CalendarsRepository).account(id)).failure == ""


async def seen(house: LivingHouse, name: str, since: datetime = WEEK[0], until: datetime = WEEK[1]) -> list[datetime]:
    found = await house.cortex.calendars_of(house.admin.id).between(since, until)
    return [one.starts_at for one in found if one.calendar.name == name]


async def test_days_and_floating_times_follow_the_person_into_another_zone(
    house: LivingHouse, server: DavServer
) -> None:
    url = server.make("zones")
    server.put(url, "day", *event("zones-1", "Fair", "DTSTART;VALUE=DATE:20261202"))
    server.put(url, "time", *event("zones-2", "Pill", "DTSTART:20261203T080000", "DURATION:PT5M"))
    await house.cortex.accounts.set_time_zone(house.admin, "Europe/Berlin")
    account = await connected(house, server)
    assert [at.isoformat()[5:16] for at in await seen(house, "zones")] == ["12-01T23:00", "12-03T07:00"]
    await house.cortex.accounts.set_time_zone(house.admin, "America/New_York")
    await synced(house, account)
    assert [at.isoformat()[5:16] for at in await seen(house, "zones")] == ["12-02T05:00", "12-03T13:00"]


async def test_what_is_switched_off_leaves_nothing_behind_and_comes_back_whole(
    house: LivingHouse, server: DavServer
) -> None:
    server.put(server.make("off"), "dentist", *event("off-1", "Dentist", *DENTIST))
    account = await connected(house, server)
    own = next(one for one in await house.cortex.calendars_of(house.admin.id).names() if one.name == "off")
    await house.cortex.calendar_accounts.set_access(house.admin, own.id, "off", "")
    await synced(house, account)
    assert await house.rows(AppointmentsRepository).count(own.id) == 0
    await house.cortex.calendar_accounts.set_access(house.admin, own.id, "read", "")
    await synced(house, account)
    assert len(await seen(house, "off")) == 1


async def test_what_is_years_away_and_what_never_ends_is_there_when_its_time_comes(
    house: LivingHouse, server: DavServer, clock: StillClock
) -> None:
    url = server.make("far")
    server.put(url, "far", *event("far-1", "Expiry", "DTSTART:20300601T090000Z", "DURATION:PT1H"))
    server.put(url, "always", *event("far-2", "Bins", "DTSTART:20260601T090000Z", "RRULE:FREQ=YEARLY"))
    account = await connected(house, server)
    june = datetime(2030, 6, 1, tzinfo=UTC), datetime(2030, 6, 2, tzinfo=UTC)
    assert await seen(house, "far", *june) == []
    for _ in range(5):
        clock.forward(days=200)
        await synced(house, account)
    assert len(await seen(house, "far", *june)) == 2


class Address(BaseHTTPRequestHandler):
    """A calendar that is only read, of thousands of appointments, most of them past."""

    lines: tuple[str, ...] = ()

    def do_GET(self) -> None:
        body = "\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:x", *self.lines, "END:VCALENDAR", ""]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


async def test_an_address_with_thousands_of_old_appointments_shows_the_new_ones(tmp_path: Path) -> None:
    first = datetime(2015, 1, 1, tzinfo=UTC)
    starts = [first + timedelta(hours=24 * number) for number in range(4_400)]
    Address.lines = tuple(
        line
        for number, at in enumerate(starts)
        for line in event(f"{number}@old", f"Shift {number}", f"DTSTART:{at:%Y%m%dT%H%M%SZ}", "DURATION:PT1H")
    )
    served = ThreadingHTTPServer(("127.0.0.1", 0), Address)
    thread = Thread(target=served.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    place = f"127.0.0.1:{served.server_port}"
    try:
        async with living_house(tmp_path / "home", clock=StillClock(NOW), calendar_servers=place) as house:
            id = await house.cortex.calendar_accounts.add_address(house.admin, f"http://{place}/secret.ics", "Shifts")
            await synced(house, id)
            assert await seen(house, "Shifts") == [one for one in starts if WEEK[0] <= one < WEEK[1]]
            (calendar,) = await house.rows(CalendarsRepository).of_account(id)
            assert 0 < await house.rows(AppointmentsRepository).count(calendar.id) < 1_000, "what is long past is left"
            Address.lines = tuple(event("new@old", "Shift", *DENTIST))
            await synced(house, id)
            assert [at.day for at in await seen(house, "Shifts")] == [1]
            assert "secret" not in str(await house.rows(CalendarsRepository).accounts())
    finally:
        served.shutdown()
        thread.join()
        served.server_close()


@pytest.mark.parametrize(("was", "then"), [("write", "read"), ("busy", "busy")])
async def test_a_calendar_that_the_server_lets_nobody_write_to_any_more_is_read(
    house: LivingHouse, was: Access, then: Access
) -> None:
    dav = PlainDav()
    accounts = replace(house.cortex.calendar_accounts, connect=lambda _: dav)
    sync = replace(house.cortex.calendar_sync, accounts=accounts)
    account = await accounts.add_server(house.admin, "https://dav.example.org", "ann", PASSWORD)
    (row,) = await house.rows(CalendarsRepository).of_account(account)
    await accounts.set_access(house.admin, row.id, was, "")
    dav.can_write = False
    await sync.sync(house.admin.id, account)
    (row,) = await house.rows(CalendarsRepository).of_account(account)
    assert (row.can_write, row.access) == (False, then)
    dav.can_write = True
    await house.rows(CalendarsRepository).set_account(account, worked_at=None)
    await sync.sync(house.admin.id, account)
    (row,) = await house.rows(CalendarsRepository).of_account(account)
    assert (row.can_write, row.access) == (True, then), "what was taken is given back by the person"
