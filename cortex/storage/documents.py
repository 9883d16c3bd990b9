"""Files that people gave: what they are, whether their text was read, and that text by page."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Literal, Required, TypedDict, Unpack

from msgspec import Struct
from sqlalchemy import ColumnElement, Select, func, or_, select, update

from cortex.ports.documents import Extracted, PageText
from cortex.storage import kept
from cortex.storage.repository import Repository, SharedRepository, reading, selected
from cortex.storage.schema import AccountTable, DocumentPageTable, DocumentTable
from cortex.storage.table import each_word
from cortex.storage.words import indexed, owner_word

DocumentState = Literal["waiting", "ready", "failed", "picture"]  # a picture has no text to be read
OPENING_CHARACTERS = 8_000  # about 2,000 tokens: so much goes with a message
READ_FOR = timedelta(minutes=3)  # a lease: what a killed process was reading is taken up again
TRIES_MOST = 3
PAGES_AT_ONCE = 100  # in one transaction: 2,000 pages took the writer for 2.5 s (2026-11-27)


class DocumentRow(Struct, frozen=True, kw_only=True):
    """A file as it is kept. `opening`: the first `OPENING_CHARACTERS` of the `characters` of its text.

    `note`: a sentence on what could not be read; `pages`: 0 until it was read; `is_paged`: they are the file's own.
    `is_found`: nobody gave it, it was found in the folder; `changed_at`: of the file, when it was read.
    """

    id: str
    owner_id: str
    path: str
    name: str
    media_type: str
    size_bytes: int
    sha256: str
    state: DocumentState
    tries: int
    pages: int
    characters: int
    outline: tuple[str, ...]
    opening: str
    note: str
    is_tainted: bool
    is_paged: bool
    is_found: bool
    changed_at: datetime | None
    created_at: datetime
    read_at: datetime | None
    deleted_at: datetime | None

    @property
    def is_picture(self) -> bool:
        """Tell whether models that see get it as a picture."""
        return self.state == "picture"

    @property
    def is_whole(self) -> bool:
        """Tell whether `opening` is all of its text."""
        return self.characters <= len(self.opening)


class FileMark(Struct, frozen=True, kw_only=True):
    """By which a file is known again: where it is, how large, when it was changed."""

    id: str
    path: str
    size_bytes: int
    changed_at: datetime | None
    is_found: bool
    state: DocumentState


class NewFile(TypedDict, total=False):
    """A file to be kept, as `DocumentRow` has it; its text waits to be read where no `state` is said."""

    path: Required[str]
    name: Required[str]
    media_type: Required[str]
    size_bytes: Required[int]
    sha256: Required[str]
    is_tainted: Required[bool]
    state: DocumentState
    is_found: bool


class DocumentsRepository(Repository):
    """The files of one user."""

    async def add(self, id: str, **file: Unpack[NewFile]) -> DocumentRow:
        """Keep a new one, once per id."""
        await self._is_new(DocumentTable, {**file, "id": id, "created_at": self.clock()})
        return await self.get(id)

    @reading
    async def get(self, id: str) -> DocumentRow:
        """The file, a deleted one too; NotFound when it is absent or another user's."""
        return await self._get(DocumentRow, DocumentTable, id, "This file does not exist.")

    @reading
    async def named(self, ids: Sequence[str]) -> Sequence[DocumentRow]:
        """Those of these that are the user's, deleted ones too, in the order of `ids`."""
        if not ids:
            return []
        statement = self._mine(DocumentRow, DocumentTable).where(DocumentTable.id.in_(ids))
        found = {row.id: row for row in await self._all(DocumentRow, statement)}
        return [found[id] for id in ids if id in found]

    @reading
    async def at(self, path: str) -> DocumentRow | None:
        """The newest one at this path below `files/` that is not deleted."""
        statement = self._mine(DocumentRow, DocumentTable)
        statement = statement.where(DocumentTable.path == path, DocumentTable.deleted_at.is_(None))
        return await self._first(DocumentRow, statement.order_by(DocumentTable.created_at.desc()))

    @reading
    async def has(self, sha256: str) -> bool:
        """Tell whether a file of this hash is kept, a deleted one too."""
        held = select(DocumentTable.id).where(DocumentTable.owner_id == self.owner_id, DocumentTable.sha256 == sha256)
        return (await self.session.execute(held)).first() is not None

    @reading
    async def list(self, query: str = "", *, skip: int = 0, limit: int | None = None) -> Sequence[DocumentRow]:
        """Those that are not deleted and have all words of the query in their names, the newest first."""
        statement = self._mine(DocumentRow, DocumentTable).where(
            DocumentTable.deleted_at.is_(None), *each_word(query, DocumentTable.name)
        )
        newest = statement.order_by(DocumentTable.created_at.desc(), DocumentTable.id.desc())
        return await self._all(DocumentRow, newest.offset(skip).limit(limit))

    @reading
    async def marks(self) -> Sequence[FileMark]:
        """Of all that are not deleted."""
        return await self._all(FileMark, self._mine(FileMark, DocumentTable).where(DocumentTable.deleted_at.is_(None)))

    @reading
    async def unread(self) -> int:
        """Return how many wait to be read."""
        waiting = (DocumentTable.state == "waiting", DocumentTable.deleted_at.is_(None))
        count = select(func.count()).where(DocumentTable.owner_id == self.owner_id, *waiting)
        return int((await self.session.execute(count)).scalar_one())

    async def read_again(self, id: str, size_bytes: int) -> None:
        """The file is another one now: what it holds is to be read anew, and what was read stays until then."""
        change = self._change(DocumentTable).where(DocumentTable.id == id)
        await self.session.execute(change.values(state="waiting", tries=0, claimed_until=None, size_bytes=size_bytes))

    async def keep_mark(self, row: DocumentRow, changed_at: datetime, sha256: str) -> None:
        """By which the file is known from now on; what was read of it holds."""
        state: DocumentState = "ready" if row.pages else "failed"
        values = {"changed_at": changed_at, "sha256": sha256, "state": state, "claimed_until": None}
        await self.session.execute(self._change(DocumentTable).where(DocumentTable.id == row.id).values(**values))

    @reading
    async def deleted(self, before: datetime) -> Sequence[DocumentRow]:
        """Those that were deleted by then, the latest first."""
        gone = self._mine(DocumentRow, DocumentTable).where(DocumentTable.deleted_at <= before)
        return await self._all(DocumentRow, gone.order_by(DocumentTable.deleted_at.desc(), DocumentTable.id))

    @reading
    async def used_bytes(self) -> int:
        """The bytes of all that were given, deleted ones too while they can come back."""
        total = select(func.coalesce(func.sum(DocumentTable.size_bytes), 0))
        given = total.where(DocumentTable.owner_id == self.owner_id, ~DocumentTable.is_found)
        return int((await self.session.execute(given)).scalar_one())

    @reading
    async def deleted_bytes(self) -> int:
        """The bytes of those that were given, deleted, and can still come back."""
        total = select(func.coalesce(func.sum(DocumentTable.size_bytes), 0))
        gone = total.where(DocumentTable.owner_id == self.owner_id, ~DocumentTable.is_found)
        return int((await self.session.execute(gone.where(DocumentTable.deleted_at.is_not(None)))).scalar_one())

    async def used_bytes_held(self) -> int:
        """As `used_bytes`; no other upload of the person adds to it until this transaction ends."""
        own = select(AccountTable.id).where(AccountTable.id == self.owner_id)
        await self.session.execute(own.with_for_update(key_share=True))  # SQLite has one writer anyway
        return await self.used_bytes()

    async def set_deleted(self, id: str, *, is_deleted: bool, path: str = "") -> DocumentRow:
        """Delete it, or take that back, at another `path` now; NotFound.

        What comes back without a text waits to be read: it may have been deleted as its turn came.
        """
        values: dict[str, Any] = {"deleted_at": self.clock() if is_deleted else None}
        values |= {"path": path} if path else {}
        change = self._change(DocumentTable).where(DocumentTable.id == id)
        await self.session.execute(change.values(**values))
        if not is_deleted:
            unread = change.where(DocumentTable.state != "picture", DocumentTable.pages == 0)
            await self.session.execute(unread.values(state="waiting", tries=0, claimed_until=None, note=""))
        return await self.get(id)

    async def remove(self, id: str) -> None:
        """Forget it and its text for good. Of a long one `drop_pages` goes ahead."""
        await self.session.execute(self._remove(DocumentTable).where(DocumentTable.id == id))

    async def drop_pages(self, id: str) -> int:
        """Forget pages of what was read of it before; how many, at most `PAGES_AT_ONCE`."""
        some = select(DocumentPageTable.position).where(DocumentPageTable.document_id == id).limit(PAGES_AT_ONCE)
        gone = self._remove(DocumentPageTable).where(DocumentPageTable.position.in_(some))
        return len(await self._touched(gone, DocumentPageTable.position))

    async def add_pages(self, id: str, pages: Sequence[PageText], words: Sequence[str]) -> None:
        """Keep these pages of it, with their `page_words`; NotFound. `keep_text` says when all are there.

        Whoever has many gives `PAGES_AT_ONCE` at a time: the search index is written with them, and nobody else writes.
        """
        await self.get(id)
        whose, owner = {"document_id": id, "owner_id": self.owner_id}, owner_word(self.owner_id)
        rows = [
            {
                **whose,
                "number": page.number,
                "title": page.title,
                "text": page.text,
                "words": f"{owner} {indexed_words}",
            }
            for page, indexed_words in zip(pages, words, strict=True)
        ]
        if rows:
            await self.session.execute(self._upsert(DocumentPageTable), rows)

    async def keep_text(self, id: str, found: Extracted, *, are_pages_kept: bool = False) -> DocumentRow:
        """Keep what was read out of it, in place of what was read before; NotFound.

        are_pages_kept: `add_pages` has them all.
        """
        row = await self.get(id)
        if not are_pages_kept:
            await self.session.execute(self._remove(DocumentPageTable).where(DocumentPageTable.document_id == id))
            await self.add_pages(id, found.pages, page_words(row.path, found))
        text = "\n\n".join(page.text for page in found.pages)
        change = self._change(DocumentTable).where(DocumentTable.id == id)
        values = {"pages": len(found.pages), "characters": len(text), "opening": text[:OPENING_CHARACTERS]}
        values |= {
            "is_paged": found.is_paged,
            "outline": found.outline,
            "note": found.note,
            "read_at": self.clock(),
            "claimed_until": None,
        }
        state: DocumentState = "ready" if text.strip() else "failed"
        await self.session.execute(change.values(**values, state=state))
        return await self.get(id)

    @reading
    async def text_of(self, id: str, first: int = 1, last: int | None = None) -> Sequence[PageText]:
        """The pages of its text, or those from `first` to `last`, in order; none before it was read."""
        statement = self._mine(PageText, DocumentPageTable).where(
            DocumentPageTable.document_id == id, DocumentPageTable.number >= first
        )
        if last is not None:
            statement = statement.where(DocumentPageTable.number <= last)
        return await self._all(PageText, statement.order_by(DocumentPageTable.number))


