"""Jobs that stand beside appointments of a real calendar server, on a clock that stands still."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from cortex.base.errors import ToolFailed, UserError
from cortex.base.user import User
from cortex.services.jobs.appointments import JobAppointments
from cortex.services.jobs.firing import JobFiring
from cortex.services.jobs.forms import JobForm
from cortex.services.jobs.starts import ABOUT_APPOINTMENTS, GONE
from cortex.services.timings import LazyReader
from cortex.storage.calendars import CalendarsRepository
from cortex.storage.job_rows import JobRow
from cortex.storage.jobs import JobsRepository
from cortex.storage.slot_history import SlotHistoryRepository
from cortex.storage.slots import SlotsRepository
from cortex.storage.turns import TurnsRepository
from tests.dav_servers import PASSWORD, DavServer, event, radicale
from tests.living_house import LivingHouse, living_house
from tests.still_clock import StillClock

NOW = datetime(2026, 11, 30, 8, tzinfo=UTC)
WHEN = "an hour before each appointment named dentist"
LEAVE = JobForm(name="Leave", kind="message", prompt="Time to leave.", when=WHEN, time_zone="UTC")


@dataclass(frozen=True, slots=True, kw_only=True)
class Practice:
    """A house with a calendar on a server, a job's clock, and nobody who looks by himself."""

    house: LivingHouse
    clock: StillClock
    server: DavServer
    url: str

    @property
    def admin(self) -> User:
        return self.house.admin

    def put(self, name: str, hour: str, title: str = "Dentist", *lines: str) -> str:
        """An appointment of an hour on 30 November, as the phone writes it."""
        start = f"DTSTART:20261130T{hour.replace(':', '')}00Z"
        return self.server.put(self.url, name, *event(name, title, start, "DURATION:PT1H", *lines))

    async def synced(self) -> None:
        for account in await self.house.rows(CalendarsRepository).accounts():
            await self.house.cortex.calendar_sync.sync(self.admin.id, account.id)

    async def add(self, form: JobForm = LEAVE, user: User | None = None) -> JobRow:
        return await self.house.cortex.jobs.add(user or self.admin, form)

    async def tick(self, hour: str = "") -> None:
        """Do what alarm and runner do, at this hour of the day."""
        if hour:
            at = datetime.fromisoformat(f"2026-11-30T{hour}+00:00")
            self.clock.forward(seconds=(at - self.clock()).total_seconds())
        runs = self.house.cortex.job_runs
        for _ in range(2):
            for armed in await runs.armed(self.clock()):
                await runs.fire(armed)
            await runs.settle_slots()

    async def slots(self, job: JobRow) -> list[tuple[str, str]]:
        """When each was due, and how it stands; the oldest first."""
        history = self.house.cortex.runtime.db.repository(SlotHistoryRepository, job.owner_id)
        return [(f"{slot.due_at:%H:%M}", str(slot.state)) for slot in await history.list(job.id, limit=100)][::-1]

    async def told(self) -> list[str]:
        return [view.row.text for view in (await self.house.cortex.notices.page(self.admin.id)).notices][::-1]

    async def next_at(self, job: JobRow) -> datetime | None:
        return (await self.house.cortex.runtime.db.repository(JobsRepository, job.owner_id).get(job.id)).next_at


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavServer]:
    with radicale(tmp_path_factory.mktemp("dav")) as running:
        yield running


@pytest.fixture
async def practice(server: DavServer, tmp_path: Path) -> AsyncIterator[Practice]:
    clock = StillClock(NOW)
    url = server.make("Home")
    async with living_house(tmp_path / "home", clock=clock, calendar_servers=server.place) as house:
        await house.cortex.calendar_accounts.add_server(house.admin, server.base, "ann", PASSWORD)
        yield Practice(house=house, clock=clock, server=server, url=url)
    server.delete(url)


