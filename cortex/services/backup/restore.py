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

from msgspec import Struct

from cortex.base import private
from cortex.base.errors import UserError
from cortex.base.hidden import show_hidden
from cortex.base.key_file import NAME as KEY_FILE
from cortex.base.serve_lock import is_served
from cortex.base.settings import Settings
from cortex.services.backup import archive, databases, restored
from cortex.services.backup.archive import Backup, Manifest
from cortex.services.backup.backups import checked, doubt_of
from cortex.services.backup.places import NAME, place_of
from cortex.services.backup.signature import is_key
from cortex.storage import revisions

FOLDER, NEW, COMMIT = ".restore", "new", "commit"
REPLACED = "replaced-home"
OUT, IN = "out", "in"
ANY = "any"  # accepted: whichever backup, as `--unsigned` says
NAME_CHARACTERS, ADMINS_MOST = 100, 50  # shown of a backup that anybody may have made
MOUNTS = Path("/proc/self/mountinfo")  # proc_pid_mountinfo(5); blanks in names stand there as \040
STAYS = (FOLDER, REPLACED, "backups", "versions", "serve.lock", "lost+found", ".backup-lock", ".backup-state.json")


class Found(Struct, frozen=True, kw_only=True):
    """The content of a backup that fits here. `doubt`: why nobody can vouch for it, "" where its signature does.

    `digest`: of all that it holds; `admins`: their names.
    """

    manifest: Manifest
    digest: str
    doubt: str
    accounts: int
    admins: tuple[str, ...]

    @property
    def facts(self) -> str:
        """Return what it says of itself, in a sentence for a terminal."""
        said = show_hidden(f"made at {self.manifest.made_at} by Cortex {self.manifest.version}")
        names = ", ".join(show_hidden(name) for name in self.admins) or "none"
        return f"It says that it was {said}. Accounts: {self.accounts}; admins: {names}."


class UnvouchedError(UserError):
    """Nobody can vouch for the backup `found`, and whoever restores did not say that they take it all the same."""

    def __init__(self, found: Found) -> None:
        """The sentence holds what a person has to look at before they decide."""
        super().__init__(f"Nobody can vouch for this backup. {found.doubt} {found.facts}")
        self.found = found


def is_pending(home: Path) -> bool:
    """Tell whether a restore is decided and not finished."""
    return (home / FOLDER / COMMIT).exists()


class Restores(Struct, frozen=True):
    """Restoring from the set-up page: the daemon that is to be restored decides it, and does it at its next start."""

    settings: Settings

    async def prepare(self, name: str, passphrase: str, key: str, accepted: str = "") -> Found:
        """Check and decide, by a path on this machine or by the name of a backup that is kept; UserError.

        accepted: the digest of a backup that nobody can vouch for and that was shown; UnvouchedError for another.
        """
        if not is_served(self.settings.home):
            raise UserError("This page cannot restore: run `cortex restore` where Cortex runs.")
        with TemporaryDirectory(prefix=".backup-fetched-", dir=self.settings.home) as folder:
            file = await fetched(self.settings, name, Path(folder))
            given = passphrase or self.settings.backup_passphrase
            return await prepare(self.settings, file, given, key=key.strip(), accepted=accepted)


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


async def look(settings: Settings, file: Path, passphrase: str, *, key: str = "", accepted: str = "") -> Found:
    """Check a backup and whether it could be restored here; changes nothing. Raises as `prepare` does."""
    with TemporaryDirectory(prefix=".backup-look-", dir=settings.home) as folder:
        into = Path(folder)
        found = await _guarded(_found(settings, checked(file, passphrase, into), into, key, accepted))
    await asyncio.to_thread(_refuse_mounts, settings.home, moves_key=bool(key))
    return found


