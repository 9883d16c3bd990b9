"""Holds a run's processes and memory by control groups of its own, where Cortex runs as root: ulimits do not bind it.

The controllers pids and memory of cgroups(7), version 1 or 2. Where one cannot be had (a normal user, a container that
may not write its groups) it is left out: a user's limit, the container's limit and the watch of `sandbox.py` remain.
"""

import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from cortex.base.background import handed

ROOT = Path("/sys/fs/cgroup")
TRIES = 50
TRY_S = 0.02

_numbers = itertools.count()
_in_use: set[Path] = set()


@asynccontextmanager
async def group_of(processes: int, memory_bytes: int, *, root: Path = ROOT) -> AsyncIterator[Sequence[str]]:
    """Return what to set before a command, so that it and all that it starts have no more than this together.

    Pages of files count as memory, and are dropped at the limit. The command gets no environment. Nothing where there
    are no such groups. `root`: where the controllers are mounted.
    """
    groups = await handed(lambda: _all_made(root, processes, memory_bytes), _remove)
    if not groups:
        yield ()
        return
    try:
        joining = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit; shift; done; shift; exec env -i "$@"'
        yield ("/bin/sh", "-c", joining, "sh", *(str(group / "cgroup.procs") for group in groups), "--")
    finally:
        await asyncio.to_thread(_remove, groups)


def _all_made(root: Path, processes: int, memory_bytes: int) -> list[Path]:
    """One group with both limits in version 2; in 1 each controller has a tree of its own."""
    if os.geteuid() != 0:
        return []
    name = f"cortex-{os.getpid()}-{next(_numbers)}"
    memory = {"memory.limit_in_bytes": memory_bytes, "memory.memsw.limit_in_bytes": memory_bytes}
    limits = {"pids": {"pids.max": processes}, "memory": memory}
    both = {"pids.max": processes, "memory.max": memory_bytes, "memory.swap.max": 0}
    places = _parents(root)
    made = [_made(parent / name, limits.get(controller, both)) for controller, parent in places]
    return [group for group in made if group is not None]


def _made(group: Path, limits: Mapping[str, int]) -> Path | None:
    """The group, with those of the limits for which there is a controller; None where there is none of them."""
    _in_use.add(group)
    is_held = False
    with suppress(OSError):
        group.mkdir()
        _clear(group.parent)
        for name, limit in limits.items():
            with suppress(OSError), open(os.open(group / name, os.O_WRONLY), "w") as file:  # never made by us
                file.write(str(limit))
                is_held = True
    if is_held:
        return group
    _in_use.discard(group)
    with suppress(OSError):
        group.rmdir()
    return None


def _parents(root: Path) -> list[tuple[str, Path]]:
    """Controller ("" for version 2) and where its groups are made.

    Below our own group in version 1; beside it in 2, where a group with processes has no groups with limits.
    """
    found = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, own = line.split(":", 2)
        if controllers in ("pids", "memory"):
            found.append((controllers, root / controllers / own.lstrip("/")))
        elif not controllers:
            found.append(("", (root / own.lstrip("/")).parent if own != "/" else root))
    return found


def _clear(parent: Path) -> None:
    """Remove groups that nobody uses: of a Cortex that was killed, and ours whose processes took long to end."""
    for left in parent.glob("cortex-*-*"):
        pid = left.name.split("-")[1]
        is_used = left in _in_use if pid == str(os.getpid()) else os.path.exists(f"/proc/{pid}")
        if not is_used:
            with suppress(OSError):  # one that still holds a process stays
                left.rmdir()


def _remove(groups: Sequence[Path]) -> None:
    """Once the last of their processes, which were killed, is gone; what takes longer is left to a later `_clear`."""
    left = list(groups)
    for _ in range(TRIES):
        left = [group for group in left if not _is_removed(group)]
        if not left:
            break
        time.sleep(TRY_S)
    _in_use.difference_update(groups)


def _is_removed(group: Path) -> bool:
    try:
        group.rmdir()
    except OSError:
        return False
    return True
