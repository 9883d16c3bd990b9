"""Keeps what is known of a person's files as the folder is: files that tools made or that were copied there join.

Files that changed are read anew, files that are gone are forgotten. It compares places, sizes and times; what holds the
same as before is found by its hash when it is read (`reading.py`). What killed uploads and deletions left goes.
"""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from mimetypes import guess_type
from pathlib import PurePosixPath

from msgspec import Struct

from cortex.base.errors import NotFound
from cortex.base.ids import derived_id
from cortex.integrations.documents.kinds import SEARCHED
from cortex.integrations.files import Files, FolderItem
from cortex.services.runtime import Runtime
from cortex.storage.accounts import AccountsRepository
from cortex.storage.documents import AllDocumentsRepository, DocumentsRepository, FileMark
from cortex.storage.given_files import GivenFiles
from cortex.storage.home import Homes
from cortex.storage.ready_pictures import ReadyPictures

FOUND_MOST = 5_000
FILE_BYTES = 50_000_000
UPLOADS = "uploads/"
NO_UTF8 = "\ufffd"  # in a name: nobody can write it to open the file
ARRIVING = timedelta(minutes=1)  # an upload has its name a moment before its row
SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages", "venv", "vendor"})


class FileLooks(Struct, frozen=True, kw_only=True):
    """Every method takes whose files."""

    runtime: Runtime
    homes: Homes

    def files(self, user_id: str) -> Files:
        """The person's own folder. It need not be there: a look makes none, least of all behind a deleted account."""
        return Files(self.homes.home_of(user_id).path / "files")

    async def look(self, user_id: str, *, has_known: bool = True) -> None:
        """Compare the folder with what is known of it; what is new or changed waits to be read then.

        `has_known`: whether any document of this person may be known; without, an empty folder asks nothing.
        """
        try:
            items = await self.files(user_id).list("", is_deep=True)
        except NotFound:
            items = []
        found = {item.path: item for item in items if self._is_read(item)}
        if not found and not has_known:
            return
        documents = self.runtime.db.repository(DocumentsRepository, user_id)
        marks = {mark.path: mark for mark in await documents.marks()}
        new = [item for path, item in found.items() if path not in marks and self._has_arrived(item)]
        for item in new[: max(FOUND_MOST - len(marks), 0)]:
            await documents.add(
                derived_id("found", user_id, item.path, item.changed_at.isoformat()),
                path=item.path,
                name=PurePosixPath(item.path).name,
                media_type=guess_type(item.path)[0] or "text/plain",
                size_bytes=item.size_bytes,
                sha256="",
                is_found=True,
                is_tainted=True,
            )
        for mark in marks.values():
            await self._compare(documents, mark, found)

    async def _compare(self, documents: DocumentsRepository, mark: FileMark, found: Mapping[str, FolderItem]) -> None:
        item = found.get(mark.path)
        if item is not None:
            is_read = mark.changed_at is not None and mark.state in ("ready", "failed")
            if is_read and (item.size_bytes, item.changed_at) != (mark.size_bytes, mark.changed_at):
                await documents.read_again(mark.id, item.size_bytes)
        elif mark.is_found:
            while await documents.drop_pages(mark.id):
                """Others write in between."""
            await documents.remove(mark.id)

    def _is_read(self, item: FolderItem) -> bool:
        path = PurePosixPath(item.path)
        if item.kind != "file" or item.size_bytes > FILE_BYTES or path.suffix.lower() not in SEARCHED:
            return False
        if NO_UTF8 in item.path:
            return False
        return not any(part.startswith(".") or part in SKIPPED for part in path.parts)

    def _has_arrived(self, item: FolderItem) -> bool:
        return not item.path.startswith(UPLOADS) or item.changed_at < self.runtime.clock() - ARRIVING


UNDO = timedelta(days=1)

log = logging.getLogger(__name__)


class FileClearing(Struct, frozen=True, kw_only=True):
    """At the start, and once a day."""

    runtime: Runtime
    homes: Homes

    async def clear(self) -> None:
        """Of everybody: what killed uploads left, and for good what was deleted more than `UNDO` ago."""
        known = await self.runtime.db.repository(AllDocumentsRepository).ids()
        deleted = await self.runtime.db.repository(AllDocumentsRepository).owners(of_deleted=True)
        for account in await self.runtime.db.repository(AccountsRepository).list():
            try:
                await GivenFiles(home=self.homes.home_of(account.id)).sweep(known)
                if account.id in deleted:
                    await self._clear(account.id, self.runtime.clock() - UNDO)
            except OSError as error:  # one person's folder keeps nobody else's from being cleared
                log.warning("files: the folder of %s was not cleared: %s", account.id, error)

    async def _clear(self, user_id: str, before: datetime) -> None:
        home = self.homes.home_of(user_id)
        files = GivenFiles(home=home)
        documents = self.runtime.db.repository(DocumentsRepository, user_id)
        for row in await documents.deleted(self.runtime.clock()):
            if await documents.at(row.path) is None:  # else its name has gone to another file
                await files.remove(row.id, row.path)  # a kill in the middle of the deletion left it where it was
        for row in await documents.deleted(before):
            await files.forget(row.id)
            while await documents.drop_pages(row.id):
                """Others write in between."""
            await documents.remove(row.id)
            if not await documents.has(row.sha256):
                await ReadyPictures(home=home).remove(row.sha256)
