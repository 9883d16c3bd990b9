"""Looks at a running tree of processes: how many, and how much memory they hold. `sandbox.py` ends what is over."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from cortex.integrations.process import tree_of

MB = 1_000_000
WATCH_S = 0.05


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
