"""The head of the audit chain, kept in a file of HOME: a log whose end was cut or rewritten no longer fits it.

The file holds the number and the hash of the newest row that was seen, sealed with the chain's own key. It is written
after the commit, so a kill in between leaves it a row behind, which the next row makes good; and only by whoever finds
that the log still holds the row that it names, so that it stays as evidence where it does not.
"""

import fcntl
import hmac
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from cortex.base import private

FILE = "audit.head"


class Head(Struct, frozen=True, kw_only=True):
    """A row of the chain: its number, 0 before the first, and its hash."""

    number: int
    hash: str


BEGINNING = Head(number=0, hash="0" * 64)


class AuditHead:
    """The file, and the key of the chain. Several processes may write: under a lock, and never back."""

    def __init__(self, folder: Path, key: bytes) -> None:
        """Nothing is read or made yet."""
        self._path = folder / FILE
        self.key = key

    def read(self) -> Head | None:
        """The head as it was kept; None where there is no file, or it was not sealed with this key."""
        try:
            kept = json.loads(self._path.read_text(encoding="ascii"))
            head = Head(number=int(kept["number"]), hash=str(kept["hash"]))
            is_ours = hmac.compare_digest(str(kept["seal"]), self._seal(head))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        return head if is_ours else None

    def move_on(self, before: Head, head: Head) -> bool:
        """Keep the newer head in the place of this one; False where another process was first."""
        with self._alone():
            if self.read() != before:
                return False
            self._write(head)
            return True

    def start(self, head: Head) -> None:
        """Keep this head, whatever stood there: tables were made or moved, or an admin took the log as it stands."""
        with self._alone():
            self._write(head)

    def forget(self) -> None:
        """Keep none: the tables went back to those of a Cortex that kept none."""
        with self._alone():
            self._path.unlink(missing_ok=True)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        lock = self._path.with_suffix(".lock")
        private.make_file(lock)
        with lock.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # held for one small write
            yield

    def _write(self, head: Head) -> None:
        values = {"number": head.number, "hash": head.hash, "seal": self._seal(head)}
        fresh = self._path.with_suffix(".new")
        private.write_beside(fresh, (json.dumps(values) + "\n").encode())
        with fresh.open("rb") as file:
            os.fsync(file.fileno())
        fresh.replace(self._path)

    def _seal(self, head: Head) -> str:
        return hmac.new(self.key, f"head {head.number} {head.hash}".encode(), "sha256").hexdigest()
