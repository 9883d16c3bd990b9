"""Finds chats by their titles and by what was said in them. Deleted chats and versions out of view are never found."""

from collections.abc import Sequence

from cortex.base.user import User
from cortex.services.search.search import Hit, marked
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database
from cortex.storage.search import SearchRepository

UNTITLED = "New chat"


class ChatHits:
    """Two sources of `SearchService`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def titles(self, user: User, query: str, most: int) -> Sequence[Hit]:
        """Chats by their titles, the last used first."""
        rows = await self._db.repository(ConversationsRepository, user.id).list(query, most, is_archived=None)
        return [
            Hit(
                path=f"/c/{row.id}",
                title=marked(row.title, query),
                at=row.updated_at,
                is_archived=row.archived_at is not None,
            )
            for row in rows
        ]

    async def messages(self, user: User, query: str, most: int) -> Sequence[Hit]:
        """What was said, the newest first, each turn once: its question and its answer stand at the same place."""
        rows = await self._db.repository(SearchRepository, user.id).messages_matching(query, 2 * most)
        turns = {row.turn_id: row for row in reversed(rows)}  # of a turn the newest, which is its answer
        newest = sorted(turns.values(), key=lambda row: rows.index(row))[:most]
        return [
            Hit(
                path=f"/c/{row.conversation_id}/at/{row.turn_id.rpartition(':')[2]}",
                title=((row.title or UNTITLED, False),),
                snippet=marked(row.snippet, query),
                at=row.at,
                is_archived=row.is_archived,
            )
            for row in newest
        ]
