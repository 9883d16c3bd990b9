"""HOME is its owner's alone: no bit for group or others on anything in it, nothing of another user's, no link followed.

`settle` mends at a start, `look` only sees (`cortex doctor`), `make_file` and the others make things that way whatever
the umask is. A file is never opened to be looked at: closing it would drop SQLite's locks on it.
"""

import asyncio
import logging
import os
import pwd
import shlex
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from cortex.base.errors import ConfigError

OTHERS = 0o077
SET_ID = stat.S_ISUID | stat.S_ISGID  # whoever runs such a file does it as its owner
FOLDER, FILE, PROGRAM = 0o700, 0o600, 0o700
WAL_MOST_BYTES = 16 * 2**20  # a large transaction leaves a log of its size, which else stays so for ever
NAMED = 3  # how many paths a sentence names
KEY = "secret.key"
USED = (KEY, "cortex.db")  # one of them lies in a home that was used once
MOUNTED = "lost+found"  # root's own, at the top of a disk of its own

log = logging.getLogger(__name__)


class Paths(Struct):
    """The number of paths, and the first few by name."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, path: str) -> None:
        """One more."""
        self.count += 1
        if len(self.first) < NAMED:
            self.first.append(path)

    def __str__(self) -> str:
        more = f" and {self.count - len(self.first):,} more" if self.count > len(self.first) else ""
        return ", ".join(map(repr, self.first)) + more


class ModeReport(Struct):
    """Paths that are not as they should be: open to others, another user's, not to be looked at or not to be mended."""

    loose: Paths = field(default_factory=Paths)
    foreign: Paths = field(default_factory=Paths)
    stuck: Paths = field(default_factory=Paths)


async def settle(home: Path) -> None:
    """Close to others what is ours in HOME. ConfigError, with what to do, when another user owns something there."""
    own(home)
    is_new = not any((home / name).exists() for name in USED)  # what lies there came with a checkout
    seen = await asyncio.to_thread(look, home, is_mending=True)
    if seen.loose.count:
        log.log(
            logging.DEBUG if is_new else logging.INFO,
            "home: removed permissions of other users in %s: %s",
            home,
            seen.loose,
        )
    if seen.stuck.count:
        log.warning("home: cannot remove permissions of other users in %s: %s", home, seen.stuck)
    if seen.foreign.count:
        raise ConfigError(f"CORTEX_HOME: another user owns files in {str(home)!r}: {seen.foreign}. {give(home)}")


def own(home: Path) -> None:
    """Close HOME itself to others. ConfigError, with what to do, when it is another user's."""
    about = home.stat()
    if about.st_uid != os.geteuid():
        raise ConfigError(
            f"CORTEX_HOME: {str(home)!r} belongs to the user {_name(about.st_uid)}, and this is {_name(os.geteuid())}. "
            f"{give(home)}"
        )
    if about.st_mode & OTHERS:
        with suppress(OSError):  # `settle` tells
            home.chmod(FOLDER)


def give(home: Path) -> str:
    """Return what to do about another user's files."""
    command = f"chown -R {os.geteuid()} {shlex.quote(str(home))}"
    return f"Run Cortex as the user who owns it, or give it all to this one: {command}"


def look(home: Path, *, is_mending: bool = False) -> ModeReport:
    """Find what in the folder is open to others or another user's; `is_mending`: close what is ours on the way."""
    seen = ModeReport()
    top = str(home.resolve())
    if not _visit(top, None, ".", seen, is_mending):
        return seen
    waiting = [_Folder.opened(top, None, "")]
    try:
        while waiting:
            here = waiting[-1]
            name = next(here.names, None)
            if name is None:
                waiting.pop().close()
                continue
            shown = f"{here.shown}/{name}" if here.shown else name
            if shown == MOUNTED:
                continue
            try:
                if _visit(name, here.handle, shown, seen, is_mending):
                    waiting.append(_Folder.opened(name, here.handle, shown))
            except FileNotFoundError:
                continue  # gone meanwhile
            except OSError as error:
                seen.stuck.add(f"{shown} ({error.strerror})")
    finally:
        for one in waiting:
            one.close()
    return seen


def sync(path: Path) -> None:
    """Have the disk keep a file's content, or the names in a folder, also over a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_file(path: Path) -> None:
    """The file, empty if it is new, in folders that are made if they are missing.

    One that is there is never opened: as any descriptor of a file closes, a process loses all its locks on that file.
    A database without locks is taken for one that nobody uses, and the next program that looks at it removes its
    journal (https://www.sqlite.org/howtocorrupt.html, 2.2).
    """
    make_folder(path.parent)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE))


def make_database(path: Path) -> None:
    """The file of a SQLite database, which gives its side files the same mode; where it cannot be, SQLite says why."""
    with suppress(OSError):
        make_file(path)


def make_folder(path: Path) -> None:
    """The folder and those above it that are missing; `Path.mkdir` gives its mode to the last one alone."""
    missing = [] if path.is_dir() else [path, *path.parents]
    for folder in reversed(missing):
        folder.mkdir(mode=FOLDER, exist_ok=True)


def write_beside(path: Path, data: bytes) -> None:
    """The bytes as a file that is about to be moved to its place."""
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE)
    with os.fdopen(handle, "wb") as file:
        file.write(data)


class _Folder(Struct, frozen=True):
    """An open folder and the names in it that wait to be looked at."""

    handle: int
    names: Iterator[str]
    shown: str

    @classmethod
    def opened(cls, name: str, within: int | None, shown: str) -> "_Folder":
        handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=within)
        return cls(handle, iter(sorted(os.listdir(handle))), shown)

    def close(self) -> None:
        os.close(self.handle)


def _visit(name: str, within: int | None, shown: str, seen: ModeReport, is_mending: bool) -> bool:
    """Tell whether this is a folder of ours, to be gone into."""
    about = os.stat(name, dir_fd=within, follow_symlinks=False)
    if about.st_uid != os.geteuid():
        seen.foreign.add(shown)
        return False
    if stat.S_ISLNK(about.st_mode):
        return False
    is_folder = stat.S_ISDIR(about.st_mode)
    excess = about.st_mode & (OTHERS if is_folder else OTHERS | SET_ID)
    if excess:
        seen.loose.add(shown)
    if is_mending and (excess or (is_folder and about.st_mode & FOLDER != FOLDER)):
        try:
            _close_to_others(name, within)
        except OSError as error:
            seen.stuck.add(f"{shown} ({error.strerror})")
    return is_folder


def _close_to_others(name: str, within: int | None) -> None:
    """By a handle that opens nothing, so that a link put in its place meanwhile is not followed."""
    if sys.platform != "linux":
        about = os.stat(name, dir_fd=within, follow_symlinks=False)
        os.chmod(name, _closed(about.st_mode), dir_fd=within, follow_symlinks=False)
        return
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=within)
    try:
        about = os.fstat(handle)
        if about.st_uid == os.geteuid() and not stat.S_ISLNK(about.st_mode):
            os.chmod(f"/proc/self/fd/{handle}", _closed(about.st_mode))
    finally:
        os.close(handle)


def _closed(mode: int) -> int:
    if stat.S_ISDIR(mode):
        return FOLDER
    return PROGRAM if mode & stat.S_IXUSR else FILE


def _name(user_id: int) -> str:
    try:
        return repr(pwd.getpwuid(user_id).pw_name)
    except KeyError:
        return f"number {user_id}"
