"""The open parts of running turns and a change signal for every conversation, within one process.

Numbered changes and one asyncio.Event per waiter: nobody waits on a shared condition, so a slow one holds up nobody.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from cortex.base.events import Event, OpenPart

KEPT_EVENTS = 100  # of each watched conversation; who is further behind reads the log
KEPT_NUMBERS = 4_096  # conversations whose last change is known; who asks about another looks once in vain


class LocalHub:
    """Implements `Hub` of `ports/engine.py`. All calls come from the event loop's own thread."""

    def __init__(self) -> None:
        self._changes = 0  # of all conversations together
        self._newest: dict[str, int] = {}  # the number of each one's newest change, the oldest first
        self._forgotten = 0  # the newest change of those that are no longer told apart
        self._parts: dict[str, dict[str, OpenPart]] = {}
        self._waiters: dict[str, set[asyncio.Event]] = {}
        self._watching: Counter[str] = Counter()
        self._appended: dict[str, dict[int, Event]] = {}  # the newest rows of watched conversations, by their number

    def publish(self, part: OpenPart) -> None:
        """The part as it now stands; a lower attempt than the one known is late and is dropped."""
        parts = self._parts.setdefault(part.conversation_id, {})
        known = parts.get(part.part)
        if known is not None and known.attempt > part.attempt:
            return
        parts[part.part] = part
        self._wake(part.conversation_id)

    def end_part(self, conversation_id: str, part: str) -> None:
        """The part ended; unknown parts are ignored."""
        parts = self._parts.get(conversation_id)
        if parts is not None and parts.pop(part, None) is not None:
            if not parts:
                del self._parts[conversation_id]
            self._wake(conversation_id)

    def forget(self, conversation_id: str, turn_id: str) -> None:
        """Drop every open part of a turn that ended by force."""
        for part in self.open_parts(conversation_id):
            if part.turn_id == turn_id:
                self.end_part(conversation_id, part.part)

    def announce(self, conversation_id: str, events: Sequence[Event] = ()) -> None:
        """Keep new rows for those who watch here, and wake everybody who waits. Without rows: forget those kept.

        Another process wrote then, so what is known here has a gap.
        """
        if not events:
            self._appended.pop(conversation_id, None)
        elif conversation_id in self._watching:
            kept = self._appended.setdefault(conversation_id, {})
            kept |= {event.seq: _as_stored(event) for event in events}
            for seq in sorted(kept)[:-KEPT_EVENTS]:
                del kept[seq]
        self._wake(conversation_id)

    @contextmanager
    def watching(self, conversation_id: str) -> Iterator[None]:
        """Keep the rows that are announced of this conversation inside the block."""
        self._watching[conversation_id] += 1
        try:
            yield
        finally:
            self._watching[conversation_id] -= 1
            if not self._watching[conversation_id]:
                del self._watching[conversation_id]
                self._appended.pop(conversation_id, None)

    def since(self, conversation_id: str, seq: int) -> Sequence[Event] | None:
        """The rows past `seq` as they were announced; None when one is missing between, or nothing is known here."""
        kept = self._appended.get(conversation_id)
        if not kept:
            return None
        past = range(seq + 1, max(kept) + 1)
        return [kept[one] for one in past] if all(one in kept for one in past) else None

    def _wake(self, conversation_id: str) -> None:
        self._changes += 1
        self._newest.pop(conversation_id, None)
        self._newest[conversation_id] = self._changes
        if len(self._newest) > KEPT_NUMBERS:
            self._forgotten = self._newest.pop(next(iter(self._newest)))
        for waiter in self._waiters.get(conversation_id, ()):
            waiter.set()

    def open_parts(self, conversation_id: str) -> tuple[OpenPart, ...]:
        """The parts being written now, in the order they began."""
        return tuple(self._parts.get(conversation_id, {}).values())

    async def changed(self, conversation_id: str, since: int, timeout_s: float) -> int:
        """The number of its newest change, once that is past `since` or the time is up. `since=-1`: at once."""
        now = self._newest.get(conversation_id, self._forgotten)
        if now > since:
            return now
        waiter = asyncio.Event()
        waiters = self._waiters.setdefault(conversation_id, set())
        waiters.add(waiter)
        try:
            async with asyncio.timeout(timeout_s):
                await waiter.wait()
        except TimeoutError:
            pass
        finally:
            waiters.discard(waiter)
            if not waiters and self._waiters.get(conversation_id) is waiters:
                del self._waiters[conversation_id]
        return self._newest.get(conversation_id, self._forgotten)

    def is_watched_elsewhere(self, conversation_id: str) -> bool:
        """There is no other process."""
        return False

    def watchers(self, conversation_id: str) -> int:
        """Return how many wait on this conversation now."""
        return len(self._waiters.get(conversation_id, ()))


def _as_stored(event: Event) -> Event:
    """The row as its reader in the database would have it: a live page and a reloaded one are the same."""
    return replace(event, payload=json.loads(json.dumps(event.payload)))
