"""A mail server in a few lines, which answers as named servers were seen to answer and Dovecot does not.

Its mails lie in memory. A test gives what is answered otherwise: see `Hostile.otherwise`.
"""

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.patience import PATIENCE_S

Otherwise = Callable[["Talk", str, str], bool]


@dataclass
class Hostile:
    """A server. `folders`: name to headers by number; `marks`: flags of folders as LIST says them.

    `otherwise`: asked ahead of each command, with its name (UID FETCH is FETCH) and what stands behind it; True where
    it answered by itself. `said`: every command that came.
    """

    folders: dict[str, dict[int, bytes]] = field(default_factory=lambda: {"INBOX": {}})
    marks: dict[str, str] = field(default_factory=dict)
    capabilities: str = "IMAP4rev1 IDLE UIDPLUS MOVE"
    uidvalidity: str = "7"
    greeting: bytes = b"* OK ready\r\n"
    otherwise: Otherwise = lambda *_: False
    said: list[str] = field(default_factory=list)
    port: int = 0
    logins: int = 0
    talks: list["Talk"] = field(default_factory=list)

    def commands(self, name: str) -> list[str]:
        """Those of this name that came."""
        return [one for one in self.said if one.split(" ")[0] == name]


class Talk:
    """One connection."""

    def __init__(self, server: Hostile, line: socket.socket) -> None:
        self.server, self.line, self.file = server, line, line.makefile("rb")
        self.folder, self.tag = "INBOX", ""
        self.ended = threading.Event()

    def send(self, *lines: str | bytes) -> None:
        """Send lines, as they are."""
        made = (one.encode() if isinstance(one, str) else one for one in lines)
        self.line.sendall(b"".join(one + b"\r\n" for one in made))

    def done(self, words: str = "OK done") -> bool:
        """Answer the command."""
        self.send(f"{self.tag} {words}")
        return True

    def serve(self) -> None:
        """Until the other side leaves."""
        self.line.sendall(self.server.greeting)
        while line := self.file.readline():
            self.tag, _, rest = line.decode("utf-8", "replace").rstrip("\r\n").partition(" ")
            rest = rest.removeprefix("UID ")
            name, _, more = rest.partition(" ")
            self.server.said.append(rest)
            if not self.server.otherwise(self, name, more):
                self.answer(name, more)
            if name == "LOGOUT":
                return

    def answer(self, name: str, more: str) -> None:
        """Answer as servers do."""
        getattr(self, f"on_{name.lower()}", lambda _: self.done())(more)

    def on_capability(self, _: str) -> None:
        self.send(f"* CAPABILITY {self.server.capabilities}")
        self.done()

    def on_login(self, _: str) -> None:
        self.server.logins += 1
        self.done()

    def on_list(self, more: str) -> None:
        asked = more.rpartition(' "')[2].rstrip('"')
        for name in self.server.folders:
            if asked in ("*", name):
                self.send(f'* LIST ({self.server.marks.get(name, "")}) "/" "{name}"')
        self.done()

    def on_select(self, more: str) -> None:
        self.on_examine(more, "READ-WRITE")

    def on_examine(self, more: str, how: str = "READ-ONLY") -> None:
        name = more.strip('"')
        if name not in self.server.folders:
            self.done("NO [NONEXISTENT] none of this name")
            return
        self.folder = name
        mails = self.server.folders[name]
        self.send(
            "* FLAGS (\\Seen)", f"* {len(mails)} EXISTS", f"* OK [UIDVALIDITY {self.server.uidvalidity}] is",
            f"* OK [UIDNEXT {max(mails, default=0) + 1}] next",
        )  # fmt: skip
        self.done(f"OK [{how}] done")

    def on_search(self, more: str) -> None:
        mails = self.server.folders[self.folder] if more == "ALL" else {}
        self.send("* SEARCH " + " ".join(map(str, mails)))
        self.done()

    def asked(self, more: str) -> list[int]:
        """The mails of the open folder that a command names."""
        named = set[int]()
        for part in more.split(" ")[0].split(","):
            first, _, last = part.partition(":")
            named |= set(range(int(first), int(last or first) + 1))
        return [uid for uid in self.server.folders[self.folder] if uid in named]

    def on_fetch(self, more: str) -> None:
        for uid in self.asked(more):
            self.mail(uid, more)
        self.done()

    def mail(self, uid: int, more: str) -> None:
        """Say what is asked of one mail."""
        data = self.server.folders[self.folder][uid]
        if most := re.search(r"<0\.(\d+)>", more):
            data = data[: int(most[1])]
        told = f'* {uid} FETCH (UID {uid} FLAGS () RFC822.SIZE 9 INTERNALDATE "28-Nov-2026 11:00:00 +0000"'
        if "BODY" not in more:
            self.send(f"{told})")
            return
        self.send(f"{told} BODY[X] {{{len(data)}}}", data + b")")

    def on_idle(self, _: str) -> None:
        self.send("+ idling")
        self.file.readline()
        self.done()


@contextmanager
def hostile(server: Hostile | None = None, **given: object) -> Iterator[Hostile]:
    """A server that runs."""
    made = server or Hostile(**given)  # type: ignore[arg-type]
    listening = socket.create_server(("127.0.0.1", 0))
    made.port = listening.getsockname()[1]
    lines: list[socket.socket] = []

    def talk(line: socket.socket) -> None:
        one = Talk(made, line)
        made.talks.append(one)
        with line, contextlib.suppress(OSError, ValueError), one.file:
            one.serve()
        one.ended.set()

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                line, _ = listening.accept()
                lines.append(line)
                thread = threading.Thread(target=talk, args=(line,), daemon=True)
                threads.append(thread)
                thread.start()

    threads = [threading.Thread(target=accept, daemon=True)]
    threads[0].start()
    try:
        yield made
    finally:
        for one in (listening, *lines):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in threads:
            thread.join(PATIENCE_S)


def head(subject: str, sender: str = "Ben <ben@example.org>", id: str = "") -> bytes:
    """The headers of a mail."""
    made = id or subject.lower().replace(" ", "-")
    return f"From: {sender}\r\nSubject: {subject}\r\nMessage-ID: <{made}@example.org>\r\n\r\n".encode()


def heads(count: int) -> dict[int, bytes]:
    """So many mails."""
    return {uid: head(f"Mail {uid}") for uid in range(1, count + 1)}
