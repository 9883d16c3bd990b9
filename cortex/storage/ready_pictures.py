"""Pictures as models get them, kept once made: by the hash of the file they were made from. Always the same bytes."""

import asyncio
import os
import secrets
from pathlib import Path

from msgspec import Struct

from cortex.base.errors import NotFound
from cortex.storage.given_files import PICTURES
from cortex.storage.home import Home

ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp"}
_TYPES = {ending: media_type for media_type, ending in ENDINGS.items()}
_SMALL = "small.webp"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class KeptPicture(Struct, frozen=True, kw_only=True):
    """A picture in its file, whose name says how large it is."""

    path: Path
    media_type: str
    width: int
    height: int


class ReadyPictures(Struct, frozen=True, kw_only=True):
    """Those of one person."""

    home: Home

    async def find(self, sha256: str) -> KeptPicture | None:
        """The one that was made from a file of this hash; None before."""
        return await asyncio.to_thread(self._find, sha256)

    async def small(self, sha256: str) -> Path:
        """Where its small one is; NotFound."""
        path = self.home.path / PICTURES / f"{sha256}-{_SMALL}"
        if not await asyncio.to_thread(path.is_file):
            raise NotFound("There is no such picture.")
        return path

    async def data(self, sha256: str) -> bytes | None:
        """Its bytes; None before it was made."""
        kept = await self.find(sha256)
        return await asyncio.to_thread(kept.path.read_bytes) if kept else None

    async def keep(self, sha256: str, media_type: str, size: tuple[int, int], data: bytes, small: bytes) -> None:
        """Keep both; the small one first, so that whoever finds the other has it too."""
        name = f"{size[0]}x{size[1]}.{ENDINGS[media_type]}"
        await asyncio.to_thread(self._keep, {f"{sha256}-{_SMALL}": small, f"{sha256}-{name}": data})

    async def remove(self, sha256: str) -> None:
        """Forget both."""
        await asyncio.to_thread(self._remove, sha256)

    def _find(self, sha256: str) -> KeptPicture | None:
        for path in sorted((self.home.path / PICTURES).glob(f"{sha256}-*x*.*")):
            width, _, height = path.stem.rpartition("-")[2].partition("x")
            if path.suffix[1:] in _TYPES and width.isdecimal() and height.isdecimal():
                media_type = _TYPES[path.suffix[1:]]
                return KeptPicture(path=path, media_type=media_type, width=int(width), height=int(height))
        return None

    def _keep(self, files: dict[str, bytes]) -> None:
        with self.home.walk((PICTURES,), create=True) as folder:
            for name, data in files.items():
                part = f".{secrets.token_hex(8)}.part"
                with os.fdopen(os.open(part, _NEW, 0o600, dir_fd=folder), "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)

    def _remove(self, sha256: str) -> None:
        for path in (self.home.path / PICTURES).glob(f"{sha256}-*"):
            path.unlink(missing_ok=True)
