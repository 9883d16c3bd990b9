"""The daemon with a witness inside: `python -m tests.bench.watched serve` is `cortex serve` that tells what it does.

A line of JSON in the file that WATCHED names for every SQL statement of every connection, for every file of HOME that
is opened, for the moment at which it says that it is ready, and for a look that somebody asks for by the signal LOOK.
Nothing but the standard library is imported here, and no thread is started: both are counted.
"""

import asyncio
import itertools
import json
import os
import runpy
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

FILE = "WATCHED"
LOOK = signal.SIGWINCH  # which nothing else hears
READY = "Cortex is at "
_numbers = itertools.count(1)


def main() -> None:
    """Begin to tell, then be the program."""
    told = os.open(os.environ[FILE], os.O_WRONLY | os.O_CREAT | os.O_APPEND)  # a write is whole, from any thread
    home = os.environ["CORTEX_HOME"] + os.sep

    def tell(**facts: object) -> None:
        os.write(told, (json.dumps(facts) + "\n").encode())

    def heard(happening: str, details: tuple[Any, ...]) -> None:
        if happening != "open" or not isinstance(details[0], str) or not details[0].startswith(home):
            return
        if ".db" not in Path(details[0]).name:
            tell(opened=details[0])

    _watch_statements(tell)
    _watch_ready(tell)
    sys.addaudithook(heard)
    signal.signal(LOOK, lambda *_: tell(look=seen()))
    sys.argv[0] = "cortex"
    runpy.run_module("web", run_name="__main__", alter_sys=False)


def seen() -> dict[str, object]:
    """What is loaded by now, and where each task of the event loop waits."""
    tasks = [_chain(task) for task in asyncio.all_tasks()]
    return {"modules": _modules(), "tasks": tasks}


def _modules() -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] not in ("tests", "__main__", "__mp_main__")]


def _chain(task: "asyncio.Task[Any]") -> list[str]:
    """The names of the coroutines that wait for one another, the outermost first."""
    names: list[str] = []
    waiting: Any = task.get_coro()
    while waiting is not None:
        names.append(getattr(waiting, "__qualname__", type(waiting).__name__))
        waiting = getattr(waiting, "cr_await", None)
    return names


def _watch_statements(tell: Any) -> None:
    connect = sqlite3.connect

    def watched(*words: Any, **how: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*words, **how)
        number = next(_numbers)
        connection.set_trace_callback(lambda statement: tell(sql=statement, connection=number))
        return connection

    for module in (sqlite3, sqlite3.dbapi2):
        setattr(module, "connect", watched)  # noqa: B010 - mypy knows the function's many forms


def _watch_ready(tell: Any) -> None:
    write = sys.stdout.write

    def watched(text: str) -> int:
        if text.startswith(READY):
            tell(ready=_modules())
        return write(text)

    sys.stdout.write = watched  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
