"""A house of several processes on one PostgreSQL: pages and workers as real children, each with a log of its own."""

import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Literal, Self

import psycopg

from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon
from tests.patience import PATIENCE_S

READY = {"web": "Cortex is at ", "worker": "Cortex works "}


class Part(Daemon):
    """`cortex web` or `cortex worker` on a home that all parts share."""

    def __init__(self, home: Path, kind: Literal["web", "worker"], name: str, url: str, **settings: object) -> None:
        super().__init__(home)
        self.set(database_url=url, **settings)
        self.kind = kind
        self.output = home.parent / f"{name}.log"

    def start(self) -> None:
        """Start it and wait until it says that it is ready."""
        self.home.mkdir(parents=True, exist_ok=True)
        self._begin(self.kind, READY[self.kind])


class Crew:
    """Two workers and pages; all end with the block."""

    def __init__(self, folder: Path, url: str, *, pages: int = 1, **settings: object) -> None:
        home = folder / "home"
        self.url = url
        self.pages = [Part(home, "web", f"web{number}", url, **settings) for number in range(pages)]
        self.workers = [Part(home, "worker", f"worker{number}", url, **settings) for number in range(2)]

    def __enter__(self) -> Self:
        with ExitStack() as started:
            for one in (*self.pages, *self.workers):
                started.callback(one.close)
                one.start()
            self._started = started.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._started.close()

    def worker_of(self, conversation: str) -> Part:
        """The worker that runs the conversation's turn now."""
        statement = """SELECT executor_id FROM dbos.workflow_status JOIN turns ON turns.id = workflow_uuid
            WHERE turns.conversation_id = %s AND status = 'PENDING'"""
        with psycopg.connect(self.url) as connection:
            rows = connection.execute(statement, (conversation,)).fetchall()
        assert len(rows) == 1, rows
        pid = int(rows[0][0].rsplit("-", 2)[1])
        return next(one for one in self.workers if one.pid == pid)


def at(page: Part, who: Caller) -> Caller:
    """The same login on another page."""
    made = Caller(page)
    made.become(who.token)
    return made


def events_of(conversation: str) -> str:
    """The path of its whole stream."""
    return f"/c/{conversation}/events?after=0"


@dataclass(slots=True)
class Heard:
    """One message of a page's stream."""

    at_s: float
    event: str
    data: str


AWAY, BACK = "Database unavailable. Waiting…", "The database is back."


class Listener:
    """Follows a live stream of one page in a thread, as a browser does."""

    def __init__(self, origin: str, token: str, path: str) -> None:
        self.heard: list[Heard] = []
        self._connection = HTTPConnection(origin.removeprefix("http://"), timeout=PATIENCE_S)
        self._request = (path, {"Cookie": f"cortex={token}"})
        self._thread = threading.Thread(target=self._listen, daemon=True)

    @property
    def is_open(self) -> bool:
        """Whether the page has not ended the stream."""
        return self._thread.is_alive()

    def __enter__(self) -> Self:
        self._connection.request("GET", self._request[0], headers=self._request[1])
        self._socket = self._connection.sock
        self._thread.start()
        until(lambda: bool(self.heard))
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE_S)
        self._connection.close()

    def first(self, event: str, data: str = "", since: int = 0, timeout_s: float = PATIENCE_S) -> Heard:
        """The first message of this event whose data holds these words; waits for it."""

        def found() -> Heard | None:
            return next((one for one in self.heard[since:] if one.event == event and data in one.data), None)

        until(lambda: found() is not None, timeout_s)
        answer = found()
        assert answer is not None
        return answer

    def _listen(self) -> None:
        with suppress(HTTPException, OSError), self._connection.getresponse() as stream:
            event, data = "", ""
            while line := stream.readline().decode():
                if line.startswith("event: "):
                    event = line[7:].strip()
                elif line.startswith("data: "):
                    data += line[6:]
                elif not line.strip():
                    self.heard.append(Heard(time.monotonic(), event, data))
                    event, data = "", ""


def words(heard: list[Heard]) -> str:
    """What the stream showed, without its marks, in the order it came."""
    return " ".join(re.sub(r"<[^>]*>", " ", "".join(one.data for one in heard if not one.event)).split())


def until(holds: Callable[[], bool], timeout_s: float = PATIENCE_S, every_s: float = 0.01) -> float:
    """Wait until it holds; how long that took. A question that costs something is better asked less often."""
    started_s = time.monotonic()
    while not holds():
        assert time.monotonic() - started_s < timeout_s, "waited in vain"
        time.sleep(every_s)
    return time.monotonic() - started_s
