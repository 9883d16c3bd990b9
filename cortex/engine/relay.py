"""The hub of a server of several processes: signals and open parts reach the browsers of the others.

Signals go to everybody. The text of an open part is sent only while somebody elsewhere watches: who watches says so
every few seconds with what it knows, and the process that writes the part sends the rest. Nothing is stored.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any, Protocol

from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError

from cortex.base import scan
from cortex.base.background import background_tasks
from cortex.base.clock import ticks_s
from cortex.base.errors import DatabaseUnavailable
from cortex.base.events import Event, OpenPart
from cortex.base.ids import new_id
from cortex.engine.hub import LocalHub

FLUSH_S = 0.1  # what is written in that time goes out as one
ASK_S = 0.3  # how long a newcomer waits for what the others know
RENEW_S = 5.0
LEASE_S = 15.0  # three renewals; without a renewal: nobody watches there any more, or nobody writes this part any more
UNWATCHED_S = 30.0  # a follower asks at least every 15 s
LOOK_S = 2.0  # the safety net under lost signals
LISTENING = "listening"  # a topic of our own: the line stands (again)
TOLD_WITHIN_S = 0.05  # commits in that time are told as one
PIECE_CHARS = 600  # a notification holds 8,000 bytes, a character takes up to 12

Key = tuple[str, str]  # conversation, part
Newest = Callable[[Sequence[str]], Awaitable[Mapping[str, int]]]

log = logging.getLogger(__name__)


class ProcessLine(Protocol):
    """Carries between processes what they say to each other: `engine/wire.py`."""

    def broadcast(self, text: str) -> None:
        """Send it to everybody, ourselves included, soon and in order."""
        ...


class _Far(Struct):
    """A part that another process writes, as far as it was heard."""

    part: OpenPart
    heard_s: float


class RelayHub:
    """Implements `Hub` of `ports/engine.py`. All calls come from the event loop's own thread."""

    def __init__(self, *, ticks: Callable[[], float] = ticks_s) -> None:
        """`line` must be set before anything is sent; `newest` gives the last seq of each conversation."""
        self.line: ProcessLine | None = None
        self.newest: Newest | None = None
        self._name = new_id()
        self._ticks = ticks
        self._hub = LocalHub()
        self._own: dict[Key, OpenPart] = {}
        self._told: dict[Key, tuple[int, int]] = {}  # attempt and length that the others know
        self._dirty: set[Key] = set()
        self._has_dirty = asyncio.Event()
        self._leases: dict[str, float] = {}  # conversations watched elsewhere, until when
        self._watched: dict[str, float] = {}  # conversations watched here, asked for when
        self._far: dict[Key, _Far] = {}
        self._seqs: dict[str, int] = {}
        self._listeners: dict[str, list[Callable[[str], None]]] = {}
        self._soon: set[str] = set()

    # --- Hub ----------------------------------------------------------------------------------------------------

    def publish(self, part: OpenPart) -> None:
        """The part as it now stands: at once to who watches here, soon to who watches elsewhere."""
        key = (part.conversation_id, part.part)
        self._own[key] = part
        self._hub.publish(part)
        if self._leases.get(part.conversation_id, 0.0) > self._ticks():
            self._dirty.add(key)
            self._has_dirty.set()

    def end_part(self, conversation_id: str, part: str) -> None:
        """The part ended, here and everywhere."""
        self._close_here(conversation_id, part)
        self._say("close", conversation_id, p=part)

    def announce(self, conversation_id: str, events: Sequence[Event] = ()) -> None:
        """New rows stand in the log, for everybody; elsewhere they are read there."""
        self._hub.announce(conversation_id, events)
        self._say("ring", conversation_id)

    def watching(self, conversation_id: str) -> AbstractContextManager[None]:
        """As in the hub: a row that is announced elsewhere makes what is known here incomplete."""
        return self._hub.watching(conversation_id)

    def since(self, conversation_id: str, seq: int) -> Sequence[Event] | None:
        """As in the hub."""
        return self._hub.since(conversation_id, seq)

    def open_parts(self, conversation_id: str) -> tuple[OpenPart, ...]:
        """The parts being written now, here or elsewhere as far as it was heard."""
        return self._hub.open_parts(conversation_id)

    async def changed(self, conversation_id: str, since: int, timeout_s: float) -> int:
        """As in the hub. `since=-1` by the first who asks here waits a moment for what the others know."""
        is_first = conversation_id not in self._watched
        self._watched[conversation_id] = self._ticks()
        if is_first:
            self._ask(conversation_id)
            if since < 0:
                now = await self._hub.changed(conversation_id, -1, 0)
                return await self._hub.changed(conversation_id, now, min(timeout_s, ASK_S))
        return await self._hub.changed(conversation_id, since, timeout_s)

    def is_watched_elsewhere(self, conversation_id: str) -> bool:
        """Tell whether another process said of late that it is watched there."""
        return self._leases.get(conversation_id, 0.0) > self._ticks()

    # --- other news ---------------------------------------------------------------------------------------------

    def broadcast(self, topic: str, value: str) -> None:
        """Send the other processes a value under a topic of its own; nothing happens here."""
        self._say(topic, value)

    def broadcast_soon(self, topic: str) -> None:
        """The same without a value, once for many calls within a moment."""
        if topic not in self._soon:
            self._soon.add(topic)
            asyncio.get_running_loop().call_later(TOLD_WITHIN_S, self._broadcast_now, topic)

    def _broadcast_now(self, topic: str) -> None:
        self._soon.discard(topic)
        self.broadcast(topic, "")

    def on(self, topic: str, listener: Callable[[str], None]) -> None:
        """Call `listener(value)` whenever another process broadcasts on the topic."""
        self._listeners.setdefault(topic, []).append(listener)

    def listens(self) -> None:
        """The line stands (again): what was broadcast before may not have been heard."""
        for listener in self._listeners.get(LISTENING, ()):
            listener("")

    # --- what runs beside ---------------------------------------------------------------------------------------

    async def flush(self) -> None:
        """Until cancelled: send what was written since the last time."""
        while True:
            await self._has_dirty.wait()
            await asyncio.sleep(FLUSH_S)
            self._has_dirty.clear()
            keys, self._dirty = self._dirty, set()
            for key in keys:
                if key in self._own:
                    attempt, length = self._told.get(key, (0, 0))
                    self._tell_part(key, length if attempt == self._own[key].attempt else 0)

    async def renew(self) -> None:
        """Until cancelled: say what is watched here, and forget what nobody watches or writes any more."""
        while True:
            await asyncio.sleep(RENEW_S)
            now = self._ticks()
            for conversation_id, asked_s in list(self._watched.items()):
                if now - asked_s > UNWATCHED_S:
                    del self._watched[conversation_id]
                    self._seqs.pop(conversation_id, None)
                else:
                    self._ask(conversation_id)
            for (conversation_id, part), far in list(self._far.items()):
                if conversation_id not in self._watched or now - far.heard_s > LEASE_S:
                    self._close_here(conversation_id, part)
            self._leases = {name: until_s for name, until_s in self._leases.items() if until_s > now}

    async def republish_lost(self) -> None:
        """Until cancelled: announce rows whose signal was lost with the process that wrote them, or on the way."""
        while True:
            await asyncio.sleep(LOOK_S)
            if not self._watched or self.newest is None:
                continue
            try:
                seqs = await self.newest(list(self._watched))
            except (DatabaseUnavailable, SQLAlchemyError) as error:
                log.warning("relay: cannot read new events, retrying: %s", error)
                continue
            for conversation_id, seq in seqs.items():
                # Looked up again: it may have been forgotten while the database answered.
                if conversation_id in self._watched and self._seqs.get(conversation_id) != seq:
                    self._seqs[conversation_id] = seq
                    self._hub.announce(conversation_id)

    # --- the line -----------------------------------------------------------------------------------------------

    def heard(self, text: str) -> None:
        """Take in what somebody sent; our own messages are passed over, and what is not of our kind."""
        try:
            said: dict[str, Any] = json.loads(text)
            speaker, kind, conversation_id = said["f"], said["k"], said["c"]
        except (ValueError, KeyError, TypeError):
            log.warning("relay: unexpected message on the notification channel: %.80r", text)
            return
        if speaker == self._name:
            return
        match kind:
            case "ring":
                self._hub.announce(conversation_id)
            case "close":
                self._close_here(conversation_id, said["p"])
            case "watch":
                self._answer(conversation_id, said["h"])
            case "part":
                self._take(conversation_id, said)
            case topic:
                for listener in self._listeners.get(topic, ()):
                    listener(conversation_id)

    def _ask(self, conversation_id: str) -> None:
        known = {
            part: (far.part.attempt, len(far.part.text))
            for (name, part), far in self._far.items()
            if name == conversation_id
        }
        self._say("watch", conversation_id, h=known)

    def _answer(self, conversation_id: str, known: dict[str, tuple[int, int]]) -> None:
        """Somebody elsewhere watches: send what is written here past what is known there, "" as a sign of life."""
        self._leases[conversation_id] = self._ticks() + LEASE_S
        for key, part in self._own.items():
            if key[0] == conversation_id:
                attempt, length = known.get(key[1], (0, 0))
                self._tell_part(key, length if attempt == part.attempt and length <= len(part.text) else 0)

    def _tell_part(self, key: Key, start: int) -> None:
        part = self._own[key]
        self._told[key] = (part.attempt, len(part.text))
        stops = [*range(start + PIECE_CHARS, len(part.text), PIECE_CHARS), len(part.text)]
        for at, stop in zip([start, *stops], stops, strict=False):
            piece = part.text[at:stop]
            about = {"p": part.part, "t": part.turn_id, "n": part.kind, "a": part.attempt}
            self._say("part", key[0], **about, o=at, x=piece, m=stop < len(part.text))

    def _take(self, conversation_id: str, said: dict[str, Any]) -> None:
        """A piece of a part that another process writes: add it where it belongs, ask again where one is missing."""
        if conversation_id not in self._watched:
            return
        key = (conversation_id, said["p"])
        far, start, piece = self._far.get(key), said["o"], said["x"]
        known = far.part.text if far is not None and far.part.attempt == said["a"] else ""
        if far is not None and far.part.attempt > said["a"]:
            return
        if start > len(known):
            self._ask(conversation_id)
            return
        # The answer to another watcher repeats what is known here: what came after that must stay.
        text = known if known[start : start + len(piece)] == piece else known[:start] + piece
        part = OpenPart(
            conversation_id=conversation_id,
            turn_id=said["t"],
            part=said["p"],
            kind=said["n"],
            attempt=said["a"],
            text=text,
        )
        self._far[key] = _Far(part, self._ticks())
        if not said["m"] and part not in self._hub.open_parts(conversation_id):
            self._hub.publish(part)

    def _close_here(self, conversation_id: str, part: str) -> None:
        key = (conversation_id, part)
        self._own.pop(key, None)
        self._told.pop(key, None)
        self._far.pop(key, None)
        self._hub.end_part(conversation_id, part)

    def _say(self, kind: str, conversation_id: str, **more: object) -> None:
        if self.line is not None:
            self.line.broadcast(json.dumps({"f": self._name, "k": kind, "c": conversation_id, **more}))


@asynccontextmanager
async def relayed(url: str) -> AsyncIterator[RelayHub]:
    """A relay on its line, for as long as the block."""
    wires = scan.load("cortex.engine.wire")
    relay = RelayHub()
    wire = wires.NotifyConnection(url, relay.heard, relay.listens)
    relay.line = wire
    async with background_tasks(wire.listen, wire.speak, relay.flush, relay.renew, relay.republish_lost):
        try:
            yield relay
        finally:
            await wire.flushed()
