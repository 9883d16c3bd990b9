"""How much a program in the sandbox may take of disk, memory and processes, counted while it runs.

`sandbox.py` ends what goes past it. Between two looks a program can go some way past its quota; what it made stays,
for its owner to keep or remove.
"""

import asyncio
import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from cortex.base.clock import worked_s
from cortex.integrations.process import tree_of

BLOCK_BYTES = 512  # of st_blocks, whatever the file system's own are (stat(2))


class DiskUsage(Struct, frozen=True, kw_only=True):
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


MB = 1_000_000
LOOK_S = 0.2
WATCH_S = 0.05
IDLE_SHARE, REST_MOST_S = 8, 2.0  # a look that cost a tenth of a second is followed by eight of rest
SLACK = DiskUsage(used_bytes=MB, files=50)  # so that in a full workspace a command can still run that clears it
COUNT_MOST = 10_000_000


class Quota(Struct, frozen=True, kw_only=True):
    """Bytes on the disk and names (files, folders, links) that are allowed."""

    most_bytes: int
    most_files: int

    def __str__(self) -> str:
        return f"{self.most_bytes // MB:,} MB or {self.most_files:,} files"


class _Watched(Struct, frozen=True, kw_only=True):
    """A folder, the most it may come to hold, and the reason that is given when there is more."""

    folder: str
    most: DiskUsage
    reason: str


class Quotas:
    """The folders that one run may write to."""

    def __init__(self) -> None:
        self._watched: list[_Watched] = []
        self._most_bytes = 0

    async def add(self, folder: Path, *, growth: Quota, total: Quota | None = None) -> None:
        """Count what the folder holds now; it may grow by `growth`, and not past `total`."""
        unlimited = DiskUsage(used_bytes=1 << 62, files=COUNT_MOST, hidden=COUNT_MOST)
        now = await asyncio.to_thread(usage_of, str(folder), unlimited)
        more_bytes, more_files = growth.most_bytes, growth.most_files
        reason = f"it added more than {growth} to its folder"
        if total is not None:
            left = Quota(most_bytes=total.most_bytes - now.used_bytes, most_files=total.most_files - now.files)
            if left.most_bytes < more_bytes or left.most_files < more_files:
                reason = f"this person's files came to more than the {total} that are allowed; remove some first"
            more_bytes = min(more_bytes, max(left.most_bytes, SLACK.used_bytes))
            more_files = min(more_files, max(left.most_files, SLACK.files))
        most = DiskUsage(used_bytes=now.used_bytes + more_bytes, files=now.files + more_files, hidden=now.hidden)
        self._watched.append(_Watched(folder=str(folder), most=most, reason=reason))
        self._most_bytes += more_bytes

    async def watch(self, pid: int, most_processes: int, *, every_s: float = LOOK_S) -> str:
        """Why the tree below `pid` must end, once there is a reason."""
        while True:
            reason, cost_s = await asyncio.to_thread(self._look, pid, most_processes)
            if reason:
                return f"{reason} (what it made is still there)"
            await asyncio.sleep(max(every_s, min(REST_MOST_S, IDLE_SHARE * cost_s)))

    def _look(self, pid: int, most_processes: int) -> tuple[str, float]:
        """Return what `_excess` says, and its processor time: a look that waits for a core is not put off for it."""
        began_s = worked_s()
        return self._excess(pid, most_processes), worked_s() - began_s

    def _excess(self, pid: int, most_processes: int) -> str:
        for one in self._watched:
            found = usage_of(one.folder, one.most)
            if found.used_bytes > one.most.used_bytes or found.files > one.most.files:
                return one.reason
            if found.hidden > one.most.hidden:
                return "it made a folder that cannot be looked into"
        if self._watched and nameless_bytes(tree_of(pid, most_processes)) > self._most_bytes:
            return f"it keeps more than {self._most_bytes // MB:,} MB in files without a name"
        return ""


async def watch_tree(pid: int, processes: int, memory_bytes: int, *, every_s: float = WATCH_S) -> str:
    """Wait until it is more than it may be, and say so: RLIMIT_NPROC does not bind root, RLIMIT_AS one process each."""
    most = processes + 3  # bubblewrap itself, its init, the first shell
    while True:
        await asyncio.sleep(every_s)
        found = await asyncio.to_thread(tree_of, pid, most)
        if len(found) > most:
            return f"it started more than {processes} processes"
        if await asyncio.to_thread(memory_of, found) > memory_bytes:
            return f"it used more than {memory_bytes // MB} MB of memory"


def memory_of(pids: Sequence[int]) -> int:
    """The memory in bytes that these processes hold together; pages of files, which the kernel can drop, are none."""
    kib = 0
    for pid in pids:
        with suppress(OSError, ValueError):
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith(("RssAnon:", "RssShmem:")):
                    kib += int(line.split()[1])
    return kib * 1024
