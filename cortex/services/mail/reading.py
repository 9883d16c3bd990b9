"""What the readers of mails say, checked field by field, and the rows of the index that it becomes.

The readers are `integrations/foreign/readers/mail_heads.py` and `mail_text.py`.
"""

import base64
import io
import json
import logging
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict, Field

from cortex.base.errors import ToolFailed, UserError
from cortex.base.ids import derived_id, digest
from cortex.integrations.mail.values import RawHead
from cortex.ports.foreign import BusyReadingError, ForeignReader, NotReadNowError, all_of
from cortex.ports.mail import MailPerson
from cortex.storage.mail import MailFolderRow
from cortex.storage.mails import MailRow, found_by

_STRICT = ConfigDict(extra="forbid", strict=True)
Pair = list[str]
SHOWN_PEOPLE = 20
ID_DIGITS = 16
UNREADABLE = {
    "sender": ["", ""],
    "to": [],
    "cc": [],
    "reply_to": [],
    "subject": "(could not be read)",
    "message_id": "",
    "references": [],
    "has_files": False,
}
TOO_LARGE = "This attachment is too large to be fetched."

log = logging.getLogger(__name__)


class HeadRead(BaseModel):
    """The head of a mail. People are pairs of address and name."""

    model_config = _STRICT
    sender: Pair = Field(min_length=2, max_length=2)
    to: list[Pair] = Field(max_length=200)
    cc: list[Pair] = Field(max_length=200)
    reply_to: list[Pair] = Field(max_length=200)
    subject: str = Field(max_length=500)
    message_id: str = Field(max_length=500)
    references: list[str] = Field(max_length=60)
    has_files: bool


class ListedHead(HeadRead):
    """A head among many."""

    uid: int


class FileRead(BaseModel):
    """An attachment as it is listed."""

    model_config = _STRICT
    name: str = Field(max_length=200)
    media_type: str = Field(max_length=100)
    size: int


class TextRead(HeadRead):
    """The whole of a mail."""

    text: str = Field(max_length=200_000)
    files: list[FileRead] = Field(max_length=100)
    note: str = Field(max_length=500)


class FilePiece(BaseModel):
    """A piece of an attachment, in base64."""

    model_config = _STRICT
    name: str = Field(max_length=200)
    media_type: str = Field(max_length=100)
    data: str = ""
    is_too_large: bool = False


async def heads_of(foreign: ForeignReader, heads: Sequence[RawHead]) -> Mapping[int, ListedHead]:
    """Return what the heads say, by number. One that cannot be read says so, and spoils none of the others.

    BusyReadingError where none can be read now.
    """
    try:
        return await _read(foreign, heads)
    except BusyReadingError:
        raise
    except UserError as error:
        if len(heads) > 1:
            half = len(heads) // 2
            return {**await heads_of(foreign, heads[:half]), **await heads_of(foreign, heads[half:])}
        failure = error
    try:
        if isinstance(failure, NotReadNowError):  # it may have been the machine
            return await _read(foreign, heads)
    except BusyReadingError:
        raise
    except UserError:
        log.info("mail: a head could not be read")
    return {one.uid: ListedHead.model_validate({**UNREADABLE, "uid": one.uid}) for one in heads}


async def _read(foreign: ForeignReader, heads: Sequence[RawHead]) -> Mapping[int, ListedHead]:
    given = [[one.uid, base64.b64encode(one.headers).decode("ascii")] for one in heads]
    file = io.BytesIO(json.dumps(given).encode())
    return {one.uid: one for one in await all_of(foreign, "mail_heads", file, ListedHead)}


async def text_of(foreign: ForeignReader, data: bytes) -> TextRead:
    """Return what a mail says. UserError for one that cannot be read."""
    found = await all_of(foreign, "mail_text", io.BytesIO(b'{"file": 0}\n' + data), TextRead)
    return found[0]


async def file_of(foreign: ForeignReader, data: bytes, number: int) -> bytes:
    """An attachment's bytes. ToolFailed where there is none of this number, and where it is too large."""
    order = json.dumps({"file": number}).encode() + b"\n"
    found = await all_of(foreign, "mail_text", io.BytesIO(order + data), FilePiece)
    if not found:
        raise ToolFailed(f"This mail has no attachment {number}.")
    if found[0].is_too_large:
        raise ToolFailed(TOO_LARGE)
    return b"".join(base64.b64decode(one.data) for one in found)


def person(pair: Pair) -> MailPerson:
    """Somebody as a mail names them."""
    return MailPerson(address=pair[0], name=pair[1] if len(pair) > 1 else "")


def row_id(folder: MailFolderRow, uidvalidity: int, uid: int) -> str:
    """Under which id a mail of a folder stands."""
    return derived_id(folder.id, uidvalidity, uid)[:ID_DIGITS]


def row_of(
    folder: MailFolderRow, uidvalidity: int, raw: RawHead, said: HeadRead, threads: Mapping[str, str]
) -> MailRow:
    """The row of a mail. `threads`: the conversations of ids that are known."""
    people = (said.to + said.cc)[:SHOWN_PEOPLE]
    known = next((threads[one] for one in said.references if one in threads), "")
    root = said.references[0] if said.references else said.message_id
    id = row_id(folder, uidvalidity, raw.uid)
    return MailRow(
        id=id,
        owner_id=folder.owner_id,
        folder_id=folder.id,
        uid=raw.uid,
        at=raw.at,
        sender=said.sender[0],
        sender_name=said.sender[1],
        recipients=json.dumps(people, ensure_ascii=False),
        subject=said.subject,
        message_id=said.message_id,
        thread=known or digest(root or id),
        words=found_by(said.subject, " ".join(said.sender), " ".join(part for pair in people for part in pair)),
        size=raw.size,
        is_seen="seen" in raw.flags,
        is_flagged="flagged" in raw.flags,
        is_answered="answered" in raw.flags,
        is_draft="draft" in raw.flags,
        has_files=said.has_files,
    )
