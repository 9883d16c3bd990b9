"""Puts a backup in the place of HOME: afterwards, and after a kill at any moment, it is the old one or the new, whole.

First all of it is unpacked and checked in HOME/.restore, where it changes nothing. One rename, of the file `commit`,
decides. From then on the same steps are taken again, by whoever starts next, until all is in its place: each of them
can be taken twice. HOME itself is not moved: it may be a mounted disk.
"""

import asyncio
import json
import os
import re
import shutil
from collections.abc import Awaitable
from pathlib import Path
from tempfile import TemporaryDirectory

from cortex.base import private
from cortex.base.errors import UserError
from cortex.base.key_file import NAME as KEY_FILE
from cortex.base.serve_lock import is_served
from cortex.base.settings import Settings
from cortex.services.backup import archive, databases
from cortex.services.backup.archive import Manifest
from cortex.services.backup.backups import check_databases, checked, key_mark
from cortex.services.backup.places import NAME, place_of
from cortex.storage import revisions

FOLDER, NEW, COMMIT = ".restore", "new", "commit"
REPLACED = "replaced-home"
OUT, IN = "out", "in"
MOUNTS = Path("/proc/self/mountinfo")  # proc_pid_mountinfo(5); blanks in names stand there as \040
STAYS = (FOLDER, REPLACED, "backups", "versions", "serve.lock", "lost+found", ".backup-lock", ".backup-state.json")


def is_pending(home: Path) -> bool:
    """Whether a restore is decided and not finished."""
    return (home / FOLDER / COMMIT).exists()


