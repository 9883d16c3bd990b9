"""A call that may be run again, cut between its effect and its record: one effect, on the row that was meant first."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cortex.agent.execute import Executor
from cortex.base.messages import ToolCall
from cortex.base.record import field_names
from cortex.base.turn import Decision, Performed, Turn
from cortex.ports.loop import CallEnding, CallRecord
from cortex.ports.schedule import Jobs, Reminders, Timing
from cortex.services.turns.calls import CallLog
from cortex.services.turns.end import TurnEnd
from cortex.storage.calls import CallsRepository
from cortex.storage.home import Homes
from cortex.storage.tasks import TasksRepository
from cortex.storage.turns import NOTHING_READ, NewTurn, TurnsRepository
from tests.living_house import LivingHouse, living_house
from tests.services.turns.admin_turn import admin_turn
from tests.still_clock import StillClock

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAILY = Timing(kind="cron", expression="0 9 * * *", time_zone="UTC", words="every day at 09:00")


class Killed(Exception):
    """The process dies here."""


class DyingBook(CallLog, frozen=True):
    """Dies ahead of each record of an end."""

    async def end(self, turn: Turn, call: CallRecord, ending: CallEnding) -> CallEnding:
        raise Killed


@dataclass
class Shop:
    """A house with a turn that is at work, and a gate of our own in front of the real tools."""

    house: LivingHouse
    call_log: CallLog
    turn: Turn
    meanwhile: Callable[[], Awaitable[object]]

    def gate(self, book: CallLog) -> Executor:
        inside = self.house.cortex.runtime
        return Executor(
            registry=inside.registry,
            call_log=book,
            approvals=self.house.cortex.approvals,
            scope=self.house.cortex.scope,
            ticks_s=inside.ticks_s,
        )

    async def cut(self, name: str, **arguments: Any) -> tuple[ToolCall, Decision]:
        """Run the call up to its record, and die there."""
        call = ToolCall(id="c1", name=name, arguments=json.dumps(arguments))
        decision = await self.gate(self.call_log).decide(self.turn, 1, call)
        assert decision.verdict == "run"
        dying = DyingBook(**{name: getattr(self.call_log, name) for name in field_names(CallLog)})
        with pytest.raises(Killed):
            await self.gate(dying).perform(self.turn, 1, call, decision, None)
        return call, decision

    async def cut_and_again(self, name: str, **arguments: Any) -> Performed:
        """Run the call up to its record, die there, let the world go on, and run it again."""
        call, decision = await self.cut(name, **arguments)
        await self.meanwhile()
        return await self.gate(self.call_log).perform(self.turn, 1, call, decision, None)

    def open(self, kind: type[Any]) -> Any:
        return self.house.cortex.scope.provide(kind, self.house.admin.id)


async def nothing() -> None:
    """Nobody else does anything meanwhile."""


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    async with living_house(tmp_path / "home", clock=StillClock(AT)) as house:
        inside, user_id = house.cortex.runtime, house.admin.id
        row = await inside.db.repository(TurnsRepository, user_id).create(
            NewTurn(
                "turn:1",
                await house.conversation(),
                "do it",
                mode="auto",
                role="admin",
                state="running",
                is_tainted=False,
                reads=NOTHING_READ,
            )
        )
        turn = admin_turn(row.id, row.conversation_id, user_id, AT)
        homes = Homes(tmp_path / "home")
        book = CallLog(runtime=inside, contexts=house.cortex.turn_contexts, homes=homes)
        yield Shop(house=house, call_log=book, turn=turn, meanwhile=nothing)


async def offers_undo(shop: Shop) -> bool:
    """Whether the call's card lets it be taken back, and that does so."""
    (card,) = await shop.house.events(shop.turn.conversation_id, "tool.result")
    if not card.payload["undo"]:
        return False
    await shop.house.cortex.undo.undo(shop.house.admin, card.payload["undo"])
    return True


async def tasks(shop: Shop) -> dict[str, bool]:
    return {task.title: task.is_done for task in await shop.open(TasksRepository).list()}


async def test_a_task_is_ticked_off_once_and_no_other_in_its_place(shop: Shop) -> None:
    for id, title in (("1", "milk"), ("2", "oat milk")):
        await shop.open(TasksRepository).create(id, title=title, is_tainted=False)
    made = await shop.cut_and_again("task_complete", task="milk")
    assert made.result.text.startswith("Done: milk")
    assert await tasks(shop) == {"milk": True, "oat milk": False}
    assert await offers_undo(shop)
    assert await tasks(shop) == {"milk": False, "oat milk": False}


async def test_a_task_is_changed_once_and_no_other_in_its_place(shop: Shop) -> None:
    for id, title in (("1", "milk"), ("2", "oat milk")):
        await shop.open(TasksRepository).create(id, title=title, is_tainted=False)
    made = await shop.cut_and_again("task_update", task="milk", title="bread", due="2026-12-01")
    assert made.result.text.startswith("Changed: bread")
    assert set(await tasks(shop)) == {"bread", "oat milk"}
    assert await offers_undo(shop)
    assert set(await tasks(shop)) == {"milk", "oat milk"}


async def test_a_task_that_somebody_changed_meanwhile_is_left_as_it_is(shop: Shop) -> None:
    await shop.open(TasksRepository).create("1", title="milk", is_tainted=False)

    async def reopened() -> None:
        await shop.open(TasksRepository).reopen("1")

    shop.meanwhile = reopened
    made = await shop.cut_and_again("task_complete", task="milk")
    assert made.result.is_error
    assert await tasks(shop) == {"milk": False}


async def reminders(shop: Shop) -> set[str]:
    return {row.text for row in await shop.open(Reminders).list()}


