"""1,000 open pages of 20 people: what it takes to connect them, and to bring an answer to all of them."""

import html
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from selectors import EVENT_READ, DefaultSelector

from tests.bench.figure import Bench, Figure
from tests.bench.houses import House, house
from tests.bench.processes import ask, until_idle
from tests.e2e.caller import Caller

PEOPLE, PAGES = 20, 1_000
QUESTION = "tell me who you are"  # no tool fits: the offline model introduces itself, some 80 words
ENDED = b"event: ended"
WAIT_S = 300.0


def measure(bench: Bench) -> list[Figure]:
    """Over plain sockets: every one of the people has the same number of pages on a conversation."""
    return [figure for kind in bench.databases for figure in _measured(bench, kind)]


def _measured(bench: Bench, kind: str) -> list[Figure]:
    count = max(PEOPLE, bench.count(PAGES))
    with house(bench, kind, offline_delay_ms=12) as opened, ExitStack() as stack:
        ada = stack.enter_context(Caller(opened.door)).set_up()
        people = [ada, *(stack.enter_context(ada.invite(f"P{number}")) for number in range(PEOPLE - 1))]
        places = [ask(person, QUESTION) for person in people]
        paths = [_path(person, place) for person, place in zip(people, places, strict=True)]
        with _opened(opened, people, paths, PEOPLE) as pages:
            few_s = _answered(opened, people, places, pages)
        paths = [_path(person, place) for person, place in zip(people, places, strict=True)]
        memory_mb, before_s = opened.memory_mb(), opened.cpu_s()
        with _opened(opened, people, paths, count) as pages:
            connected_s = opened.cpu_s() - before_s
            answered_s = _answered(opened, people, places, pages)
            all_mb = opened.memory_mb()
    how = f"{opened.name}, {count:,} streams of {PEOPLE} people, CPU time of its processes, offline model"
    return [
        Figure(what="open pages, to connect one", value=connected_s / count * 1000, unit="ms", how=how, goal=10),
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
        Figure(what="open pages, memory of one", value=(all_mb - memory_mb) / count * 1000, unit="KB", how=how),
        Figure(what="open pages, memory in all", value=all_mb, unit="MB", how=how),
    ]


@contextmanager
def _opened(opened: House, people: list[Caller], paths: list[str], count: int) -> Iterator[list[socket.socket]]:
    """That many streams, each greeted: no more of them at once than one address may have without a login."""
    with ExitStack() as stack:
        pages = list[socket.socket]()
        while len(pages) < count:
            door = opened.pages[len(pages) // PEOPLE % len(opened.pages)]
            for person, path in zip(people, paths, strict=True):
                page = stack.enter_context(socket.create_connection(("127.0.0.1", door.port)))
                head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\n"
                page.sendall(f"{head}Cookie: cortex={person.token}\r\nAccept: text/event-stream\r\n\r\n".encode())
                pages.append(page)
            _read(pages[-PEOPLE:], b"event: ready")
        time.sleep(2)  # what is done behind the greeting counts too
        yield pages


def _answered(opened: House, people: list[Caller], places: list[str], pages: list[socket.socket]) -> float:
    """CPU seconds until the answer of each has come to all of its pages."""
    before_s = opened.cpu_s()
    for person, place in zip(people, places, strict=True):
        person.send(place, QUESTION)
    _read(pages, ENDED)
    used_s = opened.cpu_s() - before_s
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
