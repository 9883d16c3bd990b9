"""The way that work takes through the code, counted: modules of which a line runs, sessions, commits that change rows.

A function that runs counts for its module. What a module runs when it is first imported does not, nor what is worked
out in other threads, nor what comes by the clock: tasks of `BESIDE`, and how often those of `LOOKS` look. Let the same
work have been done before it is counted: what is loaded or made with the first one is no part of the way.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Self

import greenlet  # type: ignore[import-untyped]  # it ships no types
import pytest
from sqlalchemy import Connection, Engine, event
from sqlalchemy.orm import Session, SessionTransaction

import cortex
import web
from tests.knife import CHANGE

ROOTS = tuple(f"{Path(str(package.__file__)).parent}/" for package in (cortex, web))
BESIDE = {
    "Accounts.keep_logins",
    "AgentResults.deliver_results",
    "ApprovalTimer.keep",
    "Deletions.finish_left",
    "Digests.send_digests",
    "DocumentReading.look_around",
    "DocumentReading.read_waiting",
    "Housekeeping.clean_daily",
    "MessengerWatch.run",
    "NightlyBackup.keep",
    "StopAll.watch",
    "ToolReadiness.keep",
    "TurnQueue.look_after",
    "repeat",
}
LOOKS = {"_job", "_open_slots", "_pulse", "_round", "armed"}
CHANGED = "tests.paths"
TOP = f"{Path(str(cortex.__file__)).parent.parent}/"


class Way:
    """Holds what was counted. `modules`: functions that ran, by module; `sessions`: by who opened them."""

    def __init__(self) -> None:
        self.modules: dict[str, set[str]] = {}
        self.sessions: Counter[str] = Counter()
        self.commits = 0

    def __str__(self) -> str:
        named = [f"{module}: {', '.join(sorted(functions))}" for module, functions in sorted(self.modules.items())]
        opened = [f"{count} of {opener}" for opener, count in self.sessions.most_common()]
        head = f"{len(self.modules)} modules, {self.sessions.total()} sessions, {self.commits} commits"
        return "\n".join([head, "", *named, "", *opened])


@dataclass(frozen=True, slots=True, kw_only=True)
class Most:
    """What a way may take. Lower a number when the way became shorter; a reason to raise one stands in its commit."""

    modules: int
    sessions: int
    commits: int

    def hold(self, way: Way) -> None:
        """Fail, with the names of all that ran, where the way takes more."""
        taken = (len(way.modules), way.sessions.total(), way.commits)
        if any(more > most for more, most in zip(taken, (self.modules, self.sessions, self.commits), strict=True)):
            pytest.fail(f"More than {self}:\n{way}", pytrace=False)


class Walk:
    """Watches this process; a context manager. `counted` gives what runs during its block.

    beside: more tasks that come by the clock, as far as this way goes.
    """

    def __init__(self, *beside: str) -> None:
        self._way: Way | None = None
        self._beside = BESIDE | {*beside}

    def __enter__(self) -> Self:
        event.listen(Session, "after_transaction_create", self._opens)
        event.listen(Engine, "before_cursor_execute", self._changes)
        event.listen(Engine, "commit", self._commits)
        self._before = sys.gettrace()
        sys.settrace(self._calls)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)
        event.remove(Session, "after_transaction_create", self._opens)
        event.remove(Engine, "before_cursor_execute", self._changes)
        event.remove(Engine, "commit", self._commits)

    @contextmanager
    def counted(self) -> Iterator[Way]:
        self._way = way = Way()
        try:
            yield way
        finally:
            self._way = None

    def _calls(self, frame: FrameType, _kind: str, _about: Any) -> None:
        way, code = self._way, frame.f_code
        if way is None or not code.co_filename.startswith(ROOTS):
            return
        if _task() not in self._beside and not _is_import(frame):
            way.modules.setdefault(code.co_filename.removeprefix(TOP), set()).add(code.co_name)

    def _opens(self, _session: Session, transaction: SessionTransaction) -> None:
        if self._way is not None and transaction.parent is None and _task() not in self._beside:
            place, opener = _opener()
            self._way.sessions[place] = 1 if opener in LOOKS else self._way.sessions[place] + 1

    def _changes(self, connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        if CHANGE.match(statement):
            connection.info[CHANGED] = True

    def _commits(self, connection: Connection) -> None:
        if connection.info.pop(CHANGED, False) and self._way is not None and _task() not in self._beside:
            self._way.commits += 1


def _is_import(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(ROOTS):
            return True
        frame = frame.f_back
    return False


def _task() -> str:
    """The name of what the running task was begun with; "" outside of any."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs
        return ""
    return "" if task is None else str(getattr(task.get_coro(), "__qualname__", ""))


def _opener() -> tuple[str, str]:
    """Whoever above storage had the session opened: the place, and the function's name."""
    asker = greenlet.getcurrent().parent  # SQLAlchemy begins a transaction in a greenlet of its own
    frame = None if asker is None else asker.gr_frame
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(ROOTS) and "/storage/" not in name and not name.endswith("services/runtime.py"):
            return f"{name.removeprefix(TOP)}:{frame.f_lineno} {frame.f_code.co_name}", frame.f_code.co_name
        frame = frame.f_back
    return "elsewhere", ""
