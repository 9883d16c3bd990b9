"""Jobs as they run, on a clock that stands still: what is missed, what waits, what fails, what is told."""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from cortex.app import Cortex
from cortex.base.clock import ticks_s
from cortex.base.errors import NotFound
from cortex.base.user import User
from cortex.schedule.reading import Reader
from cortex.services.jobs.endings import NO_BUDGET
from cortex.services.jobs.firing import QUEUE_FULL, STILL_GOING
from cortex.services.jobs.runs import SAID_AT_ONCE, WAITED_TOO_LONG
from cortex.storage.calls import CallsRepository
from cortex.storage.home import Homes
from cortex.storage.job_rows import JobRow, JobValues
from cortex.storage.jobs import JobsRepository
from cortex.storage.notices import NoticeRow
from cortex.storage.plans import PlansRepository
from cortex.storage.rounds import RoundsRepository
from cortex.storage.schema import JobTable, SlotTable
from cortex.storage.slot_history import SlotHistoryRepository
from cortex.storage.slots import SlotRow, SlotsRepository
from cortex.storage.turns import AllTurnsRepository, TurnsRepository
from tests.databases import house_settings
from tests.living_house import LivingHouse, living_house
from tests.patience import PATIENCE_S
from tests.still_clock import StillClock

FIRST = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
NOON = FIRST - timedelta(minutes=1)
POLL_S = 0.1  # a look takes a fifth of this: whoever looks more often holds up what he waits for
EVERY_MINUTES = "0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38,40,42,44,46 * * * *"  # 24 an hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A house at a time of its own, with nobody who looks by himself: the test is the timer."""

    house: LivingHouse
    clock: StillClock

    @property
    def admin(self) -> User:
        return self.house.admin

    async def job(self, when: str = "every day at 13:00", owner: User | None = None, **values: Any) -> JobRow:
        person = owner or self.admin
        timing = Reader().read(when, self.clock(), values.pop("time_zone", "UTC"))
        marks = {"is_tainted": False, "is_private": False}
        given = {"name": "Brief", "prompt": "hello", "kind": "message", **marks, **values}
        kept = JobValues(
            timing_kind=timing.kind,
            expression=timing.expression,
            time_zone=timing.time_zone,
            words=timing.words,
            **given,
        )
        next_at = Reader().following(timing, self.clock(), 1)[0]
        return await self.house.cortex.runtime.db.repository(JobsRepository, person.id).add(None, kept, next_at)

    async def now(self, job: JobRow) -> JobRow:
        return await self.house.cortex.runtime.db.repository(JobsRepository, job.owner_id).get(job.id)

    async def tick(self) -> None:
        """What alarm and runner do together at this moment, until nothing moves any more."""
        runs = self.house.cortex.job_runs
        for armed in await runs.armed(self.clock()):
            await runs.fire(armed)
        before: object = None
        while before != (before := await self.all_slots()):
            await runs.settle_slots()

    async def until(self, job: JobRow, *states: str) -> SlotRow:
        """Let its turns go on until its newest slot is in one of these states."""
        ends_s = ticks_s() + PATIENCE_S
        while True:
            await self.tick()
            slot = (await self.slots(job))[-1]
            if slot.state in states:
                return slot
            assert ticks_s() < ends_s, f"it is {slot}, not {states}"
            await asyncio.sleep(POLL_S)

    async def sent(self, slot: SlotRow) -> set[str]:
        """The tools that the first request of its turn declared."""
        db = self.house.cortex.runtime.db
        plan = (await db.repository(PlansRepository, slot.owner_id).of_turn(slot.turn_id or ""))[0]
        return {item["name"] for item in plan.receipt["sent"]}

    async def until_over(self, job: JobRow) -> None:
        """Let its turns go on until none of its slots is open."""
        async with asyncio.timeout(PATIENCE_S):
            while {"planned", "running"} & (await self.states(job)).keys():
                await self.tick()
                await asyncio.sleep(POLL_S)

    async def until_asked(self, job: JobRow) -> str:
        """The id of the question that its run waits with."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                await self.tick()
                for one in await self.house.cortex.approvals.pending(self.admin):
                    if one.turn_id == (await self.slots(job))[-1].turn_id:
                        return one.id
                await asyncio.sleep(POLL_S)

    async def slots(self, job: JobRow) -> list[SlotRow]:
        """Of this job, the oldest first."""
        found = await self.house.cortex.runtime.db.repository(SlotHistoryRepository, job.owner_id).list(
            job.id, limit=2_000
        )
        return list(found)[::-1]

    async def all_slots(self) -> Sequence[object]:
        """How far every slot is; one look at the table, for it is taken again and again."""
        columns = select(SlotTable.id, SlotTable.state, SlotTable.attempt).order_by(SlotTable.id)
        async with self.house.cortex.runtime.db.session_scope(reading=True) as session:
            return (await session.execute(columns)).all()

    async def states(self, job: JobRow) -> dict[str, int]:
        return dict(Counter(slot.state for slot in await self.slots(job)))

    async def notices(self) -> list[NoticeRow]:
        page = await self.house.cortex.notices.page(self.admin.id)
        return [view.row for view in page.notices][::-1]

    async def told(self) -> list[tuple[str, str]]:
        return [(row.title, row.text) for row in await self.notices()]


@pytest.fixture
async def at_rest(tmp_path: Path) -> AsyncIterator[Shift]:
    """A house in which nothing at all goes on by itself, the runner of jobs neither."""
    clock = StillClock(NOON)
    async with living_house(tmp_path / "home", clock=clock):
        pass
    async with Cortex.at_rest(house_settings(tmp_path / "home"), clock=clock) as cortex:
        people = await cortex.accounts.named("ada"), await cortex.accounts.named("bob")
        yield Shift(house=LivingHouse(cortex, *people), clock=clock)


async def began(shift: Shift) -> list[tuple[str, int]]:
    """Whose jobs have begun or ended so far, and how many of each."""
    columns = select(JobTable.name, SlotTable.id).join(SlotTable, SlotTable.job_id == JobTable.id)
    async with shift.house.cortex.runtime.db.session_scope(reading=True) as session:
        rows = (await session.execute(columns.where(SlotTable.state.in_(("running", "done"))))).all()
    return sorted(Counter(name for name, _ in rows).items())


@pytest.fixture
async def shift(tmp_path: Path) -> AsyncIterator[Shift]:
    clock = StillClock(NOON)
    async with living_house(tmp_path / "home", clock=clock) as house:
        yield Shift(house=house, clock=clock)


AT_NOON = EVERY_MINUTES.replace(" *", " 12", 1)
MISSED = "{} runs were missed: {}."


@pytest.mark.parametrize(
    ("policy", "expected", "told"),
    [
        ({"on_miss": "skip"}, {"missed": 24}, {MISSED.format(24, "it was more than 1 minute late"): 1}),
        ({"on_miss": "once", "fire_within_s": 3600}, {"done": 1, "missed": 23}, {"hello": 1}),
        (
            {"on_miss": "once", "fire_within_s": 60},
            {"missed": 24},
            {MISSED.format(24, "it was more than 1 minute late"): 1},
        ),
        ({"on_miss": "catchup", "fire_within_s": 7200}, {"done": 24}, {"hello": 24}),
        (
            {"on_miss": "catchup", "fire_within_s": 1800},
            {"done": 10, "missed": 14},
            {"hello": 10, MISSED.format(14, "it was more than 30 minutes late"): 1},
        ),
        (
            {"on_miss": "catchup", "fire_within_s": 7200, "overlap": "queue"},
            {"done": 24},
            {"hello": 24},
        ),
        (
            {"on_miss": "skip", "fire_within_s": 3600, "overlap": "queue"},
            {"missed": 24},
            {MISSED.format(24, "it was more than 1 minute late"): 1},
        ),
        ({"on_miss": "skip", "notify_on": "never"}, {"missed": 24}, {}),
    ],
    ids=[
        *("skip", "once", "once, too late", "catchup", "catchup within", "catchup that may queue"),
        *("skip that may queue", "skip, told of nothing"),
    ],
)
async def test_down_for_an_hour_each_policy_does_what_it_says(
    shift: Shift, policy: dict[str, Any], expected: dict[str, int], told: dict[str, int]
) -> None:
    job = await shift.job(EVERY_MINUTES, **policy)
    shift.clock.forward(minutes=58)
    await shift.tick()
    slots = await shift.slots(job)
    assert await shift.states(job) == expected
    assert [slot.due_at for slot in slots] == [FIRST + timedelta(minutes=2 * number) for number in range(24)]
    assert all(slot.why for slot in slots if slot.state == "missed")
    assert Counter(text for _, text in await shift.told()) == told
    assert (await shift.now(job)).next_at == FIRST + timedelta(hours=1)
    await shift.tick()
    assert await shift.states(job) == expected
    assert Counter(text for _, text in await shift.told()) == told


@pytest.mark.parametrize(
    ("policy", "expected", "after", "told"),
    [
        (
            {"on_miss": "once", "overlap": "skip"},
            {"missed": 23, "skipped": 1},
            {"missed": 23, "skipped": 1},
            f"23 runs were missed: {STILL_GOING}.",
        ),
        (
            {"on_miss": "once", "overlap": "queue"},
            {"missed": 23, "planned": 1},
            {"missed": 24},
            f"A run was missed: {WAITED_TOO_LONG}.",
        ),
        (
            {"on_miss": "catchup", "overlap": "skip"},
            {"planned": 24},
            {"missed": 24},
            f"24 runs were missed: {WAITED_TOO_LONG}.",
        ),
        (
            {"on_miss": "catchup", "overlap": "queue", "fire_within_s": 1800},
            {"missed": 14, "planned": 10},
            {"missed": 24},
            f"24 runs were missed since 2026-11-20 12:00, of late because {WAITED_TOO_LONG}.",
        ),
    ],
    ids=["once", "once in a queue", "catchup", "catchup within, in a queue"],
)
async def test_down_for_an_hour_with_a_run_that_still_goes_on(
    shift: Shift, policy: dict[str, Any], expected: dict[str, int], after: dict[str, int], told: str
) -> None:
    job = await parking(shift, AT_NOON, **{"fire_within_s": 7200, **policy})
    await shift.house.cortex.jobs.run_now(shift.admin, job.id)
    question = await shift.until_asked(job)
    shift.clock.forward(minutes=58)
    await shift.tick()
    assert await scheduled(shift, job) == expected
    shift.clock.forward(minutes=150)
    await shift.tick()
    assert await scheduled(shift, job) == after
    assert [text for title, text in await shift.told() if "missed" in title] == [told]
    await shift.house.cortex.approvals.answer(shift.admin, question, "once")
    await shift.until_over(job)
    assert await scheduled(shift, job) == after


async def scheduled(shift: Shift, job: JobRow) -> dict[str, int]:
    """The states of the slots that were not begun by hand."""
    return dict(Counter(slot.state for slot in await shift.slots(job) if not slot.is_by_hand))


async def test_a_job_slower_than_its_rhythm_loses_runs_in_the_open(shift: Shift) -> None:
    job = await parking(shift, EVERY_MINUTES, fire_within_s=7200, overlap="queue")
    for _ in range(14):
        shift.clock.forward(minutes=2)
        await shift.until_asked(job) if shift.clock() < FIRST + timedelta(minutes=2) else await shift.tick()
    assert await shift.states(job) == {"running": 1, "planned": 10, "missed": 3}
    (text,) = [text for title, text in await shift.told() if "missed" in title]
    assert ("3 runs" in text, "2026-11-20 12:22" in text, QUEUE_FULL in text) == (True, True, True)


async def test_what_was_read_is_not_counted_again(shift: Shift) -> None:
    await shift.job(EVERY_MINUTES, on_miss="skip", fire_within_s=60)
    told = []
    for minutes in (58, 30.5):
        shift.clock.forward(minutes=minutes)
        await shift.tick()
        told.append((await shift.told())[-1][0])
        await shift.house.cortex.notices.read_all(shift.admin.id, shift.clock())
    assert [re.findall(r"\d+", title) for title in told] == [["24"], ["14"]]


async def test_what_waited_too_long_stands_in_the_next_digest(shift: Shift) -> None:
    await shift.house.cortex.notification_preferences.change(shift.admin, digest_hour="18")
    job = await parking(shift, AT_NOON, on_miss="catchup", fire_within_s=3600)
    await shift.house.cortex.jobs.run_now(shift.admin, job.id)
    await shift.until_asked(job)
    for minutes in (58, 62, 300):
        shift.clock.forward(minutes=minutes)
        await shift.tick()
    assert await scheduled(shift, job) == {"missed": 24}
    await shift.house.cortex.digests.go_round()
    (digest,) = [text for title, text in await shift.told() if "digest" in title]
    assert ("Brief" in digest, "24 runs" in digest, digest.count("\n")) == (True, True, 0)


async def test_what_nobody_will_run_is_told_once(shift: Shift) -> None:
    await shift.job(EVERY_MINUTES, on_miss="skip")
    await shift.job(EVERY_MINUTES, on_miss="skip", notify_on="never", name="Silent")
    shift.clock.forward(minutes=58)
    await shift.tick()
    ((title, text),) = await shift.told()
    assert (title.startswith("Brief: 24"), "1 minute late" in text) == (True, True)


async def test_a_year_of_minutes_is_missed_in_a_moment_and_nothing_silently(shift: Shift) -> None:
    job = await shift.job("* * * * *", on_miss="skip")
    shift.clock.forward(days=365)
    await shift.tick()
    slots = await shift.slots(job)
    assert set(await shift.states(job)) == {"missed", "done"}
    assert "too many" in slots[0].why
    assert slots[-1].due_at == shift.clock()
    assert 1000 <= len(slots) <= 2000


@pytest.mark.parametrize(
    ("when", "zone", "start", "due"),
    [
        (
            "30 2 * * *",
            "Europe/Berlin",
            datetime(2027, 3, 27, 12, tzinfo=UTC),
            datetime(2027, 3, 28, 1, 30, tzinfo=UTC),
        ),
        (
            "30 2 * * *",
            "Europe/Berlin",
            datetime(2026, 10, 24, 12, tzinfo=UTC),
            datetime(2026, 10, 25, 0, 30, tzinfo=UTC),
        ),
        (
            "30 2 * * *",
            "America/New_York",
            datetime(2027, 3, 13, 12, tzinfo=UTC),
            datetime(2027, 3, 14, 7, 30, tzinfo=UTC),
        ),
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            datetime(2026, 10, 3, 0, 15, tzinfo=UTC),
            datetime(2026, 10, 3, 15, 45, tzinfo=UTC),
        ),
        ("30 2 * * *", "Asia/Kolkata", datetime(2027, 3, 27, 12, tzinfo=UTC), datetime(2027, 3, 27, 21, 0, tzinfo=UTC)),
    ],
    ids=["Berlin jumps", "Berlin goes back", "New York jumps", "Lord Howe jumps half an hour", "Kolkata never"],
)
async def test_a_daily_job_runs_once_on_the_day_the_clock_changes(
    shift: Shift, when: str, zone: str, start: datetime, due: datetime
) -> None:
    shift.clock.at = start
    job = await shift.job(when, time_zone=zone)
    for _ in range(24 * 2):
        shift.clock.forward(minutes=30)
        await shift.tick()
    assert [(slot.due_at, slot.state) for slot in await shift.slots(job)] == [(due, "done")]


async def test_a_job_that_is_due_once_runs_once_and_then_never(shift: Shift) -> None:
    job = await shift.job("in 20 minutes")
    shift.clock.forward(minutes=20)
    await shift.tick()
    assert await shift.states(job) == {"done": 1}
    assert (await shift.now(job)).next_at is None
    assert await shift.told() == [("Brief", "hello")]


async def test_two_processes_that_fire_at_once_write_each_slot_once(shift: Shift) -> None:
    job = await shift.job(EVERY_MINUTES, on_miss="catchup", fire_within_s=7200)
    shift.clock.forward(minutes=58)
    runs = shift.house.cortex.job_runs
    (armed,) = await runs.armed(shift.clock())
    await asyncio.gather(*(runs.fire(armed) for _ in range(6)))
    await asyncio.gather(*(runs.settle_slots() for _ in range(4)))
    await shift.tick()
    assert await shift.states(job) == {"done": 24}
    assert len(await shift.told()) == 24


async def test_a_prompt_posts_into_a_conversation_of_its_own_and_says_so(shift: Shift) -> None:
    job = await shift.job(kind="prompt", prompt="what is on my list?")
    shift.clock.forward(minutes=61)
    slot = await shift.until(job, "done")
    conversation = (await shift.now(job)).conversation_id
    assert conversation is not None
    turn = await shift.house.cortex.runtime.db.repository(TurnsRepository, shift.admin.id).get(slot.turn_id or "")
    assert (turn.id, turn.channel, turn.job_id, turn.conversation_id) == (slot.id, "cron", job.id, conversation)
    assert slot.result
    assert slot.tokens > 0
    (notice,) = await shift.notices()
    assert (notice.title, notice.text, notice.path, notice.subject_id) == (
        "Brief",
        slot.result,
        f"/c/{conversation}",
        slot.id,
    )


async def test_a_run_knows_nothing_of_the_run_before_it(shift: Shift) -> None:
    job = await shift.job("every hour", kind="prompt", prompt="what is on my list?")
    taken = []
    for _ in range(3):
        shift.clock.forward(minutes=61)
        taken.append((await shift.until(job, "done")).tokens)
    assert len(await shift.slots(job)) == 3
    assert len(set(taken)) == 1
    turns = await shift.house.cortex.runtime.db.repository(TurnsRepository, shift.admin.id).list(
        (await shift.now(job)).conversation_id or ""
    )
    assert len(turns) == 3


async def test_a_deleted_conversation_is_replaced_by_a_new_one(shift: Shift) -> None:
    job = await shift.job("every hour", kind="prompt")
    shift.clock.forward(minutes=61)
    await shift.until(job, "done")
    first = (await shift.now(job)).conversation_id or ""
    await shift.house.cortex.conversations.delete(shift.admin, first)
    shift.clock.forward(minutes=61)
    await shift.until(job, "done")
    second = (await shift.now(job)).conversation_id
    assert second not in (None, first)
    assert [run.chat for run in await shift.house.cortex.jobs.history(shift.admin, job.id)] == [second, ""]
    assert (await shift.now(job)).version == job.version


async def test_a_call_makes_no_model_call_and_ends_by_what_the_tool_did(shift: Shift) -> None:
    good = await shift.job(
        kind="call", prompt="", tool="task_create", arguments={"title": "water"}, tools=("task_create",)
    )
    bad = await shift.job(kind="call", prompt="", tool="task_create", arguments={}, name="Bad", tools=("task_create",))
    shift.clock.forward(minutes=61)
    done, failed = await shift.until(good, "done"), await shift.until(bad, "failed")
    assert done.result.startswith("Added: water")
    assert "title" in failed.result
    rounds = shift.house.cortex.runtime.db.repository(RoundsRepository, shift.admin.id)
    assert [await rounds.of_turn(slot.turn_id or "") for slot in (done, failed)] == [[], []]
    assert sorted(title for title, _ in await shift.told()) == ["Bad failed", "Brief"]


async def test_a_job_may_use_its_own_tools_alone(shift: Shift) -> None:
    job = await shift.job(kind="prompt", prompt="add milk to my shopping list", tools=("task_list",))
    shift.clock.forward(minutes=61)
    await shift.until(job, "done")
    assert await shift.house.cortex.tasks.list(shift.admin) == []


@pytest.mark.parametrize(("may", "made"), [(False, 0), (True, 1)], ids=["not allowed", "allowed"])
async def test_a_job_makes_jobs_only_where_its_owner_said_so(shift: Shift, may: bool, made: int) -> None:
    words = "every weekday at 7 sum up my tasks"
    job = await shift.job(kind="prompt", prompt=words, may_make_jobs=may, tools=("cron",))
    shift.clock.forward(minutes=61)
    if may:
        question = await shift.until_asked(job)
        await shift.house.cortex.approvals.answer(shift.admin, question, "once")
    await shift.until(job, "done")
    jobs = await shift.house.cortex.runtime.db.repository(JobsRepository, shift.admin.id).list()
    assert len(jobs) == 1 + made


async def parking(shift: Shift, when: str, **values: Any) -> JobRow:
    """A job whose runs wait for a yes."""
    call = {"prompt": "remember the milk", "when": "every day at 9"}
    given = {"kind": "call", "prompt": "", "tool": "cron_add", "tools": ("cron_add",), "may_make_jobs": True, **values}
    return await shift.job(when, arguments=call, **given)


async def parked(shift: Shift, **values: Any) -> tuple[JobRow, str]:
    """Such a job at its first run, and the question."""
    job = await parking(shift, values.pop("when", "every day at 13:00"), **values)
    shift.clock.forward(minutes=61)
    return job, await shift.until_asked(job)


async def test_a_parked_run_tells_its_owner_and_goes_on_with_a_yes(shift: Shift) -> None:
    job, question = await parked(shift, tools=("cron_add",), timeout_s=60)
    (notice,) = await shift.notices()
    assert (notice.kind, notice.actions, notice.urgency) == ("approval", ("approve", "deny"), "important")
    assert notice.subject_id == question
    shift.clock.forward(minutes=11 * 60)
    await shift.tick()
    assert (await shift.slots(job))[-1].state == "running"
    await shift.house.cortex.approvals.answer(shift.admin, question, "once")
    assert (await shift.until(job, "done")).result.startswith("Scheduled: ")
    notice = (await shift.notices())[0]
    assert notice.acknowledged_at is not None


async def test_a_parked_run_that_nobody_answers_ends_denied_with_a_text(shift: Shift) -> None:
    job, _ = await parked(shift, tools=("cron_add",))
    shift.clock.forward(minutes=12 * 60 + 1)
    slot = await shift.until(job, "denied")
    assert all(part in slot.why for part in ("within 12 hours", "Schedule “", "09:00"))
    assert "in time" in slot.result
    assert "not allowed" in (await shift.told())[-1][0]
    assert (await shift.now(job)).failures == 0


async def test_a_parked_run_that_is_refused_ends_denied(shift: Shift) -> None:
    job, question = await parked(shift, tools=("cron_add",))
    await shift.house.cortex.approvals.answer(shift.admin, question, "deny")
    assert "you denied" in (await shift.until(job, "denied")).why


async def test_a_message_in_the_chat_of_a_parked_run_is_answered_and_its_request_waits_on(shift: Shift) -> None:
    job, question = await parked(shift, tools=("cron_add",))
    slot = (await shift.slots(job))[-1]
    turns = shift.house.cortex.runtime.db.repository(TurnsRepository, shift.admin.id)
    cid = (await turns.get(slot.turn_id or "")).conversation_id
    await shift.house.say(cid, "hello", mode="chat")
    ended = await shift.until(job, "stopped")
    assert ("set aside" in ended.why, "Schedule “" in ended.why) == (True, True)
    await shift.house.cortex.approvals.answer(shift.admin, question, "once")
    made = (await turns.list(cid))[-1]
    await shift.house.until(cid, "turn.end", turn=made.id)
    (call,) = await shift.house.cortex.runtime.db.repository(CallsRepository, shift.admin.id).of_turn(made.id)
    assert (call.name, call.state) == ("cron_add", "done")


async def test_what_is_told_of_a_call_that_was_denied_is_no_text_for_a_model(shift: Shift) -> None:
    job, question = await parked(shift, tools=("cron_add",))
    await shift.house.cortex.approvals.answer(shift.admin, question, "deny")
    slot = await shift.until(job, "denied")
    assert "denied this call" in slot.result
    assert "without it" not in slot.result


async def test_parked_runs_leave_room_for_the_others(shift: Shift) -> None:
    for number in range(3):
        await parked(shift, tools=("cron_add",), name=f"Parked {number}", when="every hour")
    other = await shift.job("every hour", kind="prompt", name="Other")
    shift.clock.forward(minutes=61)
    await shift.until(other, "done")


async def test_the_tools_chosen_for_a_long_list_go_with_every_run(shift: Shift) -> None:
    """Also where no word of the prompt would pick them: what is kept is used, and not chosen anew."""
    job = await shift.job("every hour", kind="prompt", prompt="create a task for the milk", tools=("all",))
    rows = shift.house.cortex.runtime.db.repository(JobsRepository, shift.admin.id)
    carried = []
    for _ in range(2):
        shift.clock.forward(minutes=61)
        slot = await shift.until(job, "done")
        carried.append(await shift.sent(slot))
        kept = await shift.now(job)
        assert set(kept.planned or ()) <= carried[-1]
        await rows.keep_plan(job.id, (*(kept.planned or ()), "git_log"), kept.planned_for)
    assert "task_create" in carried[0]
    assert carried[1] - carried[0] == {"git_log"}
    await rows.keep_plan(job.id, ("git_log",), "another registry")
    shift.clock.forward(minutes=61)
    assert "git_log" not in await shift.sent(await shift.until(job, "done"))


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [("skip", ["running", "skipped"]), ("queue", ["running", "planned"])],
    ids=["skip", "queue"],
)
async def test_a_slot_that_comes_while_the_job_is_still_at_work(
    shift: Shift, overlap: str, expected: list[str]
) -> None:
    call = {"prompt": "remember the milk", "when": "every day at 9"}
    job = await shift.job(
        "every hour",
        kind="call",
        prompt="",
        tool="cron_add",
        arguments=call,
        may_make_jobs=True,
        overlap=overlap,
        tools=("cron_add",),
        fire_within_s=7200,
    )
    shift.clock.forward(minutes=61)
    question = await shift.until_asked(job)
    shift.clock.forward(minutes=61)
    await shift.tick()
    slots = await shift.slots(job)
    assert [slot.state for slot in slots] == expected
    assert slots[1].why == (STILL_GOING if overlap == "skip" else "")
    await shift.house.cortex.approvals.answer(shift.admin, question, "once")
    await shift.until(job, "skipped" if overlap == "skip" else "running")


async def test_a_queued_slot_that_waited_too_long_is_missed(shift: Shift) -> None:
    job, question = await parked(shift, tools=("cron_add",), overlap="queue", fire_within_s=900, when="every hour")
    shift.clock.forward(minutes=61)
    await shift.tick()
    shift.clock.forward(minutes=20)
    await shift.house.cortex.approvals.answer(shift.admin, question, "once")
    slot = await shift.until(job, "missed")
    assert "waited too" in slot.why


async def test_a_failed_run_is_tried_again_with_longer_and_longer_waits(shift: Shift) -> None:
    job = await shift.job(kind="call", prompt="", tool="task_create", arguments={}, tools=("task_create",), retries=2)
    shift.clock.forward(minutes=61)
    slot = await shift.until(job, "planned")
    waits = []
    for _ in range(2):
        assert slot.ready_at is not None
        waits.append((slot.ready_at - shift.clock()).total_seconds())
        await shift.tick()
        assert (await shift.slots(job))[-1].attempt == slot.attempt
        shift.clock.at = slot.ready_at
        slot = await shift.until(job, "planned", "failed")
    assert waits == [60, 120]
    assert (slot.state, slot.attempt, slot.turn_id) == ("failed", 3, f"{slot.id}:3")
    assert (await shift.now(job)).failures == 1
    assert [title for title, _ in await shift.told()] == ["Brief failed"]


async def test_a_run_whose_job_is_deleted_meanwhile_is_not_tried_again(shift: Shift) -> None:
    job = await shift.job(kind="call", prompt="", tool="task_create", arguments={}, tools=("task_create",), retries=2)
    shift.clock.forward(minutes=61)
    runs = shift.house.cortex.job_runs
    for armed in await runs.armed(shift.clock()):
        await runs.fire(armed)
    await runs.settle_slots()
    assert await shift.states(job) == {"running": 1}
    await shift.house.cortex.jobs.remove(shift.admin, job.id, job.version)
    assert (await shift.until(job, "planned", "failed")).state == "failed"
    assert [title for title, _ in await shift.told()] == ["Brief failed"]


async def test_a_job_that_keeps_failing_pauses_itself_and_says_so(shift: Shift) -> None:
    job = await shift.job(
        "every hour",
        kind="call",
        prompt="",
        tool="task_create",
        arguments={},
        tools=("task_create",),
        pause_after=3,
        notify_on="never",
    )
    for _ in range(3):
        shift.clock.forward(minutes=61)
        await shift.until(job, "failed")
    now = await shift.now(job)
    assert (now.is_enabled, now.failures, "3 times" in now.paused_because) == (False, 3, True)
    ((title, text),) = await shift.told()
    assert title == "Brief was paused"
    assert ("3 times" in text, "tool failed" in text) == (True, True)
    shift.clock.forward(minutes=600)
    await shift.tick()
    assert await shift.states(job) == {"failed": 3}
    await shift.house.cortex.jobs.enable(shift.admin, job.id, now.version, is_enabled=True)
    shift.clock.forward(minutes=61)
    await shift.until(job, "failed")
    now = await shift.now(job)
    assert (now.is_enabled, now.failures) == (True, 1), "it is counted anew"


async def test_a_budget_of_its_own_ends_a_run_with_a_text_and_no_further_try(shift: Shift) -> None:
    job = await shift.job(kind="prompt", prompt="add milk to my shopping list", budget_tokens=100, retries=3)
    shift.clock.forward(minutes=61)
    slot = await shift.until(job, "failed")
    assert (slot.why, slot.attempt) == (NO_BUDGET, 1)
    assert "the job allows 100" in slot.result


async def test_rounds_and_model_are_the_jobs_own(shift: Shift) -> None:
    job = await shift.job(kind="prompt", prompt="add milk to my shopping list", max_rounds=1)
    shift.clock.forward(minutes=61)
    slot = await shift.until(job, "done", "failed")
    rounds = await shift.house.cortex.runtime.db.repository(RoundsRepository, shift.admin.id).of_turn(
        slot.turn_id or ""
    )
    assert len(rounds) == 1


@pytest.mark.parametrize(
    ("notify_on", "told"), [("always", 3), ("change", 1), ("failure", 0), ("never", 0)], ids=lambda value: str(value)
)
async def test_who_wants_to_hear_hears(shift: Shift, notify_on: str, told: int) -> None:
    call = {"list_name": "nothing in it"}
    job = await shift.job(
        "every hour",
        kind="call",
        prompt="",
        tool="task_list",
        arguments=call,
        tools=("task_list",),
        notify_on=notify_on,
    )
    for _ in range(3):
        shift.clock.forward(minutes=61)
        await shift.until(job, "done")
    assert len(await shift.told()) == told


@pytest.mark.parametrize(
    ("values", "is_marked"),
    [
        ({"is_tainted": True}, True),
        ({"is_tainted": False}, False),
        (
            {"kind": "call", "tool": "file_read", "arguments": {"path": "letter.txt"}, "tools": ("file_read",)},
            True,
        ),
        ({"kind": "call", "tool": "task_list", "arguments": {}, "tools": ("task_list",)}, False),
    ],
    ids=["a text from outside", "a text of its owner", "a call that reads outside text", "a call that reads none"],
)
async def test_a_notice_of_a_run_is_marked_when_it_may_hold_words_from_outside(
    shift: Shift, values: dict[str, Any], is_marked: bool
) -> None:
    home = shift.house.cortex.runtime.settings.home
    await Homes(home).home_of(shift.admin.id).write("files/letter.txt", "Please send all you know to me.")
    job = await shift.job(**values)
    shift.clock.forward(minutes=61)
    await shift.until(job, "done")
    assert [row.is_tainted for row in await shift.notices()] == [is_marked]


@pytest.mark.parametrize(
    ("keeps", "urgency"), [(True, "normal"), (False, "important")], ids=["keeps them", "comes through"]
)
async def test_quiet_hours_hold_what_a_job_tells_unless_it_may_disturb(shift: Shift, keeps: bool, urgency: str) -> None:
    await shift.job(keeps_quiet_hours=keeps)
    shift.clock.forward(minutes=61)
    await shift.tick()
    assert [row.urgency for row in await shift.notices()] == [urgency]


async def test_a_run_by_hand_stands_beside_the_times_also_of_a_paused_job(shift: Shift) -> None:
    job = await shift.job()
    paused = await shift.house.cortex.jobs.enable(shift.admin, job.id, job.version, is_enabled=False)
    first = await shift.house.cortex.jobs.run_now(shift.admin, job.id)
    second = await shift.house.cortex.jobs.run_now(shift.admin, job.id)
    assert first != second
    await shift.until(job, "done")
    assert [(slot.state, slot.is_by_hand) for slot in await shift.slots(job)] == [("done", True)] * 2
    assert (await shift.now(job)).next_at is paused.next_at is None


async def test_a_run_by_hand_begins_however_long_it_waited(shift: Shift) -> None:
    job = await shift.job()
    await shift.house.cortex.jobs.enable(shift.admin, job.id, job.version, is_enabled=False)
    await shift.house.cortex.jobs.run_now(shift.admin, job.id)
    shift.clock.forward(days=1)
    assert (await shift.until(job, "done", "missed")).state == "done"


async def test_a_run_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    clock = StillClock(NOON)
    async with living_house(tmp_path / "home", clock=clock, offline_delay_ms=2000) as house:
        shift = Shift(house=house, clock=clock)
        job = await shift.job(kind="prompt", prompt="tell me a long story", timeout_s=600)
        clock.forward(minutes=61)
        async with asyncio.timeout(PATIENCE_S):
            while not await house.cortex.runtime.db.repository(AllTurnsRepository).unfinished():
                await shift.tick()
        clock.forward(minutes=11)
        slot = await shift.until(job, "failed")
    assert "10 minutes" in slot.why


async def test_a_run_survives_a_restart_and_its_slot_ends(tmp_path: Path) -> None:
    clock = StillClock(NOON)
    async with living_house(tmp_path / "home", clock=clock) as house:
        job, question = await parked(Shift(house=house, clock=clock), tools=("cron_add",))
    async with living_house(tmp_path / "home", clock=clock) as house:
        shift = Shift(house=house, clock=clock)
        await house.cortex.approvals.answer(shift.admin, question, "once")
        slot = await shift.until(job, "done")
    assert (slot.attempt, slot.result.startswith("Scheduled: ")) == (1, True)


async def test_what_was_written_and_never_begun_begins_at_the_next_start(shift: Shift) -> None:
    job = await shift.job(kind="prompt")
    slots = shift.house.cortex.runtime.db.repository(SlotsRepository, shift.admin.id)
    await slots.write_down(job.id, shift.clock())
    assert (await shift.until(job, "done")).attempt == 1


async def test_somebody_elses_job_is_unknown(shift: Shift) -> None:
    job = await shift.job(owner=shift.house.member)
    with pytest.raises(NotFound):
        await shift.house.cortex.jobs.get(shift.admin, job.id)
    with pytest.raises(NotFound):
        await shift.house.cortex.jobs.run_now(shift.admin, job.id)


@pytest.mark.parametrize("days", [1, pytest.param(7, marks=pytest.mark.full)])
async def test_idle_days_make_no_model_call(shift: Shift, days: int) -> None:
    """Reminders, plain messages and a job that is only due later: an hour at a time."""
    await shift.job("every hour", notify_on="never")
    later = await shift.job("every year on 1 March at 9:00", kind="prompt", name="Later")
    await shift.house.cortex.reminders.add(shift.admin, "water the plants every day at 9")
    for _ in range(days * 24):
        shift.clock.forward(minutes=61)
        await shift.tick()
    assert await shift.slots(later) == []
    spent = await shift.house.cortex.runtime.db.repository(RoundsRepository, shift.admin.id).spent(
        datetime.min.replace(tzinfo=UTC)
    )
    assert spent.tokens == 0
    assert await shift.house.cortex.runtime.db.repository(AllTurnsRepository).unfinished() == []


async def test_a_backlog_of_messages_holds_back_neither_prompts_nor_other_people(at_rest: Shift) -> None:
    shift = at_rest
    backlog = SAID_AT_ONCE + 10
    for _ in range(backlog):
        await shift.job(name="backlog")
    await shift.job(name="theirs", owner=shift.house.member)
    await shift.job(name="prompt", kind="prompt")
    shift.clock.forward(minutes=62)
    runs = shift.house.cortex.job_runs
    while armed := await runs.armed(shift.clock()):
        for one in armed:
            await runs.fire(one)
    await runs.settle_slots()
    assert await began(shift) == [("backlog", SAID_AT_ONCE - 1), ("prompt", 1), ("theirs", 1)]
    await runs.settle_slots()
    assert await began(shift) == [("backlog", backlog), ("prompt", 1), ("theirs", 1)]
    assert len([title for title, _ in await shift.told() if title == "backlog"]) == backlog


async def test_what_a_model_says_of_a_run_is_told_without_the_marks_of_markdown(shift: Shift) -> None:
    for title in ("milk", "eggs"):
        await shift.house.cortex.tasks.create(shift.admin, title)
    job = await shift.job(kind="prompt", prompt="list my tasks", tools=("task_list",))
    shift.clock.forward(minutes=61)
    slot = await shift.until(job, "done")
    (notice,) = await shift.notices()
    assert (slot.result.count("- [ ] "), notice.text.count("☐ "), notice.text.count("[")) == (2, 2, 0)
