"""One model call over a real wire: sends the body that a protocol built, streams, and hands over nothing half.

`openai.py` and `anthropic.py` say where and by which protocol. Retries are not made here: `services/models/asking.py`.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Any, Literal, TypeVar

import httpx
from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base.clock import ticks_s
from cortex.base.errors import CortexError, ProviderError
from cortex.base.http import open_client, unpacked
from cortex.base.json_text import parsed
from cortex.base.messages import Message, Text, Usage, to_json
from cortex.base.model import ModelEntry
from cortex.base.tokens import minified, wire_schema
from cortex.base.trust import trusting
from cortex.ports.loop import Delta, Request, StreamEnd
from cortex.providers import ProviderContext, failures
from cortex.providers.heard import HeardAnswer
from cortex.providers.sse import events
from cortex.providers.terms import Answer, AnswerReader, Terms, whole_text

MAX_CHARACTERS = 2_000_000
MAX_BYTES = 64_000_000  # of one answer as it is sent: an event takes some hundred bytes around a word
MAX_ERROR = 200_000
TOTAL_S = 1_800.0
FINISHED_S = 10.0  # for the usage behind the last word
OVER_S = 0.5  # for the end of the connection, which can then be used again
_FAILURES = (failures.Unwanted, httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, OSError, ValueError, CortexError)
_T = TypeVar("_T")


class Endpoint(Struct, frozen=True, kw_only=True):
    """Where one model is asked and how. `body` builds a request of at most so many output tokens."""

    url: str
    terms: Terms
    client: httpx.AsyncClient
    body: Callable[[Request, Terms, int], dict[str, Any]]
    reader: Callable[[Request, Terms], AnswerReader]
    headers: Callable[[Mapping[str, Any]], Mapping[str, str]] = field(default=lambda _: {})


def open_connections(entry: ModelEntry, surroundings: ProviderContext, headers: Mapping[str, str]) -> httpx.AsyncClient:
    """A client for this model alone, with its key. No redirects: a key must not travel to another host."""
    client = open_client(surroundings.policy, follow_redirects=False, context=trusting(entry.ca))
    client.timeout = httpx.Timeout(max(entry.timeout_s, entry.first_s or 0), connect=surroundings.connect_s)
    # Unpacked as it comes: a server that packs a stream holds back its words.
    client.headers.update({"Accept-Encoding": "identity", **headers})
    return client


class WireProvider:
    """The `Provider` of every real endpoint."""

    def __init__(self, endpoint: Endpoint, surroundings: ProviderContext) -> None:
        self._endpoint = endpoint
        self._entry = endpoint.terms.entry
        self._count = surroundings.count
        self._first_s = surroundings.first_s or self._entry.first_s or self._entry.timeout_s
        self._between_s = surroundings.between_s or self._entry.timeout_s

    async def stream(self, request: Request) -> AsyncIterator[Delta | StreamEnd]:
        """The answer as it arrives, then the whole; ProviderError when it is not whole."""
        reader = self._endpoint.reader(request, self._endpoint.terms)
        heard = HeardAnswer(next((one.said for one in reversed(request.messages) if one.speaker == "user"), ""))
        characters = 0
        try:
            async with aclosing(_whole_signs(self._deltas(request, reader))) as deltas:
                async for each in deltas:
                    characters += len(each.text)
                    if characters > MAX_CHARACTERS:
                        raise ProviderError(f"{self._entry.name}: the answer did not end.", kind="malformed")
                    for delta in heard.take(each):
                        yield delta
                    if heard.is_stopped:
                        break
            held, answer = reader.end()
            for delta in heard.end(held, answer):
                yield delta
            if heard.is_stopped:
                usage = self._usage_so_far(request, answer)
                message, anew = heard.cut(answer)
                for delta in anew:
                    yield delta
                finished = self._stopped(message, usage)
            else:
                finished = self._finished(request, answer)
        except _FAILURES as error:
            raise failures.mapped(self._endpoint.terms, error) from error
        yield finished

    async def close(self) -> None:
        """Close the connections of this model."""
        await self._endpoint.client.aclose()

    async def _deltas(self, request: Request, reader: AnswerReader) -> AsyncGenerator[Delta, None]:
        deadline_s = ticks_s() + TOTAL_S
        async with AsyncExitStack() as stack:
            response = await self._within(
                stack.enter_async_context(self._request_stream(request)), self._first_s, "no answer came"
            )
            if response.status_code != 200:
                text = await self._within(_text(response, MAX_ERROR), self._between_s, "no more came")
                raise failures.Unwanted(response.status_code, text, response.headers)
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            is_stream = self._endpoint.terms.streams(request)
            if not is_stream or kind in ("application/json", "text/html"):
                limit_s = self._between_s if is_stream else self._first_s
                for delta in self._whole(
                    await self._within(_text(response, MAX_BYTES), limit_s, "no answer came"), reader
                ):
                    yield delta
                return
            async with aclosing(self._events(response, reader, deadline_s)) as found:
                async for delta in found:
                    yield delta

    async def _events(
        self, response: httpx.Response, reader: AnswerReader, deadline_s: float
    ) -> AsyncGenerator[Delta, None]:
        """Give what the events of a stream say. Behind its end nothing is waited for long, and nothing can spoil it."""
        head = bytearray()
        found = aiter(events(_bytes(response, head)))
        limit_s, what, has_begun = self._first_s, "no answer came", False
        while True:
            try:
                event = await self._within(anext(found, None), limit_s, what)
            except (ProviderError, httpx.TransportError):
                if reader.answer.finish is None and not reader.answer.is_over:
                    raise
                break
            if event is None:
                break
            has_begun = True
            for delta in self._read(event, reader):
                yield delta
            limit_s, what = max(0.0, min(self._between_s, deadline_s - ticks_s())), "no more came"
            if reader.answer.is_over or reader.answer.finish is not None:
                limit_s = min(limit_s, OVER_S if reader.answer.is_over else FINISHED_S)
        if not has_begun:
            for delta in self._whole(head.decode("utf-8", "replace"), reader):
                yield delta

    def _request_stream(self, request: Request) -> Any:  # Any: httpx's own context manager
        body = self._endpoint.body(request, self._endpoint.terms, self._most_tokens(request))
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        headers = {"Content-Type": "application/json", **self._endpoint.headers(body)}
        return self._endpoint.client.stream("POST", self._endpoint.url, content=content, headers=headers)

    def _most_tokens(self, request: Request) -> int:
        return min(request.max_output_tokens or self._entry.max_output_tokens, self._entry.max_output_tokens)

    def _read(self, event: tuple[str, str], reader: AnswerReader) -> list[Delta]:
        kind, text = event
        if text == "[DONE]":
            reader.answer.is_over = True
            return []
        if not text.startswith(("{", "[")):  # `null`, or a sign of life in words of the server's own
            return []
        data = _read_json(text)
        data = data[0] if isinstance(data, list) and data else data
        if not isinstance(data, dict):
            return []
        if failures.is_error(kind, data):
            raise failures.Unwanted(200, text, {})
        return reader.event(kind, data)

    def _whole(self, text: str, reader: AnswerReader) -> list[Delta]:
        """An answer in one piece, also where a stream was asked for."""
        try:
            data = _read_json(text)
        except ValueError:
            data = None
        if not isinstance(data, dict) or failures.is_error("", data):
            raise failures.Unwanted(200, text, {})
        return reader.whole(data)

    async def _within(self, waiting: Awaitable[_T], limit_s: float, what: str) -> _T:
        try:
            async with asyncio.timeout(limit_s):
                return await waiting
        except TimeoutError as error:
            raise failures.late(self._entry, what, limit_s) from error

    def _finished(self, request: Request, answer: Answer) -> StreamEnd:
        """The whole answer, checked: it ended properly and there is something in it."""
        if answer.finish == "filtered":
            raise failures.refused(self._entry)
        if answer.finish == "error":
            raise ProviderError(f"{self._entry.name}: the provider broke off.", kind="server", is_retryable=True)
        message = Message(speaker="assistant", parts=tuple(answer.parts))
        has_words = any(isinstance(part, Text) and part.text.strip() for part in message.parts)
        if answer.finish is None and not (answer.is_over and (has_words or message.calls)):
            raise failures.cut(self._entry)
        if answer.finish == "window" and not message.calls and not has_words:
            raise failures.full(self._entry)
        if not has_words and not message.calls:
            raise failures.empty(self._entry, answer.finish)
        finish: Literal["stop", "calls", "length"] = "calls" if message.calls else "stop"
        if answer.finish in ("length", "window"):
            if any(not _is_json(call.arguments) for call in message.calls):
                raise failures.overlong(self._entry)
            finish = "calls" if message.calls else "length"
        return StreamEnd(message=message, usage=self._usage(request, message, answer), finish=finish)

    def _stopped(self, message: Message, usage: Usage) -> StreamEnd:
        """Return what an answer that repeated itself without end said before it did."""
        if not message.text.strip():
            raise failures.repeats(self._entry)
        return StreamEnd(message=message, usage=usage, finish="repeats")

    def _usage_so_far(self, request: Request, answer: Answer) -> Usage:
        """That of an answer that was stopped: what it came to is told at the end, which did not come."""
        whole = Message(speaker="assistant", parts=tuple(answer.parts))
        usage = self._usage(request, whole, answer)
        return replace(usage, output_tokens=max(usage.output_tokens, self._count(minified(to_json(whole)))))

    def _usage(self, request: Request, message: Message, answer: Answer) -> Usage:
        if answer.usage is not None and answer.usage.input_tokens:
            return answer.usage
        # The endpoint reports none: counted here, so that budgets hold.
        sent = [request.system, *(minified(to_json(each)) for each in request.messages)]
        sent += [minified(wire_schema(tool)) for tool in request.tools]
        return Usage(input_tokens=sum(map(self._count, sent)), output_tokens=self._count(minified(to_json(message))))


async def _whole_signs(deltas: AsyncGenerator[Delta, None]) -> AsyncGenerator[Delta, None]:
    """The same pieces; half of a sign at the end of one waits for its other half, which the next one begins with."""
    half = ""
    async with aclosing(deltas):
        async for delta in deltas:
            text, half = half + delta.text, ""
            if "\ud800" <= text[-1:] <= "\udbff":
                text, half = text[:-1], text[-1]
            if text:
                yield replace(delta, text=whole_text(text))


async def _bytes(response: httpx.Response, head: bytearray) -> AsyncIterator[bytes]:
    """The body, whose beginning is kept in `head`: it may be no stream at all."""
    size = 0
    async for piece in unpacked(response):
        size += len(piece)
        if len(head) < MAX_ERROR:
            head += piece
        if size > MAX_BYTES:
            raise ProviderError("the answer did not end", kind="malformed")
        yield piece


async def _text(response: httpx.Response, most_bytes: int) -> str:
    found = bytearray()
    async for piece in unpacked(response):
        found += piece
        if len(found) > most_bytes:
            break
    return bytes(found[:most_bytes]).decode("utf-8", "replace")


def _read_json(text: str) -> Any:  # Any: whatever the text says
    """The value; ValueError for what is no JSON. The halves of a sign that two pieces share are kept for both."""
    try:
        return parsed(text)
    except ValueError:
        if r"\ud" not in text.lower():
            raise
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _is_json(text: str) -> bool:
    try:
        return isinstance(parsed(text), dict)
    except ValueError:
        return False
