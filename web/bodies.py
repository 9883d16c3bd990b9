"""How much of a request's body is read: by who asks and by what the route needs, and only once that is known.

`web/routes.py` asks who it is, then has `BodyRequest` read; a route that takes more than a small form says so with
`takes`. Of somebody who is not logged in no more is read than a login form.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import islice
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from fastapi import Request
from msgspec import Struct, field
from starlette.datastructures import FormData
from starlette.types import Message, Receive, Scope

from cortex.app import Cortex
from cortex.base.clock import ticks_s
from cortex.base.errors import Throttled, TooLarge, Unsupported
from web.connections import bear, in_line

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

VISITOR_BYTES = 16_384  # a login form, with room for what password managers put in
FORM_BYTES = 65_536
TEXT_BYTES = 2_000_000  # of a form with a long text, of a program's message
LARGE_BYTES = 32_768  # from here on it is parsed in a thread, and counted
FIELDS = 1_000
AT_ONCE_S = 0.1  # nobody is asked twice who they are for a body that is there so soon
FILES = 20  # a browser sends an empty one for each field of a form that has none chosen
TEXTS_AT_ONCE = 4  # large ones of one person that are read at the same time, into memory
FILES_AT_ONCE = 8  # and to the disk
LINE_S = 600.0  # how long one more waits for its turn, unread
_PAIR = re.compile(rb"[^&]+")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_BYTES = [bytes([number]) for number in range(256)]
CHARSETS = ("", "utf-8", "utf8", "us-ascii", "ascii")


class Takes(Struct, frozen=True, kw_only=True):
    """The bounds of a body. `most`: bytes, or by the settings; `has_files`: streamed to the disk."""

    most: int | Callable[[Cortex], int]
    has_files: bool = False

    def bytes_of(self, cortex: Cortex) -> int:
        """The limit of this server."""
        return self.most if isinstance(self.most, int) else self.most(cortex)


VISITOR = Takes(most=VISITOR_BYTES)
FORM = Takes(most=FORM_BYTES)


def takes(most: int | Callable[[Cortex], int], *, has_files: bool = False) -> Callable[[Endpoint], Endpoint]:
    """Mark an endpoint as one that takes more than a small form."""

    def mark(endpoint: Endpoint) -> Endpoint:
        endpoint.__dict__["takes"] = Takes(most=most, has_files=has_files)
        return endpoint

    return mark


def taken_by(endpoint: Callable[..., Any], *, is_open: bool) -> Takes:
    """Return what this endpoint takes. is_open: whoever asks need not be logged in."""
    marked: Takes | None = getattr(endpoint, "takes", None)
    return marked or (VISITOR if is_open else FORM)


class Line(Struct, frozen=True):
    """The large bodies that are being read, by person and kind: some at once, the others wait unread."""

    _places: WeakValueDictionary[tuple[str, int], asyncio.Semaphore] = field(default_factory=WeakValueDictionary)

    @asynccontextmanager
    async def place(self, request: Request, *, at_once: int) -> AsyncIterator[None]:
        """Hold one of the person's places; Throttled when none becomes free."""
        places = self._places.setdefault((asker(request), at_once), asyncio.Semaphore(at_once))
        try:
            with in_line(request):
                async with asyncio.timeout(LINE_S):
                    await places.acquire()
        except TimeoutError:
            words = f"{at_once} large uploads of yours are still running. Try again when one of them is done."
            raise Throttled(words, wait_s=LINE_S) from None
        try:
            yield
        finally:
            places.release()


def asked_by(request: Request, user_id: str) -> None:
    """Say who sends this request, once that is proven: large bodies are counted by person."""
    request.state.asker = user_id


def asker(request: Request) -> str:
    """Return who sends it, "" where that is not proven."""
    return str(getattr(request.state, "asker", ""))


