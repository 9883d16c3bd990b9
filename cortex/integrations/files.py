"""A user's folders as file tools see them: named roots, jailed paths, whole and atomic writes, size caps.

Paths are `notes/a.md` in the user's own `files/`, or `name:path` in a folder that an admin allowed. Knows no user.
"""

import asyncio
import errno
import os
import secrets
import stat
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from io import BufferedReader
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from cortex.base.background import handed
from cortex.base.errors import Conflict, NotFound, ToolFailed
from cortex.integrations import jail

T = TypeVar("T")

READ_BYTES = 8_000_000
WRITE_BYTES = 1_000_000
WALK_ENTRIES = 20_000
TIMEOUT_S = 20.0
SAMPLE_BYTES = 8_192
MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


class Root(Struct, frozen=True, kw_only=True):
    """A folder that tools may enter; `name` "" is the user's own."""

    name: str
    path: Path
    is_writable: bool = True


class FolderItem(Struct, frozen=True, kw_only=True):
    """One thing in a folder. `kind`: file, folder, link or other; `path` as the tools take it."""

    path: str
    kind: str
    size_bytes: int
    changed_at: datetime


class WriteResult(Struct, frozen=True, kw_only=True):
    """The content that a write replaced (None: nothing was there) and the version that now stands."""

    before: bytes | None
    version: str


def version_of(data: bytes) -> str:
    """The version tag of a file with this content."""
    return sha256(data).hexdigest()[:32]


