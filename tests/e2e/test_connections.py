"""Connections that say nothing, say it slowly or never read: real sockets, the real daemon, few descriptors. A person
gets through meanwhile.
"""

import re
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from tests.children import run
from tests.e2e.caller import PASSWORD, Caller
from tests.e2e.crew import Listener, events_of, until
from tests.e2e.daemon import Daemon
from tests.patience import PATIENCE_S
from tests.scripted_server import ScriptedServer, rule

FILES = 256
SLOW_S = 0.4  # between two bytes of an upload that takes longer than other bodies may
HALF_HEAD = b"GET /login HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
HALF_BODY = (
    b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nSec-Fetch-Site: same-origin\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 9999\r\n\r\nname="
)
LONG = "\n\n".join(
    f"{number}. " + "".join(f"It goes on {at} times {number}, and then some more. " for at in range(20))
    for number in range(140)
)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that may open 256 files, behind a proxy at 127.9.9.9."""
    made = Daemon(
        tmp_path_factory.mktemp("small") / "home",
        limits=(FILES, FILES),
        trusted_proxies="127.9.9.9",
        connections_per_address=32,
        streams_per_person=4,
    )
    made.start()
    yield made
    made.close()


@pytest.fixture(scope="module")
def ada(small: Daemon) -> Iterator[Caller]:
    with Caller(small) as caller:
        yield caller.set_up()


Connects = Callable[..., socket.socket]


@pytest.fixture
def connect(small: Daemon) -> Iterator[Connects]:
    """Opens sockets from any address of this machine; they are closed with the test."""
    with ExitStack() as opened:

        def made(said: bytes, *, address: str = "127.0.0.1", buffer_bytes: int = 0) -> socket.socket:
            connection = opened.enter_context(socket.socket())
            connection.settimeout(PATIENCE_S)
            if buffer_bytes:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
            connection.bind((address, 0))
            connection.connect(("127.0.0.1", small.port))
            connection.sendall(said)
            return connection

        yield made


def open_here(daemon: Daemon) -> int:
    """How many connections the daemon holds."""
    found = psutil.Process(daemon.pid).net_connections(kind="tcp")
    return sum(one.laddr.port == daemon.port and one.status == psutil.CONN_ESTABLISHED for one in found)


def is_well(daemon: Daemon, person: Caller) -> bool:
    """Whether a newcomer and somebody who is logged in are served."""
    with Caller(daemon) as newcomer:
        newcomer.log_in()
        assert "Log out" in newcomer.get("/account").text
    place = person.send("new", "hello")
    until(lambda: 'class="working"' not in person.get(f"/c/{place}").text)
    return "Traceback" not in daemon.log and "Too many open files" not in daemon.log


def most(name: str, told: str) -> int:
    """How many may be open at once, by the doctor."""
    found = re.search(rf"{name}\b.*?\d open of at most ([\d,]+)", told, re.DOTALL)
    assert found, told
    return int(found[1].replace(",", ""))


def test_a_start_takes_the_open_files_that_the_system_allows_and_the_doctor_counts_them(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path / "home", limits=(FILES, 2_048))
    daemon.start()
    try:
        with Caller(daemon) as person:
            health = person.set_up().get("/health").text
        told = run(["doctor"], env=daemon._environment(), cwd=daemon.home)
    finally:
        daemon.close()
    assert most("Open files", health) == most("open files", told.stdout) == 2_048
    assert most("Connections", health) > 2_048 - 200, "they may have what is left"


def test_few_open_files_are_told_with_what_to_do(small: Daemon, ada: Caller) -> None:
    health = ada.get("/health").text
    assert re.search(rf"Open files.*?open of at most {FILES}\..*?LimitNOFILE", health, re.DOTALL)


@pytest.mark.parametrize("addresses", [1, 50], ids=["one address", "fifty addresses"])
def test_four_hundred_half_open_connections_stop_nobody(
    small: Daemon, ada: Caller, connect: Connects, addresses: int
) -> None:
    for number in range(400):
        connect(HALF_HEAD, address=f"127.1.0.{number % addresses + 1}")
    assert is_well(small, ada)
    ada.post("/confirm", password=PASSWORD)
    room = most("Connections", ada.get("/health").text)
    assert room <= FILES - 64
    assert open_here(small) <= (40 if addresses == 1 else room)


def test_a_person_at_the_same_address_gets_through(small: Daemon, ada: Caller, connect: Connects) -> None:
    for _ in range(100):
        connect(HALF_HEAD)
    assert is_well(small, ada)


def test_a_house_full_of_people_at_one_address_may_send_at_the_same_moment(daemon: Daemon) -> None:
    """As behind one router, Docker's bridge, or a proxy that was not named."""
    daemon.start()
    with Caller(daemon) as ada, ExitStack() as opened:
        head = "POST /tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nSec-Fetch-Site: same-origin\r\n"
        who = f"Cookie: cortex={ada.set_up().token}\r\n"
        form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 10\r\n\r\ntitle=milk"
        sockets = [opened.enter_context(socket.create_connection(("127.0.0.1", daemon.port))) for _ in range(60)]
        for one in sockets:
            one.settimeout(PATIENCE_S)
            one.sendall((head + who + form).encode())
        assert {one.recv(12) for one in sockets} == {b"HTTP/1.1 303"}


