"""Makes a backup, checks it by opening it, keeps it, and lets the surplus ones go. The database is never stopped.

A working folder in HOME holds what is not finished; whatever a kill left in it goes with the next one.
"""

import asyncio
import fcntl
import hmac
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from cortex import VERSION
from cortex.base import private
from cortex.base.clock import Clock, now
from cortex.base.errors import Conflict, UserError
from cortex.base.record import as_dict
from cortex.base.settings import Settings
from cortex.services.backup import archive, databases
from cortex.services.backup.archive import Backup, Manifest
from cortex.services.backup.places import Stored, name_of, place_of, surplus
from cortex.services.backup.signature import CHANGED, OTHER_KEY, UNSIGNED, is_key, key_mark, sign
from cortex.storage.audit_head import FILE as HEAD_FILE

WORKING, LOCK, STATE = ".backup-working", ".backup-lock", ".backup-state.json"


class BackupState(Struct, frozen=True, kw_only=True):
    """The outcome of the last tries: times in ISO form, "" for never; `error` of the last one, "" when it went well."""

    made_at: str = ""
    name: str = ""
    size_bytes: int = 0
    tried_at: str = ""
    error: str = ""


class Made(Stored, frozen=True, kw_only=True):
    """A new backup, and the names of the older ones that were removed after it."""

    removed: tuple[str, ...]


