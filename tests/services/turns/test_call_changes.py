"""Edit before allowing, at the gate and in the tables: what was edited runs, once, and nothing else."""

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from cortex.agent.execute import Executor
from cortex.agent.refusals import as_changed
from cortex.base.errors import Conflict, NotFound, UserError
from cortex.base.messages import ToolCall
from cortex.base.turn import Decision, Turn
from cortex.ports.loop import CallEnding, CallRecord
from cortex.ports.schedule import Jobs
from cortex.services.turns.calls import CallLog
from cortex.storage.approvals import ApprovalsRepository
from cortex.storage.turns import NewTurn, TurnsRepository
from tests.living_house import LivingHouse, living_house
from tests.plain_world import PLAIN_TURN

ASKED = ToolCall(id="w1", name="cron_add", arguments=json.dumps({"prompt": "Water the flowers.", "when": "daily at 9"}))
EDITED = json.dumps({"prompt": "Water the cactus.", "when": "every Friday at 8"})


class Killed(Exception):
    """The process dies here."""


class DyingBook(CallLog, frozen=True):
    """Dies behind the effect, ahead of its record."""

    async def end(self, turn: Turn, call: CallRecord, ending: CallEnding) -> CallEnding:
        raise Killed


class Waiting:
    """A turn whose call waits for its person."""

    def __init__(self, house: LivingHouse, turn: Turn, decision: Decision) -> None:
        self.house, self.turn, self.decision = house, turn, decision

    async def allow(self, arguments: str) -> None:
        with suppress(NotFound):  # no run is there to be signalled: as where the process dies ahead of that
            await self.house.cortex.call_changes.allow(self.house.admin, self.decision.approval_id, arguments)

    async def perform(self, executor: Executor | None = None, answer: str = "changed") -> str:
        executor = executor or self.house.cortex.executor
        done = await executor.perform(self.turn, 1, ASKED, self.decision, answer)  # type: ignore[arg-type]
        return done.result.text

    async def state(self) -> str:
        rows = self.house.cortex.runtime.db.repository(ApprovalsRepository, self.house.admin.id)
        return (await rows.get(self.decision.approval_id)).state

    async def jobs(self) -> list[tuple[str, str]]:
        jobs = self.house.cortex.scope.provide(Jobs, self.house.admin.id)
        return [(job.prompt, job.timing.words) for job in await jobs.list()]


@pytest.fixture
async def waiting(tmp_path: Path) -> AsyncIterator[Waiting]:
    async with living_house(tmp_path / "home") as house:
        cid = await house.conversation()
        turns = house.rows(TurnsRepository)
        row = await turns.create(NewTurn(f"turn:{cid}:1", cid, "x", **PLAIN_TURN))
        turn = await house.cortex.turn_runs.turn_start.start_turn(house.admin.id, row.id)
        assert turn is not None
        decision = await house.cortex.executor.decide(turn, 1, ASKED)
        assert decision.verdict == "ask"
        yield Waiting(house, turn, decision)


async def test_what_the_person_wrote_runs_once_though_the_process_dies_behind_it(waiting: Waiting) -> None:
    cortex = waiting.house.cortex
    dying = DyingBook(runtime=cortex.runtime, contexts=cortex.turn_contexts, homes=cortex.homes)
    await waiting.allow(EDITED)
    with pytest.raises(Killed):
        await waiting.perform(
            Executor(
                registry=cortex.runtime.registry,
                call_log=dying,
                approvals=cortex.approvals,
                scope=cortex.scope,
                ticks_s=cortex.runtime.ticks_s,
            )
        )
    text = await waiting.perform()
    assert text == await waiting.perform()
    assert text.startswith(as_changed('{"name":"","prompt":"Water the cactus.","when":"every Friday at 8"}', "Sched"))
    assert await waiting.jobs() == [("Water the cactus.", "every Friday at 08:00")]


async def test_the_call_that_was_edited_can_never_run_as_it_was(waiting: Waiting) -> None:
    await waiting.allow(EDITED)
    assert await waiting.state() == "changed"
    await waiting.perform(answer="allowed")
    assert await waiting.jobs() == []
    for again in (EDITED, ASKED.arguments):
        with pytest.raises(Conflict):
            await waiting.allow(again)
    with pytest.raises(Conflict):
        await waiting.house.cortex.approvals.answer(waiting.house.admin, waiting.decision.approval_id, "once")


async def test_unchanged_arguments_are_a_plain_yes(waiting: Waiting) -> None:
    await waiting.allow(ASKED.arguments)
    assert await waiting.state() == "allowed"
    await waiting.perform(answer="allowed")
    assert await waiting.jobs() == [("Water the flowers.", "every day at 09:00")]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"prompt": "x", "when": "when it suits"}, "when it suits"),
        ({"prompt": "x"}, "wrong form"),
        ({"prompt": "x", "when": "daily at 9", "role": "admin"}, "wrong form"),
    ],
    ids=["its tool finds it impossible", "too few", "one too many"],
)
async def test_what_could_not_run_is_said_and_the_request_waits_on(
    waiting: Waiting, arguments: dict[str, str], says: str
) -> None:
    with pytest.raises(UserError, match=says):
        await waiting.allow(json.dumps(arguments))
    assert await waiting.state() == "asked"


async def test_a_right_that_was_taken_away_holds_for_the_edited_call(waiting: Waiting) -> None:
    settings = waiting.house.cortex.tool_settings
    await settings.change(waiting.house.admin, "cron_add", is_on=False, sending="needed", asks_first=False)
    with pytest.raises(UserError):
        await waiting.allow(EDITED)
    assert await waiting.state() == "asked"


async def test_nobody_edits_what_another_person_is_asked(waiting: Waiting) -> None:
    other = replace(waiting.house.admin, id="another admin")
    with pytest.raises(NotFound):
        await waiting.house.cortex.call_changes.allow(other, waiting.decision.approval_id, EDITED)
    assert await waiting.state() == "asked"
