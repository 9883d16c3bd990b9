"""One model call over a real wire: streams by pydantic-ai's direct requests, with time limits and nothing half kept.

`openai.py` and `anthropic.py` build the model and hand it over. Retries are not made here: `services/models/asking.py`.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import httpx2
from pydantic_ai import exceptions as ai
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from cortex.base.clock import ticks_s
from cortex.base.errors import CortexError, ProviderError
from cortex.base.json_text import parsed
from cortex.base.messages import Message, Usage, to_json
from cortex.base.model import ModelEntry
from cortex.base.tokens import minified, wire_schema
from cortex.ports.loop import Delta, Request, StreamEnd
from cortex.providers import ProviderContext, failures
from cortex.providers.pydantic import WireTraits, from_wire, parameters, to_wire, usage_of

MAX_CHARACTERS = 2_000_000
TOTAL_S = 1_800.0
# What pydantic-ai, the SDKs and the transport raise once a request is under way.
_FAILURES = (ai.AgentRunError, ai.UserError, httpx2.HTTPError, httpx2.StreamError, OSError, ValueError, CortexError)
_SETTINGS = {"temperature", "top_p", "seed", "presence_penalty", "frequency_penalty", "thinking", "stop_sequences"}
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConnection:
    """A built model with what goes with it. `settings` are the wire's own; `close` lets its connections go."""

    model: Model[Any]
    wire: WireTraits
    settings: Mapping[str, Any]
    close: Callable[[], Awaitable[None]]


class WireProvider:
    """The `Provider` of every real endpoint."""

    def __init__(self, entry: ModelEntry, line: ModelConnection, surroundings: ProviderContext) -> None:
        self._entry = entry
        self._line = line
        self._count = surroundings.count
        self._first_s = surroundings.first_s or entry.timeout_s
        self._between_s = surroundings.between_s or entry.timeout_s

    async def stream(self, request: Request) -> AsyncIterator[Delta | StreamEnd]:
        """The answer as it arrives, then the whole; ProviderError when it is not whole."""
        deadline_s = ticks_s() + TOTAL_S
        try:
            async with AsyncExitStack() as stack:
                if self._entry.streams:
                    opening = stack.enter_async_context(model_request_stream(**self._arguments(request)))
                    live = await self._within(opening, self._first_s, "no answer came")
                    events = aiter(live)
                    characters = 0
                    while (
                        event := await self._within(anext(events, None), self._pause(deadline_s), "no more came")
                    ) is not None:
                        delta = _delta(event)
                        if delta is not None:
                            characters += len(delta.text)
                            self._check_size(characters)
                            yield delta
                    response = live.get()
                else:
                    response = await self._within(
                        model_request(**self._arguments(request)), self._first_s, "no answer came"
                    )
                    for delta in _whole_deltas(response):
                        yield delta
            finished = self._finished(request, response)
        except _FAILURES as error:
            raise failures.mapped(self._entry, error) from error
        yield finished

    async def close(self) -> None:
        """Close the connections of this model."""
        await self._line.close()

    def _arguments(self, request: Request) -> dict[str, Any]:
        settings: dict[str, Any] = {**self._line.settings, **_extra(self._entry)}
        settings["max_tokens"] = min(
            request.max_output_tokens or self._entry.max_output_tokens, self._entry.max_output_tokens
        )
        # A model that thinks aloud may not be forced to call (Anthropic refuses the request): it is left to choose.
        is_forced = request.tool_choice == "required" and not settings.get("thinking")
        if request.tools and (is_forced or request.tool_choice == "none"):
            settings["tool_choice"] = request.tool_choice
        if request.tools and not (request.parallel_calls and self._entry.parallel_calls):
            settings["parallel_tool_calls"] = False
        return {
            "model": self._line.model,
            "messages": to_wire(request, self._line.wire),
            "model_settings": ModelSettings(**settings),  # type: ignore[typeddict-item]  # an open set of keys
            "model_request_parameters": parameters(request, self._line.wire),
        }

    def _pause(self, deadline_s: float) -> float:
        return max(0.0, min(self._between_s, deadline_s - ticks_s()))

    async def _within(self, waiting: Awaitable[_T], limit_s: float, what: str) -> _T:
        try:
            async with asyncio.timeout(limit_s):
                return await waiting
        except TimeoutError as error:
            raise failures.late(self._entry, what, limit_s) from error

    def _check_size(self, characters: int) -> None:
        if characters > MAX_CHARACTERS:
            raise ProviderError(f"{self._entry.name}: the answer did not end.", kind="malformed")

    def _finished(self, request: Request, response: ModelResponse) -> StreamEnd:
        """The whole answer, checked: it ended properly and there is something in it."""
        reason = response.finish_reason
        if reason == "content_filter":
            raise failures.refused(self._entry)
        if reason == "error":
            raise ProviderError(f"{self._entry.name}: the provider broke off.", kind="server", is_retryable=True)
        message = from_wire(response, request, self._line.wire)
        if self._entry.streams and reason is None:
            raise failures.cut(self._entry)
        if not message.text.strip() and not message.calls:
            raise failures.empty(self._entry, reason)
        finish: Literal["stop", "calls", "length"] = "calls" if message.calls else "stop"
        if reason == "length":
            if any(not _is_json(call.arguments) for call in message.calls):
                raise failures.overlong(self._entry)
            finish = "calls" if message.calls else "length"
        return StreamEnd(message=message, usage=self._usage(request, message, response), finish=finish)

    def _usage(self, request: Request, message: Message, response: ModelResponse) -> Usage:
        usage = usage_of(response.usage)
        if usage.input_tokens:
            return usage
        # The endpoint reports none: counted here, so that budgets hold.
        sent = [request.system, *(minified(to_json(each)) for each in request.messages)]
        sent += [minified(wire_schema(tool)) for tool in request.tools]
        return Usage(input_tokens=sum(map(self._count, sent)), output_tokens=self._count(minified(to_json(message))))


def _delta(event: object) -> Delta | None:
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return Delta(kind="text", text=text) if text else None
        case PartStartEvent(part=ThinkingPart(content=text)):
            return Delta(kind="thinking", text=text) if text else None
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=thought)):
            return Delta(kind="thinking", text=thought) if thought else None
        case _:
            return None


def _whole_deltas(response: ModelResponse) -> list[Delta]:
    found = [_delta(PartStartEvent(index=0, part=part)) for part in response.parts]
    return [delta for delta in found if delta is not None]


def _extra(entry: ModelEntry) -> dict[str, Any]:
    """The entry's own parameters: settings that pydantic-ai knows by name, the rest in the body as they are."""
    known: dict[str, Any] = {}
    body: dict[str, Any] = {}
    for key, text in entry.extra_params:
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        (known if key in _SETTINGS else body)[key] = value
    return {**known, "extra_body": body} if body else known


def _is_json(text: str) -> bool:
    try:
        return isinstance(parsed(text), dict)
    except ValueError:
        return False
