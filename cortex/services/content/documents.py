"""The files that people give: taken in whole, listed, opened, deleted and brought back. Pages and messages ask here.

Their text is read by `reading.py`; the files themselves are `storage/given_files.py`'s matter.
"""

from collections.abc import Callable, Sequence
from io import BufferedReader
from pathlib import Path
from typing import IO

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.errors import NotFound, UserError
from cortex.base.ids import new_id
from cortex.base.media import PICTURES
from cortex.base.user import User
from cortex.ports.documents import PageText as PageText
from cortex.services.content.pictures import PicturesService
from cortex.services.runtime import Runtime
from cortex.storage.documents import DocumentRow as DocumentRow
from cortex.storage.documents import DocumentsRepository, DocumentState
from cortex.storage.given_files import GivenFile, GivenFiles
from cortex.storage.home import Homes

MB = 1_000_000
PAGES_SHOWN = 100
CHARACTERS_SHOWN = 200_000  # to make a page of 3 million held up everybody else's for a second
GONE = "That file was deleted."


class FileSpace(Struct, frozen=True, kw_only=True):
    """The space that a person's files take, and may; `deleted_bytes` of it are deleted files, not yet gone."""

    used_bytes: int
    deleted_bytes: int
    most_bytes: int

    @property
    def percent(self) -> float:
        """The share that is used, at most 100."""
        return min(100.0, 100 * self.used_bytes / self.most_bytes)


