"""Ends a process ahead of one of its writes, as a power cut would: SIGKILL, from inside, at an exact place.

Writes are commits of a database transaction that changed something, files that come, go or are renamed, and programs
that are started. They are counted from the moment at which a test arms the knife; `tests/children.py` puts it into a
child whose environment names a file of it.
"""

import mmap
import os
import re
import signal
import struct
import sys
import threading
from pathlib import Path

from sqlalchemy import Connection, Engine, event

VARIABLE = "TESTS_KNIFE"
NEVER = 1 << 40
EVENTS = ("os.rename", "os.remove", "os.mkdir", "subprocess.Popen")
CHANGE = re.compile(r"\s*(WITH\b.*)?\b(INSERT|UPDATE|DELETE)\b", re.IGNORECASE | re.DOTALL)
NUMBERS = struct.Struct("<qq")  # before which write, 0 while nothing is counted; how many were seen


class Knife:
    """A file that the test and the process share."""

    def __init__(self, file: Path) -> None:
        if not file.exists():
            file.write_bytes(bytes(NUMBERS.size))
        with file.open("r+b") as opened:
            self._shared = mmap.mmap(opened.fileno(), NUMBERS.size)
        self._lock = threading.RLock()

    @property
    def writes(self) -> int:
        """How many there were since it was armed, the one included that was not made."""
        return int(NUMBERS.unpack(self._shared)[1])

    def arm(self, at: int = NEVER) -> None:
        """Count from here on; let the process die ahead of its write number `at`."""
        NUMBERS.pack_into(self._shared, 0, at, 0)

    def disarm(self) -> bool:
        """Count no more. Whether the process has come to the write ahead of which it dies."""
        at, seen = NUMBERS.unpack(self._shared)
        NUMBERS.pack_into(self._shared, 0, 0, seen)
        return bool(seen >= at > 0)

    def install(self) -> None:
        """In the process that is to die: look at each write from now on."""
        event.listen(Engine, "before_cursor_execute", _note)
        event.listen(Engine, "rollback", _forget)
        event.listen(Engine, "commit", self._commits)
        sys.addaudithook(self._acts)

    def _commits(self, connection: Connection) -> None:
        if connection.info.pop(VARIABLE, False):
            self._write()

    def _acts(self, name: str, _details: tuple[object, ...]) -> None:
        if name in EVENTS:
            self._write()

    def _write(self) -> None:
        with self._lock:
            at, seen = NUMBERS.unpack(self._shared)
            if at:
                NUMBERS.pack_into(self._shared, 0, at, seen + 1)
                if seen + 1 == at:
                    os.kill(os.getpid(), signal.SIGKILL)


def _note(connection: Connection, _cursor: object, statement: str, *_: object) -> None:
    """Let the connection's transaction be one that changes something."""
    if CHANGE.match(statement):
        connection.info[VARIABLE] = True


def _forget(connection: Connection) -> None:
    connection.info.pop(VARIABLE, None)
