"""The alarm clock: fires what a table says at its time, once, follows the table, and keeps nothing of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from cortex.base import scan
from cortex.base.background import background_tasks
from cortex.base.clock import now
from cortex.base.errors import ToolFailed
from cortex.services.jobs.alarm import ARMED_AHEAD, AT_ONCE, STILL_AHEAD, Alarm
from tests.patience import PATIENCE_S
from tests.still_clock import StillClock

SOON = timedelta(milliseconds=150)
LATER = timedelta(seconds=3)  # long enough to change something before
scan.load("cortex.services.jobs.timers")  # reading its library for the first time takes as long as these rows wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    id: str
    next_at: datetime
    version: int = 1


@dataclass(slots=True)
class Table:
    """Rows, and what was fired of them. `may_end`: what firing waits for."""

    rows: dict[str, Row] = field(default_factory=dict)
    fired: list[str] = field(default_factory=list)
    may_end: asyncio.Event | None = None
    at_work: int = 0
    most_at_work: int = 0
    failures: int = 0
    looks: int = 0
    is_still: bool = True

    def put(self, id: str, after: timedelta = SOON, version: int = 1) -> None:
        self.rows[id] = Row(id=id, next_at=now() + after, version=version)

    async def still(self) -> bool:
        return self.is_still

    async def due(self, until: datetime) -> list[Row]:
        self.looks += 1
        return [row for row in self.rows.values() if row.next_at <= until]

    async def fire(self, row: Row) -> None:
        self.at_work += 1
        self.most_at_work = max(self.most_at_work, self.at_work)
        if self.may_end is not None:
            await self.may_end.wait()
        self.at_work -= 1
        if self.failures:
            self.failures -= 1
            raise ToolFailed("not now")
        if self.rows.get(row.id) == row:
            del self.rows[row.id]
        self.fired.append(row.id)


@asynccontextmanager
async def ringing(*tables: Table) -> AsyncIterator[Alarm]:
    alarm = Alarm()
    for number, table in enumerate(tables):
        alarm.add(f"kind{number}", table.due, table.fire)
    async with background_tasks(alarm.fire_due):
        await asyncio.sleep(0)
        yield alarm


async def until(table: Table, count: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while len(table.fired) < count:  # noqa: ASYNC110 - nobody tells a test
            await asyncio.sleep(0.01)


async def one_look(alarm: Alarm, table: Table) -> None:
    """Until it has looked once more, to the end: a second look follows the first."""
    for _ in range(2):
        looks = table.looks
        async with asyncio.timeout(PATIENCE_S):
            while table.looks == looks:
                alarm.wake()
                await asyncio.sleep(0.001)


async def test_rows_of_every_kind_are_fired_at_their_time_and_once() -> None:
    jobs, reminders = Table(), Table()
    jobs.put("a")
    reminders.put("a", SOON * 2)
    for table in (jobs, reminders):
        table.put("b", SOON * 3)
    async with ringing(jobs, reminders) as alarm:
        for table in (jobs, reminders):
            await until(table, 2)
        await one_look(alarm, jobs)
    assert (sorted(jobs.fired), sorted(reminders.fired)) == (["a", "b"], ["a", "b"])


async def test_what_was_due_before_the_start_is_fired_at_once() -> None:
    table = Table()
    table.put("late", timedelta(days=-3))
    async with ringing(table):
        await until(table, 1)


async def test_a_row_that_was_put_off_or_taken_away_is_not_fired_at_its_old_time() -> None:
    table = Table()
    for id in ("moved", "gone", "kept"):
        table.put(id, LATER)
    table.put("after them", LATER + SOON)
    async with ringing(table) as alarm:
        await alarm.rearm()
        table.put("moved", timedelta(hours=1), version=2)
        del table.rows["gone"]
        alarm.wake()
        await until(table, 2)
    assert sorted(table.fired) == ["after them", "kept"]


async def test_a_row_that_is_due_again_at_once_is_fired_again() -> None:
    table = Table()
    table.put("tick")
    async with ringing(table) as alarm:
        await until(table, 1)
        table.put("tick", timedelta(), version=1)
        alarm.wake()
        await until(table, 2)


async def test_a_slow_one_is_not_fired_beside_itself_and_not_too_many_at_once() -> None:
    table = Table(may_end=(may_end := asyncio.Event()))
    for number in range(AT_ONCE * 2):
        table.put(f"row{number}", timedelta())
    async with ringing(table) as alarm:
        async with asyncio.timeout(PATIENCE_S):
            while table.at_work < AT_ONCE:  # noqa: ASYNC110 - nobody tells a test
                await asyncio.sleep(0.01)
        for _ in range(6):
            await one_look(alarm, table)
        may_end.set()
        await until(table, AT_ONCE * 2)
        await one_look(alarm, table)
    assert sorted(table.fired) == sorted({*table.fired})
    assert table.most_at_work == AT_ONCE


async def test_one_that_could_not_be_fired_is_fired_again(caplog: pytest.LogCaptureFixture) -> None:
    table = Table(failures=1)
    table.put("stubborn", timedelta())
    async with ringing(table):
        await until(table, 1)
    assert "not now" in caplog.text


async def test_tables_that_nobody_wrote_to_are_not_read_again_before_more_may_be_due() -> None:
    table, clock = Table(), StillClock()
    alarm = Alarm(clock, is_still=table.still)
    alarm.add("kind", table.due, table.fire)
    await alarm.rearm()
    clock.forward(seconds=(ARMED_AHEAD - STILL_AHEAD).total_seconds())
    await alarm.rearm()
    assert table.looks == 1
    clock.forward(seconds=1)
    await alarm.rearm()
    assert table.looks == 2


async def test_tables_that_somebody_wrote_to_are_read_at_the_next_look() -> None:
    table = Table(is_still=False)
    alarm = Alarm(is_still=table.still)
    alarm.add("kind", table.due, table.fire)
    await alarm.rearm()
    await alarm.rearm()
    assert table.looks == 2


async def test_one_that_could_not_be_fired_is_fired_again_though_nobody_wrote_anything() -> None:
    table = Table(failures=1)
    table.put("stubborn", timedelta())
    alarm = Alarm(is_still=table.still)
    alarm.add("kind", table.due, table.fire)
    async with background_tasks(alarm.fire_due):
        await until(table, 1)
    assert table.failures == 0
