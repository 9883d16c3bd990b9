"""Where backups are kept: a folder, or a bucket of an S3-compatible store; and which of them stay."""

import asyncio
import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from cortex.base import private, scan
from cortex.base.errors import UserError
from cortex.base.server_settings import row_of
from cortex.base.settings import Settings

if TYPE_CHECKING:
    from cortex.services.backup.s3 import S3

NAME = re.compile(r"cortex-(\d{8}T\d{6}Z)\.backup")
STAMP = "%Y%m%dT%H%M%SZ"
KEPT_DAYS, KEPT_WEEKS = 7, 4
KEPT_FRESH, FRESH = 10, timedelta(days=1)  # so that no press of a button costs the backup of an hour ago


class Stored(Struct, frozen=True, kw_only=True):
    """One backup that is kept."""

    name: str
    made_at: datetime
    size_bytes: int


def name_of(made_at: datetime) -> str:
    """The file name of a backup of that moment."""
    return f"cortex-{made_at.astimezone(UTC).strftime(STAMP)}.backup"


def place_of(settings: Settings, to: str = "") -> "Folder | Store":
    """The place in force, or the one that `to` names, in the same form as the setting. UserError where none can be."""
    where = to or settings.backup_to
    if not where.startswith("s3://"):
        own = settings.home / "backups"  # the one folder of HOME that no backup holds
        folder = Path(where).resolve() if where else own
        if folder.is_relative_to(settings.home.resolve()) and folder != own.resolve():
            raise UserError(f"Each backup would hold all earlier ones: keep them outside of HOME, or in {str(own)!r}.")
        return Folder(folder)
    if not (settings.backup_s3_endpoint and settings.backup_s3_key_id and settings.backup_s3_secret):
        raise UserError(f"A store needs an S3 address, key id and secret: {row_of('backup_s3_endpoint')}.")
    bucket, _, prefix = where.removeprefix("s3://").partition("/")
    s3 = scan.load("cortex.services.backup.s3")  # httpx is heavy: loaded where there is a store
    reached = s3.Bucket(
        endpoint=settings.backup_s3_endpoint,
        region=settings.backup_s3_region,
        name=bucket,
        key_id=settings.backup_s3_key_id,
        secret=settings.backup_s3_secret,
    )
    return Store(
        s3.S3(reached),
        f"{prefix.strip('/')}/" if prefix.strip("/") else "",
    )


def surplus(stored: Sequence[Stored], at: datetime) -> list[Stored]:
    """Those that need not be kept at this moment.

    Kept are the newest 10 of the last 24 hours, and the newest of each of the last 7 days and 4 weeks that have one.
    """
    fresh = sorted((one for one in stored if one.made_at > at - FRESH), key=lambda one: one.made_at, reverse=True)
    kept = {one.name for one in fresh[:KEPT_FRESH]}
    for form, most in (("%Y-%m-%d", KEPT_DAYS), ("%G-%V", KEPT_WEEKS)):
        newest: dict[str, str] = {}
        for one in sorted(stored, key=lambda one: one.made_at, reverse=True):
            newest.setdefault(one.made_at.strftime(form), one.name)
        kept.update(list(newest.values())[:most])
    return [one for one in stored if one.name not in kept]


class Folder(Struct, frozen=True):
    """A folder of this machine."""

    path: Path

    async def kept(self) -> Sequence[Stored]:
        """Return what is kept, the newest first."""
        return await asyncio.to_thread(self._kept)

    async def put(self, path: Path, name: str) -> None:
        """Keep the file under this name: copied beside its place, then moved to it."""
        await asyncio.to_thread(self._put, path, name)

    async def fetch(self, name: str, path: Path) -> None:
        """Write what is kept under this name to the new file `path`."""
        await asyncio.to_thread(_copied, self.path / name, path)

    async def remove(self, name: str) -> None:
        """Keep it no longer."""
        await asyncio.to_thread((self.path / name).unlink, missing_ok=True)

    def _kept(self) -> list[Stored]:
        if not self.path.is_dir():
            return []
        return _stored((entry.name, entry.stat().st_size) for entry in os.scandir(self.path) if entry.is_file())

    def _put(self, path: Path, name: str) -> None:
        private.make_folder(self.path)
        beside = self.path / f".{name}.new"
        beside.unlink(missing_ok=True)
        try:
            _copied(path, beside)
            beside.replace(self.path / name)
        finally:
            beside.unlink(missing_ok=True)
        private.sync(self.path)


class Store(Struct, frozen=True):
    """A bucket; `prefix` ends with a slash or is empty."""

    client: "S3"
    prefix: str

    async def kept(self) -> Sequence[Stored]:
        """Return what is kept, the newest first."""
        found = await self.client.objects(f"{self.prefix}cortex-")
        return _stored((key.removeprefix(self.prefix), size_bytes) for key, size_bytes in found)

    async def put(self, path: Path, name: str) -> None:
        """Keep the file under this name: a store shows no half object."""
        with path.open("rb") as file:
            digest = await asyncio.to_thread(hashlib.file_digest, file, "sha256")
        await self.client.put(self.prefix + name, path, digest.hexdigest())

    async def fetch(self, name: str, path: Path) -> None:
        """Write what is kept under this name to the new file `path`."""
        await self.client.fetch(self.prefix + name, path)

    async def remove(self, name: str) -> None:
        """Keep it no longer."""
        await self.client.remove(self.prefix + name)


def _stored(entries: Iterable[tuple[str, int]]) -> list[Stored]:
    found = []
    for name, size_bytes in entries:
        if matched := NAME.fullmatch(name):
            made_at = datetime.strptime(matched[1], STAMP).replace(tzinfo=UTC)
            found.append(Stored(name=name, made_at=made_at, size_bytes=size_bytes))
    return sorted(found, key=lambda one: one.made_at, reverse=True)


def _copied(source: Path, target: Path) -> None:
    """A new file of the owner's alone, on the disk when this returns."""
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, private.FILE)
    with os.fdopen(handle, "wb") as written, source.open("rb") as read:
        shutil.copyfileobj(read, written, 1 << 20)
        written.flush()
        os.fsync(written.fileno())
