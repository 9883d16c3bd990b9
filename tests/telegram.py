"""Telegram's Bot API, made from its documents (https://core.telegram.org/bots/api, read 2026-11).

It refuses what they refuse: a wrong token (401, a malformed one 404), a second poller (409), a webhook that is set
(409), texts of no or more than 4,096 UTF-16 units once the markup is read, markup that does not close (400),
callback data beyond 64 bytes, a message to whoever did not write first or blocked the bot (403), an old callback (400),
more than so many messages at a time (429, where a test asks for it). Updates are kept until an offset behind them is
asked for; `allowed_updates` is remembered.

`cut`: what to do with the next requests of a method: "before" breaks the line ahead of the effect, "after" behind it.
`dies`: called with each line that is cut: who asked may not live to see it.
`is_away`: no request is answered. `faults`: answers to the next requests of a method.
"""

import json
import re
import threading
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.patience import PATIENCE_S

TOKEN = "123456789:AAH-double_of_the_documented_bot_api_9"
BOT = {"id": 123456789, "is_bot": True, "first_name": "Cortex", "username": "our_cortex_bot"}
TAGS = {"b", "i", "s", "u", "code", "pre", "a", "blockquote"}
Row = dict[str, Any]


def person(id: int, name: str) -> Row:
    return {"id": id, "is_bot": False, "first_name": name, "username": f"{name.casefold()}_at_home"}


