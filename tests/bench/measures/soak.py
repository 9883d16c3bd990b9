"""20 people who do mixed things for 20 minutes: what the daemon refuses, and whether it grows once it is warm.

CORTEX_BENCH_SOAK_MINUTES and CORTEX_BENCH_SOAK_PEOPLE make it shorter or smaller.
"""

import asyncio
import html
import os
import random
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field

import httpx
import psutil  # type: ignore[import-untyped]  # ships no types

from tests.bench.figure import Bench, Figure, percentile
from tests.bench.processes import MB, process_of, running
from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon

MINUTES = float(os.environ.get("CORTEX_BENCH_SOAK_MINUTES", "20"))
PEOPLE = int(os.environ.get("CORTEX_BENCH_SOAK_PEOPLE", "20"))
WARM_S = min(300.0, MINUTES * 15)  # from here on nothing may grow: minute 5, of a short run a quarter
LOOK_S, TELL_S = 10.0, 60.0
PAUSE_S = (1.0, 5.0)  # what a person reads or types between two things
ANSWER_S = 120.0  # in which an answer must have ended
PATIENCE_S = 60.0  # for any other answer
MOST_MORE = 5.0  # per cent: what counts as flat
OWN_MOST = 33.0  # per cent of a core: above it the bench itself is measured
QUESTIONS = ("tell me who you are", "add {} to my shopping list", "what is on my shopping list?", "remember that I {}")
PAGES = ("/", "/tasks", "/jobs", "/files", "/notes", "/chats", "/usage", "/notifications")
WORDS = ("apples", "milk", "pipes", "garden", "report", "kitchen", "train", "school")
JOB = {"name": "Morning", "kind": "prompt", "prompt": "tell me who you are", "when": "every day at 7:00"}
ENDED = b"event: ended"


