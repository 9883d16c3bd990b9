"""The signature of a backup: who lacks the secret key cannot make one, or change one, that fits.

What is signed is the digest of a record with a line for each member in its order: name, kind, whether it is a program,
size, and what it holds; so nothing can be put in, left out, swapped with another backup's, or given twice.
"""

import hashlib
import hmac
import json
import stat
import tarfile
from collections.abc import Iterable

from cortex.base.crypto import backup_key

PURPOSE = b"cortex/backup/1"
CHANGED = (
    "The signature of this backup is wrong: it was changed after it was made, or it is damaged. Nothing was restored. "
    "Use another backup."
)
UNSIGNED = "It has no signature: earlier versions of Cortex made none, and anyone who had it could have changed it."
OTHER_KEY = (
    "It belongs to another secret key, so its signature cannot be checked, and no password or API key that is stored "
    "in it can be read. Give the file secret.key of the home that was backed up: --key-file, or the field on the "
    "set-up page."
)


class Record:
    """The content of a backup, member by member. `sums`: size and SHA-256 of each file, or where a link leads."""

    def __init__(self) -> None:
        self.sums: dict[str, tuple[int, str]] = {}
        self._lines = hashlib.sha256()

    def add(self, member: tarfile.TarInfo, sha256: str = "") -> None:
        """The next member; `sha256`: of a file's content."""
        holds = member.linkname if member.issym() else sha256
        is_program = member.isreg() and bool(member.mode & stat.S_IXUSR)
        kind = "file" if member.isreg() else "link" if member.issym() else "folder"
        line = [member.name, kind, is_program, member.size if member.isreg() else 0, holds]
        self._lines.update(json.dumps(line).encode() + b"\n")

    @property
    def digest(self) -> str:
        """SHA-256 of the record so far."""
        return self._lines.hexdigest()


def sign(secret_key: str, digest: str) -> str:
    """The signature of a backup whose record has this digest."""
    return hmac.new(backup_key(secret_key), digest.encode(), "sha256").hexdigest()


def is_key(secret_key: str, mark: str) -> bool:
    """Tell whether a backup has the mark of this key. Of none it is nobody's: everybody could sign with it."""
    return bool(secret_key) and mark == key_mark(secret_key)


def key_mark(secret_key: str) -> str:
    """A mark by which the key is known again, and from which nobody gets it."""
    return hmac.new(secret_key.encode(), PURPOSE, hashlib.sha256).hexdigest()[:32]


class FileList:
    """The list of what was read so far: of each member its name, size and SHA-256, or where it leads.

    In a backup it stands as `json.dumps` writes a dict. Nothing there is believed or parsed: bytes must be the same.
    """

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