@dataclass
class TelegramDouble:
    """The server; a context manager."""

    kind, asks, sends = "telegram", "getUpdates", "sendMessage"
    people = (person(11, "Ada"), person(22, "Ben"), person(33, "Mia"), person(44, "Ola"))
    updates: list[Row] = field(default_factory=list)
    sent: list[Row] = field(default_factory=list)
    asked: list[tuple[str, Row]] = field(default_factory=list)
    answered: list[Row] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    cut: dict[str, deque[str]] = field(default_factory=lambda: defaultdict(deque))
    dies: Callable[[], None] = lambda: None
    faults: dict[str, deque[Row]] = field(default_factory=lambda: defaultdict(deque))
    blocked: set[int] = field(default_factory=set)
    without_rights: set[int] = field(default_factory=set)
    met: set[int] = field(default_factory=set)
    webhook: str = ""
    is_away: bool = False
    old_presses: set[str] = field(default_factory=set)
    _ids: int = 0
    _next: int = 700_000_000
    _polls: int = 0
    _allowed: tuple[str, ...] = ()
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _server: ThreadingHTTPServer | None = None
    _is_closing: bool = False

    @property
    def address(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.server_port}"

    def form(self, **changed: str) -> dict[str, str]:
        """What an admin types on the card."""
        return {"token": TOKEN, "address": self.address, **changed}

    # --- what people do

    def says(self, who: Row, text: str = "", *, chat: Row | None = None, **more: Any) -> int:
        """Somebody writes; the message's id."""
        place = chat or {"id": who["id"], "type": "private", "first_name": who["first_name"]}
        with self._changed:
            self._ids += 1
            message = {"message_id": self._ids, "from": who, "chat": place, "date": 1_795_000_000 + self._ids, **more}
            if text:
                message["text"] = text
            for words, marks in (("text", "entities"), ("caption", "caption_entities")):
                if found := entities_of(str(message.get(words, ""))):
                    message[marks] = [*more.get(marks, ()), *found]
            self.met.add(place["id"])
            self._add({"message": message})
            return self._ids

    def edits(self, who: Row, message_id: int, text: str = "", **more: Any) -> None:
        """Somebody changes a message; or Telegram says so, for a reaction does that too."""
        place = {"id": who["id"], "type": "private", "first_name": who["first_name"]}
        with self._changed:
            date = 1_795_000_000
            message = {
                "message_id": message_id,
                "from": who,
                "chat": place,
                "date": date,
                "edit_date": date + 9,
                **({"text": text} if text else {}),
                **more,
            }
            self._add({"edited_message": message})

    def presses(self, who: Row, message: Row, words: str, kind: str = "private") -> str:
        """Somebody presses the button of these words; the press's id."""
        data = next(one["callback_data"] for one in buttons_of(message) if one["text"] == words)
        with self._changed:
            self._ids += 1
            below = {"message_id": message["message_id"], "chat": {"id": message["chat_id"], "type": kind}}
            query = {"id": f"press{self._ids}", "from": who, "message": below, "chat_instance": "1", "data": data}
            self._add({"callback_query": query})
            return str(query["id"])

    def keeps(self, id: str, content: bytes) -> str:
        """A file that was sent; its id."""
        self.files[id] = content
        return id

    # --- what they see

    def texts(self, chat: int) -> list[str]:
        """What stands in the chat, as it is read."""
        with self._changed:
            return [shown(row["text"]) for row in self.sent if row["chat_id"] == chat]

    def until(self, chat: int, text: str, times: int = 1) -> Row:
        """The message that holds this, once it came so often."""
        with self._changed:
            found: list[Row] = []

            def is_there() -> bool:
                found[:] = [row for row in self.sent if row["chat_id"] == chat and text in shown(row["text"])]
                return len(found) >= times

            assert self._changed.wait_for(is_there, PATIENCE_S), (text, self.texts_now(chat))
            return found[times - 1]

    def until_more(self, chat: int, than: int) -> None:
        """More messages than so many stand in the chat."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.texts_now(chat)) > than, PATIENCE_S), self.texts_now(chat)

    def until_answered(self, press: str) -> Row:
        with self._changed:
            found: list[Row] = []

            def is_there() -> bool:
                found[:] = [row for row in self.answered if row["callback_query_id"] == press]
                return bool(found)

            assert self._changed.wait_for(is_there, PATIENCE_S), (press, self.answered)
            return found[0]

    def until_asked(self, method: str, times: int = 1) -> None:
        with self._changed:
            ready = lambda: sum(name == method for name, _ in self.asked) >= times  # noqa: E731
            assert self._changed.wait_for(ready, PATIENCE_S), method

    def until_confirmed(self) -> None:
        """Everything that came was taken and confirmed."""
        with self._changed:
            assert self._changed.wait_for(lambda: not self.updates, PATIENCE_S), self.updates

    def texts_now(self, chat: int) -> list[str]:
        return [row["text"] for row in self.sent if row["chat_id"] == chat]

    def go_away(self, is_away: bool = True) -> None:
        with self._changed:
            self.is_away = is_away
            self._changed.notify_all()

    # --- the server

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    def _add(self, update: Row) -> None:
        self._next += 1
        self.updates.append({"update_id": self._next, **update})
        self._changed.notify_all()

    def serve(self, path: str, raw: bytes, kind: str) -> tuple[int, Any, Row] | None:
        """The answer to a request whose body is of this type; None where the line breaks."""
        found = re.fullmatch(r"/bot([^/]+)/(\w+)", path)
        if self.is_away:
            return None
        if found is None or not re.fullmatch(r"\d+:[\w-]+", found[1]):
            return 404, "Not Found", {}
        if found[1] != TOKEN:
            return 401, "Unauthorized", {}
        method, body = found[2], _form(raw, kind) if kind.startswith("multipart/") else json.loads(raw or b"{}")
        with self._changed:
            self.asked.append((method, body))
            cut = self.cut[method].popleft() if self.cut[method] else ""
            fault = self.faults[method].popleft() if self.faults[method] else None
            self._changed.notify_all()
        if cut == "before":
            self.dies()
            return None
        if fault is not None:
            return fault["error_code"], fault["description"], fault.get("parameters", {})
        said = self.answer(method, body)
        if cut:
            self.dies()
        return None if cut or self.is_away else said

    def answer(self, method: str, body: Row) -> tuple[int, Any, Row]:
        """Status, result or words, parameters."""
        handle = getattr(self, f"_{_snake(method)}", None)
        if handle is None:
            return 404, "Not Found: method not found", {}
        found: tuple[int, Any, Row] = handle(body)
        return found

    def _get_me(self, _: Row) -> tuple[int, Any, Row]:
        return 200, {**BOT, "can_read_all_group_messages": False, "can_join_groups": True}, {}

    def _get_webhook_info(self, _: Row) -> tuple[int, Any, Row]:
        return 200, {"url": self.webhook, "pending_update_count": len(self.updates)}, {}

    def _get_updates(self, body: Row) -> tuple[int, Any, Row]:
        if self.webhook:
            return 409, "Conflict: can't use getUpdates method while webhook is active", {}
        if not 1 <= body.get("limit", 100) <= 100:
            return 400, "Bad Request: limit is wrong", {}
        with self._changed:
            self._polls += 1
            mine = self._polls
            self._changed.notify_all()
            if "allowed_updates" in body:
                self._allowed = tuple(body["allowed_updates"])
            offset = body.get("offset", 0)
            if offset > 0:
                self.updates = [one for one in self.updates if one["update_id"] >= offset]
                self._changed.notify_all()
            ready = lambda: bool(self.updates) or self._polls != mine or self._is_closing or self.is_away  # noqa: E731
            self._changed.wait_for(ready, body.get("timeout", 0))
            if self._polls != mine:
                said = (
                    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
                )
                return 409, said, {}
            wanted = [one for one in self.updates if not self._allowed or set(one) & set(self._allowed)]
            return 200, wanted[: body.get("limit", 100)], {}

    def _send_message(self, body: Row) -> tuple[int, Any, Row]:
        chat = body.get("chat_id")
        if not isinstance(chat, int) or chat not in self.met:
            return 400, "Bad Request: chat not found", {}
        if chat in self.without_rights:
            return 400, "Bad Request: not enough rights to send text messages to the chat", {}
        if chat in self.blocked:
            return 403, "Forbidden: bot was blocked by the user", {}
        text = body.get("text", "")
        if body.get("parse_mode") == "HTML" and (wrong := _wrong_markup(text)):
            return 400, f"Bad Request: can't parse entities: {wrong}", {}
        read = shown(text)
        if not read.strip():
            return 400, "Bad Request: message text is empty", {}
        if len(read.encode("utf-16-le")) // 2 > 4_096:
            return 400, "Bad Request: message is too long", {}
        for one in buttons_of(body):
            if not 1 <= len(one.get("callback_data", "").encode()) <= 64:
                return 400, "Bad Request: BUTTON_DATA_INVALID", {}
        with self._changed:
            self._ids += 1
            row = {**body, "message_id": self._ids}
            self.sent.append(row)
            self._changed.notify_all()
        return 200, {"message_id": row["message_id"], "chat": {"id": chat}, "date": 1, "text": read}, {}

    def _send_photo(self, body: Row) -> tuple[int, Any, Row]:
        content = body.get("photo", b"")
        if len(content) > 10_000_000:
            return 400, "Bad Request: file is too big for a photo", {}
        if not content.startswith((b"\x89PNG", b"\xff\xd8", b"RIFF")):
            return 400, "Bad Request: IMAGE_PROCESS_FAILED", {}
        return self._sent_file(body, "photo")

    def _send_document(self, body: Row) -> tuple[int, Any, Row]:
        if len(body.get("document", b"")) > 50_000_000:
            return 413, "Request Entity Too Large", {}
        return self._sent_file(body, "document")

    def _sent_file(self, body: Row, kind: str) -> tuple[int, Any, Row]:
        chat = int(body.get("chat_id", 0))
        if chat not in self.met or not body.get(kind):
            return 400, "Bad Request: chat not found" if body.get(kind) else "Bad Request: there is no file", {}
        if chat in self.blocked:
            return 403, "Forbidden: bot was blocked by the user", {}
        with self._changed:
            self._ids += 1
            self.sent.append({**body, "chat_id": chat, "text": f"[{kind}]", "message_id": self._ids})
            self._changed.notify_all()
        return 200, {"message_id": self._ids, "chat": {"id": chat}, "date": 1}, {}

    def _send_chat_action(self, body: Row) -> tuple[int, Any, Row]:
        if body.get("action") != "typing":
            return 400, "Bad Request: wrong parameter action in request", {}
        return 200, True, {}

    def _answer_callback_query(self, body: Row) -> tuple[int, Any, Row]:
        if body.get("callback_query_id") in self.old_presses:
            said = "Bad Request: query is too old and response timeout expired or query ID is invalid"
            return 400, said, {}
        if len(body.get("text", "")) > 200:
            return 400, "Bad Request: MESSAGE_TOO_LONG", {}
        with self._changed:
            self.answered.append(body)
            self._changed.notify_all()
        return 200, True, {}

    def _edit_message_reply_markup(self, body: Row) -> tuple[int, Any, Row]:
        with self._changed:
            for row in self.sent:
                if row["message_id"] == body.get("message_id") and row["chat_id"] == body.get("chat_id"):
                    if row.get("reply_markup") == body.get("reply_markup"):
                        return 400, "Bad Request: message is not modified", {}
                    row["reply_markup"] = body.get("reply_markup")
                    return 200, True, {}
        return 400, "Bad Request: message to edit not found", {}

    def _get_file(self, body: Row) -> tuple[int, Any, Row]:
        content = self.files.get(body.get("file_id", ""))
        if content is None:
            return 400, "Bad Request: wrong file_id or the file is temporarily unavailable", {}
        if len(content) > 20_000_000:
            return 400, "Bad Request: file is too big", {}
        return 200, {"file_id": body["file_id"], "file_path": f"files/{body['file_id']}"}, {}


def _form(raw: bytes, kind: str) -> Row:
    """The fields of a form with files, as they came."""
    message = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + raw)
    parts = {str(part.get_param("name", header="content-disposition")): part for part in message.iter_parts()}
    read = {name: bytes(part.get_payload(decode=True)) for name, part in parts.items()}
    return {name: one if parts[name].get_filename() else one.decode() for name, one in read.items()}


def entities_of(text: str) -> list[Row]:
    """The handles and orders of a text, marked as the real one marks them, in UTF-16 units."""
    found = []
    for kind, pattern in (("mention", r"(?<![\w@])@\w{5,32}\b"), ("bot_command", r"(?<!\S)/\w{1,32}(@\w{5,32})?")):
        for hit in re.finditer(pattern, text):
            length = len(hit[0].encode("utf-16-le")) // 2
            found.append({"type": kind, "offset": len(text[: hit.start()].encode("utf-16-le")) // 2, "length": length})
    return found


def buttons_of(message: Row) -> list[Row]:
    keyboard = (message.get("reply_markup") or {}).get("inline_keyboard") or []
    return [one for row in keyboard for one in row]


def shown(html: str) -> str:
    """The text as it is read, without markup."""
    return re.sub(r"<[^>]*>", "", html).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


class _Markup(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.open: list[str] = []
        self.wrong = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        if tag not in TAGS:
            self.wrong = f'unsupported start tag "{tag}"'

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong = f'unexpected end tag "{tag}"'

    def handle_entityref(self, name: str) -> None:
        if name not in ("lt", "gt", "amp", "quot"):
            self.wrong = f"unknown entity {name}"


def _wrong_markup(text: str) -> str:
    parser = _Markup()
    parser.feed(text)
    parser.close()
    return parser.wrong or (f'can\'t find end tag "{parser.open[-1]}"' if parser.open else "")


def _snake(method: str) -> str:
    return re.sub(r"([A-Z])", lambda found: f"_{found[1].lower()}", method)


def _handler(double: TelegramDouble) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            found = re.fullmatch(r"/file/bot([^/]+)/files/(.+)", self.path)
            content = double.files.get(found[2]) if found and found[1] == TOKEN else None
            self._write(404 if content is None else 200, content or b"{}")

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            said = double.serve(self.path, raw, self.headers.get("Content-Type", ""))
            if said is None:
                self.close_connection = True
                return
            status, result, parameters = said
            body: Row = {"ok": True, "result": result}
            if status != 200:
                body = {"ok": False, "error_code": status, "description": result}
                body |= {"parameters": parameters} if parameters else {}
            self._write(status, json.dumps(body).encode())

        def _write(self, status: int, content: bytes) -> None:
            with suppress(OSError):
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            return

    return Handler
