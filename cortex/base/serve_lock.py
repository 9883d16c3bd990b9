"""The lock that says who serves a HOME: `cortex serve` holds it, commands that need the daemon ask for it.

It says nothing of a server that several processes share (PostgreSQL): those may serve from other machines.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cortex.base import private
from cortex.base.clock import boot_s, now
from cortex.base.errors import ConfigError


@contextmanager
def serving(home: Path) -> Iterator[None]:
    """Hold the lock of HOME; ConfigError when another process has it."""
    private.make_file(_path(home))
    with _path(home).open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            holder = file.readline().strip() or "another"
            raise ConfigError(f"process {holder} already serves {str(home)!r}; stop it first") from error
        file.seek(0)
        file.truncate()
        file.write(f"{os.getpid()}\n{now().timestamp()} {boot_s()}\n")
        file.flush()
        yield


def is_served(home: Path) -> bool:
    """Tell whether a process holds the lock now."""
    try:
        with _path(home).open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def server_of(home: Path) -> int | None:
    """The number of the process that holds the lock; None where none is written there."""
    try:
        return int(_path(home).read_text(encoding="ascii").splitlines()[0])
    except (OSError, ValueError, IndexError):
        return None


def clock_moved_s(home: Path) -> float | None:
    """By how many seconds the clock was set forwards (or back, below 0) since the server started; None without one."""
    if not is_served(home):
        return None
    try:
        then_s, boot_then_s = map(float, _path(home).read_text(encoding="ascii").splitlines()[1].split())
    except (ValueError, IndexError):  # it is being written, or another version's
        return None
    return (now().timestamp() - then_s) - (boot_s() - boot_then_s)


def _path(home: Path) -> Path:
    return home / "serve.lock"
