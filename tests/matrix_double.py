"""A homeserver that answers what a good one does not: shapes out of the documents, ends of logins, any refusal."""

import json
import re
import threading
from collections import defaultdict, deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import unquote, urlsplit

ME, ADA, ROOM = "@cortex:house.test", "@ada:house.test", "!room:house.test"
Row = dict[str, Any]


class MatrixDouble:
    """A context manager. `faults`: answers to the next requests of a kind; a text of `<` goes out as it is, no JSON."""

    def __init__(self) -> None:
        self.tokens: set[str] = set()
        self.logins: list[str] = []
        self.sent: list[str] = []
        self.timeline: list[Any] = []
        joined = {"membership": "join"}
        self.state: list[Row] = [
            {"type": "m.room.member", "state_key": id, "content": joined} for id in (ME, ADA)
        ]  # fmt: skip
        self.file = b""
        self.faults: dict[str, deque[tuple[int, Any]]] = defaultdict(deque)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, token: str, raw: bytes) -> tuple[int, Any]:
        """Status and body."""
        place = unquote(urlsplit(path).path)
        if place.endswith("/login"):
            return self._log_in(json.loads(raw))
        if token.removeprefix("Bearer ") not in self.tokens:
            return 401, {"errcode": "M_UNKNOWN_TOKEN", "error": "secret words"}
        for kind, faults in self.faults.items():
            if f"/{kind}" in place and faults:
                return faults.popleft()
        if "/send/" in place:
            if place not in self.sent:
                self.sent.append(place)
            return 200, {"event_id": f"${self.sent.index(place)}"}
        if place.endswith("/state/m.room.encryption/"):
            found = [one["content"] for one in self.state if one["type"] == "m.room.encryption"]
            return (200, found[0]) if found else (404, {"errcode": "M_NOT_FOUND"})
        return 200, self._at(place.rpartition("/")[2] if "/media/" not in place else "media")

    def _at(self, word: str) -> Any:
        new = {"join": {ROOM: {"timeline": {"events": self.timeline}}}}
        known: dict[str, Any] = {
            "state": self.state,
            "sync": {"next_batch": "s1", "rooms": new},
            "media": self.file,
            "whoami": {"user_id": ME},
        }
        return known.get(word, {})

    def _log_in(self, body: Row) -> tuple[int, Any]:
        if body["password"] != "pw":
            return 403, {"errcode": "M_FORBIDDEN", "error": "Invalid username or password"}
        device = body.get("device_id", "")
        self.logins.append(device)
        token = f"syt_{len(self.logins)}"
        self.tokens.add(token)
        return 200, {"user_id": ME, "access_token": token, "device_id": device or f"DEVICE{len(self.logins)}"}


def _handler(double: MatrixDouble) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            assert re.match("/_matrix/", self.path)
            status, said = double.answer(self.path, self.headers.get("Authorization", ""), raw)
            self.send_response(status)
            self.end_headers()
            plain = said.encode() if isinstance(said, str) and said.startswith("<") else said
            self.wfile.write(plain if isinstance(plain, bytes) else json.dumps(plain).encode())

        do_GET = do_POST = do_PUT = _any

        def log_message(self, *_: object) -> None:
            return

    return Handler
