"""Has the text of documents read in the background, two at a time, each once: a kill leaves a lease that runs out.

Files that nobody gave are looked for from time to time (`file_looks.py`). `app.py` lets it run beside the rest.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from io import BufferedReader
from os import fstat

from msgspec import Struct, field
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.clock import ticks_s
from cortex.base.errors import CortexError, NotFound, ToolFailed
from cortex.ports.documents import Extracted, Extractor, ExtractorSession
from cortex.services.content.file_looks import FileClearing, FileLooks
from cortex.services.runtime import Runtime
from cortex.storage.accounts import AccountRow, AccountsRepository
from cortex.storage.documents import (
    PAGES_AT_ONCE,
    AllDocumentsRepository,
    DocumentRow,
    DocumentsRepository,
    page_words,
)

AT_ONCE = 2
EVERY_S = 3.0  # between two looks at whether anything was written
LOOK_EVERY_S = 900.0
GONE = "The file no longer exists."

log = logging.getLogger(__name__)


class DocumentReading(Struct, frozen=True, kw_only=True):
    """Reads what waits. `wake` it when something does, else it looks by itself."""

    runtime: Runtime
    looks: FileLooks
    clearing: FileClearing
    extractor: Extractor
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _read: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        """Something waits to be read."""
        self._news.set()

    async def settled(self, user_id: str, within_s: float) -> int:
        """Wait until all that this person's files hold was read, or so long; how many still wait."""
        documents, end_s = self.runtime.db.repository(DocumentsRepository, user_id), ticks_s() + within_s
        while (left := await documents.unread()) and ticks_s() < end_s:
            self._read.clear()
            with suppress(TimeoutError):  # another process may read them: look all the same
                async with asyncio.timeout(min(1.0, within_s)):
                    await self._read.wait()
        return left

    async def read_waiting(self) -> None:
        """Until cancelled: read what waits. What fails is told in the log and tried again."""
        with closing(self.runtime.db.commits.another()) as commits:
            await self._guarded(self._begin)
            while True:
                if self._news.is_set() or await commits.are_new():
                    self._news.clear()
                    await self._guarded(self.read_all)
                with suppress(TimeoutError):
                    async with asyncio.timeout(EVERY_S):
                        await self._news.wait()

    async def look_around(self) -> None:
        """Until cancelled: look from time to time for files of everybody that nobody gave."""
        await self._guarded(self.clearing.clear)  # first: what a kill left of a deletion would be found as a new file
        while True:
            accounts, known = await self.runtime.outages.wait_out(self.whose)
            for account in accounts:
                try:
                    await self.looks.look(account.id, has_known=account.id in known)
                except (CortexError, SQLAlchemyError, OSError) as error:
                    log.warning("documents: the files of %s could not be looked at: %s", account.id, error)
            self.wake()
            await asyncio.sleep(LOOK_EVERY_S)

    async def whose(self) -> tuple[Sequence[AccountRow], frozenset[str]]:
        """All accounts, and of which of them any document is known: the others' are looked for on the disk alone."""
        db = self.runtime.db
        return await db.repository(AccountsRepository).list(), await db.repository(AllDocumentsRepository).owners()

    async def read_all(self) -> None:
        """Read all that waits now, `AT_ONCE` at a time."""
        if not await self.runtime.db.repository(AllDocumentsRepository).are_waiting():
            return  # most of what was written is no document, and a claim would take the write lock
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._guarded(self._drain))

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except (CortexError, SQLAlchemyError, OSError) as error:
            log.warning("documents: reading failed, retrying: %s", error)

    async def _begin(self) -> None:
        if not self.runtime.settings.is_postgresql:  # else another process may read one now: its lease holds
            await self.runtime.outages.wait_out(self.runtime.db.repository(AllDocumentsRepository).release)

    async def _drain(self) -> None:
        waiting = self.runtime.db.repository(AllDocumentsRepository)
        row = await waiting.claim()
        if row is None:
            return
        async with self.extractor.session() as session:
            while row is not None:
                await self._read_one(session, row)
                self._read.set()
                row = await waiting.claim()

    async def _read_one(self, session: ExtractorSession, row: DocumentRow) -> None:
        documents = self.runtime.db.repository(DocumentsRepository, row.owner_id)
        try:
            file = await self.looks.files(row.owner_id).opened(row.path)
        except NotFound:
            if (await documents.get(row.id)).deleted_at is not None:  # meanwhile: once it is back, it is read
                return
            if row.is_found:
                while await documents.drop_pages(row.id):
                    """Others write in between."""
                await documents.remove(row.id)
            else:
                await documents.keep_text(row.id, Extracted(note=GONE))
            return
        except ToolFailed as error:
            await documents.keep_text(row.id, Extracted(note=error.message))
            return
        with closing(file):
            changed_at, sha256 = await asyncio.to_thread(_mark, file)
            if row.read_at is not None and sha256 == row.sha256:  # touched, or copied over by the same
                await documents.keep_mark(row, changed_at, sha256)
                return
            found = await session.extract(file, row.name)
        words = await asyncio.to_thread(page_words, row.path, found)
        with suppress(NotFound):  # deleted for good meanwhile
            while await documents.drop_pages(row.id):
                """Others write in between; so too below. What a kill leaves is read anew."""
            for at in range(0, len(words), PAGES_AT_ONCE):
                some = slice(at, at + PAGES_AT_ONCE)
                await documents.add_pages(row.id, found.pages[some], words[some])
            async with self.runtime.db.transaction(row.owner_id) as repository:
                kept = await repository(DocumentsRepository).keep_text(row.id, found, are_pages_kept=True)
                await repository(DocumentsRepository).keep_mark(kept, changed_at, sha256)


def _mark(file: BufferedReader) -> tuple[datetime, str]:
    """When the file was changed, and the hash of what it holds."""
    return datetime.fromtimestamp(fstat(file.fileno()).st_mtime, UTC), hashlib.file_digest(file, "sha256").hexdigest()
