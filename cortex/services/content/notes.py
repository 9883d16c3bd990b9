"""A person's notes, scratchpad and what the assistant keeps for itself, for the page. All are files of their home."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from cortex.base.errors import Conflict, NotFound, UserError
from cortex.base.note_names import NOTES, SCRATCHPAD, SUFFIX, note_name
from cortex.base.user import User
from cortex.storage.db import Database
from cortex.storage.home import ABSENT, HomeEntry, HomeFile, Homes
from cortex.storage.preferences import PreferencesRepository
from cortex.toolkit.page import mark_of

DELETED = "deleted_notes"
AGENT_NOTES = "agent_notes"
TEXT_CHARS_MAX = 200_000
UNDO = timedelta(days=1)  # how long a deleted note can be brought back


class Note(Struct, frozen=True, kw_only=True):
    """A note in the list."""

    name: str
    changed_at: datetime
    size_bytes: int


class AgentNotes(Struct, frozen=True, kw_only=True):
    """The assistant's notes about the person while it had this role."""

    role: str
    text: str


class NotesService(Struct, frozen=True):
    """Every method takes whose texts. A version tag guards each write: Conflict when somebody else wrote in between.

    `db` holds the marks of pages with words from outside.
    """

    homes: Homes
    db: Database

    async def list(self, user: User) -> Sequence[Note]:
        """The notes, the latest changed first."""
        return await self._in(user, NOTES)

    async def deleted(self, user: User) -> Sequence[Note]:
        """Those that can be brought back, the latest deleted first; `changed_at` is when they were deleted."""
        return [note for note in await self._in(user, DELETED) if note.changed_at > self.db.clock() - UNDO]

    async def _in(self, user: User, folder: str) -> Sequence[Note]:
        entries = await self.homes.home_of(user.id).list(folder)
        found = [_note(entry) for entry in entries if entry.name.endswith(SUFFIX) and not entry.is_folder]
        return sorted(found, key=lambda note: note.changed_at, reverse=True)

    async def texts(self, user: User) -> Sequence[tuple[Note, str]]:
        """The notes with their texts, the latest changed first."""
        return [(_note(entry), text) for entry, text in await self.homes.home_of(user.id).texts(NOTES, SUFFIX)]

    async def read(self, user: User, name: str) -> HomeFile:
        """A note's text with its version; NotFound."""
        try:
            return await self.homes.home_of(user.id).read(_path(NOTES, name))
        except NotFound as error:
            raise NotFound(f"There is no note {name!r}.") from error

    async def create(self, user: User, name: str) -> str:
        """A new note that holds its own heading; the name it got. UserError when the name cannot be one."""
        try:
            words = note_name(name)
        except ValueError as error:
            raise UserError(str(error), field="name") from error
        try:
            await self.homes.home_of(user.id).write(_path(NOTES, words), f"# {words}\n", ABSENT)
        except Conflict as error:
            raise UserError(f"There is a note named {words!r} already.", field="name") from error
        return words

    async def write(self, user: User, name: str, text: str, version: str) -> str:
        """Put the text there; its new version. What a person writes by hand is theirs, so the mark of outside goes."""
        return await self._write(user, _path(NOTES, name), text, version)

    async def remove(self, user: User, name: str) -> None:
        """Delete a note, which can be brought back for a day; NotFound. One deleted earlier under its name is gone."""
        home, path = self.homes.home_of(user.id), _path(NOTES, name)
        kept = await home.read(path)
        # The copy first: cut off between the two, the note is still there.
        await home.write(_path(DELETED, name), kept.text)
        await home.remove(path, kept.version)

    async def restore(self, user: User, name: str) -> None:
        """Bring a deleted note back; NotFound when it is gone, UserError when its name is taken."""
        if not any(note.name == name for note in await self.deleted(user)):
            raise NotFound(f"There is no deleted note {name!r}.")
        try:
            await self.homes.home_of(user.id).rename(_path(DELETED, name), _path(NOTES, name))
        except Conflict as error:
            raise UserError(f"There is a note named {name!r} already. Give it another name first.") from error

    async def prune(self, user_id: str, before: datetime) -> None:
        """Forget what was deleted before then."""
        home = self.homes.home_of(user_id)
        for entry in await home.list(DELETED):
            if not entry.is_folder and entry.changed_at < before:
                await home.remove(f"{DELETED}/{entry.name}")

    async def scratchpad(self, user: User) -> HomeFile:
        """The scratchpad; empty at first."""
        try:
            return await self.homes.home_of(user.id).read(SCRATCHPAD)
        except NotFound:
            return HomeFile(text="", version=ABSENT)

    async def write_scratchpad(self, user: User, text: str, version: str) -> str:
        """As `write`, for the scratchpad."""
        return await self._write(user, SCRATCHPAD, text, version)

    async def _write(self, user: User, path: str, text: str, version: str) -> str:
        made = await self.homes.home_of(user.id).write(path, _checked(text), version)
        await self.db.repository(PreferencesRepository, user.id).unset(mark_of(path))
        return made

    async def agent_notes(self, user: User) -> Sequence[AgentNotes]:
        """Return what the assistant keeps for itself, role by role."""
        home = self.homes.home_of(user.id)
        names = [entry.name for entry in await home.list(AGENT_NOTES) if entry.name.endswith(SUFFIX)]
        return [
            AgentNotes(role=name.removesuffix(SUFFIX), text=(await home.read(f"{AGENT_NOTES}/{name}")).text)
            for name in names
        ]

    async def agent_notes_of(self, user: User, role: str) -> AgentNotes:
        """Those of one role; NotFound."""
        try:
            kept = await self.homes.home_of(user.id).read(_path(AGENT_NOTES, role))
        except NotFound as error:
            raise NotFound(f"The assistant has no notes as {role!r}.") from error
        return AgentNotes(role=role, text=kept.text)

    async def clear_agent_notes(self, user: User, role: str) -> None:
        """Forget those of one role; NotFound."""
        path = _path(AGENT_NOTES, role)
        await self.homes.home_of(user.id).remove(path)
        await self.db.repository(PreferencesRepository, user.id).unset(mark_of(path))


def _note(entry: HomeEntry) -> Note:
    return Note(name=entry.name.removesuffix(SUFFIX), changed_at=entry.changed_at, size_bytes=entry.size_bytes)


def _path(folder: str, name: str) -> str:
    if "/" in name:
        raise NotFound("Nothing has this name.")
    return f"{folder}/{name}{SUFFIX}"


def _checked(text: str) -> str:
    words = text.replace("\r\n", "\n")
    if len(words) > TEXT_CHARS_MAX:
        raise UserError(f"That is too long: at most {TEXT_CHARS_MAX:,} characters.", field="text")
    return words
