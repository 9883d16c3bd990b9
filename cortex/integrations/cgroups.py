"""Holds the processes of a run by a control group of its own, where Cortex runs as root: RLIMIT_NPROC does not bind it.

The pids controller of cgroups(7), version 1 or 2. Where it cannot be had (a normal user, a container that may not write
its groups) there is none: a user's limit, the container's limit and the watch of `sandbox.py` remain.
"""

import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
TRIES = 50
TRY_S = 0.02

_numbers = itertools.count()


@asynccontextmanager
async def group_of(processes: int, *, root: Path = ROOT) -> AsyncIterator[Sequence[str]]:
    """What to set before a command, so that it and all that it starts are `processes` at most together.

    The command gets no environment. Nothing where there is no such group. `root`: where the controllers are mounted.
    """
    group = await asyncio.to_thread(_made, root, processes)
    if group is None:
        yield ()
        return
    try:
        joining = 'echo $$ > "$0" && exec env -i "$@"'  # the shell has set variables of its own
        yield ("/bin/sh", "-c", joining, str(group / "cgroup.procs"))
    finally:
        await asyncio.to_thread(_remove, group)


def _made(root: Path, processes: int) -> Path | None:
    if os.geteuid() != 0:
        return None
    for parent in _parents(root):
        group = parent / f"cortex-{os.getpid()}-{next(_numbers)}"
        try:
            group.mkdir()
            _clear(parent)
            limit = os.open(group / "pids.max", os.O_WRONLY)  # not made where the controller is not
        except OSError:
            with suppress(OSError):
                group.rmdir()
            continue
        with os.fdopen(limit, "w") as file:
            file.write(str(processes))
        return group
    return None


def _parents(root: Path) -> list[Path]:
    """Below our own group in version 1; beside it in 2, where a group with processes has no groups with limits."""
    found = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, own = line.split(":", 2)
        if controllers == "pids":
            found.append(root / "pids" / own.lstrip("/"))
        elif not controllers:
            found.append((root / own.lstrip("/")).parent if own != "/" else root)
    return found


def _clear(parent: Path) -> None:
    """Remove the groups of a Cortex that was killed; one that still holds a process stays."""
    for left in parent.glob("cortex-*-*"):
        if not os.path.exists(f"/proc/{left.name.split('-')[1]}"):
            with suppress(OSError):
                left.rmdir()


def _remove(group: Path) -> None:
    """It can be removed once the last of its processes, which were killed, is gone."""
    for _ in range(TRIES):
        with suppress(OSError):
            group.rmdir()
            return
        time.sleep(TRY_S)
