"""What one message asks of the database and of HOME's files, from the POST until its end is stored, one page open.

Transactions ended and statements sent, `cortex.db` and `engine.db` together, reads included; files of HOME that were
opened, the databases left out.
"""

import asyncio
import os
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI
from sqlalchemy import Connection, Engine, event

from tests.bench.figure import Bench, Figure
from tests.e2e.chat_tab import Served
from tests.living_house import PASSWORD, LivingHouse, living_house
from tests.patience import PATIENCE_S
from web.app import create_app

MESSAGES = {"hello": "hello", "one_tool": "add milk to my shopping list"}
GOALS = {
    "hello": {"commits": 12},
    "one_tool": {"commits": 30, "file_reads": 3},
}
WORDS = {"commits": "transactions ended", "statements": "statements", "file_reads": "files of HOME opened"}
SETTLED_S = 0.5
TRIES = 3  # the least counts: looks of the daemon after jobs and turns fall into some of them
TRIES_MOST = 9  # on a busy machine they fall into all of three
HOW = "in one process, offline model, a page open, the conversation's second message"


class Meter:
    """Counts what happens in every database and in one home while it is on."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()
        self._home = ""
        self._one = threading.Lock()  # the engine's threads count too
        self._ending: object = None  # the connection that writes the turn's end
        for happening in ("commit", "rollback"):
            event.listen(Engine, happening, self._ended)
        event.listen(Engine, "before_cursor_execute", self._sent)
        sys.addaudithook(self._heard)  # for as long as the process lives: a hook cannot be taken out

    @contextmanager
    def on(self, home: Path) -> Iterator[None]:
        """Count anew, in this home, during the block."""
        self.counted.clear()
        self._ending = None
        self._home = f"{home}{os.sep}"
        try:
            yield
        finally:
            self._home = ""

    def settle(self, home: Path) -> None:
        """Wait until the page that was opened has read what it needs: nothing happened for a while."""
        with self.on(home):
            seen = -1
            while seen != self.counted.total():
                seen = self.counted.total()
                time.sleep(SETTLED_S)

    def _sent(self, connection: Connection, _cursor: Any, statement: str, parameters: Any, *_more: Any) -> None:
        self._add("statements")
        if statement.startswith("INSERT INTO events") and "turn.end" in str(parameters):
            self._ending = connection

    def _ended(self, connection: Connection) -> None:
        self._add("commits")
        if connection is self._ending:
            self._home = ""  # what is done after the turn's end is not the message's

    def _add(self, name: str) -> None:
        if self._home:
            with self._one:
                self.counted[name] += 1

    def _heard(self, happening: str, details: tuple[Any, ...]) -> None:
        if self._home and happening == "open" and isinstance(details[0], str | bytes):
            path = os.fsdecode(details[0])
            if path.startswith(self._home) and ".db" not in Path(path).name:
                self._add("file_reads")


class OpenPage:
    """The live stream of a conversation, read in a thread until it has shown the end of a turn."""

    def __init__(self, http: httpx.Client, conversation: str) -> None:
        page = http.get(f"/c/{conversation}").text
        after = re.search(r"/events\?after=(\d+)", page)
        assert after, page[:400]
        self._http, self._path = http, f"/c/{conversation}/events?after={after[1]}"
        self._is_open, self._has_ended = threading.Event(), threading.Event()
        threading.Thread(target=self._read, daemon=True).start()
        assert self._is_open.wait(PATIENCE_S)

    def wait(self) -> None:
        """Until the turn's end is shown."""
        assert self._has_ended.wait(PATIENCE_S)

    def _read(self) -> None:
        with self._http.stream("GET", self._path, timeout=httpx.Timeout(PATIENCE_S)) as stream:
            for line in stream.iter_lines():
                self._is_open.set()
                if 'class="foot"' in line:
                    self._has_ended.set()
                    return


def counted(home: Path, meter: Meter) -> dict[str, dict[str, int]]:
    """Each message's counts by name, of a new home in this folder."""

    async def make(stack: AsyncExitStack) -> tuple[FastAPI, LivingHouse]:
        house = await stack.enter_async_context(living_house(home))
        return create_app(house.cortex), house

    server = Served(make)
    found: dict[str, dict[str, int]] = {}
    house = server.held
    with httpx.Client(base_url=server.url, headers={"Origin": server.url}, timeout=PATIENCE_S, trust_env=False) as http:
        http.post("/login", data={"name": "ada", "password": PASSWORD})
        for name, text in MESSAGES.items():
            for tried in range(1, TRIES_MOST + 1):
                conversation = server.do(_talked(house))
                page = OpenPage(http, conversation)
                meter.settle(home)
                with meter.on(home):
                    _send(http, conversation, text)
                    page.wait()
                counts = {what: meter.counted[what] for what in WORDS}
                least = found.setdefault(name, counts)
                found[name] = {what: min(least[what], count) for what, count in counts.items()}
                if tried >= TRIES and all(found[name][what] <= most for what, most in GOALS[name].items()):
                    break
    server.close()
    return found


async def _talked(house: LivingHouse) -> str:
    """A conversation of one turn, of which nothing goes on any more."""
    conversation = await house.conversation()
    turn = await house.say(conversation, "hello")
    async with asyncio.timeout(PATIENCE_S):
        while await house.cortex.runtime.runner.status(turn) != "done":  # noqa: ASYNC110 - the engine has no event for it
            await asyncio.sleep(0.01)
    return conversation


def _send(http: httpx.Client, conversation: str, text: str) -> None:
    answer = http.post(f"/c/{conversation}/messages", data={"text": text, "mode": "auto"})
    if answer.status_code != 303:
        raise RuntimeError(f"the message was not taken: {answer.status_code} {answer.text[:400]}")


def measure(bench: Bench) -> list[Figure]:
    """Three lines for each message."""
    return [
        Figure(
            what=f"{WORDS[what]}, {name}", value=value, unit="", how=HOW, goal=GOALS[name].get(what), key=(name, what)
        )
        for name, counts in counted(bench.folder / "home", Meter()).items()
        for what, value in counts.items()
    ]
