"""One person's documents as tools reach them. Implements the `DocumentTexts` port over the index and the reading."""

from contextlib import closing
from pathlib import PurePosixPath

from msgspec import Struct

from cortex.base.errors import ToolFailed
from cortex.integrations.files import Files
from cortex.ports.documents import DocumentHits, DocumentText, Extracted
from cortex.services.content.reading import DocumentReading
from cortex.storage.db import Database
from cortex.storage.document_search import DocumentSearchRepository
from cortex.storage.documents import DocumentRow, DocumentsRepository

SEARCH_WAIT_S = 10.0
READ_WAIT_S = 40.0
HITS = 8
UNREAD = "{path} is still being read. Try again in a moment."


class UserDocuments(Struct, frozen=True, kw_only=True):
    """Implements `DocumentTexts` for one user; `files`: all folders that they may read."""

    db: Database
    reading: DocumentReading
    files: Files
    user_id: str

    async def search(self, query: str, path: str = "") -> DocumentHits:
        """The best pages; files that are not read yet are waited for a little."""
        root, rest = await self.files.place(path or ".")
        if root.name:
            raise ToolFailed("Only the user's own files are searched so; file_grep looks into other folders.")
        await self._look()
        unread = await self.reading.settled(self.user_id, SEARCH_WAIT_S)
        within = "" if rest == "." else rest
        found = await self.db.repository(DocumentSearchRepository, self.user_id).pages_matching(query, within, HITS)
        return DocumentHits(hits=tuple(found), unread=unread)

    async def read(self, path: str, first: int, last: int | None) -> DocumentText:
        """The text by page: as it is kept of the user's own files, else read now."""
        root, rest = await self.files.place(path)
        await self.files.stat(path)  # NotFound ahead of any wait
        row = None if root.name else await self._row(rest)
        if row is None:
            return _cut(await self._extracted(path), first, last)
        if not row.pages:
            raise ToolFailed(UNREAD.format(path=path) if row.state == "waiting" else row.note)
        pages = await self.db.repository(DocumentsRepository, self.user_id).text_of(row.id, first, last)
        return DocumentText(
            pages=tuple(pages),
            count=row.pages,
            is_paged=row.is_paged,
            outline=row.outline,
            note=row.note,
        )

    async def _row(self, path: str) -> DocumentRow | None:
        """Return what is known of the file, as it is now; None for what is not read without being asked."""
        await self._look()
        documents = self.db.repository(DocumentsRepository, self.user_id)
        row = await documents.at(path)
        if row is None or row.state != "waiting":
            return row
        await self.reading.settled(self.user_id, READ_WAIT_S)
        return await documents.at(path)

    async def _look(self) -> None:
        await self.reading.looks.look(self.user_id)
        self.reading.wake()

    async def _extracted(self, path: str) -> Extracted:
        with closing(await self.files.opened(path)) as file:
            async with self.reading.extractor.session() as session:
                return await session.extract(file, PurePosixPath(path).name)


def _cut(found: Extracted, first: int, last: int | None) -> DocumentText:
    if not found.pages:
        raise ToolFailed(found.note)
    wanted = tuple(page for page in found.pages if first <= page.number <= (last or len(found.pages)))
    return DocumentText(
        pages=wanted, count=len(found.pages), is_paged=found.is_paged, outline=found.outline, note=found.note
    )
