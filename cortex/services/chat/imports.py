"""Takes chats over that another program exported: read, shown, then laid down a few seconds' worth at a time.

What was read waits as a file in the person's folder, a chat a line, so that neither a killed process nor a closed page
loses it. A chat has the same id whenever it is taken over: what was begun again does nothing twice.
"""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from cortex.base.errors import NotFound
from cortex.base.ids import derived_id
from cortex.base.user import User
from cortex.services.chat.exported_chats import ExportedChat, read_export
from cortex.services.chat.laid_down import lay_down
from cortex.services.roles.preferences import PreferencesService
from cortex.services.runtime import Runtime
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.home import Homes
from cortex.storage.preferences import PreferencesRepository

FOLDER = "imports"
FILE = "chats.jsonl"
STATE = "import.chats"
GOES_ON_S = 2.0
SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportState:
    """How far an import is. `titles`: the first few, to see what it is. `at_bytes`: where the next one stands."""

    total: int
    done: int
    left_out: int
    titles: tuple[str, ...] = ()
    at_bytes: int = 0

    @property
    def is_done(self) -> bool:
        """Whether all of it is taken over."""
        return self.done >= self.total


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatImports:
    """One import for each person at a time; a new file takes the place of one that waits."""

    runtime: Runtime
    homes: Homes
    preferences: PreferencesService

    async def read(self, user: User, data: bytes) -> None:
        """Read an export and keep what it holds for `go_on`. UserError where it is none."""
        found = await asyncio.to_thread(read_export, data)
        folder = await self.homes.home_of(user.id).folder(FOLDER)
        await asyncio.to_thread(_write, folder / FILE, found.chats)
        titles = [chat.title for chat in found.chats[:SHOWN]]
        await self._keep(user, ImportState(total=len(found.chats), done=0, left_out=found.left_out, titles=(*titles,)))

    async def state(self, user: User) -> ImportState | None:
        """The import that waits, runs or is done; None for none."""
        kept = await self.runtime.db.repository(PreferencesRepository, user.id).get(STATE, None)
        return ImportState(**{**kept, "titles": tuple(kept["titles"])}) if isinstance(kept, dict) else None

    async def go_on(self, user: User, *, for_s: float = GOES_ON_S) -> ImportState:
        """Take over as many chats as these seconds allow, at least one. NotFound where none waits."""
        state = await self._waiting(user)
        role = (await self.preferences.get(user)).role
        ends_s = self.runtime.ticks_s() + for_s
        path = await self.homes.home_of(user.id).folder(FOLDER) / FILE
        while not state.is_done:
            chat, at_bytes = await asyncio.to_thread(_next, path, state.at_bytes)
            await self._take_over(user, role, chat)
            state = replace(state, done=state.done + 1, at_bytes=at_bytes)
            if self.runtime.ticks_s() >= ends_s:
                break
        await self._keep(user, state)
        return state

    async def forget(self, user: User) -> None:
        """Let go of the file; what was taken over stays."""
        path = await self.homes.home_of(user.id).folder(FOLDER) / FILE
        await asyncio.to_thread(path.unlink, missing_ok=True)
        await self.runtime.db.repository(PreferencesRepository, user.id).unset(STATE)

    async def take_back(self, user: User) -> int:
        """Delete what this import took over; how many chats that were."""
        state = await self._waiting(user)
        path = await self.homes.home_of(user.id).folder(FOLDER) / FILE
        chats = await asyncio.to_thread(lambda: [_id(user, chat) for chat in islice(_lines(path), state.done)])
        conversations = self.runtime.db.repository(ConversationsRepository, user.id)
        for id in await conversations.standing(chats):  # each by itself: there may be thousands, and others write
            await conversations.delete(id)
        await self.forget(user)
        return state.done

    async def _take_over(self, user: User, role: str, chat: ExportedChat) -> None:
        """The chat as a conversation, in one commit; one that is there already stays as it is."""
        async with self.runtime.db.transaction(user.id) as repository:
            conversations = repository(ConversationsRepository)
            id = _id(user, chat)
            if await conversations.is_known(id):
                await conversations.restore(id)
                return
            made = await conversations.create(role, "auto", chat.title, id=id, uses_memory=False, is_title_tainted=True)
            await lay_down(repository, made.id, chat.exchanges, role=role, mode="auto", channel="api")
            if chat.at is not None:
                last = max([chat.at, *(at for _, _, at in chat.exchanges if at is not None)])
                await conversations.date_back(made.id, chat.at, last)

    async def _waiting(self, user: User) -> ImportState:
        state = await self.state(user)
        if state is None:
            raise NotFound("No import in progress. Choose a file.")
        return state

    async def _keep(self, user: User, state: ImportState) -> None:
        await self.runtime.db.repository(PreferencesRepository, user.id).set(STATE, asdict(state))


def _id(user: User, chat: ExportedChat) -> str:
    return derived_id("import", user.id, chat.key)


def _write(path: Path, chats: tuple[ExportedChat, ...]) -> None:
    beside = path.with_suffix(".part")
    with beside.open("w", encoding="utf-8") as file:
        beside.chmod(0o600)
        for chat in chats:
            file.write(json.dumps(asdict(chat), default=datetime.isoformat, ensure_ascii=False) + "\n")
    beside.replace(path)


def _next(path: Path, at_bytes: int) -> tuple[ExportedChat, int]:
    """The chat that stands there, and where the next one does."""
    try:
        with path.open("rb") as file:
            file.seek(at_bytes)
            return _read(json.loads(file.readline())), file.tell()
    except (FileNotFoundError, ValueError) as error:
        raise NotFound("The imported file is no longer available. Choose it again.") from error


def _lines(path: Path) -> Iterator[ExportedChat]:
    with path.open("rb") as file:
        for line in file:
            yield _read(json.loads(line))


def _read(kept: dict[str, Any]) -> ExportedChat:
    exchanges = tuple((words, answer, _at(at)) for words, answer, at in kept["exchanges"])
    return ExportedChat(key=kept["key"], title=kept["title"], at=_at(kept["at"]), exchanges=exchanges)


def _at(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