class DocumentsService(Struct, frozen=True, kw_only=True):
    """Every method takes whose files. `wake`: has a new one's text be read."""

    runtime: Runtime
    homes: Homes
    pictures: PicturesService
    wake: Callable[[], None]

    @property
    def limit_bytes(self) -> int:
        """Return what one file may have."""
        return self.runtime.settings.upload_mb * MB

    async def give(self, user: User, name: str, source: IO[bytes], size_bytes: int, *, id: str = "") -> DocumentRow:
        """Keep a file; UserError where it is too large, over the quota, or of a type that is not taken.

        `id`: of whoever may give it again; one that stands under it is handed back.
        """
        if size_bytes > self.limit_bytes:
            raise UserError(f"The limit for one file is {self.runtime.settings.upload_mb} MB.")
        documents = self.runtime.db.repository(DocumentsRepository, user.id)
        if id and (known := await documents.named([id])):
            return known[0]
        self._must_fit(await documents.used_bytes() + size_bytes)
        id = id or new_id(self.runtime.clock)
        async with self._files(user).receive(id, name, source) as file:
            is_picture = file.media_type in PICTURES
            if is_picture:  # what cannot be read is not kept
                await self.pictures.ready(user.id, file.sha256, file.path)
            row = await self._add(user, id, file, "picture" if is_picture else "waiting")
        self.wake()
        return row

    async def _add(self, user: User, id: str, file: GivenFile, state: DocumentState) -> DocumentRow:
        async with self.runtime.db.transaction(user.id) as repository:
            self._must_fit(await repository(DocumentsRepository).used_bytes_held() + file.size_bytes)
            return await repository(DocumentsRepository).add(
                id,
                path=file.path,
                name=file.name,
                media_type=file.media_type,
                size_bytes=file.size_bytes,
                sha256=file.sha256,
                state=state,
                is_tainted=True,
            )

    def _must_fit(self, bytes_then: int) -> None:
        if bytes_then > self.runtime.settings.files_mb * MB:
            most = f"{self.runtime.settings.files_mb:,} MB"
            raise UserError(
                f"Your files would need more than {most}. Delete some on the Files page; "
                "deleted files count for a day, until they can no longer be restored."
            )

    async def space(self, user: User) -> FileSpace:
        """Return what the person's files take; deleted ones count until they are gone for good."""
        documents = self.runtime.db.repository(DocumentsRepository, user.id)
        return FileSpace(
            used_bytes=await documents.used_bytes(),
            deleted_bytes=await documents.deleted_bytes(),
            most_bytes=self.runtime.settings.files_mb * MB,
        )

    async def list(
        self, user: User, query: str = "", *, skip: int = 0, limit: int | None = None
    ) -> Sequence[DocumentRow]:
        """The newest files whose names have all words of the query, behind the first `skip` of them."""
        return await self.runtime.db.repository(DocumentsRepository, user.id).list(query, skip=skip, limit=limit)

    async def deleted(self, user: User) -> Sequence[DocumentRow]:
        """Those that can still be restored, the latest deleted first."""
        return await self.runtime.db.repository(DocumentsRepository, user.id).deleted(self.runtime.clock())

    async def was_deleted(self, user: User, id: str) -> DocumentRow | None:
        """The file while it is deleted and can be restored; None for one that is there. NotFound for neither."""
        row = await self.runtime.db.repository(DocumentsRepository, user.id).get(id)
        return row if row.deleted_at else None

    async def named(self, user: User, ids: Sequence[str]) -> Sequence[DocumentRow]:
        """Those of these that are the person's and not deleted."""
        rows = await self.runtime.db.repository(DocumentsRepository, user.id).named(ids)
        return [row for row in rows if row.deleted_at is None]

    async def get(self, user: User, id: str) -> DocumentRow:
        """The file; NotFound where it is another's, or deleted."""
        row = await self.runtime.db.repository(DocumentsRepository, user.id).get(id)
        if row.deleted_at is not None:
            raise NotFound(GONE)
        return row

    async def opened(self, user: User, id: str) -> tuple[DocumentRow, BufferedReader]:
        """The file, opened: close it. NotFound where it is not there any more."""
        row = await self.get(user, id)
        return row, await self._files(user).opened(row.path)

    async def picture(self, user: User, id: str, *, is_small: bool) -> Path:
        """Where the picture of this file is, as it was encoded anew; NotFound for a file that is none."""
        row = await self.get(user, id)
        if not row.is_picture:
            raise NotFound("This file is not a picture.")
        if is_small:
            return await self.pictures.small(user.id, row)
        return (await self.pictures.ready(user.id, row.sha256, row.path)).path

    async def text(self, user: User, id: str, first: int = 1) -> tuple[DocumentRow, Sequence[PageText]]:
        """The file with its text by page, from the page `first` on, as much as is shown at once."""
        row = await self.get(user, id)
        first = max(1, min(first, row.pages))
        documents = self.runtime.db.repository(DocumentsRepository, user.id)
        return row, _shown(await documents.text_of(id, first, first + PAGES_SHOWN - 1))

    async def delete(self, user: User, id: str) -> DocumentRow:
        """Delete it; for a day it can be brought back."""
        row = await self.get(user, id)
        deleted = await self.runtime.db.repository(DocumentsRepository, user.id).set_deleted(id, is_deleted=True)
        await self._files(user).remove(
            id, row.path
        )  # a kill ahead of this leaves a file that `FileClearing` takes away
        return deleted

    async def bring_back(self, user: User, id: str) -> DocumentRow:
        """Take a deletion back; NotFound once it is too late."""
        documents = self.runtime.db.repository(DocumentsRepository, user.id)
        row = await documents.get(id)
        if row.deleted_at is None:
            return row
        path = await self._files(user).bring_back(id, row.path)
        back = await documents.set_deleted(id, is_deleted=False, path=path)
        self.wake()
        return back

    def _files(self, user: User) -> GivenFiles:
        return GivenFiles(home=self.homes.home_of(user.id))


def _shown(pages: Sequence[PageText]) -> Sequence[PageText]:
    """Those of the first that fit on a page of a browser; of one that is too long by itself, the beginning."""
    shown: list[PageText] = []
    room = CHARACTERS_SHOWN
    for page in pages:
        if shown and len(page.text) > room:
            break
        shown.append(replace(page, text=f"{page.text[:room]} …") if len(page.text) > room else page)
        room -= len(page.text)
    return shown