async def test_it_runs_an_hour_before_each_and_says_which(practice: Practice) -> None:
    practice.put("one", "10:00", "Dentist, Mia", "LOCATION:Main Street 5")
    practice.put("two", "14:00", "The Dentistry shop")
    practice.put("three", "12:00", "Party with the dental team")
    await practice.synced()
    found = await practice.house.cortex.jobs.preview(practice.admin, WHEN, "UTC")
    assert [f"{at:%H:%M}" for at in found.times] == ["09:00", "13:00"]
    assert [title.partition(",")[0] for title in found.titles] == ["Dentist", "The Dentistry shop"]
    job = await practice.add()
    assert job.next_at == NOW + timedelta(hours=1)
    await practice.tick()
    assert await practice.slots(job) == []
    await practice.tick("09:00")
    await practice.tick("09:01")
    assert await practice.slots(job) == [("09:00", "done")]
    (text,) = await practice.told()
    assert text.startswith("Time to leave.\nDentist")
    assert "Mon 2026-11-30 10:00 to 11:00; Main Street 5" in text
    assert await practice.next_at(job) == NOW.replace(hour=13)


async def test_one_that_is_moved_runs_at_its_new_time_and_one_that_is_removed_does_not(practice: Practice) -> None:
    practice.put("moved", "10:00")
    removed = practice.put("removed", "12:00")
    await practice.synced()
    job = await practice.add()
    practice.put("moved", "10:30")
    practice.server.delete(removed)
    await practice.synced()
    for hour in ("09:00", "09:30", "11:00"):
        await practice.tick(hour)
    assert await practice.slots(job) == [("09:30", "done")]
    practice.put("moved", "15:00")  # it is later still: an hour before is now
    await practice.synced()
    await practice.tick("14:00")
    assert await practice.slots(job) == [("09:30", "done"), ("14:00", "done")]


async def test_one_that_comes_late_is_caught_up_as_far_as_the_job_allows(practice: Practice) -> None:
    job = await practice.add()
    assert job.next_at is None
    await practice.tick()
    practice.put("short", "09:20")  # an hour before was 8:20
    await practice.tick("08:30")
    await practice.synced()
    await practice.tick()
    assert await practice.slots(job) == [("08:20", "done")]
    practice.put("past", "09:10")  # and 8:10 is more than 15 minutes ago
    await practice.synced()
    await practice.tick()
    assert await practice.slots(job) == [("08:20", "done")]


async def test_a_new_job_leaves_what_was_before_it(practice: Practice) -> None:
    practice.put("before", "09:00")
    await practice.synced()
    practice.clock.forward(minutes=5)
    job = await practice.add()
    await practice.tick()
    practice.put("other", "18:00")
    await practice.synced()
    await practice.tick()
    assert await practice.slots(job) == []


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"on_miss": "once", "fire_within_s": "7200"}, ["missed", "done", "done"]),
        ({"on_miss": "catchup", "fire_within_s": "900"}, ["missed", "missed", "done"]),
        ({"on_miss": "skip"}, ["missed", "missed", "missed"]),
    ],
    ids=["each within the delay", "within a shorter one", "skip"],
)
async def test_what_was_missed_while_it_was_off_is_caught_up_by_the_rules_and_listed(
    practice: Practice, policy: dict[str, str], expected: list[str]
) -> None:
    for name, hour in (("a", "10:00"), ("b", "11:30"), ("c", "12:05")):
        practice.put(name, hour)
    await practice.synced()
    job = await practice.add(replace(LEAVE, **policy))
    await practice.tick()
    await practice.tick("11:15")
    assert await practice.slots(job) == list(zip(("09:00", "10:30", "11:05"), expected, strict=True))


