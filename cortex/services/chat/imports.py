"""Takes chats over that another program exported: read, shown, then laid down a few seconds' worth at a time.

What was read waits as a file in the person's folder, a chat a line, so that neither a killed process nor a closed page
loses it. A chat has the same id whenever it is taken over: what was begun again does nothing twice.
"""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Annotated, Any, BinaryIO

from msgspec import Struct
from msgspec.structs import replace
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from cortex.base.background import handed
from cortex.base.clock import now
from cortex.base.errors import NotFound, UserError
from cortex.base.ids import derived_id
from cortex.base.record import as_dict
from cortex.base.user import User
from cortex.ports.foreign import ForeignReader
from cortex.services.chat.laid_down import lay_down
from cortex.services.roles.preferences import PreferencesService
from cortex.services.runtime import Runtime
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.home import Homes
from cortex.storage.preferences import PreferencesRepository

FOLDER = "imports"
FILE = "chats.jsonl"
PART = ".part-"
DAY_S = 24 * 3600
STATE = "import.chats"
GOES_ON_S = 2.0
SHOWN = 8
REASONS_MOST = 30
NO_EXPORT = "This is not a chat export Cortex can read. Use the .json from Open WebUI or the .zip from ChatGPT."

NO_NUL = r"^[^\x00]*$"  # which PostgreSQL does not keep
Words = Annotated[str, Field(max_length=200_000, pattern=NO_NUL)]


def _moment(at: Any) -> Any:  # Any: what was read; what is no moment is refused by the field's type
    """Seconds since 1970, as the reader says them, or what stands in the file of those that wait, as a moment."""
    if isinstance(at, str):
        return datetime.fromisoformat(at)
    is_seconds = isinstance(at, int | float) and not isinstance(at, bool) and 0 < at < 1e11
    return datetime.fromtimestamp(at, UTC) if is_seconds else at


Moment = Annotated[AwareDatetime, BeforeValidator(_moment)]


class _Shape(BaseModel):
    """The reader's answer: it read hostile bytes, so nothing of it is believed before it is looked at."""

    model_config = ConfigDict(strict=True, extra="forbid")


class ExportedChat(_Shape):
    """A conversation out of an export. `key`: the same for the same chat, whenever it is read.

    `exchanges`: the person's words, the answer, and when the words were said, None where that is not known.
    """

    key: str = Field(min_length=1, max_length=200, pattern=NO_NUL)
    title: str = Field(max_length=120, pattern=NO_NUL)
    at: Moment | None
    exchanges: list[tuple[Words, Words, Moment | None]] = Field(min_length=1, max_length=5_000)


class _LeftOut(_Shape):
    why: str = Field(max_length=120, pattern=NO_NUL)
    count: int = Field(ge=1, le=1_000_000_000)
    examples: list[Annotated[str, Field(max_length=120, pattern=NO_NUL)]] = Field(max_length=3)


class _Line(_Shape):
    chat: ExportedChat | None = None
    left_out: _LeftOut | None = None
    files: int = 0


class ImportState(Struct, frozen=True, kw_only=True):
    """The progress of an import. `titles`: the first few, to see what it is. `at_bytes`: where the next one stands.

    `left_out`: the sum of `reasons`, which say for each what was not taken how often it was there. `files`: of how many
    files of an archive there are chats.
    """

    total: int
    done: int
    left_out: int
    titles: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    files: int = 1
    at_bytes: int = 0

    @property
    def is_done(self) -> bool:
        """Tell whether all of it is taken over."""
        return self.done >= self.total


