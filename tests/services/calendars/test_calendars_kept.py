"""Calendars in a backup that is put back, in a person's archive, and when their account is deleted."""

import json
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cortex.services.backup import restore
from cortex.services.jobs.forms import JobForm
from cortex.storage.appointments import AppointmentsRepository
from cortex.storage.calendars import CalendarsRepository, account_key
from cortex.storage.jobs import JobsRepository
from cortex.storage.secrets import SecretsRepository
from tests.dav_servers import PASSWORD, DavServer, event, radicale
from tests.living_house import LivingHouse, living_house
from tests.services.accounts.test_deletions import rows_of
from tests.services.backup.test_backups import client_programs as client_programs
from tests.still_clock import StillClock

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
DENTIST = ["DTSTART:20261201T090000Z", "DTEND:20261201T100000Z"]
LEAVE = JobForm(name="Leave", kind="message", prompt="Go.", when="an hour before each appointment", time_zone="UTC")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[DavServer]:
    with radicale(tmp_path / "dav") as running:
        yield running


async def connected(house: LivingHouse, server: DavServer) -> str:
    id = await house.cortex.calendar_accounts.add_server(house.admin, server.base, "ann", PASSWORD)
    await synced(house, id)
    return id


async def synced(house: LivingHouse, id: str) -> str:
    """Ask the server; why that failed, or nothing."""
    await house.cortex.calendar_sync.sync(house.admin.id, id)
    return (await house.rows(CalendarsRepository).account(id)).failure


async def titles(house: LivingHouse) -> list[str]:
    found = await house.cortex.calendars_of(house.admin.id).between(NOW, NOW.replace(year=2027))
    return sorted(one.title for one in found)


async def test_a_backup_brings_accounts_their_keys_and_jobs_back_and_the_copy_follows_the_server(
    server: DavServer, tmp_path: Path
) -> None:
    url, home, clock = server.make("Home"), tmp_path / "home", StillClock(NOW)
    dentist = server.put(url, "dentist", *event("dentist", "Dentist", *DENTIST))
    async with living_house(home, clock=clock, calendar_servers=server.place) as house:
        id = await connected(house, server)
        job = await house.cortex.jobs.add(house.admin, LEAVE)
        settings = house.cortex.settings
        made = await house.cortex.backups.make()
        await house.cortex.calendar_accounts.remove(house.admin, id)
        await house.cortex.jobs.remove(house.admin, job.id, job.version)
        assert await titles(house) == []
    server.put(url, "vet", *event("vet", "Vet", *DENTIST))
    await restore.prepare(settings, home / "backups" / made.name, "")
    assert await restore.finish(settings)
    async with living_house(home, clock=clock, calendar_servers=server.place) as house:
        assert await titles(house) == ["Dentist"]
        assert (await house.rows(JobsRepository).get(job.id)).timing == job.timing
        server.delete(dentist)
        assert await synced(house, id) == ""
        assert await titles(house) == ["Vet"], "the kept token asks on from where the backup was made"


async def test_an_account_whose_key_is_lost_says_so_and_keeps_its_copy(server: DavServer, tmp_path: Path) -> None:
    server.put(server.make("Home"), "dentist", *event("dentist", "Dentist", *DENTIST))
    async with living_house(tmp_path / "home", clock=StillClock(NOW), calendar_servers=server.place) as house:
        id = await connected(house, server)
        await house.rows(SecretsRepository).remove(account_key(id))  # as where the secret key of the home is another
        assert "password" in await synced(house, id)
        assert await titles(house) == ["Dentist"]


async def test_the_archive_has_the_calendars_and_no_key(server: DavServer, tmp_path: Path) -> None:
    server.put(server.make("Home"), "dentist", *event("dentist", "Dentist", *DENTIST))
    async with living_house(tmp_path / "home", clock=StillClock(NOW), calendar_servers=server.place) as house:
        await connected(house, server)
        path = await house.cortex.belongings.archive(house.admin)
    with zipfile.ZipFile(path) as archive:
        whole = b"".join(archive.read(name) for name in archive.namelist())
        lines = archive.read("data/appointments.jsonl").decode().splitlines()
        accounts = archive.read("data/calendar_accounts.jsonl").decode()
    assert [json.loads(line)["title"] for line in lines] == ["Dentist"]
    assert server.base in accounts
    assert PASSWORD.encode() not in whole


async def test_with_a_person_their_calendars_go_and_what_was_shared_is_seen_no_more(
    server: DavServer, tmp_path: Path
) -> None:
    server.put(server.make("Home"), "dentist", *event("dentist", "Dentist", *DENTIST))
    async with living_house(tmp_path / "home", clock=StillClock(NOW), calendar_servers=server.place) as house:
        cortex, bob = house.cortex, house.member
        id = await cortex.calendar_accounts.add_server(bob, server.base, "ann", PASSWORD)
        await cortex.calendar_sync.sync(bob.id, id)
        ((_, (calendar,)),) = await cortex.calendar_accounts.list(bob)
        await cortex.calendar_accounts.set_access(bob, calendar.id, "write", "read")
        job = await cortex.jobs.add(house.admin, LEAVE)
        assert job.next_at is not None
        assert {"calendars", "appointments", "secrets"} <= (await rows_of(cortex.runtime.db, bob.id)).keys()
        await cortex.deletions.delete(house.admin, bob.id, bob.name)
        assert (await rows_of(cortex.runtime.db, bob.id)).keys() <= {"audit"}
        assert await house.rows(AppointmentsRepository).count(calendar.id) == 0
        assert await titles(house) == []
