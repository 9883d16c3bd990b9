"""Hostile files on a running daemon, by its own form: none acts, each ends in a sentence, nothing is left behind."""

import http.server
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon
from tests.e2e.person import poll
from tests.hostile_uploads import ACTING, LONG
from tests.integrations.documents.hostile import HOSTILE
from tests.made_pictures import READ, REFUSED
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.full
FILES = {**HOSTILE, **ACTING, **LONG, **REFUSED, **READ}
SENTENCE = re.compile(r"[A-Z][^\n<>_{}]*\.")
INNER_WORDS = re.compile(r"Traceback|Error\b|Exception|Plugin|None\b|b'|errno", re.IGNORECASE)
WAITING = "Its text is being read."
EVERY_S = 0.05  # between two questions of somebody else


@contextmanager
def canary() -> Iterator[tuple[str, list[str]]]:
    """An address, and who asked it."""
    asked: list[str] = []

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)

        do_POST = do_HEAD = do_GET

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/", asked
        server.shutdown()


class Markup(HTMLParser):
    """What on a page could act or load: its elements with their addresses and handlers."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        marks = {name: value or "" for name, value in attrs}
        addresses = [marks[name] for name in ("src", "href", "action", "formaction", "data") if name in marks]
        self.found += [f"{tag} {address}" for address in addresses if not re.match(r"/(?!/)|#", address)]
        self.found += [f"{tag} {name}" for name in marks if name.startswith("on") or name in ("style", "srcdoc")]
        if tag in ("iframe", "object", "embed", "base") or (tag == "script" and "src" not in marks):
            self.found.append(tag)


class Sender:
    """Gives files to a daemon, as the composer's script does."""

    def __init__(self, daemon: Daemon, token: str) -> None:
        headers = {"Origin": daemon.origin, "HX-Request": "true"}
        self.http = httpx.Client(
            base_url=daemon.origin, headers=headers, cookies={"cortex": token}, timeout=PATIENCE_S, trust_env=False
        )

    def give(self, name: str, data: bytes) -> tuple[str, str]:
        """The id of the file that is kept now, or why it was refused."""
        answer = self.http.post("/files", files={"files": (name, data)})
        assert answer.status_code in (200, 422), answer.text
        found = re.search(r'name="attached" value="(\w+)"', answer.text)
        return (found[1], "") if found else ("", answer.text)

    def shown(self, id: str) -> str:
        """Its page, once its text was read."""
        return str(poll(lambda: "" if WAITING in (page := self.page(id)) else page))

    def page(self, id: str) -> str:
        """Its page now."""
        answer = self.http.get(f"/files/{id}", headers={"HX-Request": "false"})
        assert answer.status_code == 200
        return answer.text


@pytest.fixture
def sender(daemon: Daemon) -> Iterator[Sender]:
    daemon.start()
    with Caller(daemon) as ada:
        made = Sender(daemon, ada.set_up().token)
    with made.http:
        yield made


@contextmanager
def asking(daemon: Daemon) -> Iterator[list[float]]:
    """Somebody else asks all the time: how long each answer took."""
    took: list[float] = []
    over = threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=daemon.origin, timeout=PATIENCE_S, trust_env=False) as client:
            while not over.wait(EVERY_S):
                began = time.monotonic()
                assert client.get("/healthz").status_code == 200
                took.append(time.monotonic() - began)

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        yield took
    finally:
        over.set()
        asker.join()


def left_behind(daemon: Daemon) -> list[str]:
    """Files of uploads that are under no name of theirs, and those that the daemon holds open with no name at all."""
    staged = [path.name for path in daemon.home.glob("*/incoming/*")]
    for handle in Path(f"/proc/{daemon.pid}/fd").iterdir():
        with suppress(OSError):
            target = str(handle.readlink())
            staged += [target] if target.endswith("(deleted)") and "memfd" not in target else []
    return staged


