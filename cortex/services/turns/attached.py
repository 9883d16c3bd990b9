"""Reads what came with a turn's message, as its model gets it: pictures as parts, texts behind the words.

Read once, when the turn opens. A text that is still being read is waited for.
"""

import asyncio
from collections.abc import Sequence

from msgspec import Struct

from cortex.base.attachments import Attachment, words_of_file
from cortex.base.errors import CortexError
from cortex.base.messages import Picture
from cortex.services.content.pictures import PicturesService
from cortex.services.runtime import Runtime
from cortex.storage.documents import DocumentRow, DocumentsRepository
from cortex.storage.turns import TurnRow

WAIT_S = 60.0
LOOK_S = 0.2
STILL_READ = "Its text is still being read."


class AttachedFiles(Struct, frozen=True, kw_only=True):
    """Reads them."""

    runtime: Runtime
    pictures: PicturesService

    async def of(self, row: TurnRow) -> tuple[tuple[Picture, ...], tuple[str, ...]]:
        """The pictures, and what a model reads of the other files."""
        if not row.attachments:
            return (), ()
        return await self._parts(row.owner_id, await self._read(row))

    async def of_draft(self, user_id: str, ids: Sequence[str]) -> tuple[tuple[Picture, ...], tuple[str, ...]]:
        """The same for a message that is not sent yet, as far as it is read by now."""
        if not ids:
            return (), ()
        files = await self.runtime.db.repository(DocumentsRepository, user_id).named(ids)
        return await self._parts(user_id, [file for file in files if not file.deleted_at])

    async def _parts(self, user_id: str, files: Sequence[DocumentRow]) -> tuple[tuple[Picture, ...], tuple[str, ...]]:
        pictures: list[Picture] = []
        texts: list[str] = []
        for file in files:
            if not file.is_picture:
                texts.append(_words(file, STILL_READ if file.state == "waiting" else file.note))
                continue
            try:
                pictures.append(await self.pictures.part(user_id, file))
            except CortexError as error:
                texts.append(_words(file, error.message))
        return tuple(pictures), tuple(texts)

    async def _read(self, row: TurnRow) -> list[DocumentRow]:
        """The files, once their texts are read or it has taken too long."""
        ids = [file.id for file in row.attachments]
        documents = self.runtime.db.repository(DocumentsRepository, row.owner_id)
        ends_s = self.runtime.ticks_s() + WAIT_S
        while True:
            files = [*await documents.named(ids)]
            if self.runtime.ticks_s() > ends_s or all(file.state != "waiting" for file in files):
                return files
            await asyncio.sleep(LOOK_S)


def _words(file: DocumentRow, note: str) -> str:
    about = Attachment(id=file.id, name=file.name, media_type=file.media_type, size_bytes=file.size_bytes)
    return words_of_file(
        about,
        file.path,
        pages=file.pages,
        opening=file.opening,
        characters=file.characters,
        outline=file.outline,
        note=note,
    )