async def test_a_change_between_looking_and_writing_down_is_not_lost(practice: Practice) -> None:
    practice.put("one", "10:00")
    await practice.synced()
    job = await practice.add()
    await practice.tick()
    await practice.tick("08:59")
    practice.clock.forward(minutes=1)
    (armed,) = await practice.house.cortex.job_runs.armed(practice.clock())
    whole = practice.house.cortex.job_appointments(practice.admin.id)
    changed: list[str] = []

    class Slow(JobAppointments, frozen=True, kw_only=True):
        async def due(self, *given: object, **named: object) -> object:  # type: ignore[override]
            found = await super().due(*given, **named)  # type: ignore[arg-type]
            if not changed:
                changed.append(practice.put("one", "10:40"))
                await practice.synced()
            return found

    slow = Slow(open=whole.open, clock=whole.clock)
    firing = JobFiring(
        runtime=practice.house.cortex.runtime, notifier=practice.house.cortex.notices, appointments_of=lambda _: slow
    )
    assert not await firing.fire(armed)
    await practice.tick()
    assert await practice.slots(job) == []
    assert await practice.next_at(job) == NOW.replace(hour=9, minute=40)


@pytest.mark.parametrize("kind", ["message", "prompt", "call"])
async def test_one_that_goes_between_its_time_and_its_run_is_passed_over(practice: Practice, kind: str) -> None:
    await practice.synced()
    job = await practice.add(replace(LEAVE, kind=kind, tool="task_list" if kind == "call" else ""))
    assert await practice.house.rows(SlotsRepository).write_down(job.id, practice.clock())
    await practice.tick()
    (slot,) = await practice.house.rows(SlotHistoryRepository).list(job.id, limit=9)
    assert (slot.state, slot.why, slot.turn_id) == ("skipped", GONE, None)
    assert await practice.told() == []


@pytest.mark.parametrize("is_of_others", [False, True], ids=["own", "an invitation that was taken"])
async def test_a_run_is_told_the_appointment_as_facts_and_is_marked_where_others_wrote_it(
    practice: Practice, is_of_others: bool
) -> None:
    accounts = practice.house.rows(CalendarsRepository)
    await practice.synced()  # which asks the server for the person's addresses: this one knows none
    await accounts.set_account((await accounts.accounts())[0].id, addresses="ada@example.org")
    guests = ("ORGANIZER:mailto:karim@example.org", "ATTENDEE;PARTSTAT=ACCEPTED:mailto:ada@example.org")
    practice.put("one", "10:00", "Dentist", *(guests if is_of_others else ()))
    await practice.synced()
    job = await practice.add(replace(LEAVE, kind="prompt", prompt="How long is the way?"))
    await practice.tick()
    await practice.tick("09:00")
    (slot,) = await practice.house.rows(SlotHistoryRepository).list(job.id, limit=9)
    turn = await practice.house.rows(TurnsRepository).get(slot.turn_id or "")
    assert turn.text.startswith(f"How long is the way?\n\n{ABOUT_APPOINTMENTS}\n```\nDentist; Mon 2026-11-30")
    assert (turn.is_tainted, turn.has_read_outside, turn.has_read_private) == (is_of_others, is_of_others, True)


@pytest.mark.parametrize(("answer", "starts"), [("NEEDS-ACTION", False), ("DECLINED", False), ("TENTATIVE", True)])
async def test_an_invitation_starts_nothing_before_it_is_taken(practice: Practice, answer: str, starts: bool) -> None:
    accounts = practice.house.rows(CalendarsRepository)
    await practice.synced()  # which asks the server for the person's addresses: this one knows none
    await accounts.set_account((await accounts.accounts())[0].id, addresses="ada@example.org")
    guests = ("ORGANIZER:mailto:stranger@example.org", f"ATTENDEE;PARTSTAT={answer}:mailto:ada@example.org")
    practice.put("asked", "10:00", "Dentist", *guests)
    await practice.synced()
    job = await practice.add()
    await practice.tick()
    await practice.tick("09:00")
    assert bool(await practice.slots(job)) == starts


