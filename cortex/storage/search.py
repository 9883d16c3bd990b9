"""Finds messages by their words: FTS5 on SQLite, a GIN index on PostgreSQL, the same folded words on both."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import TextClause, text

from cortex.base.messages import from_json
from cortex.storage.repository import Repository, reading
from cortex.storage.schema import ConversationTable, MessageTable, TurnTable
from cortex.storage.words import snippet, terms


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A message that was found, with the words round the first match."""

    conversation_id: str
    title: str
    turn_id: str
    speaker: str
    snippet: str
    at: datetime
    is_tainted: bool
    is_title_tainted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    conversation_id: str
    turn_id: str
    speaker: str
    body: dict[str, Any]
    created_at: datetime
    is_tainted: bool
    title: str
    is_title_tainted: bool


class SearchRepository(Repository):
    """Searches one user's messages."""

    @reading
    async def messages_matching(self, query: str, limit: int = 20) -> Sequence[SearchHit]:
        """The newest messages that have, for each word of the query, a word beginning with it; any text will do."""
        wanted = terms(query)
        if not wanted:
            return []
        statement = (
            self._mine(_Found, MessageTable, ConversationTable.title, ConversationTable.is_title_tainted)
            .join(TurnTable, TurnTable.id == MessageTable.turn_id)
            .join(ConversationTable, ConversationTable.id == MessageTable.conversation_id)
            .where(self._has(wanted), ~TurnTable.is_dropped, ConversationTable.deleted_at.is_(None))
            .order_by(MessageTable.position.desc())
            .limit(limit)
        )
        return [
            SearchHit(
                conversation_id=row.conversation_id,
                title=row.title,
                turn_id=row.turn_id,
                speaker=row.speaker,
                snippet=snippet(from_json(row.body).said, wanted),
                at=row.created_at,
                is_tainted=row.is_tainted,
                is_title_tainted=row.is_title_tainted,
            )
            for row in await self._all(_Found, statement)
        ]

    def _has(self, wanted: list[str]) -> TextClause:
        # A term is letters and digits only (storage/words.py), so quoting it is all the escaping either language needs.
        if self._is_postgresql:
            needle = " & ".join(f"'{term}':*" for term in wanted)
            match = text("array_to_tsvector(string_to_array(messages.words, ' ')) @@ CAST(:needle AS tsquery)")
        else:
            needle = " AND ".join(f'"{term}"*' for term in wanted)
            match = text("messages.position IN (SELECT rowid FROM message_index WHERE message_index MATCH :needle)")
        return match.bindparams(needle=needle)
