import asyncio
from datetime import datetime, timedelta, timezone

import pytest

from cortex.base.errors import NotFound
from cortex.base.job import SlotState
from cortex.storage.accounts import AccountsRepository
from cortex.storage.db import Database
from cortex.storage.jobs import AllJobsRepository, JobsRepository
from cortex.storage.slot_history import RunMean, SlotHistoryRepository
from cortex.storage.slots import RESULT_CHARACTERS, AllSlotsRepository, Misses, SlotsRepository, slot_id
from tests.still_clock import StillClock
from tests.storage.conftest import Written
from tests.storage.made_time import DAY, HOUR, NEWS, NINE, named, second_process


@pytest.fixture
async def job(db: Database, ann: str) -> str:
    return (await db.repository(JobsRepository, ann).add("news", NEWS, NINE)).id


async def ran(db: Database, owner_id: str, job_id: str, due_at: datetime, cost_usd: float | None = 0.5) -> str:
    slots, id = db.repository(SlotsRepository, owner_id), slot_id(job_id, due_at)
    await slots.write_down(job_id, due_at)
    await slots.start(id)
    await slots.end(id, "done", result="the same", cost_usd=cost_usd, tokens=100)
    return id


async def test_a_slot_has_one_id_in_every_zone_and_by_the_second(db: Database, ann: str, job: str) -> None:
    slots = db.repository(SlotsRepository, ann)
    assert slot_id(job, NINE) == "cron:news:20261121T090000Z"
    assert await slots.write_down(job, NINE.astimezone(timezone(timedelta(hours=5, minutes=30)))) is True
    assert await slots.write_down(job, NINE + timedelta(milliseconds=7), state="missed", why="too late") is False
    (slot,) = await slots.open_of(job)
    assert (slot.id, slot.due_at, slot.state, slot.ended_at) == (slot_id(job, NINE), NINE, "planned", None)


async def test_of_two_processes_one_opens_and_one_starts_a_slot(db: Database, ann: str, job: str) -> None:
    async with second_process(db) as other:
        sides = [one.repository(SlotsRepository, ann) for one in (db, other) * 4]
        opened = await asyncio.gather(*(side.write_down(job, NINE) for side in sides))
        started = await asyncio.gather(*(side.start(slot_id(job, NINE), "turn") for side in sides))
        ended = await asyncio.gather(*(side.end(slot_id(job, NINE), "failed") for side in sides))
    assert [sorted(won) for won in (opened, started)] == [[False] * 7 + [True]] * 2
    assert [end.failures for end in ended if end] == [1]
    slot = await db.repository(SlotsRepository, ann).get(slot_id(job, NINE))
    assert (slot.attempt, slot.turn_id, slot.state) == (1, "turn", "failed")


async def test_a_failed_attempt_waits_for_the_next_and_costs_add_up(
    db: Database, ann: str, job: str, clock: StillClock
) -> None:
    slots, id = db.repository(SlotsRepository, ann), slot_id(job, NINE)
    await slots.write_down(job, NINE)
    assert await slots.again(id, 0, NINE, "not begun") is False
    await slots.start(id, "turn:1")
    assert await slots.again(id, 1, clock() + HOUR, "no answer", cost_usd=0.25, tokens=10) is True
    assert await db.repository(AllSlotsRepository).ready() == []
    clock.forward(minutes=60)
    assert [slot.why for slot in await db.repository(AllSlotsRepository).ready()] == ["no answer"]
    await slots.start(id, "turn:2")
    end = await slots.end(id, "done", result="x" * 3000, cost_usd=None, tokens=5)
    assert end is not None
    assert (end.slot.attempt, end.slot.turn_id, end.slot.cost_usd, end.slot.tokens) == (2, "turn:2", 0.25, 15)
    assert (end.slot.started_at, end.slot.ended_at, len(end.slot.result)) == (clock(), clock(), RESULT_CHARACTERS)
    assert await slots.end(id, "failed") is None
    assert (await slots.get(id)).state == "done"


async def test_who_looked_at_an_earlier_attempt_ends_none_of_a_later_one(
    db: Database, ann: str, job: str, clock: StillClock
) -> None:
    slots, id = db.repository(SlotsRepository, ann), slot_id(job, NINE)
    await slots.write_down(job, NINE)
    await slots.start(id, "turn:1")
    assert await slots.again(id, 1, clock(), "no answer", tokens=10) is True
    assert await slots.end(id, "failed", attempt=1, tokens=10) is None  # it waits for its next attempt
    await slots.start(id, "turn:2")
    assert await slots.again(id, 1, clock() + HOUR, "no answer", tokens=10) is False
    assert await slots.end(id, "failed", attempt=1, tokens=10) is None
    slot = await slots.get(id)
    assert (slot.state, slot.attempt, slot.tokens) == ("running", 2, 10)
    end = await slots.end(id, "done", attempt=2, tokens=5)
    assert end is not None
    assert (end.slot.tokens, end.failures) == (15, 0)


