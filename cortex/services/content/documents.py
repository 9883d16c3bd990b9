"""The files that people give: taken in whole, listed, opened, deleted and brought back. Pages and messages ask here.

Their text is read by `reading.py`; the files themselves are `storage/given_files.py`'s matter.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO

from cortex.base.errors import NotFound, UserError
from cortex.base.ids import new_id
from cortex.base.media import PICTURES
from cortex.base.user import User
from cortex.services.runtime import Runtime
from cortex.storage.accounts import AccountsRepository
from cortex.storage.documents import AllDocumentsRepository, DocumentsRepository
from cortex.storage.documents import DocumentPage as DocumentPage
from cortex.storage.documents import DocumentRow as DocumentRow
from cortex.storage.given_files import GivenFiles
from cortex.storage.home import Homes

MB = 1_000_000
UNDO = timedelta(days=1)
LISTED = 500
GONE = "That file was deleted."

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSpace:
    """How much of what is allowed a person's files take."""

    used_bytes: int
    most_bytes: int

    @property
    def percent(self) -> float:
        """The share that is used, at most 100."""
        return min(100.0, 100 * self.used_bytes / self.most_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentsService:
    """Every method takes whose files."""

    runtime: Runtime
    homes: Homes

    @property
    def limit_bytes(self) -> int:
        """What one file may have."""
        return self.runtime.settings.upload_mb * MB

    async def give(self, user: User, name: str, source: IO[bytes], size_bytes: int) -> DocumentRow:
        """Keep a file; UserError where it is too large, over the quota, or of a type that is not taken."""
        if size_bytes > self.limit_bytes:
            raise UserError(f"A file may have {self.runtime.settings.upload_mb} MB; this one is larger.")
        documents = self.runtime.db.repository(DocumentsRepository, user.id)
        await self._must_fit(documents, size_bytes)
        id = new_id(self.runtime.clock)
        async with self._files(user).receive(id, name, source) as file, self.runtime.db.transaction(user.id) as opened:
            await self._must_fit(opened(DocumentsRepository), file.size_bytes)
            return await opened(DocumentsRepository).add(
                id,
                path=file.path,
                name=file.name,
                media_type=file.media_type,
                size_bytes=file.size_bytes,
                sha256=file.sha256,
                state="picture" if file.media_type in PICTURES else "waiting",
            )

    async def _must_fit(self, documents: DocumentsRepository, size_bytes: int) -> None:
        if await documents.used_bytes() + size_bytes > self.runtime.settings.files_mb * MB:
            most = f"{self.runtime.settings.files_mb:,} MB"
            raise UserError(f"Your files may have {most} in all. Delete some on the page Files first.")

    async def space(self, user: User) -> FileSpace:
        """What the person's files take; deleted ones count until they are gone for good."""
        used = await self.runtime.db.repository(DocumentsRepository, user.id).used_bytes()
        return FileSpace(used_bytes=used, most_bytes=self.runtime.settings.files_mb * MB)

    async def list(self, user: User, query: str = "") -> Sequence[DocumentRow]:
        """The newest files whose names have all words of the query."""
        return await self.runtime.db.repository(DocumentsRepository, user.id).list(query, LISTED)

    async def get(self, user: User, id: str) -> DocumentRow:
        """The file; NotFound where it is another's, or deleted."""
        row = await self.runtime.db.repository(DocumentsRepository, user.id).get(id)
        if row.deleted_at is not None:
            raise NotFound(GONE)
        return row

    async def opened(self, user: User, id: str) -> tuple[DocumentRow, Path]:
        """The file with where it is; NotFound where it is not there any more."""
        row = await self.get(user, id)
        return row, await self._files(user).path_of(row.path)

    async def text(self, user: User, id: str) -> tuple[DocumentRow, Sequence[DocumentPage]]:
        """The file with its text by page."""
        row = await self.get(user, id)
        return row, await self.runtime.db.repository(DocumentsRepository, user.id).text_of(id)

    async def delete(self, user: User, id: str) -> DocumentRow:
        """Delete it; for `UNDO` it can be brought back."""
        row = await self.get(user, id)
        deleted = await self.runtime.db.repository(DocumentsRepository, user.id).set_deleted(id, is_deleted=True)
        await self._files(user).remove(id, row.path)  # a kill ahead of this leaves a file that `clear` takes away
        return deleted

    async def bring_back(self, user: User, id: str) -> DocumentRow:
        """Take a deletion back; NotFound once it is too late."""
        documents = self.runtime.db.repository(DocumentsRepository, user.id)
        row = await documents.get(id)
        if row.deleted_at is None:
            return row
        path = await self._files(user).bring_back(id, row.path)
        return await documents.set_deleted(id, is_deleted=False, path=path)

    async def clear(self) -> None:
        """Of everybody: what killed uploads left, and for good what was deleted more than `UNDO` ago."""
        known = await self.runtime.db.repository(AllDocumentsRepository).ids()
        for account in await self.runtime.db.repository(AccountsRepository).list():
            try:
                await self._clear(account.id, known, self.runtime.clock() - UNDO)
            except OSError as error:  # one person's folder keeps nobody else's from being cleared
                log.warning("files: the folder of %s was not cleared: %s", account.id, error)

    async def _clear(self, user_id: str, known: frozenset[str], before: datetime) -> None:
        files = GivenFiles(home=self.homes.home_of(user_id))
        await files.sweep(known)
        documents = self.runtime.db.repository(DocumentsRepository, user_id)
        for row in await documents.deleted(before):
            await files.remove(row.id, row.path)
            await files.forget(row.id)
            await documents.remove(row.id)

    def _files(self, user: User) -> GivenFiles:
        return GivenFiles(home=self.homes.home_of(user.id))
