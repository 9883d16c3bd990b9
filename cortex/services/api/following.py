"""Follows a turn for a program: its events and open parts as they come. It does not count as somebody who watches."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial

from cortex.base.events import Event, OpenPart
from cortex.services.api.answers import WORKING_S
from cortex.services.runtime import Runtime
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.turns import TurnRow


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What came of a turn: rows of the log in order, then the parts that are being written. Both () after a while."""

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
