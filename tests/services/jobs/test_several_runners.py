"""Two runners of jobs on the same tables, as two workers have them: what one does, the other leaves alone."""

import pytest

from cortex.base.settings import Settings
from cortex.services.jobs.runs import LEFT_TO_ITS_OWN, JobRuns, SlotSignal
from cortex.services.jobs.starts import JobStarts
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.job_rows import JobRow
from cortex.storage.slots import SlotRow
from tests.services.jobs.test_line import ROOM, due_together, end_turn, states
from tests.services.jobs.test_line import narrow as narrow
from tests.services.jobs.test_runs import Shift


@pytest.fixture(autouse=True)
def _several(narrow: Shift, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only on PostgreSQL is there more than one; both runners of a test are on whatever this run has."""

    async def start(*_: object, **__: object) -> None:
        """Take it, and let it stay at work."""

    monkeypatch.setattr(Settings, "is_postgresql", True)
    monkeypatch.setattr(type(narrow.house.cortex.runtime.runner), "start", start)


def starts(shift: Shift) -> JobStarts:
    return shift.house.cortex.job_runs._starts


def another(shift: Shift) -> JobRuns:
    made = starts(shift)
    return JobRuns(
        runtime=made.runtime, turns=made.turns, tools=made.tools, notifier=made.notifier, signal=SlotSignal()
    )


async def test_two_share_what_is_due_and_each_run_begins_once(narrow: Shift) -> None:
    jobs = await due_together(narrow, 2 * ROOM + 1)
    assert (await states(narrow, jobs)).count("running") == ROOM
    await another(narrow).settle_slots()
    assert (await states(narrow, jobs)).count("running") == 2 * ROOM
    slots = [slot for job in jobs for slot in await narrow.slots(job)]
    assert sorted(slot.attempt for slot in slots) == [0] + [1] * 2 * ROOM


async def test_a_run_that_ended_elsewhere_is_left_to_its_own_process_as_long_as_that_may_live(narrow: Shift) -> None:
    jobs = await due_together(narrow, 1)
    other = another(narrow)
    await end_turn(narrow, jobs)
    await other.settle_slots()
    assert await states(narrow, jobs) == ["running"], "its own process looks at once"
    narrow.clock.forward(seconds=LEFT_TO_ITS_OWN.total_seconds())
    await other.settle_slots()
    assert await states(narrow, jobs) == ["failed"]
    await narrow.tick()
    assert await states(narrow, jobs) == ["failed"]


async def test_who_comes_too_late_for_a_run_does_no_work_for_it(narrow: Shift, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[JobRow, SlotRow]] = []
    begin = JobStarts.begin

    async def noted(self: JobStarts, job: JobRow, slot: SlotRow) -> str:
        seen.append((job, slot))
        return await begin(self, job, slot)

    monkeypatch.setattr(JobStarts, "begin", noted)
    await due_together(narrow, 1)
    monkeypatch.setattr(JobStarts, "begin", begin)
    monkeypatch.delattr(ConversationsRepository, "create")  # the job had no conversation when the line was read
    assert await starts(narrow).begin(*seen[0]) == ""
