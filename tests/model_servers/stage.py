"""Where a scene plays: a double, the product's own connection to it, and what was heard."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast

from msgspec.structs import replace

from cortex.base.address import named
from cortex.base.errors import ProviderError
from cortex.base.messages import Message, ToolCall, ToolResult, ToolSchema, results
from cortex.base.model import ModelEntry, Profile
from cortex.base.turn import Reply
from cortex.ports.loop import Delta, Provider, Request, StreamEnd
from cortex.providers import ProviderContext, connect
from cortex.services.models.asking import Link, ask
from tests.model_servers.rows import Row, row_of, settings_of
from tests.model_servers.server import Double
from tests.model_servers.spoken import Abilities, Answer
from tests.patience import PATIENCE_S

SYSTEM = "You are Cortex, the assistant of a household. Be brief. Today is Friday. " * 4
ADD = ToolSchema(
    name="task_create",
    description="Add a task to a list.",
    parameters={"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
)
FIND = ToolSchema(
    name="file_search",
    description="Look for words in the files.",
    parameters={"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """An answer as the product gave it."""

    text: str
    thinking: str
    end: StreamEnd

    @property
    def message(self) -> Message:
        """The whole message."""
        return self.end.message

    @property
    def call(self) -> ToolCall:
        """Its only call."""
        assert len(self.message.calls) == 1, f"one call was made, {self.message.calls} arrived"
        return self.message.calls[0]

    def results(self, *texts: str) -> Message:
        """The results of its calls, one text for each or the same for all."""
        told = texts or ("Done.",)
        return results(
            *(
                ToolResult(call_id=call.id, name=call.name, text=told[min(at, len(told) - 1)])
                for at, call in enumerate(self.message.calls)
            )
        )


@dataclass(slots=True)
class Stage:
    """A scene's server. `doubles`: all that run, by row; a scene takes another one's for a switch of models."""

    row: Row
    doubles: dict[str, Double]
    notices: list[str] = field(default_factory=list)
    open: list[Provider] = field(default_factory=list)

    @property
    def double(self) -> Double:
        """The row's server."""
        return self.doubles[self.row.id]

    def other(self, row_id: str) -> "Stage":
        """The stage of another row, begun anew; its connections are closed with this one's."""
        stage = Stage(row=row_of(row_id), doubles=self.doubles, open=self.open)
        stage.begin()
        return stage

    def begin(self, *answers: Answer | str, row: Row | None = None, **abilities: Any) -> None:
        """Start the scene with these answers; `abilities` narrow what the model can do."""
        self.row = row or self.row
        self.double.begin(self.row, Abilities(**abilities))
        self.double.say(*answers)

    def entry(self, **more: Any) -> ModelEntry:
        """The model as a person set it up."""
        row = self.row
        base_url = self.double.origin + row.path
        late = more.pop("late", row.late)
        model = more.pop("model", row.model)
        entry = ModelEntry(
            name=row.id,
            provider=row.provider,
            model=model,
            base_url=base_url,
            engine=row.engine,
            profile=Profile(caches=True, late_tools=late),
            timeout_s=PATIENCE_S,
            sees=True,
            extra_params=settings_of(row, model),
        )
        return replace(entry, **more)

    def dial(self, secret: str = "", **more: Any) -> Provider:
        """The product's connection to the double."""
        context = ProviderContext(policy=named((self.double.host, self.double.port)), connect_s=PATIENCE_S)
        provider = connect(self.entry(**more), secret or self.double.api_key, context)
        self.open.append(provider)
        return provider

    async def hear(self, provider: Provider, *messages: Message, **more: Any) -> Heard:
        """The whole answer to these messages."""
        text = thinking = ""
        end: StreamEnd | None = None
        stream = cast("AsyncGenerator[Delta | StreamEnd, None]", provider.stream(request(*messages, **more)))
        async with aclosing(stream) as items:
            async for item in items:
                assert end is None, "something came behind the end"
                if isinstance(item, StreamEnd):
                    end = item
                elif item.kind == "void":  # what was streamed so far is taken back
                    text = thinking = ""
                elif item.kind == "text":
                    text += item.text
                else:
                    thinking += item.text
        assert end is not None, "the stream had no end"
        assert text.strip() == end.message.text.strip(), f"streamed {text!r}, kept {end.message.text!r}"
        return Heard(text=text, thinking=thinking, end=end)

    async def fail(self, provider: Provider, *messages: Message, **more: Any) -> ProviderError:
        """The error of this request."""
        try:
            heard = await self.hear(provider, *messages, **more)
        except ProviderError as error:
            return error
        raise AssertionError(f"an error was expected, {heard.text!r} came")

    async def ask(self, provider: Provider, entry: ModelEntry, *messages: Message, **more: Any) -> Reply:
        """The reply of the service that retries; notices are kept."""

        async def note(text: str) -> None:
            self.notices.append(text)

        async def drop(kind: str, text: str, attempt: int) -> None:
            del kind, text, attempt

        return await ask(
            [Link(entry=entry, provider=provider)],
            request(*messages, **more),
            on_delta=drop,
            on_notice=note,
            sleep=_at_once,
            jitter=float,
            turn_from=len(messages) - 1,
        )

    def check(self) -> None:
        """Nothing was refused, nothing was left over."""
        assert not self.double.broken, self.double.broken
        assert not self.double.refused, f"refused: {self.double.refused[0]}"
        assert not self.double.script, f"never asked for: {list(self.double.script)}"

    async def close(self) -> None:
        """Close every connection that was opened."""
        for provider in self.open:
            await provider.close()
        self.open.clear()


def request(*messages: Message, **more: Any) -> Request:
    """A request as the services make it."""
    return Request(**{"system": SYSTEM, "messages": messages, "tools": (ADD, FIND), **more})


async def _at_once(seconds: float) -> None:
    del seconds
    await asyncio.sleep(0)
