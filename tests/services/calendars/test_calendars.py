"""Calendars over real servers: connected, read, kept in step, written to once, and shut to everybody else."""

import zipfile
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from cortex.base.errors import Conflict, NotAllowed, NotFound, ServiceDown, ToolFailed, UserError
from cortex.base.user import User
from cortex.ports.calendars import Draft, Occasion
from cortex.storage.audit import AuditFilter
from cortex.storage.calendars import CalendarsRepository
from cortex.storage.schema import Table
from tests.dav_servers import PASSWORD, DavServer, event, radicale, xandikos
from tests.living_house import LivingHouse, living_house
from tests.still_clock import StillClock

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
WEEK = (datetime(2026, 11, 30, tzinfo=UTC), datetime(2026, 12, 7, tzinfo=UTC))
OWNED = ("calendar_accounts", "calendars", "appointments", "appointment_dates")
DENTIST = ["DTSTART:20261201T090000Z", "DTEND:20261201T100000Z"]


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


async def week(house: LivingHouse, user: User | None = None) -> list[Occasion]:
    return list(await house.cortex.calendars_of((user or house.admin).id).between(*WEEK))


async def test_what_stands_on_the_server_is_seen(house: LivingHouse, server: DavServer) -> None:
    url = server.make("seen")
    server.put(url, "dentist", *event("seen-1", "Dentist", *DENTIST, "LOCATION:Main Street 1"))
    await connected(house, server)
    found = [one for one in await week(house) if one.calendar.name == "seen"]
    assert [(one.title, one.place, one.starts_at.hour) for one in found] == [("Dentist", "Main Street 1", 9)]


async def test_only_what_changed_is_read_again_and_what_is_gone_goes(house: LivingHouse, server: DavServer) -> None:
    url = server.make("steps")
    first = server.put(url, "one", *event("steps-1", "One", *DENTIST))
    server.put(url, "two", *event("steps-2", "Two", *DENTIST))
    account = await connected(house, server)
    server.delete(first)
    server.put(url, "two", *event("steps-2", "Two\\, later", "DTSTART:20261202T090000Z", "DTEND:20261202T100000Z"))
    server.put(url, "three", *event("steps-3", "Three", *DENTIST))
    await house.cortex.calendar_sync.sync(house.admin.id, account)
    found = [one for one in await week(house) if one.calendar.name == "steps"]
    assert [(one.title, one.starts_at.day) for one in found] == [("Three", 1), ("Two, later", 2)]


async def test_a_series_with_exceptions_in_another_zone(house: LivingHouse, server: DavServer) -> None:
    url = server.make("series")
    zone = "TZID=America/New_York"
    series = event(
        "series-1", "Call", f"DTSTART;{zone}:20261123T180000", "DURATION:PT1H",
        "RRULE:FREQ=DAILY;UNTIL=20261205T230000Z", f"EXDATE;{zone}:20261202T180000",
    )  # fmt: skip
    moved = event(
        "series-1", "Call\\, moved", f"RECURRENCE-ID;{zone}:20261203T180000", f"DTSTART;{zone}:20261203T200000",
        "DURATION:PT2H",
    )  # fmt: skip
    server.put(url, "call", *series, *moved)
    await connected(house, server)
    found = [one for one in await week(house) if one.calendar.name == "series"]
    assert [(one.title, one.starts_at.isoformat()[5:16]) for one in found] == [
        ("Call", "11-30T23:00"),
        ("Call", "12-01T23:00"),
        ("Call, moved", "12-04T01:00"),
        ("Call", "12-04T23:00"),
        ("Call", "12-05T23:00"),
    ]


async def test_what_is_written_stands_on_the_server_once(house: LivingHouse, server: DavServer) -> None:
    server.make("written")
    await connected(house, server)
    calendars = house.cortex.calendars_of(house.admin.id)
    there = next(one for one in await calendars.names() if one.name == "written")
    draft = Draft(title="Piano, Ada", starts="2026-12-01T16:00", ends="2026-12-01T17:00", zone="Europe/Berlin")
    written = await calendars.ready_new(there.id, "once-1@cortex", draft)
    version = await calendars.write(written)
    assert await calendars.write(written) == version, "a second try, after a kill, found itself"
    found = [one for one in await week(house) if one.calendar.name == "written"]
    assert [(one.title, one.starts_at.hour) for one in found] == [("Piano, Ada", 15)]
    assert server.get(written.url).count("BEGIN:VEVENT") == 1


