import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace

from cortex.base.errors import Conflict, NotFound
from cortex.storage.accounts import AccountsRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database
from cortex.storage.job_rows import JobCounts, JobFilter, JobRow, JobValues
from cortex.storage.jobs import AllJobsRepository, JobsRepository
from cortex.storage.slots import AllSlotsRepository, SlotsRepository
from tests.still_clock import StillClock
from tests.storage.conftest import Written
from tests.storage.made_time import DAY, HOUR, NEWS, NINE, named, second_process

FULL = replace(
    NEWS,
    kind="call",
    tool="task_list",
    arguments={"list": "inbox", "n": [1, None]},
    tools=("web", "task_create"),
    mode="all",
    max_rounds=4,
    budget_tokens=9000,
    budget_usd=0.25,
    deliver_to=("web_push", "ntfy"),
    is_tainted=True,
)


@pytest.mark.parametrize("values", [NEWS, FULL, replace(NEWS, tools=())], ids=["plain", "full", "no tools"])
async def test_a_job_comes_back_as_it_was_said(db: Database, ann: str, values: JobValues) -> None:
    jobs = db.repository(JobsRepository, ann)
    made = await jobs.add("news", values, NINE)
    assert made == JobRow(
        **{name: getattr(values, name) for name in JobValues.__struct_fields__},
        id="news",
        owner_id=ann,
        planned=None,
        planned_for="",
        is_enabled=True,
        paused_because="",
        failures=0,
        version=1,
        next_at=NINE,
        created_at=db.clock(),
        updated_at=db.clock(),
        removed_at=None,
    )
    assert made.timing == values.timing
    assert await jobs.add("news", named("Other"), None) == made
    assert await jobs.list() == [made]


async def test_the_tools_chosen_for_a_job_are_no_change_of_it(db: Database, ann: str, ben: str) -> None:
    jobs = db.repository(JobsRepository, ann)
    made = await jobs.add("news", NEWS, NINE)
    await db.repository(JobsRepository, ben).keep_plan("news", ("foreign",), "x")
    await jobs.keep_plan("news", ("task_list", "web_search"), "abc")
    assert await jobs.get("news") == replace(made, planned=("task_list", "web_search"), planned_for="abc")
    await jobs.keep_plan("news", None, "")
    assert await jobs.get("news") == made


async def test_a_change_on_an_old_version_overwrites_nothing(db: Database, ann: str) -> None:
    jobs = db.repository(JobsRepository, ann)
    job = await jobs.add(None, NEWS, NINE)
    changed = await jobs.change(job.id, job.version, replace(job, name="Papers", failures=7), NINE + HOUR)
    assert (changed.name, changed.version, changed.failures, changed.next_at) == ("Papers", 2, 0, NINE + HOUR)
    for attempt in (
        jobs.change(job.id, job.version, NEWS, NINE),
        jobs.enable(job.id, job.version, NINE),
        jobs.pause(job.id, job.version),
        jobs.remove(job.id, job.version),
    ):
        with pytest.raises(Conflict, match="Papers"):
            await attempt
    assert await jobs.get(job.id) == changed


async def test_a_paused_job_is_never_due_until_it_is_switched_on(db: Database, ann: str) -> None:
    jobs = db.repository(JobsRepository, ann)
    job = await jobs.add(None, NEWS, NINE)
    await db.repository(SlotsRepository, ann).write_down(job.id, NINE)
    await db.repository(SlotsRepository, ann).write_down(job.id, NINE + HOUR, is_by_hand=True)
    paused = await jobs.pause(job.id, None, "it failed 5 times in a row")
    assert (paused.is_enabled, paused.paused_because, paused.next_at) == (False, "it failed 5 times in a row", None)
    assert [slot.is_by_hand for slot in await db.repository(SlotsRepository, ann).open_of(job.id)] == [True]
    assert await db.repository(AllJobsRepository).armed() == []
    changed = await jobs.change(job.id, paused.version, named("Papers"), NINE)
    assert changed.next_at is None
    back = await jobs.enable(job.id, changed.version, NINE + DAY)
    assert (back.is_enabled, back.paused_because, back.next_at) == (True, "", NINE + DAY)