@dataclass(slots=True, kw_only=True)
class Tally:
    """What all people were answered. `bad`: every answer from 400 on, and 0 for none at all, with its place."""

    statuses: Counter[int] = field(default_factory=Counter)
    bad: Counter[str] = field(default_factory=Counter)
    did: Counter[str] = field(default_factory=Counter)
    accepted_s: list[float] = field(default_factory=list)
    refused: int = 0
    endless: int = 0

    def count(self, status: int, method: str, path: str) -> None:
        """One answer, told at once where it is bad."""
        self.statuses[status] += 1
        if status == 0 or status >= 400:
            self.bad[f"{status} {method} {path}"] += 1
            _tell(f"{status} {method} {path}")

    @property
    def fatal(self) -> int:
        """Answers from 500 on, and requests that were not answered."""
        return sum(times for status, times in self.statuses.items() if status == 0 or status >= 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The daemon's process at a moment; `children_mb` is the memory of those it has started."""

    at_s: float
    memory_mb: float
    children_mb: float
    descriptors: int
    threads: int


class Person:
    """One of the people: a browser's requests, one after the other, and the live stream of the page that is open."""

    def __init__(self, http: httpx.AsyncClient, tally: Tally, dice: random.Random, *, is_admin: bool) -> None:
        self._http, self._tally, self._dice = http, tally, dice
        self._chats: list[str] = []
        self._notes: list[str] = []
        self._job = ""
        self._number = 0
        often = [self._chat] * 6 + [self._look] * 5 + [self._task] * 3 + [self._search, self._note] * 2
        self._habits = [*often, self._upload, self._run, self._export, *([self._health] * 2 * is_admin)]

    async def live(self, until_s: float) -> None:
        """Do one thing after the other until then."""
        await self._pause()  # not all at the same moment
        while time.monotonic() < until_s:
            act = self._dice.choice(self._habits)
            self._number += 1
            self._tally.did[act.__name__.strip("_")] += 1
            await act()
            await self._pause()

    async def _chat(self) -> None:
        """Send a message, open its page, follow the answer to its end."""
        place = "new" if not self._chats or self._dice.random() < 0.2 else self._dice.choice(self._chats[-5:])
        words = self._dice.choice(QUESTIONS).format(self._dice.choice(WORDS))
        began_s = time.perf_counter()
        sent = await self._ask("POST", f"/c/{place}/messages", data={"text": words, "mode": "auto"})
        path = "" if sent is None else sent.headers.get("location", "")
        if not path.startswith("/c/"):
            self._tally.refused += 1
            _tell(f"refused: a message to {place}, {path}")
            return
        self._tally.accepted_s.append(time.perf_counter() - began_s)
        if place == "new":
            self._chats.append(path.rpartition("/")[2])
        page = await self._text(path)
        if 'data-running="1"' in page and not await self._watch(page, ANSWER_S, ENDED):
            self._tally.endless += 1
            _tell(f"no end of an answer in {path}")

    async def _look(self) -> None:
        """Read a page for a while, its live stream open."""
        chats = [f"/c/{one}" for one in self._chats[-1:]]
        page = await self._text(self._dice.choice([*PAGES, *chats]))
        await self._watch(page, self._dice.uniform(*PAUSE_S))

    async def _task(self) -> None:
        """Write a task down, and tick off the first of the list."""
        await self._ask("POST", "/tasks", data={"title": f"{self._dice.choice(WORDS)} {self._number}"})
        if found := re.search(r"/tasks/[\w-]+/complete", await self._text("/tasks")):
            await self._ask("POST", found[0])

    async def _search(self) -> None:
        await self._ask("GET", "/search", params={"q": self._dice.choice(WORDS)})

    async def _upload(self) -> None:
        lines = "\n".join(" ".join(self._dice.choices(WORDS, k=10)) for _ in range(40))
        await self._ask("POST", "/files", files={"files": (f"list {self._number}.txt", lines.encode())})

    async def _note(self) -> None:
        """Write into one of five notes."""
        if len(self._notes) < 5:
            name = f"note {len(self._notes)}"
            made = await self._ask("POST", "/notes", data={"name": name})
            if made is None or not made.has_redirect_location:
                return
            self._notes.append(made.headers["location"])
        path = self._dice.choice(self._notes)
        found = re.search(r'name="version" value="([^"]*)"', await self._text(path))
        text = " ".join(self._dice.choices(WORDS, k=60))
        await self._ask("POST", path, data={"text": text, "version": html.unescape(found[1]) if found else ""})

    async def _run(self) -> None:
        """Make a job run now; the first time, set it up."""
        if not self._job:
            await self._ask("POST", "/jobs/new", data=JOB)
            found = re.search(r'href="(/jobs/(?!new|import)[\w-]+)(?:/runs)?"', await self._text("/jobs"))
            self._job = found[1] if found else ""
        if await self._ask("POST", f"{self._job}/run") is not None:
            await self._text(f"{self._job}/runs")

    async def _export(self) -> None:
        if self._chats:
            await self._text(f"/c/{self._dice.choice(self._chats)}/export.{self._dice.choice(('md', 'json'))}")

    async def _health(self) -> None:
        await self._text("/admin/health")

    async def _pause(self) -> None:
        await asyncio.sleep(self._dice.uniform(*PAUSE_S))

    async def _text(self, path: str) -> str:
        """What stands there in the end; every redirection counts as an answer of its own."""
        answer = await self._ask("GET", path)
        while answer is not None and answer.has_redirect_location:
            path = answer.headers["location"]
            answer = await self._ask("GET", path)
        return "" if answer is None else answer.text

    async def _ask(self, method: str, path: str, **how: object) -> httpx.Response | None:
        """The answer, None where none came; either is counted."""
        try:
            answer = await self._http.request(method, path, **how)  # type: ignore[arg-type]  # as httpx has them
        except httpx.TransportError as error:
            self._tally.count(0, method, f"{path} {error!r}")
            return None
        self._tally.count(answer.status_code, method, path)
        return answer

    async def _watch(self, page: str, limit_s: float, words: bytes = b"") -> bool:
        """Hold the page's live stream until these words or for so long; whether they came."""
        found = re.search(r'hx-sse:connect="([^"]+)"', page)
        if not found:
            return False
        path, tail = html.unescape(found[1]), b""
        try:
            async with asyncio.timeout(limit_s), self._http.stream("GET", path) as stream:
                self._tally.count(stream.status_code, "GET", path)
                async for got in stream.aiter_raw():
                    tail = tail[-len(ENDED) :] + got
                    if words and words in tail:
                        return True
        except TimeoutError:
            return False
        except httpx.TransportError as error:
            self._tally.count(0, "GET", f"{path} {error!r}")
        return False


def measure(bench: Bench) -> list[Figure]:
    """What was answered, how soon a message was taken, and what the daemon held at minute 5, the half and the end."""
    with running(bench.folder / "home", delay_ms=12) as daemon:
        with ExitStack() as stack:
            ada = stack.enter_context(Caller(daemon)).set_up()
            members = [stack.enter_context(ada.invite(f"P{number}")) for number in range(PEOPLE - 1)]
            tokens = [one.token for one in (ada, *members)]
        _tell(f"{PEOPLE} people for {MINUTES:g} minutes")
        tally, own_s, began_s = Tally(), time.process_time(), time.monotonic()
        samples = asyncio.run(_lives(bench, daemon, tokens, tally))
        own = (time.process_time() - own_s) / (time.monotonic() - began_s) * 100
        noted = [line for line in daemon.log.splitlines() if re.match(r"\S+Z (?:WARNING|ERROR|CRITICAL) ", line)]
    for line in noted[:20]:
        _tell(line)
    return [*_answers(tally, len(noted)), *_growth(samples), _own(own)]


async def _lives(bench: Bench, daemon: Daemon, tokens: Sequence[str], tally: Tally) -> list[Sample]:
    """All of them at the same time, the daemon looked at meanwhile."""
    until_s, samples = time.monotonic() + MINUTES * 60, list[Sample]()
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(_client(daemon, token)) for token in tokens]
        people = [
            Person(http, tally, random.Random(bench.seed + number), is_admin=number == 0)  # noqa: S311 - no secret
            for number, http in enumerate(clients)
        ]
        async with asyncio.TaskGroup() as group:
            group.create_task(_look_on(process_of(daemon), samples, tally, until_s))
            for one in people:
                group.create_task(one.live(until_s))
    return samples


