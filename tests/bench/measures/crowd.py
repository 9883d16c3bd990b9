"""1,000 open pages of 20 people on one daemon: what it takes to connect them, and to bring an answer to all of them."""

import html
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from selectors import EVENT_READ, DefaultSelector

from tests.bench.figure import Bench, Figure
from tests.bench.processes import ask, cpu_s, process_of, resident_mb, running, until_idle
from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon

PEOPLE, PAGES = 20, 1_000
QUESTION = "tell me who you are"  # no tool fits: the offline model introduces itself, some 80 words
ENDED = b"event: ended"
WAIT_S = 300.0


def measure(bench: Bench) -> list[Figure]:
    """Four lines, over plain sockets: every one of the people has the same number of pages on a conversation."""
    with running(bench.folder / "home", delay_ms=12) as daemon, ExitStack() as stack:
        ada = stack.enter_context(Caller(daemon)).set_up()
        people = [ada, *(stack.enter_context(ada.invite(f"P{number}")) for number in range(PEOPLE - 1))]
        places = [ask(person, QUESTION) for person in people]
        process = process_of(daemon)
        paths = [_path(person, place) for person, place in zip(people, places, strict=True)]
        with _opened(daemon, people, paths, PEOPLE) as pages:
            few_s = _answered(daemon, people, places, pages)
        paths = [_path(person, place) for person, place in zip(people, places, strict=True)]
        memory_mb, before_s = resident_mb(process), cpu_s(process)
        with _opened(daemon, people, paths, PAGES) as pages:
            connected_s = cpu_s(process) - before_s
            answered_s = _answered(daemon, people, places, pages)
            grown_mb = resident_mb(process) - memory_mb
    how = f"{PAGES:,} streams of {PEOPLE} people, CPU time of the daemon, offline model"
    return [
        Figure(what="open pages, to connect one", value=connected_s / PAGES * 1000, unit="ms", how=how, goal=10),
        Figure(
            what="open pages, an answer of each person to all their pages",
            value=answered_s,
            unit="s",
            how=f"{how}, {PEOPLE} answers in all; with one page a person {few_s:.1f} s",
        ),
        Figure(
            what="open pages, what the pages add",
            value=answered_s - few_s,
            unit="s",
            how="the line above, less the same with one page a person",
            goal=3,
        ),
        Figure(what="open pages, memory of one", value=grown_mb / PAGES * 1000, unit="KB", how=how),
    ]


@contextmanager
def _opened(daemon: Daemon, people: list[Caller], paths: list[str], count: int) -> Iterator[list[socket.socket]]:
    """That many streams, each greeted: no more of them at once than one address may have without a login."""
    with ExitStack() as stack:
        pages = list[socket.socket]()
        while len(pages) < count:
            for person, path in zip(people, paths, strict=True):
                page = stack.enter_context(socket.create_connection(("127.0.0.1", daemon.port)))
                head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\n"
                page.sendall(f"{head}Cookie: cortex={person.token}\r\nAccept: text/event-stream\r\n\r\n".encode())
                pages.append(page)
            _read(pages[-PEOPLE:], b"event: ready")
        time.sleep(2)  # what is done behind the greeting counts too
        yield pages


def _answered(daemon: Daemon, people: list[Caller], places: list[str], pages: list[socket.socket]) -> float:
    """CPU seconds until the answer of each has come to all of its pages."""
    process = process_of(daemon)
    before_s = cpu_s(process)
    for person, place in zip(people, places, strict=True):
        person.send(place, QUESTION)
    _read(pages, ENDED)
    used_s = cpu_s(process) - before_s
    for person, place in zip(people, places, strict=True):
        until_idle(person, place, WAIT_S)
    return used_s


def _path(person: Caller, place: str) -> str:
    """The stream that the conversation's page opens now."""
    found = re.search(rf"/c/{place}/events\?after=\d+[^\"\s]*", person.get(f"/c/{place}").text)
    assert found, place
    return html.unescape(found[0])


def _read(pages: list[socket.socket], words: bytes) -> None:
    """Until each has been sent these words."""
    ends_s = time.monotonic() + WAIT_S
    tails = dict.fromkeys(pages, b"")
    with DefaultSelector() as selector:
        for one in pages:
            selector.register(one, EVENT_READ, one)
        while selector.get_map():
            if time.monotonic() > ends_s:
                raise TimeoutError(f"{len(selector.get_map())} of {len(pages)} pages were not sent {words!r}")
            for key, _ in selector.select(1):
                page: socket.socket = key.data
                got = page.recv(1 << 16)
                tails[page] = tails[page][-len(words) :] + got
                if words in tails[page] or not got:
                    selector.unregister(page)
