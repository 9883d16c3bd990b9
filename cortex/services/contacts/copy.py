"""What the reader of contacts says of a resource, and the row of the local copy that it becomes.

The reader is `integrations/foreign/readers/contacts.py`; its answers are checked here, field by field.
"""

import io
import json
import re
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from cortex.base.errors import UserError
from cortex.base.ids import derived_id
from cortex.integrations.dav.values import Resource
from cortex.ports.contacts import Contact, ContactBook, ContactValue
from cortex.ports.foreign import ForeignReader, NotReadNowError, all_of
from cortex.storage.contacts import ContactRow
from cortex.storage.words import fold

READ_AT_ONCE_BYTES, READ_AT_ONCE = 1_500_000, 500
WORDS_CHARACTERS = 4_000
_STRICT = ConfigDict(extra="forbid", strict=False)
_NO_DIGIT = re.compile(r"\D+")
_Value = tuple[str, str]  # label, value


class ContactRest(BaseModel):
    """The part of the local copy that is kept as JSON."""

    model_config = _STRICT
    nickname: str = Field(default="", max_length=300)
    organization: str = Field(default="", max_length=300)
    role: str = Field(default="", max_length=300)
    emails: list[_Value] = Field(default_factory=list, max_length=20)
    phones: list[_Value] = Field(default_factory=list, max_length=20)
    addresses: list[_Value] = Field(default_factory=list, max_length=20)
    birthday: str = Field(default="", max_length=10)
    note: str = Field(default="", max_length=4_000)


class ContactRead(ContactRest):
    """A contact."""

    uid: str = Field(max_length=500)
    name: str = Field(max_length=300)


class CardRead(BaseModel):
    """A resource as it was read. `contact`: None of a group; `fault`: why nothing of it can be read."""

    model_config = _STRICT
    href: str = Field(max_length=4_000)
    fault: str = Field(default="", max_length=200)
    contact: ContactRead | None = None


async def read_cards(foreign: ForeignReader, resources: Sequence[Resource]) -> list[CardRead]:
    """Each resource as the reader understands it, several at once; one that breaks a reading is read alone, then told.

    NotReadNowError where another try may do better.
    """
    found: list[CardRead] = []
    for part in _parts(resources):
        try:
            found += await _read(foreign, part)
        except NotReadNowError:
            raise
        except UserError as error:
            if len(part) == 1:
                found.append(CardRead(href=part[0].href, fault=error.message[:200]))
                continue
            for one in part:
                found += await read_cards(foreign, [one])
    return found


async def _read(foreign: ForeignReader, part: Sequence[Resource]) -> Sequence[CardRead]:
    order = {"resources": [[one.href, one.data] for one in part]}
    return await all_of(foreign, "contacts", io.BytesIO(json.dumps(order).encode()), CardRead)


def _parts(resources: Sequence[Resource]) -> list[list[Resource]]:
    """Portions of a bounded size, so that one reading ends within its limits."""
    parts: list[list[Resource]] = []
    size = READ_AT_ONCE_BYTES
    for one in resources:
        size += len(one.data)
        if size >= READ_AT_ONCE_BYTES or len(parts[-1]) >= READ_AT_ONCE:
            parts.append([])
            size = len(one.data)
        parts[-1].append(one)
    return parts


def row_of(owner_id: str, book_id: str, etag: str, read: CardRead) -> ContactRow | None:
    """The row of the copy; None of a group, and of what could not be read."""
    one = read.contact
    if one is None or read.fault:
        return None
    rest = ContactRest(**one.model_dump(include=set(ContactRest.model_fields)))
    numbers = [_NO_DIGIT.sub("", value) for _, value in one.phones]
    said = [one.name, one.nickname, one.organization, *(value for _, value in [*one.emails, *one.phones]), *numbers]
    return ContactRow(
        id=derived_id("contact", book_id, read.href),
        owner_id=owner_id,
        book_id=book_id,
        href=read.href,
        etag=etag,
        uid=one.uid,
        name=one.name or "No name",
        key=fold(one.name)[:300],
        words=fold(" ".join(said))[:WORDS_CHARACTERS],
        birthday=one.birthday[-5:],
        rest=rest.model_dump_json(exclude_defaults=True),
    )


def contact_of(row: ContactRow, book: ContactBook) -> Contact:
    """A row as whoever asks sees it."""
    rest = ContactRest.model_validate_json(row.rest)
    return Contact(
        id=row.id,
        book=book,
        name=row.name,
        nickname=rest.nickname,
        organization=rest.organization,
        role=rest.role,
        emails=_values(rest.emails),
        phones=_values(rest.phones),
        addresses=_values(rest.addresses),
        birthday=rest.birthday,
        note=rest.note,
    )


def _values(pairs: Sequence[_Value]) -> list[ContactValue]:
    return [ContactValue(value=value, label=label) for label, value in pairs]
