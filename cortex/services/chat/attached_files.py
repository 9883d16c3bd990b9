"""The files of messages: those that a new one brings, and those of earlier ones that were deleted since."""

from collections.abc import Iterable, Mapping, Sequence

from cortex.base.attachments import Attachment, attachments_of
from cortex.base.errors import NotFound, UserError
from cortex.base.events import Event
from cortex.storage.documents import DocumentsRepository

FILES_MOST = 10


async def attachments(documents: DocumentsRepository, ids: Sequence[str]) -> tuple[Attachment, ...]:
    """The person's files of these ids. UserError where there are too many, NotFound where one is not there."""
    if len(ids) > FILES_MOST:
        raise UserError(f"A message can have at most {FILES_MOST} files.")
    rows = await documents.named(list(dict.fromkeys(ids)))
    if len(rows) < len({*ids}):
        raise NotFound("An attached file no longer exists.")
    return tuple(
        Attachment(id=row.id, name=row.name, media_type=row.media_type, size_bytes=row.size_bytes) for row in rows
    )


async def lost_files(documents: DocumentsRepository, events: Iterable[Event]) -> Mapping[str, bool]:
    """The files of these messages that were deleted -> whether they can still be restored."""
    ids = {file.id for event in events if event.kind == "message" for file in attachments_of(event.payload)}
    rows = {row.id: row for row in await documents.named(sorted(ids))} if ids else {}
    return {id: id in rows for id in ids if id not in rows or rows[id].deleted_at is not None}


async def unread_files(documents: DocumentsRepository, events: Iterable[Event]) -> Mapping[str, str]:
    """The files of these messages of which something was not read -> the sentence that says what."""
    ids = {file.id for event in events if event.kind == "message" for file in attachments_of(event.payload)}
    rows = await documents.named(sorted(ids)) if ids else []
    return {row.id: row.note for row in rows if row.note and row.state != "waiting"}
