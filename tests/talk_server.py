"""Nextcloud with Talk, made from its documented contract (nextcloud/spreed, docs/chat.md and docs/conversation.md).

It refuses what breaks the contract: no OCS header, no JSON asked for, a wrong login. `faults`: what the next requests
are answered with, in order. `lost`: posts are taken and never answered while it is set. `read_only`, `lobby`: tokens of
rooms in that state.
"""

import base64
import json
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from tests.patience import PATIENCE_S

USER, PASSWORD = "cortex", "Wq3xT-9aBcD-eFgHi-JkLmN-oPqRs"
Row = dict[str, Any]


@dataclass
class TalkDouble:
    """The server; a context manager."""

    rooms: dict[str, Row] = field(default_factory=dict)
    posts: dict[str, list[Row]] = field(default_factory=dict)
    faults: deque[tuple[int, dict[str, str]]] = field(default_factory=deque)
    asked: list[str] = field(default_factory=list)
    read_only: set[str] = field(default_factory=set)
    lobby: set[str] = field(default_factory=set)
    lost: bool = False
    raw: bytes | None = None
    most_characters: int = 32_000
    _ids: int = 100
    _closing: Any = field(default_factory=threading.Event)
    _server: ThreadingHTTPServer | None = None

    @property
    def address(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_port}/nextcloud"

    def form(self, **changed: str) -> dict[str, str]:
        """What an admin types on the card."""
        return {"address": self.address, "user": USER, "password": PASSWORD, **changed}

    def link(self, token: str) -> str:
        return f"{self.address}/index.php/call/{token}"

    def room(self, token: str, name: str, *, at: int = 1, unread: int = 0) -> None:
        self.rooms[token] = {"token": token, "displayName": name, "lastActivity": at, "unreadMessages": unread}
        self.posts.setdefault(token, [])

    def says(self, token: str, who: str, text: str, **more: Any) -> int:
        """Somebody posts; the post's id."""
        self._ids += 1
        row = {
            "id": self._ids,
            "token": token,
            "actorType": "users",
            "actorId": who.casefold(),
            "actorDisplayName": who,
            "timestamp": 1_790_000_000 + self._ids,
            "message": text,
            "messageParameters": [],
            "systemMessage": "",
            "messageType": "comment",
            "isReplyable": True,
            "referenceId": "",
            **more,
        }
        self.posts[token].append(row)
        return self._ids

    def texts(self, token: str) -> list[str]:
        return [row["message"] for row in self.posts[token]]

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, path: str, query: dict[str, str], body: Row) -> tuple[int, Any, dict[str, str]]:
        """Status, data and headers, by the contract."""
        root = "/nextcloud/ocs/v2.php/apps/spreed/api"
        if (method, path) == ("GET", f"{root}/v4/room"):
            return 200, list(self.rooms.values()), {}
        token = path.removeprefix(f"{root}/v1/chat/")
        if token not in self.rooms:
            return 404, [], {}
        if token in self.lobby:
            return 412, [], {}
        return self._post(token, body) if method == "POST" else self._history(token, query)

    def _post(self, token: str, body: Row) -> tuple[int, Any, dict[str, str]]:
        if token in self.read_only:
            return 403, [], {}
        if not body.get("message"):
            return 400, [], {}
        if len(body["message"]) > self.most_characters:
            return 413, [], {}
        self.says(token, USER, body["message"], referenceId=body.get("referenceId", ""))
        return 201, self.posts[token][-1], {}

    def _history(self, token: str, query: dict[str, str]) -> tuple[int, Any, dict[str, str]]:
        limit, before = int(query.get("limit", 100)), int(query.get("lastKnownMessageId", 0))
        if query.get("lookIntoFuture") != "0" or not 0 < limit <= 200:
            return 400, [], {}
        if query.get("setReadMarker", "1") == "1":
            self.rooms[token]["unreadMessages"] = 0
        rows = [row for row in reversed(self.posts[token]) if not before or row["id"] < before][:limit]
        return (200, rows, {"X-Chat-Last-Given": str(rows[-1]["id"])}) if rows else (304, None, {})


def _handler(double: TalkDouble) -> type[BaseHTTPRequestHandler]:
    class Handler(TalkHandler):
        talk = double

    return Handler


class TalkHandler(BaseHTTPRequestHandler):
    """One request of the double."""

    talk: TalkDouble
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def _serve(self, method: str) -> None:
        size = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(size) or b"{}")
        parts = urlsplit(self.path)
        self.talk.asked.append(f"{method} {parts.path.rpartition('/api')[2]}")
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        status, data, headers = self._refusal() or self.talk.answer(method, parts.path, query, body)
        if method == "POST" and self.talk.lost:
            self.talk._closing.wait(PATIENCE_S)
            self.close_connection = True
        else:
            self._reply(status, data, headers)

    def _refusal(self) -> tuple[int, Any, dict[str, str]] | None:
        if self.talk.faults:
            status, headers = self.talk.faults.popleft()
            return status, None, headers
        login = f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"
        if self.headers.get("Authorization") != login:
            return 401, None, {}
        if self.headers.get("OCS-APIRequest") != "true" or self.headers.get("Accept") != "application/json":
            return 406, None, {}
        return None

    def _reply(self, status: int, data: Any, headers: dict[str, str]) -> None:
        meta = {"status": "ok" if status < 300 else "failure", "statuscode": status, "message": "x"}
        whole = json.dumps({"ocs": {"meta": meta, "data": data}}).encode()
        sent = b"" if status == 304 else whole if self.talk.raw is None else self.talk.raw
        self.send_response(status)
        for name, value in {**headers, "Content-Type": "application/json"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)