async def test_a_change_is_made_once_and_taken_back(house: LivingHouse, server: DavServer) -> None:
    url = server.make("changed")
    place = server.put(url, "dentist", *event("changed-1", "Dentist", *DENTIST, "X-PHONE-ALARM:12"))
    await connected(house, server)
    calendars = house.cortex.calendars_of(house.admin.id)
    found = next(one for one in await week(house) if one.calendar.name == "changed")
    written = await calendars.ready_change(found, Draft(title="Dentist, Mia"), all_dates=False)
    version = await calendars.write(written)
    assert await calendars.write(written) == version
    assert "SUMMARY:Dentist\\, Mia" in server.get(place)
    assert "X-PHONE-ALARM:12" in server.get(place), "what another program wrote stays"
    await calendars.put_back(written, version)
    assert "SUMMARY:Dentist\r\n" in server.get(place).replace("\n", "\r\n").replace("\r\r", "\r")


async def test_a_change_over_anothers_is_refused(house: LivingHouse, server: DavServer) -> None:
    url = server.make("raced")
    place = server.put(url, "dentist", *event("raced-1", "Dentist", *DENTIST))
    await connected(house, server)
    calendars = house.cortex.calendars_of(house.admin.id)
    found = next(one for one in await week(house) if one.calendar.name == "raced")
    written = await calendars.ready_change(found, Draft(title="Ours"), all_dates=False)
    server.put(url, "dentist", *event("raced-1", "Theirs", *DENTIST))
    with pytest.raises(Conflict):
        await calendars.write(written)
    assert "Theirs" in server.get(place)


async def test_one_date_of_a_series_is_taken_out(house: LivingHouse, server: DavServer) -> None:
    url = server.make("dates")
    server.put(url, "run", *event("dates-1", "Run", *DENTIST, "RRULE:FREQ=DAILY;COUNT=4"))
    await connected(house, server)
    calendars = house.cortex.calendars_of(house.admin.id)
    second = [one for one in await week(house) if one.calendar.name == "dates"][1]
    await calendars.write(await calendars.ready_removal(second, all_dates=False))
    assert [one.starts_at.day for one in await week(house) if one.calendar.name == "dates"] == [1, 3, 4]


async def test_a_rule_of_each_minute_costs_nothing(house: LivingHouse, server: DavServer) -> None:
    url = server.make("bomb")
    server.put(url, "bomb", *event("bomb-1", "Tick", "DTSTART:20200101T000000Z", "RRULE:FREQ=MINUTELY"))
    server.put(url, "dentist", *event("bomb-2", "Dentist", *DENTIST))
    await connected(house, server)
    assert [one.title for one in await week(house) if one.calendar.name == "bomb"] == ["Dentist"]


async def test_another_person_sees_what_is_shared_and_no_more(house: LivingHouse, server: DavServer) -> None:
    url = server.make("shared")
    server.put(url, "dentist", *event("shared-1", "Dentist", *DENTIST, "LOCATION:Main Street 1"))
    await connected(house, server)
    own = next(one for one in await week(house) if one.calendar.name == "shared")
    accounts, other = house.cortex.calendar_accounts, house.cortex.calendars_of(house.member.id)
    assert not await week(house, house.member)
    await accounts.set_access(house.admin, own.calendar.id, "write", "busy")
    assert [(one.title, one.place, one.id) for one in await week(house, house.member)] == [("Busy", "", "")]
    await accounts.set_access(house.admin, own.calendar.id, "write", "read")
    (seen,) = await week(house, house.member)
    assert (seen.title, seen.calendar.owner) == ("Dentist", house.admin.name)
    with pytest.raises(ToolFailed):
        await other.ready_change(seen, Draft(title="Mine"), all_dates=False)
    with pytest.raises(NotFound):
        await accounts.set_access(house.member, own.calendar.id, "write", "read")
    await accounts.set_access(house.admin, own.calendar.id, "off", "read")
    assert not await week(house, house.member)


async def test_a_server_inside_the_network_that_nobody_named_is_refused(server: DavServer, tmp_path: Path) -> None:
    async with living_house(tmp_path / "other") as house:
        with pytest.raises((UserError, NotAllowed)):
            await house.cortex.calendar_accounts.add_server(house.admin, server.base, "ann", PASSWORD)
        with pytest.raises((ServiceDown, ToolFailed, NotAllowed)):
            await house.cortex.calendar_accounts.add_server(
                house.admin, f"https://127.0.0.1:{server.port}", "ann", PASSWORD
            )