async def test_a_run_that_was_begun_is_not_withdrawn_though_it_waits_for_its_next_try(
    db: Database, ann: str, job: str, clock: StillClock
) -> None:
    slots, begun, noted = db.repository(SlotsRepository, ann), slot_id(job, NINE), slot_id(job, NINE + HOUR)
    await slots.write_down(job, NINE)
    await slots.write_down(job, NINE + HOUR)
    await slots.start(begun)
    await slots.again(begun, 1, clock() + HOUR, "no answer")
    assert [await slots.withdraw(id, "nobody began it") for id in (begun, noted)] == [False, True]
    assert [(slot.state, slot.why) for slot in await slots.open_of(job)] == [("planned", "no answer")]


async def test_failures_are_counted_in_a_row_and_changes_of_the_result_seen(db: Database, ann: str, job: str) -> None:
    slots = db.repository(SlotsRepository, ann)
    seen = []
    endings: list[tuple[SlotState, str]] = [
        *(("done", "a"), ("failed", ""), ("missed", ""), ("failed", ""), ("done", "a"), ("done", "b")),
    ]
    for number, (state, result) in enumerate(endings):
        await slots.write_down(job, NINE + number * HOUR)
        end = await slots.end(slot_id(job, NINE + number * HOUR), state, result=result)
        assert end is not None
        seen.append((end.failures, end.has_changed))
    assert seen == [(0, True), (1, True), (1, True), (2, True), (0, False), (0, True)]
    assert (await db.repository(JobsRepository, ann).get(job)).version == 1


async def test_a_slot_written_down_as_missed_has_ended(db: Database, ann: str, job: str) -> None:
    slots = db.repository(SlotsRepository, ann)
    assert await slots.write_down(job, NINE, state="missed", why="Cortex was not running") is True
    slot = await slots.get(slot_id(job, NINE))
    assert (slot.state, slot.why, slot.ended_at) == ("missed", "Cortex was not running", db.clock())
    assert await slots.start(slot.id) is False
    with pytest.raises(ValueError, match="no ending"):
        await slots.end(slot.id, "running")


async def test_slots_that_wait_are_given_up_and_counted_from_the_first_on(db: Database, ann: str, job: str) -> None:
    slots = db.repository(SlotsRepository, ann)
    first = await slots.miss(job, {NINE: "late", NINE + HOUR: "a later one ran"})
    for due in (NINE + 2 * HOUR, NINE + 3 * HOUR):
        await slots.write_down(job, due)
    await slots.start(slot_id(job, NINE + 3 * HOUR))
    given_up = await slots.give_up([slot_id(job, NINE + hours * HOUR) for hours in (2, 3)], "it waited too long")
    assert (first, given_up) == (2, 1)
    assert await slots.missed_since(slot_id(job, NINE), but="a later one ran") == Misses(first=NINE, count=2)
    assert await slots.missed_since(slot_id(job, NINE + 3 * HOUR), but="") is None
    assert await slots.missed_since("gone", but="") is None


async def test_what_a_killed_process_left_running_is_found_with_its_turn(
    db: Database, talk: Written, job: str, clock: StillClock
) -> None:
    slots = db.repository(SlotsRepository, talk.owner_id)
    for due in (NINE, NINE + HOUR):
        await slots.write_down(job, due)
    await talk.turn(slot_id(job, NINE))
    await slots.start(slot_id(job, NINE), slot_id(job, NINE))
    await slots.start(slot_id(job, NINE + HOUR))
    found = await db.repository(AllSlotsRepository).running()
    assert [(slot.due_at, slot.turn_state, slot.owner_id) for slot in found] == [
        (NINE, "queued", talk.owner_id),
        (NINE + HOUR, None, talk.owner_id),
    ]


async def test_a_slot_of_a_paused_or_removed_job_does_not_start(db: Database, ann: str, job: str) -> None:
    slots, jobs = db.repository(SlotsRepository, ann), db.repository(JobsRepository, ann)
    await jobs.pause(job, None)
    await slots.write_down(job, NINE)
    await slots.write_down(job, NINE + HOUR, is_by_hand=True)
    await slots.write_down(job, NINE + 2 * HOUR, is_by_hand=True)
    assert [slot.due_at for slot in await db.repository(AllSlotsRepository).ready()] == [NINE + HOUR, NINE + 2 * HOUR]
    assert await slots.start(slot_id(job, NINE)) is False
    assert await slots.start(slot_id(job, NINE + HOUR)) is True
    await jobs.remove(job, 2)
    assert await slots.start(slot_id(job, NINE + 2 * HOUR)) is False
    with pytest.raises(NotFound):
        await slots.write_down(job, NINE + DAY)
    end = await slots.end(slot_id(job, NINE + HOUR), "done")
    assert end is not None