async def prepare(settings: Settings, file: Path, passphrase: str, *, key: str = "", accepted: str = "") -> Found:
    """Unpack, check, and decide; `finish` has to follow. UserError, with HOME as it was, when anything is wrong.

    `key`: the secret key of the backup's home, where it is not the one of this HOME. `accepted`: the digest of a backup
    that may be restored though nobody can vouch for it, ANY for whichever; UnvouchedError where it has to be given.
    """
    home = settings.home
    if is_pending(home):
        raise UserError("An earlier restore is not finished. Start Cortex, or run the command again.")
    await asyncio.to_thread(_refuse_mounts, home, moves_key=bool(key))
    folder = home / FOLDER
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    found: Found | None = None
    try:
        found = await _guarded(_unpacked(settings, file, passphrase, key, accepted))
    finally:
        if found is None:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    kept = _is_key_of(settings, found.manifest, key)
    _decide(folder, {"step": OUT, "kind": found.manifest.kind, "keeps_sealed": kept})
    return found


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
        copy = folder / NEW / archive.DATABASE / databases.MAIN
        await databases.put_back(copy, settings.database, keeps_sealed=order.get("keeps_sealed", True))
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
        private.sync(home)
        order = {**order, "step": IN}
        _decide(folder, order)
    database = new / archive.DATABASE / databases.MAIN
    if order["kind"] == "sqlite" and database.is_file():
        database.replace(home / f"{databases.MAIN}.db")
    for name in sorted(os.listdir(new / archive.HOME)):
        (new / archive.HOME / name).replace(home / name)
    private.sync(home)
    (folder / COMMIT).unlink()
    shutil.rmtree(folder, ignore_errors=True)


async def _unpacked(settings: Settings, file: Path, passphrase: str, key: str, accepted: str) -> Found:
    new = settings.home / FOLDER / NEW
    for name in (archive.DATABASE, archive.HOME):
        private.make_folder(new / name)
    reading = checked(file, passphrase, new, keeps=lambda _: True)
    found = await _found(settings, reading, new, key, accepted)
    is_same_key = _is_key_of(settings, found.manifest, key)
    if found.manifest.kind == "sqlite":
        copy = new / archive.DATABASE / databases.MAIN
        await databases.end_what_is_over(copy, keeps_sealed=is_same_key)
    if key:
        private.write_beside(new / archive.HOME / KEY_FILE, f"{key}\n".encode())
    restored.lay(new / archive.HOME, found.manifest, doubt=found.doubt, is_same_key=is_same_key)
    await asyncio.to_thread(os.sync)  # names of folders too, before it is decided
    return found


async def _found(settings: Settings, reading: Awaitable[Backup], folder: Path, key: str, accepted: str) -> Found:
    """Return what was read into the folder; it fits here, and its signature or who restores vouches for it."""
    backup = await reading
    manifest = backup.manifest
    _fits(settings, manifest, key)
    doubt = doubt_of(key or settings.secret_key, backup)
    people = await databases.people_in(folder / archive.DATABASE / databases.MAIN, manifest.kind)
    admins = tuple(name[:NAME_CHARACTERS] for name, rank in people if rank == "admin")
    found = Found(
        manifest=manifest, digest=backup.digest, doubt=doubt, accounts=len(people), admins=admins[:ADMINS_MOST]
    )
    if doubt and accepted not in (ANY, backup.digest):
        raise UnvouchedError(found)
    return found


async def _guarded(reading: Awaitable[Found]) -> Found:
    """Return what was read; UserError also for what the disk refuses."""
    try:
        return await reading
    except OSError as error:
        raise UserError(f"The backup could not be read: {error.strerror or error} ({error.filename}).") from error


def _is_key_of(settings: Settings, manifest: Manifest, key: str) -> bool:
    return is_key(key or settings.secret_key, manifest.key)


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
    if key and not _is_key_of(settings, manifest, key):
        raise UserError(
            "The secret key that you gave is not the one of this backup: it belongs to another secret key.", field="key"
        )


def _decide(folder: Path, order: dict[str, object]) -> None:
    """Write the order so that it is there as a whole or not at all, also after a power cut."""
    beside = folder / f"{COMMIT}.new"
    private.write_beside(beside, json.dumps(order).encode())
    private.sync(beside)
    beside.replace(folder / COMMIT)
    private.sync(folder)
