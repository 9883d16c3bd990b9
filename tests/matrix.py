"""People on a real Synapse, and the line between it and Cortex, which can break or be refused where a test says so.

`cut`: what to do with the next requests of a kind (the word behind the room in its path, such as send or sync):
"before" breaks the line ahead of the effect, "after" behind it. `dies`: called with each line that is cut. `faults`:
answers in place of the server's. `is_away`: no request comes through. `asked`: what went through, kind and body.
"""

import http.client
import itertools
import json
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx

from tests.patience import PATIENCE_S
from tests.synapse import PASSWORD, SERVER, Synapse

CLIENT = "/_matrix/client/v3"
Row = dict[str, Any]
_count = itertools.count(1)


class Store:
    """Where a login is kept."""

    def __init__(self) -> None:
        self.text = ""

    async def load(self) -> str:
        return self.text

    async def save(self, text: str) -> None:
        self.text = text


class MatrixTown:
    """Cortex's account, Ada, Ben, Mia and Ola on a server; a context manager. Each town has accounts of its own."""

    kind, asks, sends = "matrix", "sync", "send"

    def __init__(self, server: Synapse) -> None:
        self.server = server
        mark = next(_count)
        self._tokens: dict[str, str] = {}
        self.cortex = self._new(f"cortex{mark}", "Cortex")
        self.people = tuple({"id": self._new(f"{name}{mark}", name.title())} for name in ("ada", "ben", "mia", "ola"))
        self.rooms: dict[str, str] = {}
        self.cut: dict[str, deque[str]] = defaultdict(deque)
        self.faults: dict[str, deque[tuple[int, Row]]] = defaultdict(deque)
        self.asked: list[tuple[str, Row]] = []
        self.is_away = False
        self.dies: Callable[[], None] = lambda: None
        self._line: ThreadingHTTPServer | None = None
        self._http = httpx.Client(base_url=server.url, timeout=PATIENCE_S)

    @property
    def address(self) -> str:
        assert self._line is not None
        return f"http://127.0.0.1:{self._line.server_port}"

    def form(self, **changed: str) -> dict[str, str]:
        """What an admin types on the card."""
        return {"address": self.address, "user": self.cortex, "password": PASSWORD, **changed}

    def __enter__(self) -> Self:
        self._line = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._line.daemon_threads = True
        threading.Thread(target=self._line.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._line is not None
        self._line.shutdown()
        self._line.server_close()
        self._http.close()

    # --- what people do

    def call(self, who: str, method: str, path: str, body: Any = None, **query: Any) -> Row:
        """A request of this account; its good answer."""
        keys = {"Authorization": f"Bearer {self._tokens[who]}"}
        sent = {"content": body} if isinstance(body, bytes) else {"json": body}
        got = self._http.request(method, path, headers=keys, params=query, **sent)
        assert got.status_code == 200, (path, got.text)
        found: Row = got.json()
        return found

    def room(self, who: str, *others: str, is_encrypted: bool = False, is_direct: bool = True, name: str = "") -> str:
        """A new room into which this person asks Cortex and others."""
        state = [{"type": "m.room.encryption", "state_key": "", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}]
        body: Row = {
            "preset": "trusted_private_chat" if is_direct else "private_chat",
            "is_direct": is_direct,
            "invite": [self.cortex, *others],
            "initial_state": state if is_encrypted else [],
        }
        body |= {"name": name} if name else {}
        made = str(self.call(who, "POST", f"{CLIENT}/createRoom", body)["room_id"])
        for one in others:
            self.call(one, "POST", f"{CLIENT}/rooms/{quote(made)}/join", {})
        return made

    def says(self, who: Row, text: str, *, chat: str = "", more: Row | None = None, **content: str) -> str:
        """Somebody writes, in their own room with Cortex if no other is named; the message's id."""
        return self.sends_event(who, {"msgtype": "m.text", "body": text, **content, **(more or {})}, chat=chat)

    def sends_event(self, who: Row, content: Row, *, chat: str = "", kind: str = "m.room.message") -> str:
        id = str(who["id"])
        if not chat:
            chat = self.rooms.get(id) or self.rooms.setdefault(id, self.room(id))
        path = f"{CLIENT}/rooms/{quote(chat)}/send/{kind}/t{next(_count)}"
        return str(self.call(id, "PUT", path, content)["event_id"])

    def edits(self, who: Row, message: str, text: str) -> None:
        new = {"msgtype": "m.text", "body": text}
        relates = {"rel_type": "m.replace", "event_id": message}
        self.sends_event(who, {"msgtype": "m.text", "body": f"* {text}", "m.new_content": new, "m.relates_to": relates})

    def deletes(self, who: Row, message: str) -> None:
        room = quote(self.rooms[who["id"]])
        self.call(who["id"], "PUT", f"{CLIENT}/rooms/{room}/redact/{quote(message, safe='')}/t{next(_count)}", {})

    def reacts(self, who: Row, message: Row, sign: str) -> str:
        relates = {"rel_type": "m.annotation", "event_id": message["id"], "key": sign}
        return self.sends_event(who, {"m.relates_to": relates}, chat=message["room"], kind="m.reaction")

    def uploads(self, who: Row, content: bytes, kind: str) -> str:
        """A file that lies on the server; its address."""
        keys = {"Authorization": f"Bearer {self._tokens[who['id']]}", "Content-Type": kind}
        got = self._http.post("/_matrix/media/v3/upload", content=content, headers=keys)
        return str(got.json()["content_uri"])

    # --- what they see

    def seen(self, id: str) -> list[Row]:
        """What Cortex wrote in all rooms of this person, as it came; invitations are accepted."""
        found: list[Row] = []
        rooms = self.call(id, "GET", f"{CLIENT}/sync", filter='{"room":{"timeline":{"limit":1}}}').get("rooms", {})
        for room, asked in rooms.get("invite", {}).items():
            by = [one["sender"] for one in asked["invite_state"]["events"] if one.get("state_key") == id]
            if by == [self.cortex]:
                self.call(id, "POST", f"{CLIENT}/rooms/{quote(room)}/join", {})
                self.rooms[id] = room
        for room in {*rooms.get("join", {}), self.rooms.get(id, "")} - {""}:
            for event in self.events(id, room):
                content = event.get("content", {})
                if event["sender"] == self.cortex and event["type"] == "m.room.message" and "body" in content:
                    at = event["origin_server_ts"]
                    found.append({"id": event["event_id"], "room": room, "text": content["body"], "at": at, **content})
        return sorted(found, key=lambda row: row["at"])

    def events(self, id: str, room: str) -> list[Row]:
        """All of a room, the oldest first."""
        rows: list[Row] = []
        start: dict[str, str] = {}
        while True:
            page = self.call(id, "GET", f"{CLIENT}/rooms/{quote(room)}/messages", dir="f", limit=500, **start)
            rows += page["chunk"]
            if not page["chunk"] or "end" not in page:
                return rows
            start = {"from": page["end"]}

    def texts(self, id: str) -> list[str]:
        return [row["text"] for row in self.seen(id)]

    def until(self, id: str, text: str, times: int = 1) -> Row:
        """The message that holds this, once it came so often."""

        def found() -> Row | None:
            rows = [row for row in self.seen(id) if text in row["text"]]
            return rows[times - 1] if len(rows) >= times else None

        return self._waited(found, lambda: (text, self.texts(id)))

    def until_more(self, id: str, than: int) -> None:
        self._waited(lambda: {"more": 1} if len(self.texts(id)) > than else None, lambda: self.texts(id))

    def until_event(self, id: str, room: str, wanted: Callable[[Row], bool]) -> Row:
        """The first event of a room that is wanted."""
        found = lambda: next(filter(wanted, self.events(id, room)), None)  # noqa: E731
        return self._waited(found, lambda: self.events(id, room))

    def _waited(self, found: Callable[[], Row | None], said: Callable[[], object]) -> Row:
        until = time.monotonic() + PATIENCE_S
        while (row := found()) is None:
            assert time.monotonic() < until, said()
            time.sleep(0.1)
        return row

    def go_away(self, is_away: bool = True) -> None:
        self.is_away = is_away

    def bodies(self, kind: str) -> Iterable[Row]:
        return [body for one, body in self.asked if one == kind]

    def _new(self, name: str, shown: str) -> str:
        id = f"@{name}:{SERVER}"
        self._tokens[id] = self.server.register(name, shown)
        return id

    # --- the line

    def carry(self, method: str, path: str, headers: Row, raw: bytes) -> tuple[int, bytes, str] | None:
        """The answer to a request of Cortex's; None where the line breaks."""
        kind = _kind(path)
        with suppress(ValueError):
            self.asked.append((kind, json.loads(raw or b"{}")))
        cut = self.cut[kind].popleft() if self.cut[kind] else ""
        if cut == "before":
            self.dies()
        if self.is_away or cut == "before":
            return None
        if self.faults[kind]:
            status, said = self.faults[kind].popleft()
            return status, json.dumps(said).encode(), "application/json"
        there = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
        try:
            there.request(method, path, raw, headers)
            got = there.getresponse()
            body = got.read()
        except (http.client.HTTPException, OSError):  # the server ends
            return None
        finally:
            there.close()
        if cut:
            self.dies()
        return None if cut or self.is_away else (got.status, body, got.headers.get("Content-Type", ""))


def _kind(path: str) -> str:
    words = urlsplit(path).path.removeprefix(CLIENT).strip("/").split("/")
    if words[0] != "rooms" or len(words) < 3:
        return words[0]
    return f"{words[2]}.{words[3]}" if words[2] == "send" and words[3] != "m.room.message" else words[2]


def _handler(town: MatrixTown) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            kept = {name: self.headers[name] for name in ("Authorization", "Content-Type") if name in self.headers}
            said = town.carry(self.command, self.path, kept, raw)
            if said is None:
                self.close_connection = True
                return
            status, body, kind = said
            with suppress(OSError):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        do_GET = do_POST = do_PUT = _any

        def log_message(self, *_: object) -> None:
            return

    return Handler