async def test_of_two_processes_one_advances_a_job(db: Database, ann: str) -> None:
    job = await db.repository(JobsRepository, ann).add(None, NEWS, NINE)
    async with second_process(db) as other:
        sides = [one.repository(JobsRepository, ann) for one in (db, other) * 4]
        won = await asyncio.gather(*(side.advance(job.id, NINE, job.version, NINE + DAY) for side in sides))
    assert sorted(won) == [False] * 7 + [True]
    after = await db.repository(JobsRepository, ann).get(job.id)
    assert (after.next_at, after.version) == (NINE + DAY, job.version)


async def test_a_job_that_was_changed_paused_or_removed_is_not_advanced(db: Database, ann: str) -> None:
    jobs = db.repository(JobsRepository, ann)
    changed = await jobs.add(None, NEWS, NINE)
    await jobs.change(changed.id, 1, named("Papers"), NINE)
    removed = await jobs.add(None, NEWS, NINE)
    await jobs.remove(removed.id, 1)
    for job in (changed, removed):
        assert await jobs.advance(job.id, NINE, 1, NINE + DAY) is False
    assert await jobs.advance(removed.id, NINE, 2, NINE + DAY) is False


async def test_the_timer_sees_what_is_due_soon_of_people_who_may_sign_in(db: Database, ann: str, ben: str) -> None:
    later = await db.repository(JobsRepository, ann).add(None, NEWS, NINE + HOUR)
    soon = await db.repository(JobsRepository, ben).add(None, NEWS, NINE)
    await db.repository(JobsRepository, ann).add(None, NEWS, None)
    await db.repository(JobsRepository, ann).add(None, NEWS, NINE, is_enabled=False)
    armed = await db.repository(AllJobsRepository).armed()
    assert [(job.id, job.owner_id, job.next_at) for job in armed] == [
        (soon.id, ben, NINE),
        (later.id, ann, NINE + HOUR),
    ]
    assert [job.id for job in await db.repository(AllJobsRepository).armed(NINE)] == [soon.id]
    await db.repository(AccountsRepository).set_active(ben, False)
    assert [job.id for job in await db.repository(AllJobsRepository).armed()] == [later.id]


