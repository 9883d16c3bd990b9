"""The list of what a backup holds, compared without being parsed or held: nothing in it is believed.

It stands there as `json.dumps` writes a dict, in the order of the members; so the bytes have to be the same as those
that the members that were read make.
"""

import hashlib
import json
from collections.abc import Iterable


class FileList:
    """What was read so far: of each member its name, its size and its SHA-256, or where it leads."""

    def __init__(self) -> None:
        self._written = hashlib.sha256(b"{")
        self._is_empty = True

    def add(self, name: str, size_bytes: int, holds: str) -> None:
        """The next member."""
        before = "" if self._is_empty else ", "
        self._is_empty = False
        self._written.update(f"{before}{json.dumps(name)}: {json.dumps([size_bytes, holds])}".encode())

    def is_same(self, pieces: Iterable[bytes]) -> bool:
        """Tell whether the list that comes in these pieces is this one."""
        whole, told = self._written.copy(), hashlib.sha256()
        whole.update(b"}")
        for piece in pieces:
            told.update(piece)
        return told.digest() == whole.digest()
