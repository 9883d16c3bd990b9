"""A person without a browser: the page's own forms over HTTP. Sets houses up, and talks while they are killed."""

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Self

import httpx

from tests.e2e.daemon import Daemon
from tests.patience import PATIENCE_S
from tests.plain_http import NO_TLS

PASSWORD = "tulip quarry lantern 97"


class Caller:
    """Somebody's HTTP client, logged in by a cookie. Raises httpx.HTTPError while nobody answers."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._seen: dict[str, int] = {}
        self._http = httpx.Client(
            base_url=daemon.origin,
            headers={"Origin": daemon.origin, "Accept": "text/html"},
            timeout=PATIENCE_S,
            limits=httpx.Limits(keepalive_expiry=2.0),  # sooner than the daemon, which resets what comes as it closes
            trust_env=False,
            verify=NO_TLS,
        )

    @property
    def token(self) -> str:
        """The login's cookie."""
        return self._http.cookies["cortex"]

    def become(self, token: str) -> None:
        """Be logged in by this cookie from now on."""
        self._http.cookies.set("cortex", token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def get(self, path: str) -> httpx.Response:
        """A page."""
        return self._http.get(path, follow_redirects=True)

    def pages(self) -> list[str]:
        """Every page that the sidebar of an admin and its *More* name."""
        found = {link for page in ("/c/new", "/more") for link in re.findall(r'href="(/[\w/]*)"', self.get(page).text)}
        assert {"/today", "/jobs", "/notifications", "/admin/health"} <= found
        return sorted(found)

    def post(self, path: str, **fields: str | Sequence[str]) -> httpx.Response:
        """A form; a refusal fails the test."""
        answer = self._http.post(path, data=fields)
        assert answer.status_code in (200, 204, 303), (path, answer.status_code, answer.text[:400])
        return answer

    def give(self, name: str, data: bytes) -> None:
        """A file, by the form of the page Files."""
        assert self._http.post("/files", files={"files": (name, data)}).status_code == 303

    def attach(self, name: str, data: bytes) -> str:
        """A file for a message that is not sent yet, as the composer gives it; its id."""
        answer = self._http.post("/files", files={"files": (name, data)}, headers={"HX-Request": "true"})
        return str(re.findall(r'name="attached" value="(\w+)"', answer.text)[0])

    def stream(self, path: str, headers: Mapping[str, str]) -> AbstractContextManager[httpx.Response]:
        """An answer whose head is there; its body may never end."""
        return self._http.stream(
            "GET", path, headers=[(name.encode(), said.encode("latin-1")) for name, said in headers.items()]
        )

    def send_body(self, path: str, content_type: str, body: bytes) -> httpx.Response:
        """A POST of any bytes, refused or not."""
        headers = [(b"content-type", content_type.encode("latin-1"))] if content_type else []
        return self._http.post(path, content=body, headers=headers)

    def set_up(self, name: str = "Ada") -> Self:
        """Make the first account and be logged in as it."""
        self.post("/setup", token=self._daemon.setup_link.partition("#")[2], name=name, password=PASSWORD)
        return self

    def log_in(self, name: str = "Ada") -> Self:
        """By name and password."""
        self.post("/login", name=name, password=PASSWORD)
        return self

    def invite(self, name: str) -> "Caller":
        """Add a member, and be that member in a client of their own."""
        self.post("/confirm", password=PASSWORD)
        page = self.post("/admin/users", name=name, rank="member").text
        found = re.search(r"/welcome#([\w-]+)", page)
        assert found, page[:400]
        guest = Caller(self._daemon)
        guest.post("/welcome", token=found[1], password=PASSWORD)
        return guest

    def watch(self, conversation: str, events: int, patience_s: float) -> None:
        """Follow the live stream until so many new events have come, or none for a while."""
        seen = self._seen.get(conversation, 0)
        ids: list[int] = []
        try:
            with self._http.stream(
                "GET", f"/c/{conversation}/events?after={seen}", timeout=httpx.Timeout(PATIENCE_S, read=patience_s)
            ) as stream:
                for line in stream.iter_lines():
                    ids += map(int, re.findall(r"^id: (\d+)", line))
                    if len(ids) >= events:
                        break
        except httpx.ReadTimeout:
            return
        finally:
            self._seen[conversation] = max([seen, *ids])

    def until_idle(self, conversation: str) -> str:
        """The conversation's page once no answer of it is written or waits."""
        deadline_s = time.monotonic() + PATIENCE_S
        while re.search('class="(?:working|queued)"', page := self.get(f"/c/{conversation}").text):
            assert time.monotonic() < deadline_s, f"a turn never ended:\n{page[-1500:]}"
            time.sleep(0.1)
        return page

    def send(self, conversation: str, text: str, mode: str = "auto") -> str:
        """Send a message ("new" begins a conversation); the conversation's id. It is stored when this returns."""
        answer = self.post(f"/c/{conversation}/messages", text=text, mode=mode)
        return answer.headers["location"].rpartition("/")[2]
