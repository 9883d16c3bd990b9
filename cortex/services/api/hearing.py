"""What a program hears of a turn: its words as they come, up to a stop sequence; JSON whole, once it is whole."""

import asyncio
from dataclasses import dataclass, field

from cortex.base.events import Event
from cortex.base.messages import Usage
from cortex.services.api.answers import WORKING_S, Said, Tell, Voice, Working
from cortex.services.api.following import waiting
from cortex.services.api.json_answers import JsonWanted
from cortex.services.api.stops import StopText
from cortex.services.turns.model_calls import TOO_LONG


@dataclass(slots=True, kw_only=True)
class Hearing:
    """`is_held`: nothing is told before the end. `told`: what the program has heard; `waits`: the tool that asks.

    `is_cut`: a model's limit ended the answer.
    """

    tell: Tell
    stops: StopText
    is_held: bool
    voice: Voice = field(default_factory=Voice)
    told: str = ""
    waits: str = ""
    usage: Usage = field(default_factory=Usage)
    is_cut: bool = False
    _signed_s: float = 0.0

    async def take(self, event: Event) -> None:
        """Read an event of the turn."""
        self.waits, self.usage = waiting(event, self.waits), _more(self.usage, event)
        if event.kind == "part.end" and event.payload["kind"] == "text":
            await self.hear(event.payload["part"], event.payload["text"])
        elif event.kind == "notice" and event.payload["text"] == TOO_LONG:
            self.is_cut = True

    async def hear(self, part: str, text: str) -> None:
        """Tell what is new in this part."""
        new = self.voice.heard(part, text)
        if not self.is_held:
            await self._say(self.stops.feed(new))

    async def work(self, now_s: float) -> None:
        """Give a sign of life, now and then."""
        if not self.is_held or now_s - self._signed_s >= WORKING_S:
            self._signed_s = now_s
            await self.tell(Working(self.waits))

    async def end(self, wanted: JsonWanted | None) -> ValueError | None:
        """Tell what is left; what is wrong with an answer that has to be JSON, None for one that fits."""
        if wanted is None:
            await self._say(self.stops.rest())
            return None
        try:
            await self._say(await asyncio.to_thread(wanted.taken_from, self.voice.last_part))
        except ValueError as wrong:
            return wrong
        return None

    async def _say(self, text: str) -> None:
        if text:
            self.told += text
            await self.tell(Said(text))


def _more(usage: Usage, event: Event) -> Usage:
    if event.kind != "usage":
        return usage
    return Usage(
        input_tokens=usage.input_tokens + event.payload["input"],
        output_tokens=usage.output_tokens + event.payload["output"],
        cached_tokens=usage.cached_tokens + event.payload["cached"],
        written_tokens=usage.written_tokens + event.payload["written"],
    )