def test_a_trusted_proxy_may_open_many_but_each_of_its_clients_a_few(
    small: Daemon, ada: Caller, connect: Connects
) -> None:
    silent = [connect(HALF_HEAD, address="127.9.9.9") for _ in range(60)]
    body = HALF_BODY.replace(b"Sec-Fetch", b"X-Forwarded-For: 198.51.100.7\r\nSec-Fetch")
    slow = [connect(body, address="127.9.9.9") for _ in range(40)]
    until(lambda: sum(map(is_closed, slow)) == 8)
    assert not any(map(is_closed, silent))
    assert not is_closed(slow[-1])
    assert is_well(small, ada)


def is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return not connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_a_head_that_comes_slowly_is_given_up(small: Daemon, ada: Caller, connect: Connects) -> None:
    assert b"408" in trickle([connect(HALF_HEAD)])[0]
    assert is_well(small, ada)


@pytest.mark.full
def test_a_body_that_comes_slowly_is_given_up(small: Daemon, ada: Caller, connect: Connects) -> None:
    assert all(b"408" in answer for answer in trickle([connect(HALF_BODY) for _ in range(5)]))
    assert is_well(small, ada)


@pytest.mark.full
def test_an_upload_that_comes_slowly_is_waited_for(small: Daemon, ada: Caller, connect: Connects) -> None:
    """Longer than any other body may take, while something of it comes."""
    head = (
        b"POST /files HTTP/1.1\r\nHost: 127.0.0.1\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 200\r\n"
        b"Content-Type: multipart/form-data; boundary=slow\r\nCookie: cortex=" + ada.token.encode() + b"\r\n\r\n"
    )
    given = b'--slow\r\nContent-Disposition: form-data; name="files"; filename="slow.txt"\r\n\r\n'
    body = (given + b"x" * 200)[:190] + b"\r\n--slow--"
    connection = connect(head)
    for at in range(len(body)):
        connection.sendall(body[at : at + 1])
        connection.settimeout(SLOW_S)
        with suppress(TimeoutError):
            assert b"303" in connection.recv(1000)
            break
    assert "slow.txt" in ada.get("/files").text


def trickle(connections: Sequence[socket.socket]) -> list[bytes]:
    """What each is answered while a byte goes into it now and then."""
    answers = {connection: b"" for connection in connections}
    deadline_s = time.monotonic() + PATIENCE_S
    while b"" in answers.values() and time.monotonic() < deadline_s:
        for connection, answer in answers.items():
            if answer:
                continue
            connection.settimeout(0.5)
            try:
                connection.sendall(b"x")
                answers[connection] = connection.recv(1000) or b"closed"
            except TimeoutError:
                continue
            except ConnectionError:
                answers[connection] = b"reset"
    return list(answers.values())


@contextmanager
def talking_model(person: Caller) -> Iterator[None]:
    """A model that says 110 KB, chosen by this person."""
    with ScriptedServer(rule("tale", LONG)) as server:
        form = {"provider": "openai", "model": "s", "base_url": server.base_url, "api_key": server.api_key}
        person.post("/models", name="teller", streams="on", tools="on", **form)
        yield
        person.post("/models/remove?name=teller")


