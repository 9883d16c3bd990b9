"""The real calendar servers Radicale and Xandikos, each in a folder of its own, from PyPI. Both are programs apart."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.patience import PATIENCE_S
from tests.plain_http import NO_TLS
from tests.ports import port_for

PASSWORD = "tulip-quarry"
MAKE_BOOK = """<?xml version="1.0"?><d:mkcol xmlns:d="DAV:" xmlns:a="urn:ietf:params:xml:ns:carddav">
<d:set><d:prop><d:resourcetype><d:collection/><a:addressbook/></d:resourcetype><d:displayname>{name}</d:displayname>
</d:prop></d:set></d:mkcol>"""
MAKE = """<?xml version="1.0"?><c:mkcalendar xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav">
<d:set><d:prop><d:displayname>{name}</d:displayname></d:prop></d:set></c:mkcalendar>"""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class DavServer:
    """A running server. `home`, `books`: where calendars and address books of a person are made."""

    home: str
    books: str
    held: list[int] = field(default_factory=list)

    @property
    def port(self) -> int:
        """Its port, which stays its own."""
        if not self.held:
            self.held.append(port_for(self))
        return self.held[0]

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    def make(self, name: str, person: str = "ann") -> str:
        """A new calendar; its address."""
        url = f"{self.base}{self.home.format(person=person)}{name.lower()}/"
        made = httpx.request(
            "MKCALENDAR",
            url,
            content=MAKE.format(name=name),
            auth=(person, PASSWORD),
            timeout=PATIENCE_S,
            verify=NO_TLS,
        )
        assert made.status_code == 201, made.text
        return url

    def put(self, calendar: str, name: str, *lines: str, person: str = "ann") -> str:
        """An appointment as another program writes it: the lines of its components."""
        body = "\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Phone//EN", *lines, "END:VCALENDAR", ""])
        done = httpx.put(
            f"{calendar}{name}.ics",
            content=body.encode(),
            auth=(person, PASSWORD),
            timeout=PATIENCE_S,
            verify=NO_TLS,
            headers={"Content-Type": "text/calendar; charset=utf-8"},
        )
        assert done.status_code in (201, 204), done.text
        return f"{calendar}{name}.ics"

    def make_book(self, name: str, person: str = "ann") -> str:
        """A new address book; its address."""
        url = f"{self.base}{self.books.format(person=person)}{name.lower()}/"
        made = httpx.request(
            "MKCOL", url, content=MAKE_BOOK.format(name=name), auth=(person, PASSWORD), timeout=PATIENCE_S,
            verify=NO_TLS, headers={"Content-Type": "application/xml; charset=utf-8"},
        )  # fmt: skip
        assert made.status_code == 201, made.text
        return url

    def put_card(self, book: str, name: str, *lines: str, version: str = "3.0", person: str = "ann") -> str:
        """A contact as another program writes it: the lines between its begin and its end."""
        body = "\r\n".join(["BEGIN:VCARD", f"VERSION:{version}", f"UID:{name}", *lines, "END:VCARD", ""])
        done = httpx.put(
            f"{book}{name}.vcf",
            content=body.encode(),
            auth=(person, PASSWORD),
            timeout=PATIENCE_S,
            verify=NO_TLS,
            headers={"Content-Type": "text/vcard; charset=utf-8"},
        )
        assert done.status_code in (201, 204), done.text
        return f"{book}{name}.vcf"

    def get(self, url: str, person: str = "ann") -> str:
        """A resource as it stands; "" where there is none."""
        found = httpx.get(url, auth=(person, PASSWORD), timeout=PATIENCE_S, verify=NO_TLS)
        return found.text if found.status_code == 200 else ""

    def delete(self, url: str, person: str = "ann") -> None:
        assert httpx.delete(url, auth=(person, PASSWORD), timeout=PATIENCE_S, verify=NO_TLS).status_code in (200, 204)


def event(uid: str, title: str, *lines: str) -> list[str]:
    """The lines of an appointment."""
    return ["BEGIN:VEVENT", f"UID:{uid}", "DTSTAMP:20261101T000000Z", f"SUMMARY:{title}", *lines, "END:VEVENT"]


@contextmanager
def radicale(folder: Path) -> Iterator[DavServer]:
    """Radicale with the accounts ann and ben."""
    folder.mkdir(parents=True, exist_ok=True)
    users = folder / "users"
    users.write_text("".join(f"{name}:{PASSWORD}\n" for name in ("ann", "ben")))
    server = DavServer("/{person}/", "/{person}/")
    words = ["--config", "", "--server-hosts", server.place, "--auth-type", "htpasswd"]
    words += ["--auth-htpasswd-filename", str(users), "--auth-htpasswd-encryption", "plain"]
    words += ["--storage-filesystem-folder", str(folder / "rows")]
    with _running([sys.executable, "-m", "radicale", *words], folder / "log", server.port):
        yield server


@contextmanager
def xandikos(folder: Path) -> Iterator[DavServer]:
    """Xandikos with one person, whom it asks for no password."""
    folder.mkdir(parents=True, exist_ok=True)
    server = DavServer("/{person}/calendars/", "/{person}/contacts/")
    words = ["serve", "-l", "127.0.0.1", "-p", str(server.port), "-d", str(folder / "rows")]
    words += ["--current-user-principal", "/ann/", "--defaults"]
    with _running([sys.executable, "-m", "xandikos", *words], folder / "log", server.port):
        yield server


@contextmanager
def _running(argv: list[str], log: Path, port: int) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(argv, stdout=output, stderr=output)
        try:
            until = time.monotonic() + PATIENCE_S
            while True:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < until, log.read_text()
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE_S)