def descendants(pid: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents.setdefault(int(path.read_text().rpartition(")")[2].split()[1]), []).append(int(path.parent.name))
    found = [pid]
    for one in found:
        found += parents.get(one, [])
    return found[1:]


def test_hostile_files_act_nowhere_and_end_in_a_sentence(daemon: Daemon, sender: Sender) -> None:
    wrong: dict[str, str] = {}
    with canary() as (address, asked), asking(daemon) as took:
        for what, (name, make) in FILES.items():
            id, refused = sender.give(name, make().replace(b"{canary}", address.encode()))
            if why := _wrong_refusal(refused) if refused else _wrong_page(sender, id):
                wrong[what] = why
        assert (wrong, asked) == ({}, [])
    assert took
    peak_kb = int(re.findall(r"VmHWM:\s+(\d+)", Path(f"/proc/{daemon.pid}/status").read_text())[0])
    assert (peak_kb < 800_000, left_behind(daemon)) == (True, []), peak_kb
    poll(lambda: not _reading(daemon))
    assert "Traceback" not in daemon.log


def _wrong_refusal(said: str) -> str:
    sentence = said.partition(": ")[2]
    return "" if SENTENCE.fullmatch(sentence) and not INNER_WORDS.search(sentence) else said


def _wrong_page(sender: Sender, id: str) -> str:
    page = sender.shown(id)
    body = page[page.index("<main") : page.index("</main")]
    notes = re.findall(r'<p class="(?:say|note)[^>]*>(.*?)</p>', body, re.DOTALL)
    content = sender.http.get(f"/files/{id}/content")
    heads = content.headers
    right = {
        "is a file": heads["content-disposition"].startswith("attachment; filename*=utf-8''"),
        "type": heads["content-type"] in ("text/plain; charset=utf-8", "application/pdf", "application/octet-stream"),
        "nosniff": heads["x-content-type-options"] == "nosniff",
        "sandbox": "sandbox" in heads["content-security-policy"],
        "short": len(page) < 2_000_000,
        "something is said": bool(notes) or 'class="file-text"' in body or 'class="file-pic"' in body,
        "no inner words": not INNER_WORDS.search(" ".join(notes)),
    }
    return ", ".join([name for name, holds in right.items() if not holds] + Markup(body).found)


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    return ""


def _cut_upload(daemon: Daemon, token: str, tenth: int) -> socket.socket:
    """An upload of which so many tenths have been sent, with its connection."""
    body = b'--cut\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\n' + b"x" * 5_000_000
    body += b"\r\n--cut--\r\n"
    head = (
        f"POST /files HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\nOrigin: {daemon.origin}\r\n"
        f"Cookie: cortex={token}\r\n"
        f"Content-Type: multipart/form-data; boundary=cut\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    line = socket.create_connection(("127.0.0.1", daemon.port), timeout=PATIENCE_S)
    line.sendall(head.encode() + body[: len(body) * tenth // 10])
    return line


def test_an_upload_that_is_cut_off_at_any_tenth_leaves_nothing(daemon: Daemon, sender: Sender) -> None:
    token = sender.http.cookies["cortex"]
    for tenth in range(10):
        _cut_upload(daemon, token, tenth).close()
    for tenth in (1, 5, 9):
        line = _cut_upload(daemon, token, tenth)
        daemon.kill9()
        line.close()
        daemon.start()
    poll(lambda: not left_behind(daemon))
    assert [path.name for path in daemon.home.glob("*/files/uploads/*")] == []
    page = sender.http.get("/files", headers={"HX-Request": "false"}).text
    assert ("No files yet" in page, " used" in page) == (True, False)


@pytest.mark.parametrize("times", [1, 2])
def test_a_text_that_a_killed_daemon_was_reading_is_read_at_the_next_start(
    daemon: Daemon, sender: Sender, times: int
) -> None:
    name, make = LONG["code of a million functions"]
    id, _ = sender.give(name, make())
    for _ in range(times):
        reading = poll(partial(_reading, daemon))
        daemon.kill9()
        poll(partial(_are_gone, reading))
        assert WAITING in _after_start(daemon, sender, id)
    page = sender.shown(id)
    assert ("Only the beginning" in page, "Page 1" in page) == (True, True)
    assert [path.name for path in daemon.home.glob("*/files/uploads/*")] == [name]
    assert left_behind(daemon) == []


def _after_start(daemon: Daemon, sender: Sender, id: str) -> str:
    daemon.start()
    return sender.page(id)


def _reading(daemon: Daemon) -> list[int]:
    """The processes that read documents now."""
    return [pid for pid in descendants(daemon.pid) if "integrations.foreign" in _command(pid)]


def _are_gone(pids: list[int]) -> bool:
    return not any(map(_command, pids))
