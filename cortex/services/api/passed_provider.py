"""A model as a program's request is passed to it: ended ahead of stop sequences, asked in words for what it lacks."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.messages import Message, Part, Text, Thinking, Usage
from cortex.base.model import ModelEntry
from cortex.ports.loop import Delta, Provider, Request, StreamEnd
from cortex.services.api.answers import StopText
from cortex.services.api.json_answers import JsonWanted

STOPS_TOLD = 4  # more of them are refused by most servers, OpenAI's among them


class Heard(Struct):
    """A call's answer so far, and its model. `is_broken`: it ended behind its first words."""

    model: str = ""
    text: str = ""
    thought: str = ""
    is_broken: bool = False


class PassedProvider(Struct, frozen=True, kw_only=True):
    """A model that a program's request is passed to. Implements `Provider`.

    `stops`: ahead of which its answer ends; `wanted`: what that has to be.
    """

    entry: ModelEntry
    inner: Provider
    stops: tuple[str, ...]
    wanted: JsonWanted | None
    heard: Heard

    async def stream(self, request: Request) -> AsyncIterator[Delta | StreamEnd]:
        """The answer; where a sequence is met the call is ended there, and what it took is left to who asked."""
        self.heard.model, self.heard.text, self.heard.thought = self.entry.name, "", ""
        ending = StopText(self.stops)
        stream = cast("AsyncGenerator[Delta | StreamEnd, None]", self.inner.stream(self._taken(request)))
        async with aclosing(stream) as items:
            async for item in items:
                if isinstance(item, StreamEnd):
                    if rest := ending.rest():
                        yield self._delta(rest)
                    yield item
                    return
                if item.kind == "thinking":
                    self.heard.thought += item.text
                    yield item
                elif told := ending.feed(item.text):
                    yield self._delta(told)
                if ending.is_met:
                    break
        yield self._cut()

    async def close(self) -> None:
        """Its connections are those of the model behind it."""

    def _taken(self, request: Request) -> Request:
        """The request as its server takes it, where that lacks what the program asks for."""
        is_anthropic = self.entry.provider == "anthropic"
        if self.wanted is not None and (is_anthropic or "response_format" in (*self.entry.refused, *request.without)):
            request = replace(request, system="\n\n".join(filter(None, (request.system, self.wanted.words))))
        return replace(request, parameters=tuple((name, _as_taken(name, text)) for name, text in request.parameters))

    def _delta(self, text: str) -> Delta:
        self.heard.text += text
        return Delta(kind="text", text=text)

    def _cut(self) -> StreamEnd:
        thought: tuple[Part, ...] = (Thinking(text=self.heard.thought),) if self.heard.thought else ()
        parts: tuple[Part, ...] = (*thought, Text(text=self.heard.text))
        return StreamEnd(message=Message(speaker="assistant", parts=parts), usage=Usage(), finish="stop")


def _as_taken(name: str, text: str) -> str:
    """A parameter as servers take it: four stop sequences at most; the others are met here all the same."""
    return json.dumps(json.loads(text)[:STOPS_TOLD], ensure_ascii=False) if name == "stop" else text
