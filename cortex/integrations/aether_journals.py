"""One user's journals on an Aether server: what Cortex asks for, in the requests of `docs/aether.md`."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import quote

from msgspec import Struct
from pydantic import BaseModel, Field, ValidationError

from cortex.base.errors import NotFound, ServiceDown, UserError
from cortex.base.ids import derived_id
from cortex.base.journal_rules import (
    ENTRY_CHARS_MAX,
    TITLE_CHARS_MAX,
    checked_name,
    checked_text,
    checked_title,
    name_key,
    taken,
)
from cortex.base.zone import day_begins, day_ends
from cortex.ports.aether import EntryChange, Journal, JournalEntry
from cortex.ports.journals import EntryPage, EntryVersion, JournalChange

if TYPE_CHECKING:  # httpx is read with the first request
    from cortex.base.http import FetchedPage

CALL_S = 20.0  # all requests of one call
PAGE_ROWS = 100
JOURNALS_READ_MAX = 1_000
NO_CONTRACT = "What answered does not speak the contract of docs/aether.md; check the address."
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

M = TypeVar("M", bound=BaseModel)
Id = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
Name = Field(min_length=1, max_length=TITLE_CHARS_MAX)


class Requests(Protocol):
    """The sender of requests to the server: `cards/aether.py`."""

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        version: int | None = None,
    ) -> "FetchedPage":
        """The answer, a good one; NotFound, Conflict, UserError and ServiceDown for the others."""
        ...


class _Journal(BaseModel):
    id: str = Id
    name: str = Name
    entries: int = Field(ge=0)
    changed_at: datetime
    is_tainted: bool = True
    version: int = Field(ge=1)
    disabled_at: datetime | None = None
    disabled_by: str = Field(default="", max_length=80)


class _Entry(BaseModel):
    id: str = Id
    journal_id: str = Id
    journal: str = Name
    title: str = Name
    text: str = Field(max_length=ENTRY_CHARS_MAX)
    is_tainted: bool = True
    version: int = Field(ge=1)
    written_at: datetime
    changed_at: datetime
    changed_by: str = Field(default="", max_length=80)
    disabled_at: datetime | None = None
    disabled_by: str = Field(default="", max_length=80)


class _OneEntry(_Entry):
    journal_enabled: bool = True


class _Version(BaseModel):
    version: int = Field(ge=1)
    title: str = Name
    text: str = Field(max_length=ENTRY_CHARS_MAX)
    is_tainted: bool = True
    is_enabled: bool
    at: datetime
    by: str = Field(default="", max_length=80)


class _Page(BaseModel):
    items: list[Any]  # Any: checked by the kind that was asked for
    next: str | None = Field(default=None, max_length=1_000)


class AetherJournals(Struct, frozen=True, kw_only=True):
    """Implements `JournalBook` for one user over the server."""

    server: Requests
    user_id: str
    time_zone: str
    by: str

    async def list(self) -> Sequence[Journal]:
        """The journals in use, by name."""
        return await self.shelf(is_enabled=True)

    async def entries(
        self, journal_id: str | None, query: str, since: date | None, until: date | None, most: int
    ) -> Sequence[JournalEntry]:
        """The newest entries first; the days are those of the user's time zone."""
        first, end = day_begins(since, self.time_zone), day_ends(until, self.time_zone)
        days = {"since": first.isoformat() if first else "", "until": end.isoformat() if end else ""}
        asked = {"journal": journal_id or "", "q": query, **days}
        return [_entry(row) for row in await self._all(_Entry, "/entries", asked, most)]

    async def entry(self, id: str) -> JournalEntry:
        """The entry, when it can be read; NotFound."""
        row = await self._one(id)
        if row.disabled_at is not None or not row.journal_enabled:
            raise NotFound("This entry does not exist.")
        return _entry(row)

    async def write(self, id: str, journal: str, title: str, text: str, is_tainted: bool) -> JournalEntry:
        """A new entry, and its journal where there is none of that name; one that stands already is handed back."""
        name, head, words = checked_name(journal), checked_title(title), checked_text(text)
        async with _within(CALL_S):
            with suppress(NotFound):
                return await self.look(id)
            kept = await self._named(name) or await self._make(derived_id(id, "journal"), name, is_tainted=is_tainted)
            body = {"journal_id": kept.id, "title": head, "text": words, "is_tainted": is_tainted, "by": self.by}
            return _entry(await self._put(_Entry, f"/entries/{_part(id)}", body))

    async def change(self, id: str, expected_version: int, change: EntryChange) -> JournalEntry:
        """Change an entry, also one that is taken away; Conflict."""
        body: dict[str, Any] = {"by": self.by}
        if change.title is not None:
            body["title"] = checked_title(change.title)
        if change.text is not None:
            body["text"] = checked_text(change.text)
        if change.is_enabled is not None:
            body["is_enabled"] = change.is_enabled
        if change.is_tainted:
            body["is_tainted"] = True
        return _entry(await self._patch(_Entry, f"/entries/{_part(id)}", expected_version, body))

    async def shelf(self, *, is_enabled: bool) -> Sequence[Journal]:
        """The journals in use, or those taken away."""
        asked = {"enabled": "true" if is_enabled else "false"}
        rows = [_journal(row) for row in await self._all(_Journal, "/journals", asked, JOURNALS_READ_MAX)]
        return sorted(rows, key=lambda one: (one.name.casefold(), one.id))

    async def journal(self, id: str) -> Journal:
        """The journal, also one that is taken away; NotFound."""
        return _journal(await self._get(_Journal, f"/journals/{_part(id)}"))

    async def create(self, id: str, name: str) -> Journal:
        """A new journal; UserError when the name is taken."""
        return await self._make(id, checked_name(name), is_tainted=False)

    async def change_journal(self, id: str, expected_version: int, change: JournalChange) -> Journal:
        """Rename it, take it away or bring it back; Conflict, UserError when the name is taken."""
        body: dict[str, Any] = {"by": self.by}
        if change.name is not None:
            body["name"] = checked_name(change.name)
        if change.is_enabled is not None:
            body["is_enabled"] = change.is_enabled
        return _journal(await self._patch(_Journal, f"/journals/{_part(id)}", expected_version, body))

    async def page(
        self, journal_id: str | None, query: str, after: str, most: int, *, is_enabled: bool = True
    ) -> EntryPage:
        """A page of entries, the newest first."""
        asked = {"journal": journal_id or "", "q": query, "enabled": "true" if is_enabled else "false"}
        rows, after = await self._page(_Entry, "/entries", asked, after, most)
        return EntryPage(entries=[_entry(row) for row in rows], after=after)

    async def look(self, id: str) -> JournalEntry:
        """The entry, also one that is taken away; NotFound."""
        return _entry(await self._one(id))

    async def versions(self, id: str, most: int) -> Sequence[EntryVersion]:
        """The entry as it stands and as it stood, the newest first; NotFound."""
        rows = await self._all(_Version, f"/entries/{_part(id)}/versions", {}, most)
        return [EntryVersion(**dict(row)) for row in rows]

    async def _one(self, id: str) -> _OneEntry:
        return await self._get(_OneEntry, f"/entries/{_part(id)}")

    async def _named(self, name: str) -> Journal | None:
        key = name_key(name)
        return next((one for one in await self.list() if name_key(one.name) == key), None)

    async def _make(self, id: str, name: str, *, is_tainted: bool) -> Journal:
        try:
            made = await self._put(_Journal, f"/journals/{_part(id)}", {"name": name, "is_tainted": is_tainted})
        except UserError as error:
            raise taken(name) if error.field == "name" else error from None
        return _journal(made)

    async def _get(self, kind: type[M], path: str) -> M:
        return read(kind, await self.server.send("GET", self._path(path)))

    async def _put(self, kind: type[M], path: str, body: Mapping[str, Any]) -> M:
        return read(kind, await self.server.send("PUT", self._path(path), body=body))

    async def _patch(self, kind: type[M], path: str, version: int, body: Mapping[str, Any]) -> M:
        got = await self.server.send("PATCH", self._path(path), body=body, version=version)
        return read(kind, got)

    async def _all(self, kind: type[M], path: str, asked: Mapping[str, str], most: int) -> Sequence[M]:
        """Rows of as many pages as `most` asks for."""
        found: list[M] = []
        after = ""
        async with _within(CALL_S):
            while len(found) < most:
                rows, after = await self._page(kind, path, asked, after, min(most - len(found), PAGE_ROWS))
                found += rows
                if not after:
                    break
        return found[:most]

    async def _page(
        self, kind: type[M], path: str, asked: Mapping[str, str], after: str, most: int
    ) -> tuple[Sequence[M], str]:
        query = {name: value for name, value in {**asked, "cursor": after, "limit": str(most)}.items() if value}
        got = await self.server.send("GET", self._path(path), query=query)
        page = await asyncio.to_thread(_rows, kind, got)  # a page may be megabytes
        if page[1] and not page[0]:
            raise ServiceDown("The Aether server gave a page without entries that says there are more.")
        return page

    def _path(self, path: str) -> str:
        return f"/spaces/{_part(self.user_id)}{path}"


def read(kind: type[M], got: "FetchedPage") -> M:
    """The value of an answer; ToolFailed when it is not what the contract says."""
    try:
        return kind.model_validate_json(got.body)
    except ValidationError as error:
        raise ServiceDown(NO_CONTRACT) from error


def _rows(kind: type[M], got: "FetchedPage") -> tuple[Sequence[M], str]:
    page = read(_Page, got)
    try:
        return [kind.model_validate(row) for row in page.items], page.next or ""
    except ValidationError as error:
        raise ServiceDown(NO_CONTRACT) from error


def _journal(row: _Journal) -> Journal:
    return Journal(**dict(row))


def _entry(row: _Entry) -> JournalEntry:
    return JournalEntry(**{name: getattr(row, name) for name in _Entry.model_fields})


def _part(id: str) -> str:
    """An id as a part of a path; NotFound for what can be none."""
    if not _ID.fullmatch(id):
        raise NotFound("This journal or entry does not exist.")
    return quote(id, safe="")


@asynccontextmanager
async def _within(seconds: float) -> AsyncIterator[None]:
    """A block that must end in time; ServiceDown says so."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise ServiceDown(f"The Aether server did not answer within {seconds:g} seconds.") from None