def memory_mb(daemon: Daemon) -> float:
    return float(psutil.Process(daemon.pid).memory_info().rss) / 1e6


def tell(daemon: Daemon, person: Caller, place: str) -> None:
    with Listener(daemon.origin, person.token, events_of(place)) as listener:
        heard = len(listener.heard)
        person.send(place, "tell me a tale")
        listener.first("ended", since=heard)


@pytest.mark.full
def test_who_never_reads_costs_little_and_is_cut_off(tmp_path: Path) -> None:
    made = Daemon(tmp_path / "home")
    made.start()
    try:
        with Caller(made) as ada, talking_model(ada.set_up()), ExitStack() as opened:
            place = ada.send("new", "hello")
            for _ in range(3):
                tell(made, ada, place)
            before_mb = memory_mb(made)
            asked = f"GET /c/{place}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: cortex={ada.token}\r\n\r\n".encode()
            for _ in range(20):
                reader = opened.enter_context(socket.socket())
                reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                reader.connect(("127.0.0.1", made.port))
                reader.sendall(asked)
            until(lambda: open_here(made) >= 20)
            tell(made, ada, place)
            assert memory_mb(made) - before_mb <= 20
            until(lambda: open_here(made) < 5)
    finally:
        made.close()


def test_one_person_has_a_limit_of_live_pages(small: Daemon, ada: Caller) -> None:
    place = ada.send("new", "hello")
    with ExitStack() as opened:
        for _ in range(4):
            opened.enter_context(Listener(small.origin, ada.token, events_of(place)))
        refused = ada.get(events_of(place))
        assert (refused.status_code, "4 live pages" in refused.text) == (429, True)
    until(lambda: events_are_open(small, ada, place))


def events_are_open(daemon: Daemon, person: Caller, place: str) -> bool:
    with Listener(daemon.origin, person.token, events_of(place)) as listener:
        return bool(listener.heard[0].event == "ready")


IMPORT_HEAD = (
    b"POST /account/import HTTP/1.1\r\nHost: 127.0.0.1\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 50000000\r\n"
    b"Content-Type: multipart/form-data; boundary=b\r\n"
)
PART = b'\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="c.zip"\r\n\r\n'


@pytest.mark.parametrize(
    "path", [b"/account/import", b"/files", b"/login", b"/v1/chat/completions", b"/mcp", b"/hooks/x"]
)
def test_what_a_stranger_half_sends_is_answered_and_costs_nothing(
    small: Daemon, ada: Caller, connect: Connects, path: bytes
) -> None:
    ada.get("/account")
    before_mb = memory_mb(small)
    head = IMPORT_HEAD.replace(b"/account/import", path) + b"\r\n"
    sent = [connect(head + PART + b"x" * 200_000) for _ in range(16)]
    answers = [connection.recv(400) for connection in sent]
    assert {answer.split()[1] for answer in answers} <= {b"303", b"401", b"413"}
    assert memory_mb(small) - before_mb < 16
    assert is_well(small, ada)


def test_a_stranger_is_answered_without_being_asked_to_go_on(connect: Connects) -> None:
    for path in (b"/account/import", b"/files", b"/tasks"):
        head = IMPORT_HEAD.replace(b"/account/import", path) + b"Expect: 100-continue\r\n\r\n"
        assert connect(head).recv(400).startswith(b"HTTP/1.1 303")


def test_of_one_person_only_some_large_bodies_are_read_at_once(small: Daemon, ada: Caller, connect: Connects) -> None:
    head = IMPORT_HEAD + b"Cookie: cortex=" + ada.token.encode() + b"\r\n\r\n"
    before_mb = memory_mb(small)
    halves = [connect(head + PART + b"x" * 1_500_000) for _ in range(8)]
    waiting = [connect(head + PART + b"x" * 60_000) for _ in range(8)]
    assert memory_mb(small) - before_mb < 64
    assert "Log out" in ada.get("/account").text  # small requests wait for nothing
    assert not any(map(is_closed, [*halves, *waiting]))
    for one in [*halves, *waiting]:
        one.close()
    ada.give("late.txt", b"words " * 10_000)  # in its turn, behind those that were cut off
