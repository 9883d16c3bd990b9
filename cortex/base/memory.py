"""Memory that the process no longer uses, given back to the machine, and files that take none until they are read."""

import ctypes
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from mmap import ACCESS_READ, MADV_DONTNEED, mmap
from pathlib import Path
from threading import Lock
from typing import TypeVar
from weakref import WeakSet
from zlib import crc32

from cortex.base.errors import DamagedFile

T = TypeVar("T")
log = logging.getLogger(__name__)
CHECKSUM_BYTES = 4
_maps: WeakSet[mmap] = WeakSet()
_lock = Lock()  # files are mapped by several threads
_M_ARENA_MAX = -8  # of glibc's malloc.h


def mapped(path: Path) -> mmap:
    """The bytes of a file, read where they are looked at; OSError or ValueError where that cannot be."""
    with path.open("rb") as file:
        found = mmap(file.fileno(), 0, access=ACCESS_READ)
    with _lock:
        _maps.add(found)
    return found


@contextmanager
def shipped(path: Path) -> Iterator[None]:
    """Inside the block a file of this version is read: what shows that it is damaged becomes DamagedFile."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedFile(
            f"Cortex cannot use its file {path.name} ({error}). Install this version of Cortex again and restart it."
        ) from error


def spared(path: Path, made: Callable[[], T], means: str) -> T | None:
    """Make what Cortex can do without of a file of this version; None, with a line in the log, where that fails."""
    try:
        with shipped(path):
            return made()
    except DamagedFile as error:
        log.warning("%s %s", error, means)
        return None


def sealed(content: bytes) -> bytes:
    """The content of a file with its checksum behind it."""
    return content + crc32(content).to_bytes(CHECKSUM_BYTES, "little")


def unsealed(data: bytes) -> bytes:
    """The content of what `sealed` made; ValueError for anything else."""
    if data != sealed(data[:-CHECKSUM_BYTES]):
        raise ValueError("its checksum is wrong")
    return data[:-CHECKSUM_BYTES]


def replace(path: Path, data: bytes) -> None:
    """Write the file as a whole, or leave it as it was. A process that has it mapped goes on with the old one."""
    beside = path.with_name(f"{path.name}.new")
    beside.write_bytes(data)
    beside.replace(path)


def share_one_arena() -> None:
    """Let all threads take from one place of memory: glibc gives each its own, and none what another freed.

    Ahead of the first thread. Python's lock lets one thread at a time ask for memory anyway. A setting of whoever
    starts Cortex has the say; children are as they would be without; other systems than glibc's stay as they are.
    """
    if "MALLOC_ARENA_MAX" not in os.environ and "glibc.malloc.arena_max" not in os.environ.get("GLIBC_TUNABLES", ""):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def give_back() -> None:
    """Give back to the machine what was freed: glibc keeps it, and with it the most that was ever in use.

    What was read of mapped files goes too; the system has it at hand where it is looked at again. Other systems than
    glibc's keep what they keep.
    """
    with _lock:
        held = list(_maps)
    for each in held:
        each.madvise(MADV_DONTNEED)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
