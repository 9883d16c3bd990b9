import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from dbos._workflow_commands import BACKGROUND_JOBS_THREAD_NAME

from cortex.base.errors import DatabaseUnavailable, NotFound
from cortex.base.outages import Outages
from cortex.engine.config import AT_ONCE_HERE
from cortex.engine.dbos import Body, Engine
from cortex.engine.remote import Remote
from cortex.ports.steps import is_first_life, step
from tests.databases import engine_of
from tests.e2e.tables import locked
from tests.engine.opening import Opener, is_state, true, until
from tests.patience import PATIENCE_S


class Work:
    """A port that says what it did."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.open: set[str] = set()
        self.gate = asyncio.Event()
        self.empty = asyncio.Event()

    @step("Work.note")
    async def note(self, text: str) -> tuple[str, int]:
        self.done.append(text)
        return text, len(self.done)

    @step("Work.hold")
    async def hold(self, text: str) -> str:
        """Like a model request: a connection is open until the answer is there, or the caller goes away."""
        self.open.add(text)
        try:
            await self.gate.wait()
            self.done.append(text)
        finally:
            self.open.discard(text)
            if not self.open:
                self.empty.set()
        return text


@contextmanager
def full(database: sa.Engine) -> Iterator[None]:
    """The file may not grow any more: SQLite answers as on a disk that is full."""
    pages = {"limit": 1}

    def limit(connection: sqlite3.Connection, *_: object) -> None:
        connection.execute(f"PRAGMA max_page_count={pages['limit']}")  # never less than there are

    sa.event.listen(database, "checkout", limit)
    yield
    pages["limit"] = 1 << 30


async def test_a_run_starts_once_per_id(opened: Opener) -> None:
    work = Work()

    def prepare(engine: Engine) -> dict[str, Body]:
        async def body(run_id: str, argument: dict[str, Any]) -> None:
            await work.note(argument["text"])

        return {"turn": body}

    async with opened(prepare) as engine:
        assert await engine.status("turn:1") == "unknown"
        await asyncio.gather(*(engine.start("turn:1", "turn", {"text": "hello"}) for _ in range(5)))
        await until(lambda: is_state(engine, "turn:1", "done"))
        await engine.start("turn:1", "turn", {"text": "again"})
        await engine.start("turn:2", "turn", {"text": "what comes after"})
        await until(lambda: is_state(engine, "turn:2", "done"))
        assert work.done == ["hello", "what comes after"]
        assert await engine.unfinished() == []


async def test_a_run_starts_even_when_its_starter_goes_away(opened: Opener) -> None:
    work = Work()

    def prepare(engine: Engine) -> dict[str, Body]:
        async def body(run_id: str, argument: dict[str, Any]) -> None:
            await work.note(run_id)

        return {"turn": body}

    async with opened(prepare) as engine:
        for number in range(20):
            starter = asyncio.create_task(engine.start(f"turn:{number}", "turn", {}))
            for _ in range(number + 1):  # another moment of the start each time
                await asyncio.sleep(0)
            starter.cancel()
            await asyncio.wait({starter})
        await until(lambda: true(len(work.done) == 20))
        await until(lambda: is_state(engine, "turn:19", "done"))
        assert len(set(work.done)) == 20


async def test_a_run_that_raises_is_failed(opened: Opener) -> None:
    def prepare(engine: Engine) -> dict[str, Body]:
        async def body(run_id: str, argument: dict[str, Any]) -> None:
            raise NotFound("no such thing")

        return {"turn": body}

    async with opened(prepare) as engine:
        await engine.start("turn:1", "turn", {})
        await until(lambda: is_state(engine, "turn:1", "failed"))


async def test_cancel_closes_what_the_step_held(opened: Opener) -> None:
    work = Work()
    closed: list[str] = []

    def prepare(engine: Engine) -> dict[str, Body]:
        async def body(run_id: str, argument: dict[str, Any]) -> None:
            try:
                await asyncio.gather(work.hold("a"), work.hold("b"))
            finally:
                closed.append(run_id)

        return {"turn": body}

    async with opened(prepare) as engine:
        await engine.start("turn:1", "turn", {})
        await until(lambda: true(work.open == {"a", "b"}))
        async with asyncio.timeout(PATIENCE_S):
            stopping = asyncio.create_task(engine.cancel("turn:1"))
            await work.empty.wait()
        await stopping
        assert closed == ["turn:1"]
        assert await engine.status("turn:1") == "cancelled"
        assert work.done == []


async def test_a_cancelled_wait_ends_and_a_run_that_is_done_stays_done(opened: Opener) -> None:
    def prepare(engine: Engine) -> dict[str, Body]:
        async def waiting(run_id: str, argument: dict[str, Any]) -> None:
            await engine.wait_for_signal("answer", 60)

        async def short(run_id: str, argument: dict[str, Any]) -> None:
            return

        return {"waiting": waiting, "short": short}

    async with opened(prepare) as engine:
        await engine.start("w", "waiting", {})
        await engine.start("s", "short", {})
        await until(lambda: is_state(engine, "s", "done"))
        await engine.cancel("w")
        await engine.cancel("s")
        assert await engine.status("w") == "cancelled"
        assert await engine.status("s") == "done"


async def test_a_signal_is_kept_until_the_run_waits(opened: Opener) -> None:
    got: list[str | None] = []
    are_sent = asyncio.Event()

    def prepare(engine: Engine) -> dict[str, Body]:
        async def body(run_id: str, argument: dict[str, Any]) -> None:
            await are_sent.wait()
            got.append(await engine.wait_for_signal("approval:1", PATIENCE_S))
            got.append(await engine.wait_for_signal("approval:2", 0.1))

        return {"turn": body}

    async with opened(prepare) as engine:
        await engine.start("turn:1", "turn", {})
        await engine.signal("turn:1", "approval:2", "too early for the first")
        await engine.signal("turn:1", "approval:1", "allowed")
        are_sent.set()
        await until(lambda: is_state(engine, "turn:1", "done"))
    assert got == ["allowed", "too early for the first"]


async def test_a_signal_that_is_sent_again_is_heard_once(opened: Opener) -> None:
    got: list[str | None] = []

    def prepare(engine: Engine) -> dict[str, Body]:
        async def body(run_id: str, argument: dict[str, Any]) -> None:
            got.append(await engine.wait_for_signal("approval:1", 10))
            got.append(await engine.wait_for_signal("approval:1", 0.1))

        return {"turn": body}

    async with opened(prepare) as engine:
        await engine.start("turn:1", "turn", {})
        for value in ("allowed", "allowed", "denied"):
            await engine.signal("turn:1", "approval:1", value)
        await until(lambda: is_state(engine, "turn:1", "done"))
    assert got == ["allowed", None]


async def test_a_wait_ends_with_nothing_when_the_time_is_up(opened: Opener) -> None:
    got: list[str | None] = []

    def prepare(engine: Engine) -> dict[str, Body]:
        async def body(run_id: str, argument: dict[str, Any]) -> None:
            got.append(await engine.wait_for_signal("approval:1", 0.1))

        return {"turn": body}

    async with opened(prepare) as engine:
        await engine.start("turn:1", "turn", {})
        await until(lambda: is_state(engine, "turn:1", "done"))
    assert got == [None]


async def test_a_signal_to_nobody_is_not_found(opened: Opener) -> None:
    async with opened(lambda engine: {}) as engine:
        with pytest.raises(NotFound):
            await engine.signal("turn:none", "t", "v")


async def test_a_restart_goes_on_after_the_last_completed_step(opened: Opener) -> None:
    work = Work()
    lives: list[dict[str, Any]] = []

    def prepare(engine: Engine) -> dict[str, Body]:
        kept: dict[str, Any] = {}
        lives.append(kept)

        async def keep(text: str) -> None:
            kept[text] = await work.note(text)

        async def body(run_id: str, argument: dict[str, Any]) -> None:
            await keep("first")
            await asyncio.gather(keep("left"), work.hold("held"), keep("right"))
            await keep("last")

        return {"turn": body}

    async with opened(prepare, grace_s=0.1) as engine:
        await engine.start("turn:1", "turn", {})
        await until(lambda: true(work.open == {"held"} and len(lives[0]) == 3))
    assert work.open == set()

    work.gate.set()
    async with opened(prepare) as engine:
        await until(lambda: is_state(engine, "turn:1", "done"))
    assert sorted(work.done[:3]) == ["first", "left", "right"]
    assert work.done[3:] == ["held", "last"]
    assert lives[1] == {**lives[0], "last": ("last", 5)}


async def test_closing_lets_a_step_end_and_begins_no_other(opened: Opener) -> None:
    work = Work()

    def prepare(engine: Engine) -> dict[str, Body]:
        async def body(run_id: str, argument: dict[str, Any]) -> None:
            await work.hold("held")
            await work.note("after")

        return {"turn": body}

    async with opened(prepare, grace_s=5) as engine:
        await engine.start("turn:1", "turn", {})
        await until(lambda: true(bool(work.open)))
        asyncio.get_running_loop().call_later(0.2, work.gate.set)
    assert work.done == ["held"]
    async with opened(prepare) as engine:
        await until(lambda: is_state(engine, "turn:1", "done"))
    assert work.done == ["held", "after"]


async def test_a_waiting_run_gets_its_signal_after_a_restart(opened: Opener) -> None:
    lives, got = list[str](), list[str | None]()

    def prepare(engine: Engine) -> dict[str, Body]:
        async def body(run_id: str, argument: dict[str, Any]) -> None:
            lives.append(run_id)
            got.append(await engine.wait_for_signal("approval", PATIENCE_S))

        return {"turn": body}

    async with opened(prepare) as engine:
        await engine.start("turn:1", "turn", {})
        await until(lambda: true(len(lives) == 1))
    async with opened(prepare) as engine:
        await engine.signal("turn:1", "approval", "denied")
        await until(lambda: is_state(engine, "turn:1", "done"))
    assert (len(lives), got) == (2, ["denied"])


async def test_a_run_of_another_version_is_reported_and_left_alone(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    def prepare(engine: Engine) -> dict[str, Body]:
        async def body(run_id: str, argument: dict[str, Any]) -> None:
            ran.append(run_id)
            await engine.wait_for_signal("never", 60)

        return {"turn": body}

    async with opened(prepare, version="cortex-0") as engine:
        await engine.start("turn:old", "turn", {})
        await until(lambda: true(ran == ["turn:old"]))
    async with opened(prepare) as engine:
        await engine.start("turn:new", "turn", {})
        await until(lambda: true(ran == ["turn:old", "turn:new"]))
    async with opened(prepare) as engine:
        await until(lambda: true(ran[2:] == ["turn:new"]))  # taken up after the old one, if that were taken up
        assert await engine.stranded() == ["turn:old"]
        await engine.cancel("turn:old")
        assert await engine.stranded() == []
    assert ran == ["turn:old", "turn:new", "turn:new"]


async def test_a_run_may_start_another_from_inside_a_step(opened: Opener) -> None:
    class Starter:
        @step("Starter.go")
        async def go(self, engine: Engine) -> None:
            await engine.start("turn:1:sub:2", "sub", {})

    def prepare(engine: Engine) -> dict[str, Body]:
        port = Starter()

        async def parent(run_id: str, argument: dict[str, Any]) -> None:
            await port.go(engine)

        async def sub(run_id: str, argument: dict[str, Any]) -> None:
            await engine.wait_for_signal("x", 0.01)

        return {"parent": parent, "sub": sub}

    async with opened(prepare) as engine:
        await engine.start("turn:1", "parent", {})
        await until(lambda: is_state(engine, "turn:1", "done"))
        await until(lambda: is_state(engine, "turn:1:sub:2", "done"))


async def test_a_worker_takes_queued_turns(opened: Opener) -> None:
    ran: list[str] = []

    def prepare(engine: Engine) -> dict[str, Body]:
        async def body(run_id: str, argument: dict[str, Any]) -> None:
            ran.append(run_id)

        return {"turn": body}

    async with opened(prepare, is_worker=True) as engine:
        await engine.start("turn:1", "turn", {}, queue="chat", key="ann")
        await engine.start("agent:1", "turn", {}, queue="agents")
        await until(lambda: is_state(engine, "turn:1", "done"))
        await until(lambda: is_state(engine, "agent:1", "done"))
    assert sorted(ran) == ["agent:1", "turn:1"]


async def test_old_runs_are_forgotten_and_open_ones_kept(opened: Opener) -> None:
    def prepare(engine: Engine) -> dict[str, Body]:
        async def short(run_id: str, argument: dict[str, Any]) -> None:
            return

        async def waiting(run_id: str, argument: dict[str, Any]) -> None:
            await engine.wait_for_signal("answer", 60)

        return {"short": short, "waiting": waiting}

    async with opened(prepare) as engine:
        await engine.start("old", "short", {})
        await engine.start("open", "waiting", {})
        await until(lambda: is_state(engine, "old", "done"))
        assert await engine.prune(datetime.now(UTC) - timedelta(days=14)) == 0
        assert await engine.prune(datetime.now(UTC) + timedelta(seconds=1)) == 1
        assert await engine.status("old") == "unknown"
        assert await engine.unfinished() == ["open"]


async def test_nothing_looks_for_delays_and_deadlines_that_no_run_has(opened: Opener) -> None:
    async def is_gone() -> bool:
        return BACKGROUND_JOBS_THREAD_NAME not in {thread.name for thread in threading.enumerate()}

    async with opened(lambda engine: {}):
        await until(is_gone)


async def test_only_one_engine_is_open_in_a_process(opened: Opener) -> None:
    async with opened(lambda engine: {}):
        with pytest.raises(RuntimeError, match="Another engine"):
            async with opened(lambda engine: {}):
                pass


async def test_the_all_in_one_process_takes_over_what_workers_left_in_line(opened: Opener, tmp_path: Path) -> None:
    ran: list[str] = []

    def prepare(engine: Engine) -> dict[str, Body]:
        async def body(run_id: str, argument: dict[str, Any]) -> None:
            ran.append(run_id)

        return {"turn": body}

    async with opened(prepare, is_worker=True):
        pass  # it makes the queues known
    page = await Remote.connect(engine_of(tmp_path))
    await page.start("turn:1", "turn", {}, queue="chat", key="ann")  # when no worker is left to take it
    assert await page.status("turn:1") == "queued"
    await page.close()
    async with opened(prepare) as engine:
        await until(lambda: is_state(engine, "turn:1", "done"))
    assert ran == ["turn:1"]


async def test_a_run_whose_task_is_gone_is_taken_up_when_it_is_seen_for_the_second_time(opened: Opener) -> None:
    work = Work()

    def prepare(engine: Engine) -> dict[str, Body]:
        async def body(run_id: str, argument: dict[str, Any]) -> None:
            await work.note("first")
            await work.hold("second")

        return {"turn": body}

    async with opened(prepare) as engine:
        await engine.start("turn:1", "turn", {})
        await until(lambda: true(bool(work.open)))
        assert await engine.take_up_lost() == 0
        engine.stop_here("turn:1")  # its task ends, and nobody notes why
        await until(lambda: true(not work.open))
        work.gate.set()
        assert await is_state(engine, "turn:1", "running")
        assert [await engine.take_up_lost() for _ in range(2)] == [1, 1]
        await until(lambda: is_state(engine, "turn:1", "done"))
        assert work.done == ["first", "second"]
        assert await engine.take_up_lost() == 0


class Away:
    """A port whose database is away for the first tries."""

    def __init__(self, tries: int) -> None:
        self.left = tries
        self.lives: list[bool] = []

    @step("Away.write")
    async def write(self) -> str:
        self.lives.append(is_first_life.get())
        if self.left:
            self.left -= 1
            raise DatabaseUnavailable("The database does not answer.")
        return "written"


async def test_a_step_waits_for_a_database_that_is_away_and_says_so(tmp_path: Path) -> None:
    changes: list[bool] = []
    outages = Outages()
    outages.on_change.append(lambda: changes.append(outages.is_waiting))
    away, found = Away(3), list[str]()

    async def body(run_id: str, argument: dict[str, Any]) -> None:
        found.append(await away.write())

    engine = Engine(engine_of(tmp_path), outages=outages)
    engine.register("turn", body)
    await engine.launch()
    try:
        await engine.start("turn:1", "turn", {})
        await until(lambda: is_state(engine, "turn:1", "done"))
    finally:
        await engine.close()
    assert (found, changes) == (["written"], [True, False])
    assert away.lives == [True, False, False, False]  # a later try may find traces of the first


@pytest.mark.names_its_database("a file that another program locks")
async def test_a_step_that_cannot_be_kept_says_that_it_waits(tmp_path: Path) -> None:
    changes: list[bool] = []
    outages = Outages()
    outages.on_change.append(lambda: changes.append(outages.is_waiting))
    work = Work()

    async def body(run_id: str, argument: dict[str, Any]) -> None:
        await work.hold("first")

    engine = Engine(engine_of(tmp_path), outages=outages)
    engine.register("turn", body)
    await engine.launch()
    try:
        await engine.start("turn:1", "turn", {})
        await until(lambda: true(bool(work.open)))
        with locked(Path(engine._database.url.database or "")):
            work.gate.set()
            await until(lambda: true(changes == [True]))
        await until(lambda: is_state(engine, "turn:1", "done"))
    finally:
        await engine.close()
    assert (work.done, changes) == (["first"], [True, False])


@pytest.mark.names_its_database("a file whose disk is full")
async def test_a_run_waits_for_room_on_the_engines_disk(opened: Opener) -> None:
    work = Work()

    def prepare(engine: Engine) -> dict[str, Body]:
        async def body(run_id: str, argument: dict[str, Any]) -> None:
            await work.hold("first")
            await work.note("x" * 200_000)

        return {"turn": body}

    async with opened(prepare) as engine:
        await engine.start("turn:1", "turn", {})
        await until(lambda: true(bool(work.open)))
        with full(engine._database):
            work.gate.set()
            await until(lambda: true(len(work.done) == 2))
            assert await is_state(engine, "turn:1", "running")
        await until(lambda: is_state(engine, "turn:1", "done"))


async def test_a_worker_leaves_the_others_what_it_has_no_place_for(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of everybody's: three people, two places. What waits for a person takes none."""
    monkeypatch.setitem(AT_ONCE_HERE, "chat", 2)
    begun, gate = list[str](), asyncio.Event()

    def prepare(engine: Engine) -> dict[str, Body]:
        async def body(run_id: str, argument: dict[str, Any]) -> None:
            begun.append(run_id)
            await (engine.wait_for_signal("go", PATIENCE_S) if argument["waits"] else gate.wait())

        return {"turn": body}

    async with opened(prepare, is_worker=True) as engine:
        for number in range(3):
            await engine.start(f"turn:busy{number}", "turn", {"waits": False}, queue="chat", key=f"p{number}")
        await until(lambda: true(len(begun) == 2))
        await engine.start("turn:asks", "turn", {"waits": True}, queue="chat", key="asks")
        assert len(begun) == 2
        gate.set()
        await until(lambda: true(len(begun) == 4))
        await until(lambda: is_state(engine, "turn:busy2", "done"))
        gate.clear()
        for number in range(3, 5):
            await engine.start(f"turn:busy{number}", "turn", {"waits": False}, queue="chat", key=f"p{number}")
        await until(lambda: true(len(begun) == 6))
        assert await engine.status("turn:asks") == "running"
        gate.set()
        await engine.signal("turn:asks", "go", "on")
        await until(lambda: is_state(engine, "turn:asks", "done"))