async def test_of_a_long_line_of_due_jobs_each_person_and_kind_comes_first_once(
    db: Database, ann: str, ben: str, clock: StillClock
) -> None:
    mine, theirs = db.repository(JobsRepository, ann), db.repository(JobsRepository, ben)
    message = replace(NEWS, kind="message")
    line = [(await mine.add(None, message, NINE + timedelta(seconds=n))).id for n in range(4)]
    other = (await theirs.add(None, message, NINE + timedelta(minutes=1))).id
    prompt = (await mine.add(None, NEWS, NINE + timedelta(minutes=2))).id
    future = (await theirs.add(None, NEWS, NINE + timedelta(minutes=4))).id
    clock.forward(minutes=(NINE + timedelta(minutes=3) - clock()) // timedelta(minutes=1))
    armed = db.repository(AllJobsRepository).armed
    assert [job.id for job in await armed(limit=3)] == [line[0], other, prompt]
    assert [job.id for job in await armed()] == [line[0], other, prompt, *line[1:], future]


async def test_jobs_are_filtered_counted_and_paged(db: Database, ann: str) -> None:
    jobs = db.repository(JobsRepository, ann)
    ids = [(await jobs.add(None, named(name), NINE - n * HOUR)).id for n, name in enumerate("eDcBa")]
    await jobs.pause(ids[0], 1)
    await jobs.enable(ids[2], 1, None)
    slots = db.repository(SlotsRepository, ann)
    await slots.write_down(ids[1], NINE)
    await slots.end((await slots.open_of(ids[1]))[0].id, "failed")
    assert "".join(job.name for job in await jobs.list()) == "aBcDe"
    assert "".join(job.name for job in await jobs.list(skip=1, limit=2)) == "Bc"
    assert "".join(job.name for job in await jobs.list(by="next")) == "aBDce"
    assert [job.name for job in await jobs.list(JobFilter(state="over"))] == ["c"]
    assert [job.name for job in await jobs.list(JobFilter(state="enabled"))] == ["a", "B", "D"]
    assert [job.name for job in await jobs.list(JobFilter(state="paused"))] == ["e"]
    assert [job.name for job in await jobs.list(JobFilter(state="failing", words="NEWS 09:00"))] == ["D"]
    assert await jobs.list(JobFilter(words="100%")) == []
    assert await jobs.count() == JobCounts(all=5, enabled=3, over=1, paused=1, failing=1)
    assert await jobs.count("nothing has this") == JobCounts(all=0, enabled=0, over=0, paused=0, failing=0)


async def test_a_removed_job_can_be_restored_for_a_day(db: Database, ann: str, clock: StillClock) -> None:
    jobs = db.repository(JobsRepository, ann)
    job = await jobs.add(None, NEWS, NINE)
    await db.repository(SlotsRepository, ann).write_down(job.id, NINE)
    assert await jobs.remove(job.id, job.version) == job
    with pytest.raises(NotFound):
        await jobs.get(job.id)
    assert await jobs.list() == []
    assert await db.repository(AllSlotsRepository).ready() == []
    assert (await jobs.removed(job.id)).timing == NEWS.timing
    back = await jobs.restore(job.id, NINE + DAY)
    assert (back.name, back.is_enabled, back.next_at, back.version) == ("News", True, NINE + DAY, 3)
    assert await jobs.restore(job.id, NINE) == back
    await jobs.remove(job.id, back.version)
    clock.forward(days=1, seconds=1)
    with pytest.raises(NotFound):
        await jobs.restore(job.id, NINE)
    assert await db.repository(AllJobsRepository).prune() == 1
    assert await db.repository(AllJobsRepository).prune() == 0


async def test_a_restored_job_that_was_paused_stays_paused(db: Database, ann: str) -> None:
    jobs = db.repository(JobsRepository, ann)
    job = await jobs.add(None, NEWS, NINE, is_enabled=False)
    await jobs.remove(job.id, 1)
    back = await jobs.restore(job.id, NINE)
    assert (back.is_enabled, back.next_at) == (False, None)


async def test_a_job_settles_in_one_conversation_of_its_owner(db: Database, talk: Written, ben: str) -> None:
    jobs = db.repository(JobsRepository, talk.owner_id)
    job = await jobs.add(None, NEWS, NINE)
    other = await db.repository(ConversationsRepository, talk.owner_id).create(
        "orchestrator", "auto", "Other", is_title_tainted=False
    )
    assert await jobs.settle_in(job.id, talk.id) == talk.id
    assert await jobs.settle_in(job.id, other.id) == talk.id
    edited = await jobs.change(job.id, job.version, named("Papers"), NINE)
    assert (edited.version, edited.conversation_id) == (job.version + 1, talk.id)
    moved = await jobs.change(job.id, edited.version, replace(edited, conversation_id=other.id), NINE)
    assert moved.conversation_id == other.id
    with pytest.raises(NotFound):
        await db.repository(JobsRepository, ben).add(None, replace(NEWS, conversation_id=talk.id), NINE)


async def test_another_users_jobs_are_out_of_reach(db: Database, ann: str, ben: str) -> None:
    job = await db.repository(JobsRepository, ann).add("news", NEWS, NINE)
    gone = await db.repository(JobsRepository, ann).add("gone", NEWS, NINE)
    await db.repository(JobsRepository, ann).remove(gone.id, 1)
    theirs = db.repository(JobsRepository, ben)
    assert await theirs.list() == []
    assert (await theirs.count()).all == 0
    assert await theirs.advance(job.id, NINE, 1, None) is False
    for attempt in (
        theirs.get(job.id),
        theirs.add(job.id, NEWS, NINE),
        theirs.change(job.id, 1, NEWS, NINE),
        theirs.pause(job.id, None),
        theirs.enable(job.id, 1, NINE),
        theirs.remove(job.id, 1),
        theirs.removed(gone.id),
        theirs.restore(gone.id, NINE),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert await db.repository(JobsRepository, ann).get(job.id) == job