async def test_a_server_that_is_away_leaves_the_copy_and_says_so(tmp_path: Path) -> None:
    with radicale(tmp_path / "dav") as server:
        server.put(server.make("away"), "dentist", *event("away-1", "Dentist", *DENTIST))
        async with living_house(tmp_path / "home", clock=StillClock(NOW), calendar_servers=server.place) as house:
            account = await connected(house, server)
    async with living_house(tmp_path / "home", clock=StillClock(NOW), calendar_servers=server.place) as house:
        await house.cortex.calendar_sync.sync(house.admin.id, account)
        row = await house.rows(CalendarsRepository).account(account)
        assert "could not be reached" in row.failure
        assert row.next_at > NOW + timedelta(minutes=15), "it is left alone longer"
        (found,) = await week(house)
        assert found.calendar.is_stale == row.failure


async def test_a_wrong_password_is_told_and_nothing_kept(tmp_path: Path) -> None:
    with radicale(tmp_path / "dav") as server:
        async with living_house(tmp_path / "home", clock=StillClock(NOW), calendar_servers=server.place) as house:
            with pytest.raises(ServiceDown, match="name and password"):
                await house.cortex.calendar_accounts.add_server(house.admin, server.base, "ann", "wrong")
            assert not await house.cortex.calendar_accounts.list(house.admin)


async def test_removing_an_account_forgets_all_of_it(house: LivingHouse, server: DavServer) -> None:
    url = server.make("gone")
    place = server.put(url, "dentist", *event("gone-1", "Dentist", *DENTIST))
    account = await connected(house, server)
    assert await week(house)
    with pytest.raises(NotFound):
        await house.cortex.calendar_accounts.remove(house.member, account)
    await house.cortex.calendar_accounts.remove(house.admin, account)
    assert not await week(house)
    assert server.get(place), "what stands on the server stays there"


async def test_what_is_connected_shared_and_removed_stands_in_the_log(house: LivingHouse, server: DavServer) -> None:
    server.make("logged")
    account = await connected(house, server)
    own = next(one for one in await house.cortex.calendars_of(house.admin.id).names() if one.name == "logged")
    for shared in ("read", "read", ""):
        await house.cortex.calendar_accounts.set_access(house.admin, own.id, "write", shared)
    await house.cortex.calendar_accounts.remove(house.admin, account)
    rows = [row for row in (await house.cortex.audit_log.page(AuditFilter(kind="calendar"))).rows]
    assert [(row.action.partition(".")[2], row.subject) for row in reversed(rows)] == [
        ("connected", "127.0.0.1"),
        ("shared", "logged"),
        ("shared", "logged"),
        ("removed", "127.0.0.1"),
    ]
    assert PASSWORD not in str(rows)


async def test_whose_calendars_fail_for_a_while_is_said_to_who_looks_after_the_server(tmp_path: Path) -> None:
    with radicale(tmp_path / "dav") as server:
        server.make("away")
        async with living_house(tmp_path / "home", clock=StillClock(NOW), calendar_servers=server.place) as house:
            assert (await house.cortex.live_health.calendars()).text.startswith("No calendar")
            account = await connected(house, server, house.member)
            assert (await house.cortex.live_health.calendars()).state == "good"
    async with living_house(tmp_path / "home", clock=StillClock(NOW), calendar_servers=server.place) as house:
        for state in ("good", "warn"):
            await house.cortex.calendar_sync.sync(house.member.id, account)
            found = await house.cortex.live_health.calendars()
            assert (found.state, house.member.name in found.text) == (state, state == "warn")
        assert server.place not in str(found)


async def test_a_deleted_person_takes_their_calendars_along_and_an_archive_has_them(
    house: LivingHouse, server: DavServer
) -> None:
    url = server.make("mine")
    place = server.put(url, "dentist", *event("mine-1", "Dentist", *DENTIST))
    account = await connected(house, server, house.member)
    path = await house.cortex.belongings.archive(house.member)
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist()}
    assert all(files[f"data/{name}.jsonl"] for name in OWNED)
    assert "Dentist" in files["data/appointments.jsonl"]
    assert PASSWORD not in "".join(files.values())
    await house.cortex.deletions.delete(house.admin, house.member.id, house.member.name)
    async with house.cortex.runtime.db.session_scope(reading=True) as session:
        for name in OWNED:
            assert not (await session.execute(select(Table.metadata.tables[name]))).all()
    await house.cortex.calendar_sync.sync(house.member.id, account)
    assert server.get(place), "what stands on the server stays there"
