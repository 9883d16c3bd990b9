"""Temporary folders for programs in the sandbox, which go with them, also where Cortex was killed meanwhile.

Whoever uses one holds a lock on it, which ends with the process; what nobody holds, the next to need a folder removes.
"""

import asyncio
import fcntl
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from cortex.base.background import handed

PREFIX = "cortex-box-"


@asynccontextmanager
async def scratch_folder(place: Path | None = None) -> AsyncIterator[Path]:
    """A fresh folder of ours alone, while the block lasts; `place`: where, in place of the machine's own."""
    made = await handed(lambda: _made(place or Path(tempfile.gettempdir())), _remove)
    try:
        yield made[0]
    finally:
        await asyncio.shield(asyncio.to_thread(_remove, made))  # a cancel takes it from no full line of threads


def _made(place: Path) -> tuple[Path, int]:
    """The folder, and the descriptor that holds its lock."""
    _sweep(place)
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        try:
            handle = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:  # another process swept it away already
            continue
        fcntl.flock(handle, fcntl.LOCK_SH)
        if folder.exists():  # nobody swept it away before it was locked
            return folder, handle
        os.close(handle)


def _remove(made: tuple[Path, int]) -> None:
    """The lock goes last: nobody else removes it at the same time."""
    shutil.rmtree(made[0], ignore_errors=True)
    os.close(made[1])


def _sweep(place: Path) -> None:
    for left in place.glob(f"{PREFIX}*"):
        with suppress(OSError):  # gone meanwhile, somebody else's, or in use
            handle = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(handle).st_uid == os.geteuid():
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(handle)
