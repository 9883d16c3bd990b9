"""What a program hears of a turn: its words as they come, up to a stop sequence; JSON whole, once it is whole."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial

from msgspec import Struct, field

from cortex.base.events import Event, OpenPart
from cortex.base.messages import Usage
from cortex.services.api.answers import WORKING_S, Said, StopText, Tell, Voice, Working
from cortex.services.api.json_answers import JsonWanted
from cortex.services.runtime import Runtime
from cortex.services.turns.model_calls import TOO_LONG
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.turns import TurnRow

OPEN = "This needs your OK first: {verb}. Open Cortex to answer."  # read aloud by some programs: no address


class News(Struct, frozen=True, kw_only=True):
    """News of a turn: rows of the log in order, then the parts that are being written. Both () after a while."""

    events: Sequence[Event] = ()
    parts: Sequence[OpenPart] = ()


async def follow(runtime: Runtime, row: TurnRow, seq: int) -> AsyncIterator[News]:
    """The turn's news past this number of its conversation's log, without an end."""
    place, counter = row.conversation_id, -1
    stored = runtime.db.repository(ConversationsRepository, row.owner_id).events
    with runtime.hub.watching(place):
        while True:
            before, counter = counter, await runtime.hub.changed(place, counter, WORKING_S)
            parts = runtime.hub.open_parts(place)
            events = runtime.hub.since(place, seq)
            if events is None:
                events = await runtime.outages.wait_out(partial(stored, place, seq))
            seq = events[-1].seq if events else seq
            news = News(
                events=[event for event in events if event.turn_id == row.id],
                parts=[part for part in parts if part.turn_id == row.id],
            )
            if news.events or news.parts or before == counter:
                yield news


def waiting(event: Event, before: str) -> str:
    """The tool that waits for the person's word after this event, "" for none."""
    if event.kind != "approval":
        return before
    return str(event.payload["tool"]) if event.payload["state"] == "asked" else ""


def left_open(event: Event) -> str:
    """Return what a program that does not wait is told where this event asks for its person's word; "" elsewhere."""
    if event.kind != "approval" or event.payload["state"] != "asked":
        return ""
    return OPEN.format(verb=str(event.payload["verb"]).rstrip(".?!"))


class Hearing(Struct, kw_only=True):
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

    async def leave(self, words: str) -> None:
        """Tell what is left of the answer, and these words behind it."""
        await self.hear("open", words)
        if not self.is_held:
            await self._say(self.stops.rest())

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
