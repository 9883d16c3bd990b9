"""How much of a disk a folder holds, and files without a name that processes keep open. Counts; decides nothing.

For `sandbox.py`, while a program runs that may move, hide or remove what is being counted.
"""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

BLOCK_BYTES = 512  # of st_blocks, whatever the file system's own are (stat(2))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUsage:
    """Bytes on the disk (a sparse file's holes are none), names below the folder, folders that could not be read."""

    used_bytes: int = 0
    files: int = 0
    hidden: int = 0


def usage_of(folder: str, most: DiskUsage) -> DiskUsage:
    """Return what the folder holds; it stops counting once there is more than `most`. No link is followed."""
    used_bytes = files = hidden = 0
    linked: set[tuple[int, int]] = set()
    waiting = [folder]
    while waiting:
        try:
            entries = os.scandir(waiting.pop())
        except FileNotFoundError:
            continue
        except OSError:  # closed to us, or nested deeper than a path may be long
            hidden += 1
            continue
        with entries:
            for entry in entries:
                files += 1
                if used_bytes > most.used_bytes or files > most.files or hidden > most.hidden:
                    return DiskUsage(used_bytes=used_bytes, files=files, hidden=hidden)
                with suppress(FileNotFoundError):
                    about = entry.stat(follow_symlinks=False)
                    if about.st_nlink < 2 or (inode := (about.st_dev, about.st_ino)) not in linked:
                        used_bytes += about.st_blocks * BLOCK_BYTES
                    if stat.S_ISDIR(about.st_mode):
                        waiting.append(entry.path)
                    elif about.st_nlink > 1:
                        linked.add(inode)
    return DiskUsage(used_bytes=used_bytes, files=files, hidden=hidden)


def nameless_bytes(pids: Iterable[int]) -> int:
    """The bytes of files that these processes hold open and that no folder lists: removed ones and memfds."""
    found: dict[tuple[int, int], int] = {}
    for pid in pids:
        with suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    about = os.stat(f"/proc/{pid}/fd/{name}")
                    if stat.S_ISREG(about.st_mode) and about.st_nlink == 0:
                        found[about.st_dev, about.st_ino] = about.st_blocks * BLOCK_BYTES
    return sum(found.values())
