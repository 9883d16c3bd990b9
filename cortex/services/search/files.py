"""Finds a person's files by their names and by the words in them, at the page where these stand."""

from collections.abc import Sequence

from cortex.base.user import User
from cortex.services.search.search import Hit, marked
from cortex.storage.db import Database
from cortex.storage.document_search import DocumentSearchRepository
from cortex.storage.documents import DocumentRow, DocumentsRepository

PAGES_MOST = 6  # any of the words finds one: behind the best there is little to be had


class FileHits:
    """A source of `SearchService`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def find(self, user: User, query: str, most: int) -> Sequence[Hit]:
        """Files with the words in their names, the newest first; then pages with the most and rarest of them."""
        async with self._db.read_transaction(user.id) as repository:
            named = await repository(DocumentsRepository).list(query, most)
            hits = [_hit(row, query) for row in named]
            for page in await repository(DocumentSearchRepository).pages_matching(
                query, limit=min(PAGES_MOST, most - len(hits))
            ):
                row = await repository(DocumentsRepository).at(page.path)
                if row is not None:
                    hits.append(_hit(row, query, page.number if row.pages > 1 else 0, page.passage))
        return hits


def _hit(row: DocumentRow, query: str, page: int = 0, passage: str = "") -> Hit:
    return Hit(
        path=f"/files/{row.id}?page={page}#page-{page}" if page else f"/files/{row.id}",
        title=marked(row.name, query),
        snippet=marked(passage, query),
        at=row.created_at,
        where=f"page {page}" if page else "",
    )
