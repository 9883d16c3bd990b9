"""The only code that touches a user's folder `home/{user}/`: names checked, no symlink followed, no write half done.

Text files that a person would open in an editor. The file tools of the assistant have their own walk over `files/`.
"""

import asyncio
import errno
import fcntl
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

from msgspec import Struct

from cortex.base import private
from cortex.base.clock import ticks_s
from cortex.base.disk_faults import is_full
from cortex.base.errors import Conflict, NotFound, UserError

T = TypeVar("T")

ABSENT = ""
MAX_SIZE_BYTES = 8 * 1024 * 1024
_MAX_NAME_BYTES = 200
_MAX_DEPTH = 8
_LOCK_WAIT_S = 10.0
_BAD_SIGNS = frozenset('/\\:*?"<>|')
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class HomeFile(NamedTuple):
    """A file's text and the tag of exactly this content, to be given back when it is written."""

    text: str
    version: str


class HomeEntry(Struct, frozen=True, kw_only=True):
    """An entry of a folder."""

    name: str
    is_folder: bool
    size_bytes: int
    changed_at: datetime


class Homes:
    """The folder that holds everybody's, `CORTEX_HOME`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def home_of(self, user_id: str) -> "Home":
        """One user's folder."""
        return Home(self.root, user_id)


class Home:
    """The folder of one user. Paths are relative, `/` between names: `notes/garden.md`."""

    def __init__(self, root: Path, user_id: str) -> None:
        _check_name(user_id)
        self.path = root / user_id

    async def read(self, path: str) -> HomeFile:
        """The file's text with its version tag; NotFound when there is none."""
        return await asyncio.to_thread(self._read, _checked(path))

    async def configured(self, path: str) -> HomeFile | None:
        """A file that need not be there: None for nothing.

        UserError, with the path, for what stands there and cannot be read: a folder, a link, another's file, no text.
        """
        return await asyncio.to_thread(self._configured, _checked(path))

    async def version(self, path: str) -> str:
        """The version tag of what stands there, `ABSENT` for nothing."""
        try:
            return (await self.read(path)).version
        except NotFound:
            return ABSENT

    async def write(self, path: str, text: str, expected_version: str | None = None) -> str:
        """Put the text there whole or not at all, folders made as needed; the new version tag.

        expected_version: Conflict unless the file still has it (`ABSENT`: unless there is none); None: whatever it has.
        """
        data = text.encode("utf-8", "replace")
        if len(data) > MAX_SIZE_BYTES:
            raise UserError(f"This text is too long to keep: {len(data)} bytes, at most {MAX_SIZE_BYTES}.")
        return await asyncio.to_thread(self._write, _checked(path), data, expected_version)

    async def keep(self, path: str, data: bytes) -> None:
        """Put these bytes there, in place of what stood there."""
        await asyncio.to_thread(self._write, _checked(path), data, None)

    async def list(self, folder: str = "") -> Sequence[HomeEntry]:
        """Give what stands in the folder, by name; nothing when there is no such folder. Hidden names are left out."""
        return await asyncio.to_thread(self._list, _checked(folder) if folder else ())

    async def texts(self, folder: str, suffix: str) -> Sequence[tuple[HomeEntry, str]]:
        """The folder's readable files with this ending and their texts, the latest changed first."""
        return await asyncio.to_thread(self._texts, _checked(folder), suffix)

    async def remove(self, path: str, expected_version: str | None = None) -> HomeFile:
        """Delete a file; what it was. NotFound when there is none, Conflict when it has another version."""
        return await asyncio.to_thread(self._remove, _checked(path), expected_version)

    async def rename(self, path: str, to: str) -> None:
        """Give a file another name; Conflict when that is taken."""
        await asyncio.to_thread(self._rename, _checked(path), _checked(to))

    async def set_aside(self, path: str, to: str) -> None:
        """Give what stands there another name, readable or not, in place of what was set aside before."""
        await asyncio.to_thread(self._set_aside, _checked(path), _checked(to))

    async def folder(self, path: str) -> Path:
        """The real path of a folder in here, made when it is missing: the root of the file tools is one."""
        return await asyncio.to_thread(self._folder, _checked(path))

    def _read(self, names: tuple[str, ...]) -> HomeFile:
        with self._parent(names, create=False) as parent:
            return _read_in(parent, names[-1])

    def _configured(self, names: tuple[str, ...]) -> HomeFile | None:
        if not os.path.lexists(self.path.joinpath(*names)):
            return None
        try:
            return self._read(names)
        except NotFound:
            if not os.path.lexists(self.path.joinpath(*names)):  # removed in between
                return None
            why = "a folder or a link is in its place."
        except UserError as error:
            why = error.message
        except OSError as error:
            why = f"{error.strerror or error}."
        raise UserError(f"{'/'.join(names)} cannot be read: {why}")

    def _write(self, names: tuple[str, ...], data: bytes, expected_version: str | None) -> str:
        with self._locked(), self._parent(names, create=True) as parent:
            _check_version(parent, names, expected_version)
            temporary = f".{secrets.token_hex(8)}.tmp"
            handle = os.open(
                temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=parent
            )
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, names[-1], src_dir_fd=parent, dst_dir_fd=parent)
            except OSError:
                os.unlink(temporary, dir_fd=parent)
                raise
            os.fsync(parent)  # the new name too must outlive a power cut
        return _tag(data)

    def _list(self, names: tuple[str, ...]) -> Sequence[HomeEntry]:
        found: list[HomeEntry] = []
        if not os.path.lexists(self.path.joinpath(*names)):
            return found
        try:
            with self.walk(names, create=False) as folder, os.scandir(folder) as entries:
                for entry in entries:
                    about = entry.stat(follow_symlinks=False)
                    is_folder = stat.S_ISDIR(about.st_mode)
                    if not entry.name.startswith(".") and (is_folder or stat.S_ISREG(about.st_mode)):
                        changed_at = datetime.fromtimestamp(about.st_mtime, UTC)
                        size_bytes = 0 if is_folder else about.st_size
                        found.append(
                            HomeEntry(
                                name=entry.name, is_folder=is_folder, size_bytes=size_bytes, changed_at=changed_at
                            )
                        )
        except NotFound:
            return []
        return sorted(found, key=lambda entry: (entry.name.casefold(), entry.name))

    def _texts(self, names: tuple[str, ...], suffix: str) -> Sequence[tuple[HomeEntry, str]]:
        found: list[tuple[HomeEntry, str]] = []
        for entry in self._list(names):
            if entry.name.endswith(suffix) and not entry.is_folder:
                with suppress(NotFound, UserError, OSError):  # removed in between, or no text
                    found.append((entry, self._read((*names, entry.name)).text))
        return sorted(found, key=lambda one: one[0].changed_at, reverse=True)

    def _remove(self, names: tuple[str, ...], expected_version: str | None) -> HomeFile:
        with self._locked(), self._parent(names, create=False) as parent:
            before = _read_in(parent, names[-1])
            _check_version(parent, names, expected_version)
            os.unlink(names[-1], dir_fd=parent)
            os.fsync(parent)
        return before

    def _rename(self, names: tuple[str, ...], to: tuple[str, ...]) -> None:
        with self._locked(), self._parent(names, create=False) as source, self._parent(to, create=True) as target:
            _read_in(source, names[-1])
            _check_version(target, to, ABSENT)
            os.rename(names[-1], to[-1], src_dir_fd=source, dst_dir_fd=target)
            os.fsync(target)

    def _set_aside(self, names: tuple[str, ...], to: tuple[str, ...]) -> None:
        with self._locked(), self._parent(names, create=False) as source, self._parent(to, create=True) as target:
            try:
                os.rename(names[-1], to[-1], src_dir_fd=source, dst_dir_fd=target)
            except FileNotFoundError:
                return  # nothing stands in the way
            except OSError as error:
                if is_full(error):
                    raise
                raise Conflict(f"{'/'.join(names)!r} cannot be moved aside: {error.strerror}.") from error
            os.fsync(target)

    def _folder(self, names: tuple[str, ...]) -> Path:
        with self.walk(names, create=True):
            return self.path.joinpath(*names)

    @contextmanager
    def _parent(self, names: tuple[str, ...], *, create: bool) -> Iterator[int]:
        with self.walk(names[:-1], create=create) as handle:
            yield handle

    @contextmanager
    def walk(self, names: tuple[str, ...], *, create: bool) -> Iterator[int]:
        """An open folder, reached name by name so that a symlink put in the way at any moment is refused."""
        if create:
            private.make_folder(self.path)
        handle = _open_folder(str(self.path), None, create=False)
        try:
            for name in names:
                deeper = _open_folder(name, handle, create=create)
                os.close(handle)
                handle = deeper
            yield handle
        finally:
            os.close(handle)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One writer at a time in this folder, other processes included."""
        with self.walk((), create=True) as handle:
            deadline = ticks_s() + _LOCK_WAIT_S
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if ticks_s() > deadline:
                        raise Conflict("Another program is using your folder. Try again in a moment.") from None
                    time.sleep(0.005)
            yield  # closing the folder lets go of the lock


def _checked(path: str) -> tuple[str, ...]:
    names = tuple(path.split("/"))
    if len(names) > _MAX_DEPTH:
        raise UserError(f"The path {path[:60]!r} is too deep: at most {_MAX_DEPTH} names.")
    for name in names:
        _check_name(name)
    return names


def _check_name(name: str) -> None:
    """UserError unless this is a plain visible name on every system."""
    reason = ""
    if not name or name.startswith(".") or name != name.strip() or name.endswith("."):
        reason = "is empty, hidden, or begins or ends with a dot or a blank"
    elif not name.isprintable() or any(sign in _BAD_SIGNS for sign in name):
        reason = "has a sign that names cannot have"
    elif len(name.encode("utf-8", "replace")) > _MAX_NAME_BYTES:
        reason = f"is longer than {_MAX_NAME_BYTES} bytes"
    if reason:
        raise UserError(f"The name {name[:60]!r} {reason}.")


def _open_folder(name: str, within: int | None, *, create: bool) -> int:
    if create and within is not None:
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=within)
    return _or_not_found(lambda: os.open(name, _OPEN_FOLDER, dir_fd=within), name)


def _read_in(parent: int, name: str) -> HomeFile:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # non-blocking: a FIFO would wait for ever
    handle = _or_not_found(lambda: os.open(name, flags, dir_fd=parent), name)
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode):
        os.close(handle)
        raise NotFound(f"{name!r} is not a file.")
    with os.fdopen(handle, "rb") as file:
        if about.st_size > MAX_SIZE_BYTES:
            raise UserError(f"{name!r} is too long to open here: {about.st_size} bytes.")
        data = file.read(MAX_SIZE_BYTES)
    try:
        return HomeFile(text=data.decode(), version=_tag(data))
    except UnicodeDecodeError as error:
        raise UserError(f"{name!r} is not UTF-8 text.") from error


def _check_version(parent: int, names: tuple[str, ...], expected: str | None) -> None:
    """Conflict when another version stands there; NotFound when something stands there that is no file."""
    try:
        about = os.stat(names[-1], dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        found = ABSENT
    else:
        if expected is None and stat.S_ISREG(about.st_mode):
            return  # whatever it holds: text, or bytes that were kept
        found = _read_in(parent, names[-1]).version
    if expected is not None and found != expected:
        how = "exists already" if expected == ABSENT else "was changed in the meantime; check it again"
        raise Conflict(f"{'/'.join(names)!r} {how}. Nothing was overwritten.")


def _or_not_found(opening: Callable[[], T], name: str) -> T:
    try:
        return opening()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise NotFound(f"There is no {os.path.basename(name)!r}.") from error
    except OSError as error:
        if error.errno == errno.ELOOP:  # a symlink, which is never followed
            raise NotFound(f"There is no {os.path.basename(name)!r}.") from error
        if is_full(error):  # a folder that was to be made
            raise
        raise UserError(f"{os.path.basename(name)!r} cannot be opened: {error.strerror or error}.") from error


def _tag(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
