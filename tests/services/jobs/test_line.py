"""Jobs that are due together: they wait in line for a free place, are late and not missed, and nobody's line is all."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cortex.app import Cortex
from cortex.base.user import User
from cortex.services.jobs.runs import WAITED_TOO_LONG
from cortex.storage.halts import EVERYBODY, HaltsRepository
from cortex.storage.job_rows import JobRow
from cortex.storage.turns import TurnsRepository
from tests.databases import house_settings
from tests.living_house import LivingHouse, living_house
from tests.services.jobs.test_runs import NOON, Shift
from tests.still_clock import StillClock

ROOM = 3
LATE = {"minutes": 60}  # far past the 15 minutes of a job's rule
AFTER_DUE = {"minutes": 61}


@pytest.fixture
async def narrow(tmp_path: Path) -> AsyncIterator[Shift]:
    """A house at rest with room for three runs: what was begun stays at work, as with a model that takes its time."""
    clock = StillClock(NOON)
    async with living_house(tmp_path / "home", clock=clock):
        pass
    async with Cortex.at_rest(house_settings(tmp_path / "home", jobs_at_once=ROOM), clock=clock) as cortex:
        people = await cortex.accounts.named("ada"), await cortex.accounts.named("bob")
        yield Shift(house=LivingHouse(cortex, *people), clock=clock)


async def due_together(shift: Shift, count: int, owner: User | None = None) -> list[JobRow]:
    """So many jobs that ask a model, due at the same moment, which has come; in the order in which they begin."""
    jobs = [
        await shift.job(name=f"Job {number}", kind="prompt", owner=owner, timeout_s=6 * 3600) for number in range(count)
    ]
    shift.clock.forward(**AFTER_DUE)
    await shift.tick()
    return sorted(jobs, key=lambda job: job.id)


async def state(shift: Shift, job: JobRow) -> str:
    return (await shift.slots(job))[-1].state


async def states(shift: Shift, jobs: list[JobRow]) -> list[str]:
    return [await state(shift, job) for job in jobs]


async def end_one(shift: Shift, jobs: list[JobRow]) -> None:
    """The oldest run that is at work ends, whatever came of it."""
    for job in jobs:
        slot = (await shift.slots(job))[-1]
        if slot.state == "running" and slot.turn_id:
            row = await shift.house.cortex.runtime.db.repository(TurnsRepository, job.owner_id).get(slot.turn_id)
            await shift.house.cortex.turn_queue.turn_end.interrupt(row, "over")
            await shift.tick()
            return
    raise AssertionError("none is at work")


async def test_what_waits_in_line_is_late_and_not_missed(narrow: Shift) -> None:
    jobs = await due_together(narrow, ROOM + 4)
    assert await states(narrow, jobs) == ["running"] * ROOM + ["planned"] * 4
    narrow.clock.forward(**LATE)
    await narrow.tick()
    assert await states(narrow, jobs) == ["running"] * ROOM + ["planned"] * 4
    for _ in range(4):
        await end_one(narrow, jobs)
    assert await states(narrow, jobs) == ["failed"] * 4 + ["running"] * ROOM
    assert not [title for title, _ in await narrow.told() if "missed" in title]


async def test_a_run_in_line_says_since_when_and_how_many_are_before_it(narrow: Shift) -> None:
    jobs = await due_together(narrow, ROOM + 3)
    shown = [(await narrow.house.cortex.jobs.history(narrow.admin, job.id))[0] for job in jobs]
    assert [run.before for run in shown] == [None] * ROOM + [0, 1, 2]
    assert [run.slot.in_line_at for run in shown[ROOM:]] == [narrow.clock()] * 3
    views = (await narrow.house.cortex.jobs.list(narrow.admin)).jobs
    assert sorted(before for view in views for before in view.before.values()) == [0, 1, 2]


async def test_what_waits_in_line_when_the_process_dies_waits_on(tmp_path: Path) -> None:
    clock = StillClock(NOON)
    async with living_house(tmp_path / "home", clock=clock):
        pass
    settings = house_settings(tmp_path / "home", jobs_at_once=ROOM)
    async with Cortex.at_rest(settings, clock=clock) as cortex:
        people = await cortex.accounts.named("ada"), await cortex.accounts.named("bob")
        jobs = await due_together(Shift(house=LivingHouse(cortex, *people), clock=clock), ROOM + 2)
    clock.forward(**LATE)
    async with Cortex.at_rest(settings, clock=clock) as cortex:
        shift = Shift(house=LivingHouse(cortex, *people), clock=clock)
        await shift.tick()
        # Those of the life before still count: no more begin beside them.
        assert await states(shift, jobs) == ["running"] * ROOM + ["planned"] * 2
        await end_one(shift, jobs)
        assert await states(shift, jobs) == ["failed"] + ["running"] * ROOM + ["planned"]


async def test_the_line_of_one_person_keeps_nobody_else_away(narrow: Shift) -> None:
    many = await due_together(narrow, 3 * ROOM)
    few = [await narrow.job("every day at 13:05", kind="prompt", owner=narrow.house.member) for _ in range(2)]
    narrow.clock.forward(minutes=5)
    await narrow.tick()
    assert await states(narrow, few) == ["planned"] * 2
    await end_one(narrow, many)
    await end_one(narrow, many)
    assert sorted(await states(narrow, few)) == ["planned", "running"]
    assert (await states(narrow, many)).count("running") == ROOM - 1


async def test_what_fell_due_while_nobody_was_there_is_missed(narrow: Shift) -> None:
    jobs = [await narrow.job(kind="prompt") for _ in range(2)]
    narrow.clock.forward(minutes=61 + 16)
    await narrow.tick()
    assert await states(narrow, jobs) == ["missed"] * 2


@pytest.mark.parametrize("how", ["pause", "delete"])
async def test_a_job_in_line_can_be_paused_and_deleted(narrow: Shift, how: str) -> None:
    jobs = await due_together(narrow, ROOM + 2)
    waiting = await narrow.now(jobs[ROOM])
    if how == "pause":
        await narrow.house.cortex.jobs.enable(narrow.admin, waiting.id, waiting.version, is_enabled=False)
    else:
        await narrow.house.cortex.jobs.remove(narrow.admin, waiting.id, waiting.version)
    await end_one(narrow, jobs)
    assert await states(narrow, jobs[ROOM:]) == ["skipped", "running"]


async def test_who_is_stopped_leaves_the_line(narrow: Shift) -> None:
    """Work that is resumed a day later does not begin with the jobs of the morning before."""
    jobs = await due_together(narrow, ROOM + 1)
    halts = narrow.house.cortex.runtime.db.repository(HaltsRepository)
    await halts.add(EVERYBODY, narrow.admin.id, "Ada")
    narrow.clock.forward(**LATE)
    await narrow.tick()
    assert await state(narrow, jobs[ROOM]) == "planned"
    await halts.lift(EVERYBODY)
    await narrow.tick()
    slot = (await narrow.slots(jobs[ROOM]))[-1]
    assert (slot.state, slot.why) == ("missed", WAITED_TOO_LONG)


async def test_later_runs_of_a_job_stand_in_line_behind_its_first(narrow: Shift) -> None:
    """The earlier run has not begun for want of a place: the later one is late by that, and not missed."""
    others = await due_together(narrow, ROOM)
    hourly = await narrow.job("every hour", kind="prompt", overlap="queue")
    for _ in range(2):
        narrow.clock.forward(minutes=60)
        await narrow.tick()
    assert await narrow.states(hourly) == {"planned": 2}
    await end_one(narrow, others)
    narrow.clock.forward(minutes=30)
    await narrow.tick()
    assert [slot.state for slot in await narrow.slots(hourly)] == ["running", "planned"]


async def test_more_than_one_look_takes_are_all_in_line(narrow: Shift, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cortex.services.jobs.runs.TAKEN_MOST", ROOM + 1)
    jobs = await due_together(narrow, ROOM + 5)
    narrow.clock.forward(**LATE)
    await narrow.tick()
    assert await states(narrow, jobs) == ["running"] * ROOM + ["planned"] * 5