async def test_another_person_s_job_follows_what_is_shared_to_read_and_nothing_else(practice: Practice) -> None:
    house = practice.house
    with pytest.raises(UserError, match="no calendar"):
        await practice.add(user=house.member)
    practice.put("one", "10:00")
    await practice.synced()
    ((_, (calendar,)),) = await house.cortex.calendar_accounts.list(house.admin)
    await house.cortex.calendar_accounts.set_access(house.admin, calendar.id, "write", "read")
    job = await practice.add(user=house.member)
    await practice.tick()
    assert await practice.next_at(job) == NOW.replace(hour=9)
    await house.cortex.calendar_accounts.set_access(house.admin, calendar.id, "write", "busy")
    await practice.tick()
    assert await practice.next_at(job) is None
    await practice.tick("09:00")
    assert await practice.slots(job) == []
    await house.cortex.calendar_accounts.set_access(house.admin, calendar.id, "write", "read")
    practice.put("two", "12:00")
    await practice.synced()
    await practice.tick()
    assert await practice.next_at(job) == NOW.replace(hour=11)


async def test_a_paused_job_runs_nothing_of_its_pause_and_one_that_is_set_going_follows_again(
    practice: Practice,
) -> None:
    practice.put("one", "10:00")
    practice.put("two", "12:00")
    await practice.synced()
    job = await practice.add()
    jobs = practice.house.cortex.jobs
    paused = await jobs.enable(practice.admin, job.id, job.version, is_enabled=False)
    await practice.tick("09:05")
    going = await jobs.enable(practice.admin, job.id, paused.version, is_enabled=True)
    assert going.next_at == NOW.replace(hour=11)
    await practice.tick()
    await practice.tick("11:00")
    assert await practice.slots(job) == [("11:00", "done")]


async def test_a_series_runs_beside_each_of_its_dates_and_after_the_end_where_that_is_said(practice: Practice) -> None:
    practice.put("daily", "10:00", "Dentist", "RRULE:FREQ=DAILY;COUNT=5", "EXDATE:20261201T100000Z")
    await practice.synced()
    found = await practice.house.cortex.jobs.preview(practice.admin, "15 minutes after each appointment", "UTC")
    assert [f"{at:%d %H:%M}" for at in found.times] == ["30 11:15", "02 11:15", "03 11:15", "04 11:15"]


async def test_whoever_has_no_calendar_hears_so_and_a_reminder_says_what_can(practice: Practice) -> None:
    with pytest.raises(UserError, match="Connect one on the page Calendar"):
        await practice.house.cortex.jobs.preview(practice.house.member, WHEN, "UTC")
    with pytest.raises(ToolFailed, match="Only a job can follow appointments"):
        LazyReader().read(WHEN, NOW, "UTC")  # as a reminder is read


async def test_one_behind_thousands_of_others_is_found(practice: Practice) -> None:
    practice.put("often", "10:00", "Pill", "RRULE:FREQ=MINUTELY;INTERVAL=5;COUNT=2400")
    start = "DTSTART:20261212T100000Z"
    practice.server.put(practice.url, "vet", *event("vet", "Vet", start, "DURATION:PT1H"))
    await practice.synced()
    found = await practice.house.cortex.jobs.preview(practice.admin, "a day before each appointment named vet", "UTC")
    assert [f"{at:%d %H:%M}" for at in found.times] == ["11 10:00"]


async def test_two_at_one_time_are_one_run_that_names_both(practice: Practice) -> None:
    practice.put("one", "10:00", "Dentist")
    practice.put("two", "10:00", "Dentist for the cat")
    await practice.synced()
    job = await practice.add()
    await practice.tick()
    await practice.tick("09:00")
    assert await practice.slots(job) == [("09:00", "done")]
    (text,) = await practice.told()
    assert sorted(line.partition(";")[0] for line in text.splitlines()[1:]) == ["Dentist", "Dentist for the cat"]
