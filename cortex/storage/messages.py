"""The transcript: finished messages, append-only, each written once however often its step is run."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import groupby
from typing import Any

from msgspec import Struct
from sqlalchemy import Insert, Select, String, bindparam, case, insert, select

from cortex.base.errors import NotFound
from cortex.base.fact import FROM_OUTSIDE
from cortex.base.ids import derived_id
from cortex.base.messages import Message, Text, from_json, to_json
from cortex.storage import kept
from cortex.storage.repository import Repository, reading
from cortex.storage.schema import ConversationTable, MessageTable, TurnTable
from cortex.storage.turns import Reads, TurnRow
from cortex.storage.words import indexed

LATER = (1 << 31) - 1  # than any turn's ordinal


class MessageRow(Struct, frozen=True, kw_only=True):
    """A message with the turn it belongs to; `ordinal` is the turn's place in the conversation."""

    id: str
    turn_id: str
    ordinal: int
    round: int
    message: Message
    is_tainted: bool
    created_at: datetime


class _TurnHead(Struct, frozen=True, kw_only=True):
    id: str
    conversation_id: str


class MessagesRepository(Repository):
    """The messages of a user's conversations."""

    async def add(self, turn_id: str, round: int, message: Message, is_tainted: bool, *, nth: int = 0) -> str:
        """Keep a message at the end of the transcript; its id, which is that of (turn, round, speaker, nth).

        A repeat is a no-op. `nth` tells apart messages of one speaker in one round. NotFound for a foreign turn.
        """
        head = await self._get(_TurnHead, TurnTable, turn_id, "This turn does not exist.")
        row = self._row(head, round, message, is_tainted, nth)
        await self._add_each([row])
        return str(row["id"])

    async def add_all(self, turn: TurnRow, messages: Iterable[tuple[Message, bool]]) -> None:
        """Keep a turn's messages, each with whether it holds words from outside, from round 0 on, as `add` does."""
        if turn.owner_id != self.owner_id:
            raise NotFound("This turn does not exist.")
        head = _TurnHead(id=turn.id, conversation_id=turn.conversation_id)
        rows = [self._row(head, at, message, is_tainted, 0) for at, (message, is_tainted) in enumerate(messages)]
        await self._add_each(rows)

    async def lay_down(self, conversation_id: str, turns: Mapping[str, Sequence[tuple[Message, bool]]]) -> None:
        """Keep the messages of new turns of a conversation, by turn, each with whether it holds words from outside."""
        rows = [
            self._row(_TurnHead(id=turn_id, conversation_id=conversation_id), at, message, is_tainted, 0)
            for turn_id, messages in turns.items()
            for at, (message, is_tainted) in enumerate(messages)
        ]
        await self.session.execute(insert(MessageTable), rows)

    @reading
    async def of_conversation(self, conversation_id: str, before_ordinal: int | None = None) -> list[MessageRow]:
        """The transcript in order without dropped turns: all of it, or what is ahead of `before_ordinal`."""
        return await self._read(
            _of_conversation(),
            conversation_id=conversation_id,
            before=LATER if before_ordinal is None else before_ordinal,
        )

    @reading
    async def of_turn(self, turn_id: str) -> list[MessageRow]:
        """A turn's messages in order, dropped or not."""
        return await self._read(_of_turn(), turn_id=turn_id)

    async def copy(self, turns: Mapping[str, str], into: str) -> None:
        """Lay the messages of these turns (old id -> new id) down again in the conversation `into`, in order."""
        columns = [column for column in MessageTable.__table__.columns if column.key != "position"]
        own = (self._checked(MessageTable), MessageTable.turn_id.in_(turns))
        rows = await self.session.execute(select(*columns).where(*own).order_by(MessageTable.position))
        copies = [
            {
                **row,
                "id": derived_id("copy", turns[row["turn_id"]], row["id"]),
                "turn_id": turns[row["turn_id"]],
                "conversation_id": into,
            }
            for row in rows.mappings()
        ]
        if copies:
            await self.session.execute(insert(MessageTable), copies)

    def _row(self, head: _TurnHead, round: int, message: Message, is_tainted: bool, nth: int) -> dict[str, Any]:
        return {
            "id": derived_id("message", head.id, round, message.speaker, nth),
            "owner_id": self.owner_id,
            "conversation_id": head.conversation_id,
            "turn_id": head.id,
            "round": round,
            "speaker": message.speaker,
            "body": to_json(message),
            "words": indexed(message.said) if message.speaker in ("user", "assistant") else "",
            "is_tainted": is_tainted,
            "created_at": self.clock(),
        }

    async def _add_each(self, rows: Sequence[dict[str, Any]]) -> None:
        """Insert those whose id does not stand yet."""
        if rows:
            each = [{**row, "said": row.pop("words"), "chat": row["conversation_id"]} for row in rows]
            await self.session.execute(_adding(self._is_postgresql), each[0] if len(each) == 1 else each)

    async def _read(self, statement: Select[Any], **given: Any) -> list[MessageRow]:
        rows = [dict(row) for row in (await self._run(statement, **given)).mappings()]
        return [MessageRow(message=from_json(row.pop("body")), **row) for row in rows]


def _with_turns() -> Select[Any]:
    message, turn = kept.columns(MessageTable), kept.columns(TurnTable)
    found = kept.owned(MessageRow, MessageTable, message.body, turn.ordinal)
    return found.join(TurnTable.__table__, turn.id == message.turn_id)


@cache
def _adding(is_postgresql: bool) -> Insert:
    # Of a temporary chat nothing is indexed: FTS5 keeps words of what was deleted until it merges its segments.
    words = case((ConversationTable.source == "temporary", ""), else_=bindparam("said", type_=String))
    of_chat = select(words).where(ConversationTable.id == bindparam("chat")).scalar_subquery()
    return kept.adding_new(MessageTable, is_postgresql, tells=False).values(words=of_chat)


@cache
def _of_conversation() -> Select[Any]:
    message, turn = kept.columns(MessageTable), kept.columns(TurnTable)
    found = _with_turns().where(message.conversation_id == kept.given("conversation_id"), ~turn.is_dropped)
    # A steered or queued turn has a higher ordinal than what is still said in the one before: turn first.
    return found.where(turn.ordinal < kept.given("before")).order_by(turn.ordinal, message.position)


@cache
def _of_turn() -> Select[Any]:
    message = kept.columns(MessageTable)
    return _with_turns().where(message.turn_id == kept.given("turn_id")).order_by(message.position)


def by_turn(stored: Sequence[MessageRow]) -> list[tuple[int, tuple[Message, ...]]]:
    """The messages grouped by the ordinal of their turn, in order."""
    return [(ordinal, tuple(row.message for row in rows)) for ordinal, rows in groupby(stored, lambda row: row.ordinal)]


def is_from_outside(message: Message, turn_is_tainted: bool, reads: Reads) -> bool:
    """Tell whether a message of a turn holds words from outside; what is not the person's own may repeat what was read.

    Behind the person's own words a remembered fact or a file may stand that came from outside, and so may pictures.
    """
    if message.speaker != "user":
        return reads.outside
    behind = (part.text for part in message.parts[1:] if isinstance(part, Text))
    return turn_is_tainted or bool(message.pictures) or any(FROM_OUTSIDE in text for text in behind)
