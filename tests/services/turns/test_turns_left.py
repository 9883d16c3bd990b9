"""A process is killed between two commits of a turn's life: the next look, or the next start, brings the turn on."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from cortex.app import Cortex
from cortex.base.events import OpenPart
from cortex.base.turn import TurnState
from cortex.base.user import User
from cortex.services.turns.end import STOPPED
from cortex.services.turns.queue import TurnQueue
from cortex.storage.messages import MessagesRepository
from cortex.storage.turns import NewTurn, TurnsRepository
from tests.children import ROOT, run
from tests.databases import house_settings
from tests.living_house import PASSWORD, Deaf, LivingHouse, living_house
from tests.plain_world import PLAIN_TURN
from tests.services.turns.killed_process import KILLED

FIRST, SECOND = "turn:1", "turn:2"
CHOICES = pytest.mark.parametrize(("choice", "state"), [("once", "ok"), ("deny", "refused")], ids=["yes", "no"])


def killed(home: Path, *what: str) -> None:
    """Let a process die there."""
    done = run((str(home), *what), env=os.environ, cwd=ROOT, module="tests.services.turns.killed_process")
    assert done.returncode == KILLED, done.stderr[-2000:]


async def the_conversation(house: LivingHouse) -> str:
    groups = await house.cortex.conversations.list(house.admin)
    return groups[0].conversations[0].id


@CHOICES
async def test_an_answer_that_a_killed_process_took_is_heard_after_the_start(
    tmp_path: Path, choice: str, state: str
) -> None:
    killed(tmp_path, "answer", choice)
    async with living_house(tmp_path) as house:
        cid = await the_conversation(house)
        result = await house.until(cid, "tool.result")
        assert result.payload["state"] == state
        await house.until(cid, "turn.end", turn=result.turn_id, state="done")
        assert len(await house.events(cid, "tool.result")) == 1


@CHOICES
async def test_an_answer_that_another_process_took_and_lost_is_heard_at_the_next_look(
    house: LivingHouse, choice: str, state: str
) -> None:
    cid = await house.conversation()
    turn = await house.cortex.chat.send_message(house.admin, cid, "run `echo hi-$((40+2))` in the shell")
    asked = await house.until(cid, "approval", state="asked")
    desk = replace(house.cortex.approvals, runtime=replace(house.cortex.runtime, signals=Deaf()))
    await desk.answer(house.admin, asked.payload["approval"], choice)
    for _ in range(3):  # told again and again it is heard once
        await house.cortex.turn_queue.settle_stalled()
    assert (await house.until(cid, "tool.result")).payload["state"] == state
    await house.until(cid, "turn.end", turn=turn, state="done")
    await house.cortex.turn_queue.settle_stalled()
    assert len(await house.events(cid, "tool.result")) == 1


async def test_a_turn_whose_stop_was_killed_is_ended_after_the_start_and_the_next_one_runs(tmp_path: Path) -> None:
    killed(tmp_path, "stop")
    async with living_house(tmp_path) as house:
        cid = await the_conversation(house)
        ended = await house.until(cid, "turn.end", state="stopped")
        assert ended.payload["can_continue"] is False
        assert await house.events(cid, "notice") == []
        await house.until(cid, "turn.end", state="done")


@dataclass
class Ended:
    """An engine in which every run has ended so. What it starts is written down."""

    how: str
    started: list[str] = field(default_factory=list)

    async def start(
        self, run_id: str, workflow: str, argument: dict[str, Any], *, queue: str = "", key: str = ""
    ) -> None:
        """Write it down."""
        self.started.append(run_id)

    async def cancel(self, run_id: str) -> None:
        """It has ended."""

    async def forget(self, run_ids: Sequence[str]) -> None:
        """Keep them."""

    async def status(self, run_id: str) -> str:
        """How the first one ended; nobody started another."""
        return self.how if run_id == FIRST else "unknown"

    async def unfinished(self) -> list[str]:
        """None."""
        return []

    async def hold(self) -> None:
        """Nothing runs."""

    async def has_moved(self) -> None:
        """Nothing runs."""


@dataclass(frozen=True)
class Left:
    """A turn that says that it runs, and one behind it, in a house where nothing looks by itself."""

    cortex: Cortex
    queue: TurnQueue
    engine: Ended
    user: User
    cid: str

    async def states(self) -> list[str]:
        rows = await self.cortex.runtime.db.repository(TurnsRepository, self.user.id).list(self.cid)
        return [row.state for row in rows]


@asynccontextmanager
async def left(home: Path, how: str) -> AsyncIterator[Left]:
    async with Cortex.at_rest(house_settings(home)) as cortex:
        await cortex.accounts.add_user("ada", "admin", PASSWORD)
        user = await cortex.accounts.named("ada")
        cid = (await cortex.conversations.new(user, role="orchestrator")).id
        turns = cortex.runtime.db.repository(TurnsRepository, user.id)
        for id, state in ((FIRST, "running"), (SECOND, "queued")):
            await turns.create(NewTurn(id, cid, "hello", state=cast(TurnState, state), **PLAIN_TURN))
        engine = Ended(how)
        queue = replace(cortex.turn_queue, runtime=replace(cortex.runtime, runner=engine))
        yield Left(cortex, queue, engine, user, cid)


@pytest.mark.parametrize(
    ("how", "state"), [("cancelled", "stopped"), ("done", "interrupted"), ("unknown", "interrupted")]
)
async def test_a_turn_without_a_living_run_is_ended_when_it_is_seen_for_the_second_time(
    tmp_path: Path, how: str, state: str
) -> None:
    async with left(tmp_path, how) as house:
        await house.queue.recover()
        assert (await house.states(), house.engine.started) == (["running", "queued"], [])
        await house.queue.settle_stalled()
        assert (await house.states(), house.engine.started) == ([state, "queued"], [SECOND])


async def test_a_look_in_the_middle_of_a_stop_takes_none_of_what_was_said(tmp_path: Path) -> None:
    async with left(tmp_path, "cancelled") as house:
        await house.queue.settle_stalled()
        turns = house.cortex.runtime.db.repository(TurnsRepository, house.user.id)
        part = OpenPart(conversation_id=house.cid, turn_id=FIRST, part="p", kind="text", text="Half a", attempt=1)
        assert await house.queue.turn_end.stop(await turns.get(FIRST), [part]) == SECOND
        await house.queue.settle_stalled()
        assert await house.states() == ["stopped", "queued"]
        kept = await house.cortex.runtime.db.repository(MessagesRepository, house.user.id).of_turn(FIRST)
        assert kept[-1].message.text == f"Half a\n{STOPPED}"