class BodyRequest(Request):
    """A request whose body is read within limits: a small one at once, a large text in a thread, files to the disk.

    TooLarge, Unsupported or Throttled before the first byte is read. `took_time`: it did not come with its head.
    """

    def __init__(self, scope: Scope, receive: Receive, takes: Takes) -> None:
        super().__init__(scope, self._next)
        self._takes = takes
        self._inner = receive
        self.took_time = False

    async def _next(self) -> Message:
        begun_s = ticks_s()
        piece = await self._inner()
        self.took_time = self.took_time or bool(piece.get("more_body")) or ticks_s() - begun_s > AT_ONCE_S
        return piece

    @property
    def length(self) -> int:
        """Return how long the body says it is, in bytes; `web/security.py` has seen to it that it says so."""
        return int(self.headers.get("content-length", 0))

    async def body(self) -> bytes:
        """The whole of it, within the limit."""
        if not hasattr(self, "_body"):
            self._must_fit()
            async with self._admitted():
                await super().body()
        return self._body

    async def _get_form(self, **_limits: Any) -> FormData:  # what `form` calls
        if self._form is None:
            self._form = self.state.form = await self._read_form()  # for `web/errors.py` too, which has its own request
        return self._form

    async def _read_form(self) -> FormData:
        kind, charset = _kind_of(self.headers.get("content-type", ""))
        if charset not in CHARSETS:  # some decoders take a megabyte for hours
            raise Unsupported("Forms are read as UTF-8. Send it without another charset.")
        if self._takes.has_files and kind == "multipart/form-data":
            self._must_fit()
            bear(self)
            async with self._admitted():
                return await super()._get_form(max_files=FILES, max_fields=FIELDS)
        body = await self.body()  # is kept, so that nothing below waits for the network
        if kind == "application/x-www-form-urlencoded":
            is_large = len(body) > LARGE_BYTES
            return await asyncio.to_thread(_fields, body) if is_large else _fields(body)
        limits = {"max_files": FILES, "max_fields": FIELDS, "max_part_size": TEXT_BYTES}
        if len(body) <= LARGE_BYTES:
            return await super()._get_form(**limits)
        return await asyncio.to_thread(asyncio.run, super()._get_form(**limits))

    def _must_fit(self) -> None:
        most = self._takes.bytes_of(self.app.state.cortex)
        if self.length > most:
            raise TooLarge(f"That is too large: at most {_size(most)} can be sent here.")
        if self.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise Unsupported("Packed requests are not read. Send it without Content-Encoding.")

    @asynccontextmanager
    async def _admitted(self) -> AsyncIterator[None]:
        if self.length <= LARGE_BYTES:
            yield
            return
        line: Line = self.app.state.line
        async with line.place(self, at_once=FILES_AT_ONCE if self._takes.has_files else TEXTS_AT_ONCE):
            yield


def _fields(body: bytes) -> FormData:
    """The fields of a form as browsers send it. By patterns: other ways hold a hundred bytes for each odd escape."""
    pairs = [found[0] for found in islice(_PAIR.finditer(body), FIELDS + 1)]
    if len(pairs) > FIELDS:
        raise TooLarge(f"The form has too many fields: at most {FIELDS:,}.")
    cut = (pair.partition(b"=") for pair in pairs)
    return FormData([(_unescaped(name), _unescaped(value)) for name, _, value in cut])


def _unescaped(text: bytes) -> str:
    return _ESCAPE.sub(lambda found: _BYTES[int(found[1], 16)], text.replace(b"+", b" ")).decode("utf-8", "replace")


def _kind_of(header: str) -> tuple[str, str]:
    """The type and the charset of a Content-Type, in small letters. Cut by hand: a parser raises on some."""
    kind, _, rest = header.lower().partition(";")
    parts = (part.partition("=") for part in rest.split(";"))
    charset = next((value for name, _, value in parts if name.strip() == "charset"), "")
    return kind.strip(), charset.strip().strip("\"'")


def _size(count: int) -> str:
    return f"{count // 1_000_000} MB" if count >= 1_000_000 else f"{count // 1024} KB"