class Backups(Struct, frozen=True):
    """Backups of this server, for its admins."""

    settings: Settings
    clock: Clock = now

    @property
    def is_encrypted(self) -> bool:
        """Tell whether there is a passphrase."""
        return bool(self.settings.backup_passphrase)

    @property
    def place(self) -> str:
        """Where they are kept, in words for a page."""
        return self.settings.backup_to or str(self.settings.home / "backups")

    async def kept(self) -> Sequence[Stored]:
        """Return what is kept, the newest first. UserError when the place does not answer."""
        try:
            return await place_of(self.settings).kept()
        except OSError as error:
            raise _failed(error) from error

    def state(self) -> BackupState:
        """Return how the last tries went."""
        try:
            return BackupState(**json.loads((self.settings.home / STATE).read_text()))
        except (OSError, ValueError, TypeError):
            return BackupState()

    async def make(self, to: str = "") -> Made:
        """Make one, kept where `to` says or as set, and remove the surplus there.

        Conflict while another one is made; UserError, told on the pages of health and backups too, when it failed.
        """
        try:
            async with self._alone() as working:
                made = await self._made(working, to)
                self._tell(made=made)
                return made
        except (UserError, OSError) as error:
            failed = error if isinstance(error, UserError) else _failed(error)
            with suppress(OSError):  # the disk that refused the backup may refuse this too
                self._tell(error=failed.message)
            raise failed from error

    async def _made(self, working: Path, to: str) -> Made:
        settings, made_at = self.settings, self.clock()
        if not settings.secret_key:
            raise UserError("There is no secret key yet to sign a backup with: start Cortex once.")
        place, passphrase = place_of(settings, to), settings.backup_passphrase
        head = await asyncio.to_thread(_head, settings.home)  # before the tables: never ahead of the log that it names
        copy = await self._copied(working)
        kind = databases.kind_of(settings)
        manifest = Manifest(
            made_at=made_at.isoformat(timespec="seconds"),
            version=VERSION,
            revision=await databases.revision_of(copy, kind),
            kind=kind,
            databases=(databases.MAIN,),
            key=key_mark(settings.secret_key),
        )
        written = working / "written"
        kept, apart = {databases.MAIN: copy}, databases.files(settings)
        key = settings.secret_key
        await asyncio.to_thread(archive.write, written, manifest, kept, settings.home, passphrase, key, head, apart)
        if doubt := doubt_of(key, await checked(written, passphrase, working / "checked")):
            raise UserError(doubt)
        stored = Stored(name=name_of(made_at), made_at=made_at, size_bytes=os.path.getsize(written))  # noqa: ASYNC240
        await place.put(written, stored.name)
        gone = surplus(await place.kept(), made_at)
        for one in gone:
            await place.remove(one.name)
        return Made(**as_dict(stored), removed=tuple(one.name for one in gone))

    async def _copied(self, working: Path) -> Path:
        archive.refuse_full(os.statvfs(working), _size(self.settings.database) + archive.ROOM_BYTES)
        target = working / databases.MAIN
        await databases.copy(self.settings.database, target)
        return target

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[Path]:
        """An empty working folder, which no other process has at the same time."""
        home = self.settings.home
        private.make_file(home / LOCK)
        with (home / LOCK).open("r+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Conflict("A backup is already running. Wait for it to finish.") from error
            working = home / WORKING
            for left in (working, *await asyncio.to_thread(_left_over, home, self.clock())):
                await asyncio.to_thread(shutil.rmtree, left, ignore_errors=True)
            private.make_folder(working)
            try:
                yield working
            finally:
                await asyncio.to_thread(shutil.rmtree, working, ignore_errors=True)

    def _tell(self, *, made: Stored | None = None, error: str = "") -> None:
        before, tried_at = self.state(), self.clock().isoformat(timespec="seconds")
        if made is None:
            state = BackupState(**{**as_dict(before), "tried_at": tried_at, "error": error})
        else:
            made_at = made.made_at.isoformat(timespec="seconds")
            state = BackupState(made_at=made_at, name=made.name, size_bytes=made.size_bytes, tried_at=tried_at)
        beside = self.settings.home / f"{STATE}.new"
        private.write_beside(beside, json.dumps(as_dict(state)).encode())
        beside.replace(self.settings.home / STATE)


async def checked(
    path: Path, passphrase: str, into: Path, *, keeps: Callable[[str], bool] = archive.is_database
) -> Backup:
    """Read all of a backup and open its databases; UserError with what is wrong. What it `keeps` is left in `into`."""
    private.make_folder(into)
    found = await asyncio.to_thread(archive.read, path, passphrase, into=into, keeps=keeps)
    await check_databases(found.manifest, into)
    return found


def doubt_of(secret_key: str, found: Backup) -> str:
    """Why this key cannot vouch for what was read, "" where it can; UserError where it proves that it was changed."""
    if not is_key(secret_key, found.manifest.key):
        return OTHER_KEY
    if not found.signature:
        return UNSIGNED
    if not hmac.compare_digest(sign(secret_key, found.digest).encode(), found.signature.encode()):
        raise UserError(CHANGED)
    return ""


async def check_databases(manifest: Manifest, folder: Path) -> None:
    """Open the databases that were unpacked below the folder. UserError when one is missing or damaged."""
    found = {name: folder / archive.DATABASE / name for name in manifest.databases}
    if databases.MAIN not in found or not all(path.is_file() for path in found.values()):
        raise UserError("The backup has no database.")
    for name, path in found.items():
        revision = await databases.revision_of(path, manifest.kind)
        if name == databases.MAIN and revision != manifest.revision:
            raise UserError(f"The backup says its tables are at {manifest.revision!r}, and they are at {revision!r}.")


def age_of(state: BackupState, at: datetime) -> float | None:
    """Hours since the last backup; None when there is none."""
    return (at - datetime.fromisoformat(state.made_at)).total_seconds() / 3600 if state.made_at else None


def _left_over(home: Path, at: datetime) -> list[Path]:
    """Folders of looks and restores that a kill cut a day ago or more."""
    day_s = 24 * 3600
    return [path for path in home.glob(".backup-*-*") if at.timestamp() - path.stat().st_mtime > day_s]


def _head(home: Path) -> dict[str, bytes]:
    """The head of the audit chain as it is now, where there is one."""
    path = home / HEAD_FILE
    return {HEAD_FILE: path.read_bytes()} if path.is_file() else {}


def _size(url: str) -> int:
    """Bytes of a SQLite file; of a server's database nothing is known beforehand."""
    path = Path(url.partition(":///")[2])
    return path.stat().st_size if url.startswith("sqlite") and path.is_file() else 0


def _failed(error: OSError) -> UserError:
    where = f" ({error.filename})" if error.filename else ""
    return UserError(f"The backup could not be made: {error.strerror or error}{where}.")