def page_words(path: str, found: Extracted) -> list[str]:
    """Return what each page of a text is searched by.

    The name is among the words of each page: "the rental contract on pets" finds the page on pets in that file.
    """
    return [indexed(f"{path} {page.title} {page.text}") for page in found.pages]


class AllDocumentsRepository(SharedRepository):
    """The files of everybody."""

    async def release(self) -> None:
        """Nobody reads any now: those that a process which is gone was reading need not wait for their leases."""
        change = update(DocumentTable).execution_options(synchronize_session=False)
        await self.session.execute(change.where(DocumentTable.state == "waiting").values(claimed_until=None))

    @reading
    async def ids(self) -> frozenset[str]:
        """Of all, deleted ones too."""
        return frozenset((await self.session.execute(select(DocumentTable.id))).scalars())

    @reading
    async def owners(self, *, of_deleted: bool = False) -> frozenset[str]:
        """Return who has any that was not deleted, or any that was."""
        is_wanted = DocumentTable.deleted_at.is_not(None) if of_deleted else DocumentTable.deleted_at.is_(None)
        statement = select(DocumentTable.owner_id).where(is_wanted).distinct()
        return frozenset((await self.session.execute(statement)).scalars())

    @reading
    async def are_waiting(self) -> bool:
        """Tell whether `claim` has anything to do: a look that writes nothing."""
        return (await self._run(_waiting(), now=self.clock())).first() is not None

    async def claim(self) -> DocumentRow | None:
        """The oldest one whose text is to be read and that nobody reads now; nobody else gets it for `READ_FOR`.

        Those of whom fewer are being read now come first: nobody's thousand files hold up another's one.
        One that `TRIES_MOST` tries did not get through is failed instead.
        """
        at = self.clock()
        is_waiting = _is_waiting(at)
        over = DocumentTable.tries >= TRIES_MOST
        change = update(DocumentTable).execution_options(synchronize_session=False)
        await self.session.execute(
            change.where(*is_waiting, over).values(state="failed", note="This file could not be read.", read_at=at)
        )
        waiting = selected(DocumentRow, DocumentTable).join(AccountTable, AccountTable.id == DocumentTable.owner_id)
        being_read = select(DocumentTable.owner_id, func.count().label("files")).group_by(DocumentTable.owner_id)
        busy = being_read.where(DocumentTable.state == "waiting", DocumentTable.claimed_until >= at).subquery()
        waiting = waiting.outerjoin(busy, busy.c.owner_id == DocumentTable.owner_id)
        waiting = waiting.where(*is_waiting, AccountTable.is_active)
        waiting = waiting.order_by(func.coalesce(busy.c.files, 0), DocumentTable.created_at)
        found = await self._first(DocumentRow, waiting)
        if found is None:
            return None
        taken = change.where(DocumentTable.id == found.id, *is_waiting)
        values = {"claimed_until": at + READ_FOR, "tries": DocumentTable.tries + 1}
        touched = await self.session.execute(taken.values(**values).returning(DocumentTable.id))
        return found if touched.first() is not None else None


@cache
def _waiting() -> Select[Any]:
    file, now = kept.columns(DocumentTable), kept.given("now")
    is_free = or_(file.claimed_until.is_(None), file.claimed_until < now)
    return select(file.id).where(file.state == "waiting", is_free, file.deleted_at.is_(None)).limit(1)


def _is_waiting(at: datetime) -> tuple[ColumnElement[bool], ...]:
    """The conditions for a text that is to be read and that nobody reads at this moment."""
    is_free = or_(DocumentTable.claimed_until.is_(None), DocumentTable.claimed_until < at)
    return DocumentTable.state == "waiting", is_free, DocumentTable.deleted_at.is_(None)
