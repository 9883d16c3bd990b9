"""The parts under the scripted server: its faults, its log, how an answer goes down the pipe, and the cache check."""

import asyncio
import json
import threading
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal

from cortex.base import tokens
from tests import scripted_anthropic, scripted_openai, scripted_responses
from tests.scripted_rules import Call, Spoken

WIRES: dict[str, ModuleType] = {
    "/v1/chat/completions": scripted_openai,
    "/v1/messages": scripted_anthropic,
    "/v1/responses": scripted_responses,
}
FaultKind = Literal[
    "status",  # answer with `status` (and Retry-After: `retry_after`)
    "none",  # answer as it should be
    "hang",  # accept the request, never answer
    "drop",  # close the connection instead of an answer
    "cut",  # close the connection after `after_bytes` of the body, or behind the piece that holds `behind`
    "stall",  # send `after_bytes` of the body, then nothing more
    "pause",  # after each `after_bytes` of the body, wait until the server is told to `go_on`
    "no_finish",  # the stream ends properly, but no finish reason came
    "malformed",  # the arguments of a call are no JSON, the stream is whole
    "unknown_tool",  # call a tool nobody declared
    "empty",  # a whole answer with nothing in it
    "no_choices",  # OpenAI: not one choice in the whole stream
    "length",  # the answer is cut by the token limit
    "slow",  # wait `seconds` before each piece
    "error_event",  # an error object in the middle of the stream
    "garbage",  # 200 with something that is no answer at all
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong with one request."""

    kind: FaultKind
    status: int = 500
    retry_after: str = ""
    after_bytes: int = 0
    behind: bytes = b""
    seconds: float = 0.0


@dataclass(slots=True)
class Seen:
    """One request as it arrived, and what came of it."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    raw: bytes
    problems: list[str] = field(default_factory=list)
    status: int = 0
    usage: dict[str, Any] = field(default_factory=dict)
    sent_bytes: int = 0
    left: threading.Event = field(default_factory=threading.Event)  # set when the client closed the connection

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that were sent."""
        return tuple(tool.get("name") or tool["function"]["name"] for tool in self.body.get("tools") or [])


class Left(Exception):
    """The client closed the connection, or the script says to."""


class Pipe:
    """Writes one HTTP answer and notices when the client leaves."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.seen: Seen | None = None

    async def whole(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        """One JSON (or text) answer."""
        is_text = isinstance(body, str)
        raw = body.encode() if is_text else json.dumps(body).encode()
        kind = "text/html" if is_text else "application/json"
        self._head(status, {"Content-Type": kind, "Content-Length": str(len(raw)), **(headers or {})})
        self._writer.write(raw)
        await self._writer.drain()

    async def stream(self, pieces: list[bytes], fault: Fault | None, delay_s: float, on: asyncio.Semaphore) -> None:
        """Server-sent events in chunks, with the fault in them; `on` ends a pause each."""
        limit = fault.after_bytes if fault and fault.kind in ("cut", "stall") and not fault.behind else None
        wait_s = fault.seconds if fault and fault.kind == "slow" else delay_s
        self._head(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        sent = paused = 0
        for piece in pieces:
            await self._pause(wait_s)
            part = piece if limit is None else piece[: max(0, limit - sent)]
            if part:
                self._writer.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
                await self._writer.drain()
            sent += len(part)
            if self.seen is not None:
                self.seen.sent_bytes = sent
            if fault is not None and fault.behind and fault.behind in piece:
                raise Left
            if fault is not None and fault.kind == "pause" and sent - paused >= fault.after_bytes:
                paused = sent
                await self._until(on)
            if limit is not None and sent >= limit:
                if fault is not None and fault.kind == "stall":
                    await self.wait_for_client()
                raise Left
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def wait_for_client(self) -> None:
        """Until the client closes the connection."""
        while await self._reader.read(1024):
            pass
        if self.seen is not None:
            self.seen.left.set()
        raise Left

    async def _until(self, on: asyncio.Semaphore) -> None:
        leaves, goes_on = (asyncio.ensure_future(one) for one in (self.wait_for_client(), on.acquire()))
        try:
            await asyncio.wait((leaves, goes_on), return_when=asyncio.FIRST_COMPLETED)
            if leaves.done():
                await leaves
        finally:
            leaves.cancel()
            goes_on.cancel()

    async def _pause(self, seconds: float) -> None:
        if not seconds:
            await asyncio.sleep(0)
            return
        try:
            await asyncio.wait_for(self.wait_for_client(), seconds)
        except TimeoutError:
            return

    def _head(self, status: int, headers: dict[str, str]) -> None:
        if self.seen is not None:
            self.seen.status = status
        lines = [
            f"HTTP/1.1 {status} Scripted",
            "Connection: close",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())


def bent(said: Spoken, fault: Fault | None) -> Spoken:
    """The answer with the fault in its content."""
    match fault.kind if fault else "":
        case "malformed":
            return Spoken(text=said.text, calls=tuple(Call(c.id, c.name, c.arguments[:-1] + ",") for c in said.calls))
        case "unknown_tool":
            return Spoken(calls=(Call("call_unknown", "no_such_tool", "{}"),))
        case "empty" | "no_choices":
            return Spoken()
        case _:
            return said


def common(one: str, other: str) -> int:
    """How many characters the two begin with alike."""
    size = min(len(one), len(other))
    return next((at for at in range(size) if one[at] != other[at]), size)


def parsed(raw: bytes) -> dict[str, Any]:
    """A request's body."""
    body = json.loads(raw)
    assert isinstance(body, dict)
    return body


def cache_breaks(log: list[Seen], minimum_tokens: int) -> list[str]:
    """Where a request did not extend what the one before it in the same conversation had put into the cache."""
    found: list[str] = []
    latest: dict[str, str] = {}
    for number, seen in enumerate(log):
        wire = WIRES[seen.path]
        said = seen.body.get("messages") or seen.body["input"]
        opening = next((tokens.minified(each) for each in said if each.get("role") == "user"), "")
        text = "".join(tokens.minified(each) for each in wire.prefix(seen.body))
        before = latest.get(opening, "")
        if not text.startswith(before) and tokens.count(before) >= minimum_tokens:
            at = common(text, before)
            found.append(f"request {number} leaves the cached prefix at ...{before[max(0, at - 60) : at + 60]!r}")
        latest[opening] = text
    return found
