"""Writes the parts of one answer while it arrives: start and end are rows of the log, what is between goes by the hub.

Used by `services/turns/model_calls.py` alone. A part is committed once, finished; deltas are never history.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base.events import EventKind, OpenPart
from cortex.base.record import as_dict
from cortex.base.turn import Turn
from cortex.services.runtime import Runtime
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Opener
from cortex.storage.turns import TurnRow

Row = tuple[EventKind, dict[str, Any], str | None]


def message_row(
    row: TurnRow,
    is_queued: bool = False,
    *,
    agent: str = "",
    resumed: str = "",
    versions: Sequence[str] = (),
    via: str = "",
) -> Row:
    """The log's first word on a turn: the message that it answers, or what the background run `agent` found.

    resumed: what the person reads in place of the message of a turn that goes on with a call.

    versions: all turns of its place, where it is not the first there. via: the messenger by which it came.
    """
    payload: dict[str, Any] = {
        "turn": row.id,
        "text": row.text,
        "at": row.created_at.isoformat(),
        "mode": row.mode,
        "is_steer": is_queued,
        "ordinal": row.ordinal,
    }
    attachments = [as_dict(each) for each in row.attachments]
    more = {"agent": agent, "resumed": resumed, "attachments": attachments, "versions": list(versions), "via": via}
    return "message", {**payload, **{name: value for name, value in more.items() if value}}, row.id


def opening_rows(row: TurnRow) -> list[Row]:
    """The log's first words on a turn that begins without a model: its message, and that it runs."""
    start = {"turn": row.id, "role": row.role, "model": "", "max_rounds": 0, "max_rounds_from": ""}
    return [message_row(row), ("turn.start", start, row.id)]


class AnswerWriter(Struct, kw_only=True):
    """The open answer of one round. `attempt` counts the tries of this round, over retries and restarts.

    said_before: the notices of an interrupted try, which the next one does not repeat.
    beside: what is written with its first rows, in the same transaction.
    """

    runtime: Runtime
    turn: Turn
    round_number: int
    beside: Callable[[Opener], Awaitable[None]] | None = None
    base: int = 0
    attempt: int = 0
    open: OpenPart | None = None
    started: list[str] = field(default_factory=list)
    said_before: list[str] = field(default_factory=list)

    async def begin(self) -> None:
        """Take back what an interrupted try of this round had put on the page."""
        conversations = self.runtime.db.repository(ConversationsRepository, self.turn.user_id)
        events = await conversations.of_turn(self.turn.conversation_id, self.turn.id)
        starts = [e.payload for e in events if e.kind == "part.start" and e.payload["round"] == self.round_number]
        # Attempts count on: the hub drops what still arrives of a lower one.
        self.base = self.attempt = max((start["attempt"] for start in starts), default=0)
        self.started = list(dict.fromkeys(start["part"] for start in starts))
        answered = max((at for at, e in enumerate(events) if e.kind == "usage"), default=-1)  # the round before
        self.said_before = [e.payload["text"] for e in events[answered + 1 :] if e.kind == "notice"]
        await self._take_back()

    async def delta(self, kind: Literal["text", "thinking"], text: str, attempt: int) -> None:
        """A piece of the answer; a higher attempt (from 1) begins the parts again."""
        if self.base + attempt > self.attempt:
            await self._take_back()
            self.attempt = self.base + attempt
        part = self.open if self.open is not None and self.open.kind == kind else await self._start(kind)
        self.open = replace(part, text=part.text + text)
        self.runtime.hub.publish(self.open)

    async def notice(self, text: str) -> None:
        """A line in the log for a retry, another shape of the request or a change of model."""
        if text in self.said_before:
            self.said_before.remove(text)
            return
        await self._announce([("notice", {"turn": self.turn.id, "level": "warn", "text": text}, self.turn.id)])

    async def whole(self, text: str) -> list[Row]:
        """The rows that finish the answer; `text` is shown when nothing was streamed. Commit them, then `end_part`."""
        if self.open is None and text:
            self.attempt = max(self.attempt, self.base + 1)
            self.open = replace(await self._start("text"), text=text)
        return [] if self.open is None else [self._end(self.open, self.open.text)]

    def end_part(self) -> None:
        """The rows stand in the log: let the hub forget the open part."""
        if self.open is not None:
            self.runtime.hub.end_part(self.turn.conversation_id, self.open.part)
            self.open = None

    async def abandon(self) -> None:
        """The answer failed for good: what there was of it stays visible, marked as partial, and is no history."""
        if self.open is not None:
            kind, payload, turn_id = self._end(self.open, self.open.text)
            await self._announce([(kind, {**payload, "is_partial": True}, turn_id)])
            self.end_part()

    async def _start(self, kind: Literal["text", "thinking"]) -> OpenPart:
        """Begin the next part; the one before it ends."""
        ended = [] if self.open is None else [self._end(self.open, self.open.text)]
        part = OpenPart(
            conversation_id=self.turn.conversation_id,
            turn_id=self.turn.id,
            part=f"{self.turn.id.removeprefix('turn:')}-{self.round_number}-{len(self.started)}",
            kind=kind,
            attempt=self.attempt,
            text="",
        )
        payload = {"turn": self.turn.id, "round": self.round_number, "part": part.part, "kind": kind}
        await self._announce([*ended, ("part.start", {**payload, "attempt": self.attempt}, self.turn.id)])
        await self.runtime.runner.has_moved()
        self.end_part()
        self.started.append(part.part)
        return part

    def _end(self, part: OpenPart, text: str) -> Row:
        """The row that finishes a part."""
        payload = {"turn": self.turn.id, "round": self.round_number, "part": part.part, "kind": part.kind}
        return "part.end", {**payload, "text": text, "attempt": part.attempt}, self.turn.id

    async def _take_back(self) -> None:
        """Remove every part of an earlier try from the page."""
        rows: list[Row] = [
            (
                "part.end",
                {
                    "turn": self.turn.id,
                    "round": self.round_number,
                    "part": part,
                    "kind": "text",
                    "text": "",
                    "attempt": self.attempt,
                },
                self.turn.id,
            )
            for part in self.started
        ]
        if rows:
            await self._announce(rows)
        self.end_part()
        self.started.clear()

    async def _announce(self, rows: list[Row]) -> None:
        """Commit rows to the log, with what goes with the first of them, and wake those who watch.

        It waits for a database that is away: else the model would be asked again for what it is saying.
        """
        # With the first row alone: the round's messages stand as soon as anything of its answer does.
        beside, self.beside = self.beside, None

        async def stored() -> None:
            async with self.runtime.transaction_then_notify(self.turn.user_id, self.turn.conversation_id) as repository:
                if beside is not None:
                    await beside(repository)
                await repository(ConversationsRepository).append(self.turn.conversation_id, rows)

        await self.runtime.outages.wait_out(stored)
