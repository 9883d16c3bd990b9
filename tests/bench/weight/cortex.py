"""Cortex as a person has it: a copy of the lived-in home, two people, a page open on each conversation."""

import html
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil  # type: ignore[import-untyped]  # ships no types

from tests.bench.lived import Lived
from tests.bench.processes import process_of, running
from tests.bench.weight.subject import Unanswered
from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon
from tests.patience import PATIENCE_S

ENDED = "event: ended"


@dataclass(slots=True)
class CortexSubject:
    """A home that is its own, spoken to over HTTP and live streams as the page does."""

    lived: Lived
    home: Path
    name: str = "Cortex"
    _people: list[Caller] = field(default_factory=list)
    _talks: dict[int, "_Talk"] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)
    _daemon: Daemon | None = None

    @contextmanager
    def running(self) -> Iterator[psutil.Process]:
        """The daemon, both people logged in."""
        if not self.home.exists():
            self.lived.copy(self.home)
        with ExitStack() as stack, running(self.home) as self._daemon:
            self._stack, self._talks = stack, {}
            self._people = [stack.enter_context(Caller(self._daemon)) for _ in (self.lived.admin, self.lived.member)]
            for person, token in zip(self._people, (self.lived.admin, self.lived.member), strict=True):
                person.become(token)
            yield process_of(self._daemon)
            stack.close()  # the streams, ahead of the daemon's end, which would wait for them

    def say(self, talk: int, text: str) -> float:
        """In a chat of its own, which every second one is the member's."""
        person = self._people[talk % 2]
        begun_s = time.perf_counter()
        try:
            if talk not in self._talks:
                chat = person.send("new", text)
                assert self._daemon is not None
                self._talks[talk] = self._stack.enter_context(_talk(self._daemon, person, chat))
            else:
                person.send(self._talks[talk].chat, text)
            return (self._talks[talk].until_ended() - begun_s) * 1000
        except (AssertionError, httpx.HTTPError) as error:
            raise Unanswered(str(error)) from error


@dataclass(slots=True)
class _Talk:
    """A conversation whose page is open."""

    chat: str
    pieces: Iterator[str]
    has_ended: bool  # the first answer, before the page was there: the page held the whole of it

    def until_ended(self) -> float:
        """Read until the answer has ended; the time of its first words."""
        if self.has_ended:
            self.has_ended = False
            return time.perf_counter()
        seen, first_s = "", 0.0
        for piece in self.pieces:
            seen += piece
            first_s = first_s or (time.perf_counter() if re.search(r"Hello\.|It ", seen) else 0.0)
            if ENDED in seen:
                return first_s or time.perf_counter()
        raise Unanswered("the stream ended ahead of the answer")


@contextmanager
def _talk(daemon: Daemon, person: Caller, chat: str) -> Iterator[_Talk]:
    """Its page is opened as a browser does it: the whole page, then what is new."""
    page = person.get(f"/c/{chat}").text
    found = re.search(rf"/c/{chat}/events\?after=\d+[^\"\s]*", page)
    assert found, page[:400]
    with (
        httpx.Client(
            base_url=daemon.origin, cookies={"cortex": person.token}, timeout=PATIENCE_S, trust_env=False
        ) as listening,
        listening.stream("GET", html.unescape(found[0])) as stream,
    ):
        yield _Talk(chat, stream.iter_text(), 'data-running="0"' in page)
