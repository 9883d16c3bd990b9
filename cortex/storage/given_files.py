"""The files that a person gave, on the disk: received whole or not at all, put below `files/uploads/`, removed, back.

A file is written to `incoming/` first, under its id and locked, then linked to its name, then known to the database;
only then its first name goes. So whatever a kill leaves is seen at the next start, and is finished or goes
(`sweep`).
"""

import asyncio
import fcntl
import hashlib
import os
import stat
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, suppress
from io import BufferedReader
from pathlib import PurePath
from typing import IO

from msgspec import Struct

from cortex.base.background import handed
from cortex.base.errors import NotFound, UserError
from cortex.base.media import Sniffer, safe_name, why_not_taken
from cortex.storage.home import Home

FOLDER = "files"
UPLOADS = "uploads"
INCOMING = "incoming"
REMOVED = "removed"
PICTURES = "pictures"  # made from those of the person, so that they are made once
PIECE_BYTES = 1 << 20
SAME_NAMES_MOST = 10_000
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # non-blocking: a FIFO would wait for ever
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class GivenFile(Struct, frozen=True, kw_only=True):
    """A file that is in its place. `path`: below `files/`."""

    path: str
    name: str
    media_type: str
    size_bytes: int
    sha256: str


class GivenFiles(Struct, frozen=True, kw_only=True):
    """Those of one person."""

    home: Home

    @asynccontextmanager
    async def receive(self, id: str, given_name: str, source: IO[bytes]) -> AsyncIterator[GivenFile]:
        """The file in its place, while the block makes it known; where that fails, nothing of it stays.

        UserError in a sentence for what is empty or of a type that is not taken.
        """
        incoming = await handed(lambda: self._begin(id), lambda left: self._end(id, left, is_kept=False))
        is_kept = False
        try:
            yield await asyncio.to_thread(self._placed, incoming, id, given_name, source)
            is_kept = True
        finally:  # cancelled too, while the thread above still works
            await asyncio.to_thread(self._end, id, incoming, is_kept=is_kept)

    async def opened(self, path: str) -> BufferedReader:
        """The file below `files/`, opened for reading; NotFound where it is gone, or is no ordinary file."""
        return await handed(lambda: self._opened(path), BufferedReader.close)

    async def remove(self, id: str, path: str) -> None:
        """Take it out of `files/`, to be brought back by `bring_back`. It may be gone already, or be removed."""
        await asyncio.to_thread(self._move_out, id, path)

    async def bring_back(self, id: str, path: str) -> str:
        """Put it back, under another name where its own was taken since; its path. NotFound where it is gone."""
        return await asyncio.to_thread(self._move_back, id, path)

    async def forget(self, id: str) -> None:
        """Delete a removed one for good."""
        await asyncio.to_thread(self._unlink, (REMOVED, id))

    async def sweep(self, known: Collection[str]) -> int:
        """Clear what killed uploads left; how many there were. `known`: the ids that the database has."""
        return await asyncio.to_thread(self._sweep, known)

    def _begin(self, id: str) -> IO[bytes]:
        with self.home.walk((INCOMING,), create=True) as folder:
            while True:
                file = os.fdopen(os.open(id, _NEW, 0o600, dir_fd=folder), "wb")
                fcntl.flock(file, fcntl.LOCK_EX)  # the system lets go of it with this process
                if os.fstat(file.fileno()).st_nlink:
                    return file
                file.close()  # swept before it was locked, as if a killed upload had left it

    def _end(self, id: str, incoming: IO[bytes], *, is_kept: bool) -> None:
        """Take the first name away, so that no other can be given; and, of what is not kept, the one that was."""
        self._unlink((INCOMING, id))
        if not is_kept and os.fstat(incoming.fileno()).st_nlink:
            self._unlink_same(os.fstat(incoming.fileno()))
        with suppress(OSError):  # a full disk: what was not kept is gone anyway
            incoming.close()

    def _placed(self, incoming: IO[bytes], id: str, given_name: str, source: IO[bytes]) -> GivenFile:
        name, sniffer, digest, size_bytes = safe_name(given_name), Sniffer(), hashlib.sha256(), 0
        while piece := source.read(PIECE_BYTES):
            sniffer.add(piece)
            digest.update(piece)
            size_bytes += len(piece)
            incoming.write(piece)
        if not size_bytes:
            raise UserError("The file is empty.")
        media_type = sniffer.media_type(name)
        if not media_type:
            raise UserError(why_not_taken(name))
        incoming.flush()
        os.fsync(incoming.fileno())
        with self.home.walk((INCOMING,), create=False) as source_folder:
            path = self._linked(source_folder, id, name)
        return GivenFile(
            path=path, name=PurePath(path).name, media_type=media_type, size_bytes=size_bytes, sha256=digest.hexdigest()
        )

    def _linked(self, source_folder: int, id: str, name: str) -> str:
        """Give the file its name, with a number where that is taken: never in place of another."""
        with self.home.walk((FOLDER, UPLOADS), create=True) as folder:
            for free in _names(name):
                with suppress(FileExistsError):
                    os.link(id, free, src_dir_fd=source_folder, dst_dir_fd=folder, follow_symlinks=False)
                    os.fsync(folder)
                    return f"{UPLOADS}/{free}"
        raise UserError(f"There are too many files named {name}.")

    def _opened(self, path: str) -> BufferedReader:
        """By its handle, not by its path: a program in the folder could put a link there in between."""
        names = (FOLDER, *path.split("/"))
        try:
            with self.home.walk(names[:-1], create=False) as folder:
                handle = os.open(names[-1], _READ, dir_fd=folder)
        except (OSError, NotFound) as error:
            raise NotFound(f"{names[-1]} is no longer in your files.") from error
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise NotFound(f"{names[-1]} is no longer in your files.")
        return os.fdopen(handle, "rb")

    def _move_out(self, id: str, path: str) -> None:
        names = (FOLDER, *path.split("/"))
        with (
            suppress(FileNotFoundError, NotFound),
            self.home.walk((REMOVED,), create=True) as target,
            self.home.walk(names[:-1], create=False) as folder,
        ):
            if not _is_file(target, id) and _is_file(folder, names[-1]):  # else another has its name by now
                os.rename(names[-1], id, src_dir_fd=folder, dst_dir_fd=target)
                os.fsync(target)

    def _move_back(self, id: str, path: str) -> str:
        with self.home.walk((REMOVED,), create=True) as folder:
            try:
                back = self._linked(folder, id, PurePath(path).name)
            except FileNotFoundError as error:
                raise NotFound("That file was deleted permanently.") from error
            os.unlink(id, dir_fd=folder)
        return back

    def _unlink(self, names: tuple[str, ...]) -> None:
        with suppress(FileNotFoundError, NotFound), self.home.walk(names[:-1], create=False) as folder:
            os.unlink(names[-1], dir_fd=folder)

    def _sweep(self, known: Collection[str]) -> int:
        if not self.home.path.joinpath(INCOMING).is_dir():
            return 0
        with self.home.walk((INCOMING,), create=False) as folder:
            return sum(self._cleared(folder, id, is_known=id in known) for id in os.listdir(folder))

    def _cleared(self, folder: int, id: str, *, is_known: bool) -> bool:
        """Clear one, unless it is being received now, or was received since it was listed."""
        try:
            handle = os.open(id, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.fstat(handle).st_nlink:  # another sweep was here, and its id may be received anew by now
                return False
            if not is_known and os.fstat(handle).st_nlink > 1:
                self._unlink_same(os.fstat(handle))
            os.unlink(id, dir_fd=folder)
        except (BlockingIOError, FileNotFoundError):
            return False
        finally:
            os.close(handle)
        return True

    def _unlink_same(self, about: os.stat_result) -> None:
        """The name that it got before the kill."""
        with self.home.walk((FOLDER, UPLOADS), create=True) as folder:
            for name in os.listdir(folder):
                with suppress(FileNotFoundError):  # a person may have taken it away since
                    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    if (found.st_dev, found.st_ino) == (about.st_dev, about.st_ino):
                        os.unlink(name, dir_fd=folder)


def _is_file(folder: int, name: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _names(name: str) -> Iterator[str]:
    yield name
    stem, ending = PurePath(name).stem, PurePath(name).suffix
    for number in range(2, SAME_NAMES_MOST):
        yield f"{stem} ({number}){ending}"