class Restores:
    """Restoring from the set-up page: the daemon that is to be restored decides it, and does it at its next start."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def prepare(self, name: str, passphrase: str, key: str) -> Manifest:
        """Check and decide, by a path on this machine or by the name of a backup that is kept; UserError."""
        if not is_served(self._settings.home):
            raise UserError("This page cannot restore: run `cortex restore` where Cortex runs.")
        with TemporaryDirectory(prefix=".backup-fetched-", dir=self._settings.home) as folder:
            file = await fetched(self._settings, name, Path(folder))
            return await prepare(self._settings, file, passphrase or self._settings.backup_passphrase, key=key.strip())


async def fetched(settings: Settings, name: str, folder: Path) -> Path:
    """The file that `name` names: a path on this machine, else one of the backups that are kept, copied to `folder`."""
    path = Path(name)
    if await asyncio.to_thread(path.is_file):
        return path
    if not NAME.fullmatch(name):
        raise UserError(f"There is no file {name!r} on this machine.", field="name")
    try:
        await place_of(settings).fetch(name, folder / name)
    except OSError as error:
        raise UserError(f"{name!r} could not be fetched: {error.strerror or error}.", field="name") from error
    return folder / name


async def look(settings: Settings, file: Path, passphrase: str, *, key: str = "") -> Manifest:
    """Check a backup and whether it could be restored here; changes nothing. UserError with what is wrong."""
    with TemporaryDirectory(prefix=".backup-look-", dir=settings.home) as folder:
        manifest = await _guarded(checked(file, passphrase, Path(folder)))
    _fits(settings, manifest, key)
    await asyncio.to_thread(_refuse_mounts, settings.home, moves_key=bool(key))
    return manifest


async def prepare(settings: Settings, file: Path, passphrase: str, *, key: str = "") -> Manifest:
    """Unpack, check, and decide; `finish` has to follow. UserError, with HOME as it was, when anything is wrong.

    `key`: the secret key of the backup's home, where it is not the one of this HOME.
    """
    home = settings.home
    if is_pending(home):
        raise UserError("An earlier restore is not finished. Start Cortex, or run the command again.")
    await asyncio.to_thread(_refuse_mounts, home, moves_key=bool(key))
    folder = home / FOLDER
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    manifest: Manifest | None = None
    try:
        manifest = await _guarded(_unpacked(settings, file, passphrase, key))
    finally:
        if manifest is None:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    _decide(folder, {"step": OUT, "kind": manifest.kind})
    return manifest


async def finish(settings: Settings) -> bool:
    """Take what is left of the steps of a decided restore; whether there was one. Only while nobody uses HOME.

    UserError, with the restore still decided, while others use a PostgreSQL database.
    """
    home, folder = settings.home, settings.home / FOLDER
    if not is_pending(home):
        return False
    order = json.loads((folder / COMMIT).read_text())
    if order["kind"] == "postgresql" and order["step"] == OUT:
        await databases.refuse_while_used(settings.database)  # the lock of HOME knows of `cortex serve` alone
        await databases.forget_runs(settings.engine_database)
        await databases.put_back(folder / NEW / archive.DATABASE / databases.MAIN, settings.database)
    await asyncio.to_thread(_move, home, order)
    return True


def _move(home: Path, order: dict[str, object]) -> None:
    folder = home / FOLDER
    new = folder / NEW
    if order["step"] == OUT:
        replaced = home / REPLACED
        if not (folder / "cleared").exists():  # only before the first move: later it holds what was moved
            shutil.rmtree(replaced, ignore_errors=True)
            private.make_folder(replaced)
            private.make_file(folder / "cleared")
        has_key = (new / archive.HOME / KEY_FILE).exists()
        for name in sorted(os.listdir(home)):
            if name not in STAYS and (name != KEY_FILE or has_key):
                (home / name).replace(replaced / name)
        _keep(home)
        order = {**order, "step": IN}
        _decide(folder, order)
    database = new / archive.DATABASE / databases.MAIN
    if order["kind"] == "sqlite" and database.is_file():
        database.replace(home / f"{databases.MAIN}.db")
    for name in sorted(os.listdir(new / archive.HOME)):
        (new / archive.HOME / name).replace(home / name)
    _keep(home)
    (folder / COMMIT).unlink()
    shutil.rmtree(folder, ignore_errors=True)


async def _unpacked(settings: Settings, file: Path, passphrase: str, key: str) -> Manifest:
    new = settings.home / FOLDER / NEW
    for name in (archive.DATABASE, archive.HOME):
        private.make_folder(new / name)
    manifest = await asyncio.to_thread(archive.read, file, passphrase, into=new)
    await check_databases(manifest, new)
    _fits(settings, manifest, key)
    if manifest.kind == "sqlite":
        await databases.end_what_is_over(new / archive.DATABASE / databases.MAIN)
    if key:
        private.write_beside(new / archive.HOME / KEY_FILE, f"{key}\n".encode())
    await asyncio.to_thread(os.sync)  # names of folders too, before it is decided
    return manifest


async def _guarded(reading: Awaitable[Manifest]) -> Manifest:
    """The manifest; UserError also for what the disk refuses."""
    try:
        return await reading
    except OSError as error:
        raise UserError(f"The backup could not be read: {error.strerror or error} ({error.filename}).") from error


def _refuse_mounts(home: Path, *, moves_key: bool) -> None:
    """UserError for what is mounted right inside HOME: a mount cannot be moved aside, so a restore would stop there."""
    stays = STAYS if moves_key else (*STAYS, KEY_FILE)
    lines = MOUNTS.read_bytes().splitlines() if MOUNTS.exists() else []  # a folder of the same disk is seen here alone
    places = [os.fsdecode(line.split(b" ")[4]) for line in lines]
    mounted = {re.sub(r"\\(\d{3})", lambda blank: chr(int(blank[1], 8)), place) for place in places}
    found = [path for path in sorted(home.resolve().iterdir()) if path.name not in stays]
    in_the_way = [path.name for path in found if str(path) in mounted or path.is_mount()]
    if in_the_way:
        raise UserError(
            f"{', '.join(in_the_way)} in {str(home)!r} cannot be moved aside, because something is mounted there. "
            "Unmount it for the time of the restore (in a container: leave that volume out, and mount HOME as one)."
        )


def _fits(settings: Settings, manifest: Manifest, key: str) -> None:
    """UserError when this server could not use what the backup holds."""
    if manifest.kind != databases.kind_of(settings):
        raise UserError(f"The backup is from {manifest.kind}, but CORTEX_DATABASE_URL names another kind of database.")
    in_home = (f"sqlite:///{settings.home / 'cortex.db'}", f"sqlite:///{settings.home / 'engine.db'}")
    if manifest.kind == "sqlite" and (settings.database, settings.engine_database) != in_home:
        raise UserError("A restore puts the database into HOME: leave CORTEX_DATABASE_URL and CORTEX_ENGINE_URL empty.")
    if manifest.revision > revisions.newest():
        raise UserError(f"The backup is from a newer Cortex ({manifest.version}). Install that version first.")
    if key_mark(key or settings.secret_key) != manifest.key:
        raise UserError(
            "The backup belongs to another secret key: with this one no stored password or API key can be read. "
            "Give the file secret.key of the home that was backed up: --key-file, or the field on the set-up page.",
            field="key",
        )


def _decide(folder: Path, order: dict[str, object]) -> None:
    """Write the order so that it is there as a whole or not at all, also after a power cut."""
    beside = folder / f"{COMMIT}.new"
    private.write_beside(beside, json.dumps(order).encode())
    handle = os.open(beside, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)
    beside.replace(folder / COMMIT)
    _keep(folder)


def _keep(folder: Path) -> None:
    """Have the disk keep the names in the folder."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(handle)
    os.close(handle)
