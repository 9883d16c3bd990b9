"""What a mail server says of folders and mails, as it is handed on."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from cortex.ports.mail import FolderRole


class ServerFolder(Struct, frozen=True, kw_only=True):
    """A folder. `path`: as it is asked for; `name`: as people see it; `is_all`: it shows what lies in others."""

    path: str
    name: str
    role: FolderRole = ""
    is_all: bool = False


class FolderState(Struct, frozen=True, kw_only=True):
    """A folder as it stands. `modseq`: 0 where the server counts no changes."""

    uidvalidity: int
    uidnext: int
    count: int
    modseq: int = 0

    @property
    def text(self) -> str:
        """Return by which it is told whether mails came or went; with `modseq`, whether anything changed."""
        return f"{self.uidvalidity}/{self.uidnext}/{self.count}/{self.modseq}"


class RawHead(Struct, frozen=True, kw_only=True):
    """A mail as its server lists it. `headers`: the bytes as they came, which are parsed elsewhere."""

    uid: int
    flags: Sequence[str]
    size: int
    at: datetime
    headers: bytes


class Fetched(Struct, frozen=True, kw_only=True):
    """Words of a server about a mail, said once. `data`: the bytes of it that came with this, None where none did."""

    uid: int
    told: bytes
    data: bytes | None


class TextHits(Struct, frozen=True, kw_only=True):
    """Mails that a search found. `passed`: words that the server cannot look for, which it was not asked for."""

    uids: Sequence[int]
    passed: Sequence[str] = ()


class Placed(Struct, frozen=True, kw_only=True):
    """Where a mail lies now: the count of its folder, and its number; 0 where the server did not say."""

    uidvalidity: int = 0
    uid: int = 0