def _client(daemon: Daemon, token: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=daemon.origin,
        headers={"Origin": daemon.origin, "Accept": "text/html"},
        cookies={"cortex": token},
        timeout=PATIENCE_S,
        limits=httpx.Limits(keepalive_expiry=2.0),  # sooner than the daemon, which resets what comes as it closes
        trust_env=False,
    )


async def _look_on(process: psutil.Process, samples: list[Sample], tally: Tally, until_s: float) -> None:
    """A sample every 10 seconds; a line every minute says how far it is."""
    began_s = time.monotonic()
    while time.monotonic() < until_s:
        await asyncio.sleep(min(LOOK_S, max(0.0, until_s - time.monotonic())))
        children = [_resident_mb(child) for child in process.children(recursive=True)]
        samples.append(
            Sample(
                at_s=time.monotonic() - began_s,
                memory_mb=_resident_mb(process),
                children_mb=sum(children),
                descriptors=process.num_fds(),
                threads=process.num_threads(),
            )
        )
        last = samples[-1]
        if int(last.at_s / TELL_S) > int((last.at_s - LOOK_S) / TELL_S):
            held = f"{last.memory_mb:.0f} MB, {last.descriptors} descriptors, {last.threads} threads"
            _tell(f"{last.at_s / 60:.0f} min, {tally.statuses.total():,} requests, {held}")


def _resident_mb(process: psutil.Process) -> float:
    """Of one process; 0 when it has just ended."""
    try:
        return float(process.memory_info().rss / MB)
    except psutil.NoSuchProcess:
        return 0.0


def _answers(tally: Tally, noted: int) -> list[Figure]:
    how = f"{PEOPLE} people, {MINUTES:g} min, offline model"
    did = ", ".join(f"{name} {times:,}" for name, times in tally.did.most_common())
    statuses = ", ".join(f"{status}: {times:,}" for status, times in sorted(tally.statuses.items()))
    fatal = [f"{times} times {place}" for place, times in tally.bad.most_common() if place[0] in "05"]
    sent = tally.accepted_s or [float("nan")]
    taken = {"p50": percentile(sent, 0.5), "p95": percentile(sent, 0.95), "max": max(sent)}
    accepted = f"{len(tally.accepted_s):,} accepted"
    return [
        Figure(what="soak, requests", value=tally.statuses.total(), unit="", how=f"{how}; {statuses}; {did}"),
        Figure(what="soak, 5xx or no answer", value=tally.fatal, unit="", how="; ".join(fatal[:5]) or "none", goal=0),
        Figure(what="soak, messages refused", value=tally.refused, unit="", how=accepted, goal=0),
        Figure(what="soak, answers without an end", value=tally.endless, unit="", how=f"in {ANSWER_S:g} s", goal=0),
        Figure(what="soak, warnings and errors in the log", value=noted, unit="", how="the first 20 are printed"),
        *(
            Figure(what=f"soak, a message accepted, {name}", value=took_s * 1000, unit="ms", how="until its POST ends")
            for name, took_s in taken.items()
        ),
    ]


def _growth(samples: Sequence[Sample]) -> list[Figure]:
    """A line each: how much more it was in the last fifth than when warm, and the values in words."""
    children = [one.children_mb for one in samples]
    passing = f"they come and go: most {max(children):.0f} MB, at the end {children[-1]:.0f} MB"
    return [
        _grown("memory", "MB", samples, lambda one: one.memory_mb),
        _grown("descriptors", "", samples, lambda one: one.descriptors),
        _grown("threads", "", samples, lambda one: one.threads),
        Figure(what="soak, memory of its children", value=statistics.median(children), unit="MB", how=passing),
    ]


def _grown(name: str, unit: str, samples: Sequence[Sample], value: Callable[[Sample], float]) -> Figure:
    """Medians: of a fifth of the time around minute 5, around the half, of the last fifth."""
    end_s = MINUTES * 60

    def around(at_s: float, width_s: float) -> float:
        near_s = max(width_s, min(abs(one.at_s - at_s) for one in samples))
        return statistics.median(value(one) for one in samples if abs(one.at_s - at_s) <= near_s)

    warm, half = around(WARM_S, max(LOOK_S, WARM_S / 5)), around(end_s / 2, max(LOOK_S, WARM_S / 5))
    last = around(end_s * 0.9, end_s / 10)
    more = (last / warm - 1) * 100
    verdict = "flat" if more <= MOST_MORE else "grown"
    told = f"{verdict}: {warm:.0f} at {WARM_S / 60:g} min, {half:.0f} at the half, {last:.0f} in the last fifth"
    most = f"most {max(map(value, samples)):.0f}"
    how = f"{told}, {most} {unit}".rstrip() + "; medians"
    return Figure(what=f"soak, {name}", value=more, unit="% more", how=how, goal=MOST_MORE)


def _own(share: float) -> Figure:
    how = "of a core, of the program that plays the people"
    return Figure(what="soak, processor of the bench itself", value=share, unit="%", how=how, goal=OWN_MOST)


def _tell(text: str) -> None:
    sys.stderr.write(f"soak: {text}\n")