async def remind(shop: Shop, *texts: str) -> None:
    for text in texts:
        await shop.open(Reminders).add(text, text, DAILY, AT + timedelta(hours=3), False)


async def test_a_reminder_is_removed_once_and_no_other_in_its_place(shop: Shop) -> None:
    await remind(shop, "dentist", "dentist for the dog")
    made = await shop.cut_and_again("reminders_remove", reminder="dentist")
    assert made.result.text.startswith("Removed: dentist (")
    assert await reminders(shop) == {"dentist for the dog"}
    assert await offers_undo(shop)
    assert await reminders(shop) == {"dentist", "dentist for the dog"}


async def test_a_reminder_that_came_meanwhile_is_not_cleared(shop: Shop) -> None:
    await remind(shop, "dentist", "plants")

    async def one_more() -> None:
        await remind(shop, "new")

    shop.meanwhile = one_more
    made = await shop.cut_and_again("reminders_clear")
    assert made.result.text == "Removed 2 reminders."
    assert await reminders(shop) == {"new"}


async def jobs(shop: Shop) -> dict[str, bool]:
    return {job.name: job.is_enabled for job in await shop.open(Jobs).list()}


@pytest.mark.parametrize(
    ("name", "arguments", "left"),
    [
        ("cron_remove", {}, {"news of sport": True}),
        ("cron_toggle", {"enabled": False}, {"news": False, "news of sport": True}),
    ],
    ids=["cron_remove", "cron_toggle"],
)
async def test_a_job_is_removed_or_paused_once_and_no_other_in_its_place(
    shop: Shop, name: str, arguments: dict[str, Any], left: dict[str, bool]
) -> None:
    for title in ("news", "news of sport"):
        await shop.open(Jobs).add(title, title, "sum up", DAILY, "orchestrator", is_tainted=False, is_private=False)
    made = await shop.cut_and_again(name, job="news", **arguments)
    assert not made.result.is_error
    assert await jobs(shop) == left
    assert await offers_undo(shop)
    assert await jobs(shop) == {"news": True, "news of sport": True}


async def test_a_passage_that_holds_its_own_anchor_is_put_in_once(shop: Shop) -> None:
    home = shop.call_log.homes.home_of(shop.house.admin.id)
    await home.write("files/list.txt", "one\n# end\n")
    made = await shop.cut_and_again("file_write", path="list.txt", text="two\n# end", replace="# end")
    assert made.result.text.startswith("Changed list.txt")
    assert (await home.read("files/list.txt")).text == "one\ntwo\n# end\n"
    assert await offers_undo(shop)
    assert (await home.read("files/list.txt")).text == "one\n# end\n"


@pytest.mark.parametrize(
    ("name", "arguments", "path"),
    [
        ("file_write", {"path": "own.txt", "text": "mine"}, "files/own.txt"),
        ("scratch_write", {"text": "mine"}, "scratchpad.md"),
        ("scratch_clear", {}, "scratchpad.md"),
    ],
    ids=["file_write", "scratch_write", "scratch_clear"],
)
async def test_what_a_person_wrote_meanwhile_is_not_overwritten(
    shop: Shop, name: str, arguments: dict[str, Any], path: str
) -> None:
    home = shop.call_log.homes.home_of(shop.house.admin.id)
    await home.write(path, "before\n")

    async def written() -> None:
        await home.write(path, "theirs\n")

    shop.meanwhile = written
    made = await shop.cut_and_again(name, **arguments)
    assert made.result.is_error
    assert (await home.read(path)).text == "theirs\n"


@pytest.mark.parametrize(
    ("name", "arguments", "left"),
    [("scratch_write", {"text": "mine"}, "mine\n"), ("scratch_clear", {}, "")],
    ids=["scratch_write", "scratch_clear"],
)
async def test_a_page_is_written_or_cleared_once_and_can_be_taken_back(
    shop: Shop, name: str, arguments: dict[str, Any], left: str
) -> None:
    home = shop.call_log.homes.home_of(shop.house.admin.id)
    await home.write("scratchpad.md", "before\n")
    made = await shop.cut_and_again(name, **arguments)
    assert not made.result.is_error
    assert (await home.version("scratchpad.md") != "") is bool(left)
    assert await offers_undo(shop)
    assert (await home.read("scratchpad.md")).text == "before\n"


async def test_a_call_that_nobody_runs_again_keeps_nothing(shop: Shop) -> None:
    inside, user_id = shop.house.cortex.runtime, shop.house.admin.id
    await shop.call_log.homes.home_of(user_id).write("files/own.txt", "before")
    _, decision = await shop.cut("file_write", path="own.txt", text="mine")
    calls = inside.db.repository(CallsRepository, user_id)
    assert await calls.target(decision.call_id) == {"before": b"before".hex()}
    await TurnEnd(runtime=inside).interrupt(
        await inside.db.repository(TurnsRepository, user_id).get(shop.turn.id), "It broke off."
    )
    assert await calls.target(decision.call_id) is None


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("task_list", {}), ("tools_discover", {"query": "shopping list"})],
    ids=["the same call", "a search for tools"],
)
async def test_a_call_that_is_decided_again_does_not_count_itself(
    shop: Shop, name: str, arguments: dict[str, Any]
) -> None:
    gate, words = shop.gate(shop.call_log), json.dumps(arguments)
    first, second, third = (ToolCall(id=f"c{number}", name=name, arguments=words) for number in range(3))
    await gate.perform(shop.turn, 1, first, await gate.decide(shop.turn, 1, first), None)
    verdicts = [(await gate.decide(shop.turn, 1, second)).verdict for _ in range(2)]  # cut ahead of its record
    assert verdicts == ["run", "run"]
    assert (await gate.decide(shop.turn, 1, third)).verdict == "refuse"