class ChatImports(Struct, frozen=True, kw_only=True):
    """One import for each person at a time; a new file takes the place of one that waits."""

    runtime: Runtime
    homes: Homes
    preferences: PreferencesService
    foreign: ForeignReader

    async def read(self, user: User, file: BinaryIO) -> None:
        """Read an export and keep what it holds for `go_on`. UserError where it is none; what waits stays then."""
        folder, found = await self.homes.home_of(user.id).folder(FOLDER), _Found()
        target = await handed(lambda: _new_part(folder), _drop_part)
        try:
            with target:
                await self.foreign.read("chats", file, _Line, lambda line: found.take(target, line))
            if not found.total:
                raise UserError(" ".join([NO_EXPORT, *found.reasons]))
            await asyncio.to_thread(Path(target.name).replace, folder / FILE)
        finally:
            await asyncio.to_thread(_drop_part, target)
        await self._keep(user, found.state())

    async def state(self, user: User) -> ImportState | None:
        """The import that waits, runs or is done; None for none."""
        kept = await self.runtime.db.repository(PreferencesRepository, user.id).get(STATE, None)
        if not isinstance(kept, dict):
            return None
        return ImportState(**{**kept, "titles": (*kept["titles"],), "reasons": (*kept.get("reasons", ()),)})

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
            await lay_down(repository, made.id, chat.exchanges, role)
            if chat.at is not None:
                last = max([chat.at, *(at for _, _, at in chat.exchanges if at is not None)])
                await conversations.date_back(made.id, chat.at, last)

    async def _waiting(self, user: User) -> ImportState:
        state = await self.state(user)
        if state is None:
            raise NotFound("No import in progress. Choose a file.")
        return state

    async def _keep(self, user: User, state: ImportState) -> None:
        await self.runtime.db.repository(PreferencesRepository, user.id).set(STATE, as_dict(state))


def _id(user: User, chat: ExportedChat) -> str:
    return derived_id("import", user.id, chat.key)


class _Found:
    """The chats read so far: written a chat a line, and counted."""

    def __init__(self) -> None:
        self.total, self.files, self.left_out = 0, 1, 0
        self.titles: list[str] = []
        self.reasons: list[str] = []

    async def take(self, target: IO[bytes], line: _Line) -> None:
        """The next finding of the reader."""
        if line.chat is not None:
            await asyncio.to_thread(_write, target, line.chat)
            self.total += 1
            self.titles += [line.chat.title] if len(self.titles) < SHOWN else []
        elif line.left_out is not None and len(self.reasons) < REASONS_MOST:
            examples = f" ({', '.join(line.left_out.examples)})" if line.left_out.examples else ""
            self.left_out += line.left_out.count
            self.reasons.append(f"{line.left_out.why}: {line.left_out.count:,}{examples}.")
        self.files = line.files or self.files

    def state(self) -> ImportState:
        """As it is kept."""
        return ImportState(
            total=self.total,
            done=0,
            left_out=self.left_out,
            titles=(*self.titles,),
            reasons=(*self.reasons,),
            files=self.files,
        )


def _new_part(folder: Path) -> Any:  # Any: a file that knows its name
    """A new file, its owner's alone; what a kill left of earlier ones goes."""
    for left in folder.glob(f"{PART}*"):
        if now().timestamp() - left.stat().st_mtime > DAY_S:
            left.unlink(missing_ok=True)
    return NamedTemporaryFile(dir=folder, prefix=PART, delete=False)


def _drop_part(part: Any) -> None:
    part.close()
    Path(part.name).unlink(missing_ok=True)


def _write(target: IO[bytes], chat: ExportedChat) -> None:
    target.write(chat.model_dump_json().encode() + b"\n")


def _next(path: Path, at_bytes: int) -> tuple[ExportedChat, int]:
    """The chat that stands there, and where the next one does."""
    try:
        with path.open("rb") as file:
            file.seek(at_bytes)
            return ExportedChat.model_validate_json(file.readline()), file.tell()
    except (FileNotFoundError, ValueError) as error:
        raise NotFound("The imported file is no longer available. Choose it again.") from error


def _lines(path: Path) -> Iterator[ExportedChat]:
    with path.open("rb") as file:
        for line in file:
            yield ExportedChat.model_validate_json(line)