async def test_a_pause_skips_what_waits_but_for_a_run_by_hand(db: Database, ann: str, job: str) -> None:
    slots = db.repository(SlotsRepository, ann)
    await slots.write_down(job, NINE)
    await slots.write_down(job, NINE + HOUR, is_by_hand=True)
    await db.repository(JobsRepository, ann).pause(job, None)
    assert [slot.due_at for slot in await slots.open_of(job)] == [NINE + HOUR]
    assert (await slots.get(slot_id(job, NINE))).state == "skipped"


async def test_no_slot_of_a_closed_account_is_ready(db: Database, ann: str, job: str) -> None:
    await db.repository(SlotsRepository, ann).write_down(job, NINE)
    assert [slot.id for slot in await db.repository(AllSlotsRepository).ready()] == [slot_id(job, NINE)]
    await db.repository(AccountsRepository).set_active(ann, False)
    assert await db.repository(AllSlotsRepository).ready() == []


async def test_history_is_paged_from_the_newest(db: Database, ann: str, job: str) -> None:
    for number in range(5):
        await ran(db, ann, job, NINE + number * HOUR)
    await db.repository(SlotsRepository, ann).write_down(job, NINE + 5 * HOUR, state="missed")
    history = db.repository(SlotHistoryRepository, ann)
    first = await history.list(job, limit=3)
    assert [(slot.due_at - NINE) // HOUR for slot in first] == [5, 4, 3]
    rest = await history.list(job, before=first[-1].due_at, limit=9)
    assert [(slot.due_at - NINE) // HOUR for slot in rest] == [2, 1, 0]
    assert [slot.state for slot in await history.list(job, states=["missed"])] == ["missed"]


async def test_bars_and_means_of_a_page_show_the_newest_of_each_job(db: Database, ann: str, job: str) -> None:
    other = (await db.repository(JobsRepository, ann).add("papers", named("Papers"), NINE)).id
    idle = (await db.repository(JobsRepository, ann).add("idle", named("Idle"), NINE)).id
    for number in range(4):
        await ran(db, ann, job, NINE + number * HOUR, cost_usd=float(number))
    await ran(db, ann, other, NINE, cost_usd=None)
    await db.repository(SlotsRepository, ann).write_down(job, NINE + 4 * HOUR)
    history, ids = db.repository(SlotHistoryRepository, ann), [job, other, idle]
    bars = await history.bars(ids, 3)
    assert {id: [(bar.due_at - NINE) // HOUR for bar in found] for id, found in bars.items()} == {
        job: [2, 3, 4],
        other: [0],
        idle: [],
    }
    latest = await history.latest(ids)
    assert {id: (slot.due_at - NINE) // HOUR for id, slot in latest.items()} == {job: 3, other: 0}
    assert await history.means(ids) == {
        job: RunMean(job_id=job, runs=4, cost_usd=1.5, tokens=100.0),
        other: RunMean(job_id=other, runs=1, cost_usd=None, tokens=100.0),
    }
    assert await history.means([]) == {}


async def test_old_slots_go_but_the_newest_fourteen_and_the_open_ones(db: Database, ann: str, job: str) -> None:
    for number in range(20):
        await ran(db, ann, job, NINE - number * HOUR)
    await db.repository(SlotsRepository, ann).write_down(job, NINE - 30 * HOUR)
    everybody = db.repository(AllSlotsRepository)
    assert await everybody.prune(NINE - 30 * DAY) == 0
    assert await everybody.prune(NINE - 30 * DAY, keep=18) == 2
    assert await everybody.prune(NINE - 5 * HOUR) == 4
    left = await db.repository(SlotHistoryRepository, ann).list(job)
    assert [(NINE - slot.due_at) // HOUR for slot in left] == [*range(14), 30]


async def test_a_removed_job_takes_its_slots_along_when_it_is_pruned(
    db: Database, ann: str, job: str, clock: StillClock
) -> None:
    id = await ran(db, ann, job, NINE)
    await db.repository(JobsRepository, ann).remove(job, 1)
    clock.forward(days=2)
    await db.repository(AllJobsRepository).prune()
    with pytest.raises(NotFound):
        await db.repository(SlotsRepository, ann).get(id)


async def test_another_users_slots_are_out_of_reach(db: Database, ann: str, ben: str, job: str) -> None:
    id = await ran(db, ann, job, NINE)
    await db.repository(SlotsRepository, ann).write_down(job, NINE + HOUR)
    theirs, history = db.repository(SlotsRepository, ben), db.repository(SlotHistoryRepository, ben)
    waiting = slot_id(job, NINE + HOUR)
    assert await theirs.open_of(job) == []
    assert await theirs.start(waiting) is False
    assert await theirs.again(waiting, 0, NINE, "") is False
    assert await history.list(job) == []
    assert await history.bars([job]) == {job: ()}
    assert (await history.latest([job]), await history.means([job])) == ({}, {})
    for attempt in (theirs.get(id), theirs.write_down(job, NINE + DAY), theirs.end(waiting, "done")):
        with pytest.raises(NotFound):
            await attempt
    assert (await db.repository(SlotsRepository, ann).get(waiting)).state == "planned"