def decoded(data: bytes, path: str) -> str:
    """The text of a file in UTF-8, in UTF-16 with its mark, or in Latin-1; ToolFailed when it is not text."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if b"\0" in data[:SAMPLE_BYTES]:
        raise ToolFailed(f"{path!r} is not a text file ({len(data)} bytes of binary data).")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def roots_from(value: object, forbidden: Sequence[Path]) -> tuple[Root, ...]:
    """The allowed folders of a setting `{name: folder}`; what is no folder, or touches a forbidden one, is left out."""
    if not isinstance(value, dict):
        return ()
    kept = [path.resolve() for path in forbidden]
    made = []
    for name, place in sorted(value.items()):
        path = Path(str(place))
        if not str(name).isidentifier() or not path.is_absolute() or not path.is_dir():
            continue
        real = path.resolve()
        if not any(real.is_relative_to(other) or other.is_relative_to(real) for other in kept):
            made.append(Root(name=str(name), path=real))
    return tuple(made)


class Files:
    """The folders of one user. `allowed` gives the further roots each time, so that a revoked one is gone at once."""

    def __init__(
        self,
        own: Path,
        allowed: Callable[[], Awaitable[tuple[Root, ...]]] | None = None,
        *,
        is_old_kernel: bool = False,
    ) -> None:
        self._own = Root(name="", path=own)
        self._allowed = allowed
        self._is_old_kernel = is_old_kernel

    async def roots(self) -> tuple[Root, ...]:
        """The user's own folder first, then the allowed ones."""
        return (self._own, *(await self._allowed() if self._allowed else ()))

    async def place(self, path: str) -> tuple[Root, str]:
        """The root that `path` names and the cleaned rest; ToolFailed when it leads outside."""
        roots = await self.roots()
        name, colon, rest = path.partition(":")
        for root in roots[1:]:
            if colon and root.name == name:
                return root, jail.clean(rest.lstrip("/"))
        return roots[0], jail.clean(path)

    async def folder(self, path: str) -> tuple[Root, str]:
        """The root and cleaned path of a real folder, for a program to work in; links on the way are refused."""
        await self._do(path, self._check_folder)
        return await self.place(path)

    async def stat(self, path: str) -> FolderItem:
        """Facts about a file or folder; NotFound when it is not there."""
        return await self._do(path, lambda root, rest: self._stat(root, rest, path))

    async def list(self, path: str, *, is_deep: bool = False) -> list[FolderItem]:
        """Return what a folder holds, sorted, hidden names too; links are shown and never followed."""
        return await self._do(path, lambda root, rest: list(self._entries(root, rest, is_deep=is_deep)))

    async def read(self, path: str, *, limit_bytes: int = READ_BYTES) -> bytes:
        """The whole content; ToolFailed when it is no ordinary file or larger than `limit_bytes`."""
        return await self._do(path, lambda root, rest: self._read(root, rest, path, limit_bytes))

    async def opened(self, path: str) -> BufferedReader:
        """The file, opened for reading; close it. ToolFailed when it is no ordinary file."""
        return await self._do(path, self._open, BufferedReader.close)

    async def write(self, path: str, data: bytes, *, expected: str | None = None) -> WriteResult:
        """Replace or make a file in one atomic step, its folders too; what it replaced and its new version.

        `expected`: the version it must have ("" = absent), else Conflict. ToolFailed when a content is too large.
        """
        if len(data) > WRITE_BYTES:
            raise ToolFailed(f"That is more than {WRITE_BYTES // 1_000_000} MB; write it in parts.")
        return await self._do(path, lambda root, rest: self._write(root, rest, path, data, expected))

    async def remove(self, path: str, *, expected: str) -> None:
        """Delete a file that still has this version; Conflict otherwise."""
        await self._do(path, lambda root, rest: self._remove(root, rest, path, expected))

    async def _do(self, path: str, work: Callable[[Root, str], T], let_go: Callable[[T], None] = lambda _: None) -> T:
        """Run blocking work on a placed path in a thread, with a time limit and the tool's own words for errors.

        `let_go`: closes what comes too late.
        """
        root, rest = await self.place(path)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await handed(lambda: work(root, rest), let_go)
        except TimeoutError as error:
            raise ToolFailed(f"{path!r} took longer than {TIMEOUT_S:g} s.") from error
        except FileNotFoundError as error:
            raise NotFound(f"There is no {path!r}. Look with file_list.") from error
        except OSError as error:
            raise ToolFailed(f"{path!r}: {_words(error)}.") from error

    @contextmanager
    def _opened(self, root: Root) -> Iterator[int]:
        handle = os.open(root.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            yield handle
        finally:
            os.close(handle)

    def _check_folder(self, root: Root, rest: str) -> None:
        with self._opened(root) as top:
            os.close(jail.open_folder(top, rest, is_old_kernel=self._is_old_kernel))

    def _stat(self, root: Root, rest: str, path: str) -> FolderItem:
        with self._opened(root) as top:
            handle = jail.open_below(top, rest, os.O_PATH, is_old_kernel=self._is_old_kernel)
            try:
                return _entry(path, os.fstat(handle))
            finally:
                os.close(handle)

    def _entries(self, root: Root, rest: str, *, is_deep: bool) -> Iterator[FolderItem]:
        prefix = f"{root.name}:" if root.name else ""
        with self._opened(root) as top:
            waiting, seen = [rest], 0
            while waiting:
                folder = waiting.pop(0)
                try:
                    handle = jail.open_folder(top, folder, is_old_kernel=self._is_old_kernel)
                except (OSError, ToolFailed):
                    if folder == rest:
                        raise
                    continue  # gone, closed to us, or of a name that no path can hold: the others are listed
                try:
                    for name in sorted(os.listdir(handle)):
                        seen += 1
                        if seen > WALK_ENTRIES:
                            return
                        inner = name if folder == "." else f"{folder}/{name}"
                        with suppress(FileNotFoundError):
                            about = os.stat(name, dir_fd=handle, follow_symlinks=False)
                            entry = _entry(os.fsencode(prefix + inner).decode(errors="replace"), about)
                            yield entry
                            if is_deep and entry.kind == "folder":
                                waiting.append(inner)
                finally:
                    os.close(handle)

    def _open(self, root: Root, rest: str) -> BufferedReader:
        with self._opened(root) as top:
            return os.fdopen(jail.open_regular(top, rest, is_old_kernel=self._is_old_kernel), "rb")

    def _read(self, root: Root, rest: str, path: str, limit_bytes: int) -> bytes:
        with self._opened(root) as top:
            handle = jail.open_regular(top, rest, is_old_kernel=self._is_old_kernel)
            with os.fdopen(handle, "rb") as file:
                data = file.read(limit_bytes + 1)
        if len(data) > limit_bytes:
            raise ToolFailed(f"{path!r} is larger than {limit_bytes / 1_000_000:g} MB.")
        return data

    def _write(self, root: Root, rest: str, path: str, data: bytes, expected: str | None) -> WriteResult:
        if not root.is_writable:
            raise ToolFailed(f"The folder {root.name!r} is for reading only.")
        folder, _, name = rest.rpartition("/")
        if name == ".":
            raise ToolFailed("Name a file, not the folder.")
        before = self._before(root, rest, path, expected)
        with self._opened(root) as top:
            parent = jail.open_folder(top, folder or ".", make=bool(folder), is_old_kernel=self._is_old_kernel)
            try:
                _replace(parent, name, data, bits=0o700 if root == self._own else 0o777)
            finally:
                os.close(parent)
        return WriteResult(before=before, version=version_of(data))

    def _remove(self, root: Root, rest: str, path: str, expected: str) -> None:
        self._before(root, rest, path, expected)
        folder, _, name = rest.rpartition("/")
        with self._opened(root) as top:
            parent = jail.open_folder(top, folder or ".", is_old_kernel=self._is_old_kernel)
            try:
                os.unlink(name, dir_fd=parent)
            finally:
                os.close(parent)

    def _before(self, root: Root, rest: str, path: str, expected: str | None) -> bytes | None:
        """Return what stands there now (None: nothing), checked against the version that the caller saw."""
        try:
            before: bytes | None = self._read(root, rest, path, WRITE_BYTES)
        except FileNotFoundError:
            before = None
        if expected is not None and (version_of(before) if before is not None else "") != expected:
            raise Conflict(f"{path!r} has changed since and was left as it is.")
        return before


def _replace(parent: int, name: str, data: bytes, *, bits: int) -> None:
    """Write beside, flush, rename over: a reader sees the old or the new content, never a part.

    `bits`: what of an old file's mode the new one may have.
    """
    try:
        mode = stat.S_IMODE(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode) & bits
    except FileNotFoundError:
        mode = 0o600
    beside = f".{secrets.token_hex(8)}.part"
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | jail.ALWAYS, mode, dir_fd=parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, name, src_dir_fd=parent, dst_dir_fd=parent)
        os.fsync(parent)
    except OSError:
        with suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=parent)
        raise


def _entry(path: str, facts: os.stat_result) -> FolderItem:
    kinds = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "folder"), (stat.S_ISLNK, "link"))
    kind = next((word for test, word in kinds if test(facts.st_mode)), "other")
    changed_at = datetime.fromtimestamp(facts.st_mtime, UTC)
    return FolderItem(path=path, kind=kind, size_bytes=facts.st_size, changed_at=changed_at)


def _words(error: OSError) -> str:
    known = {
        errno.EACCES: "Cortex may not open it",
        errno.EISDIR: "it is a folder",
        errno.ENOTDIR: "a part of the path is not a folder",
        errno.ENAMETOOLONG: "the name is too long",
        errno.ENOSPC: "the disk is full",
        errno.EROFS: "the disk is read-only",
    }
    return known.get(error.errno or 0, error.strerror or "it cannot be opened")
