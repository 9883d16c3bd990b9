"""Prepares an update, or the way back, beside the running daemon; one rename chooses it, the next start does it.

Fetched, built, tried on a copy of the database by its own program, and a verified backup made: only then is it chosen.
The tables themselves are migrated by the first start of the new version, in one transaction, so that nothing is lost
that people write until then; a start that fails three times goes back (`base/versions.py`).
"""

import asyncio
import fcntl
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct
from msgspec.structs import replace

from cortex import VERSION
from cortex.base import private, versions
from cortex.base.clock import now
from cortex.base.errors import Conflict, UserError
from cortex.base.settings import Settings
from cortex.base.versions import Chosen
from cortex.integrations.process import run
from cortex.integrations.upkeep import building
from cortex.integrations.upkeep.building import BuiltVersion, Say
from cortex.integrations.upkeep.checkout import Checkout, Newer
from cortex.ports.system import Upgrade
from cortex.services.backup import archive, databases
from cortex.services.backup.backups import Backups
from cortex.storage import revisions

REHEARSAL_S = 3_600.0
NAMED = 12  # characters of a commit in a folder's name
SHOWN = 7  # and in words
CONTAINER = "Cortex runs in a container here: get the new image, and start a container of it on the same volume."
PACKAGE = "Cortex was installed as a package of this system: update it the way it was installed."
WHEEL = "This Cortex was installed from a wheel. Get the new one, and give it: cortex update --wheel FILE"
NO_DATABASE = "There is no database yet: start Cortex once, then update it."
NO_WAY_BACK = "There is no earlier version to go back to."


class _Here(Struct, frozen=True, kw_only=True):
    """The version that runs, with the installation that it came from."""

    version: BuiltVersion
    base: str
    base_python: str


class Updates(Struct, frozen=True, kw_only=True):
    """Updates of this installation. `backups` makes the snapshot."""

    settings: Settings
    backups: Backups

    def lacks(self) -> str:
        """Why this installation cannot update itself, in words; "" when it can."""
        if self.settings.container:
            return CONTAINER
        return PACKAGE if sys.prefix == sys.base_prefix else ""

    def earlier(self) -> str:
        """The version that one could go back to; "" for none."""
        chosen = versions.read(self.settings.home)
        is_ours = chosen is not None and chosen.name == versions.own_name(self.settings.home)
        return chosen.before_label if chosen is not None and is_ours and chosen.before is not None else ""

    async def preview(self) -> Upgrade:
        """Return what the checkout's remote has that is newer; changes nothing that runs. UserError."""
        here = await self._here()
        return _upgrade(here, await self._newer(here))

    async def install(self, say: Say, wheel: Path | None = None) -> Chosen:
        """Prepare the newest version, or the one in a wheel, and choose it. UserError, with nothing changed."""
        home = self.settings.home
        async with self._alone():
            here = await self._here()
            packed = home / versions.FOLDER / ".packed.tar"
            try:
                version = await self._wanted(here, wheel, packed)
                if version.name == here.version.name:
                    raise UserError(f"Cortex {version.label} is running already.")
                await asyncio.to_thread(building.remove_others, home, {here.version.name})
                packages = Path(here.version.packages)
                made = await building.build(home, version, wheel or packed, packages, say)
            finally:
                packed.unlink(missing_ok=True)
            python = str(versions.python_of(home, made.name))
            say("Trying it on a copy of the database")
            await self._rehearse([[python, "rehearse"]])
            await self._snapshot(say)
            chosen = Chosen(
                name=made.name,
                label=made.label,
                base=here.base,
                base_python=here.base_python,
                before=here.version.name,
                before_label=here.version.label,
                revision=revisions.newest(),
                at=now().isoformat(),
                note=f"Cortex was updated from {here.version.label} to {made.label}.",
            )
            await asyncio.to_thread(versions.choose, home, chosen)
        return chosen

    async def go_back(self, say: Say) -> Chosen:
        """Have the next start go back to the version before. UserError, with nothing changed."""
        home = self.settings.home
        async with self._alone():
            chosen = versions.read(home)
            if chosen is None or not self.earlier():
                raise UserError(NO_WAY_BACK)
            newer = str(versions.python_of(home, chosen.name))
            older = str(versions.python_of(home, chosen.before)) if chosen.before else chosen.base_python
            say("Trying it on a copy of the database")
            await self._rehearse([[newer, "migrate", "--to", chosen.revision], [older, "rehearse"]])
            await self._snapshot(say)
            goes = replace(chosen, goes_back=True, at=now().isoformat(), is_told=False)
            await asyncio.to_thread(versions.choose, home, goes)
        return goes

    async def _here(self) -> _Here:
        files = databases.files(self.settings)
        why_not = self.lacks() or (NO_DATABASE if files and not files[0].is_file() else "")
        if why_not:
            raise UserError(why_not)
        home, name = self.settings.home, versions.own_name(self.settings.home)
        chosen, record = versions.read(home), building.record_of(home, name) if name else None
        if chosen is not None and record is not None:
            return _Here(version=record, base=chosen.base, base_python=chosen.base_python)
        root, packages = versions.ROOT, str(building.running_packages())
        version = BuiltVersion(name="", label=VERSION, packages=packages)
        if (root / ".git").exists():
            commit = await Checkout(root=root).head()
            version = replace(version, label=_label(VERSION, commit), commit=commit, checkout=str(root))
        base = await asyncio.to_thread(versions.identity, root)
        return _Here(version=version, base=base, base_python=sys.executable)

    async def _newer(self, here: _Here) -> Newer | None:
        if not here.version.checkout:
            raise UserError(WHEEL)
        checkout = Checkout(root=Path(here.version.checkout))
        if not here.version.name:
            await checkout.must_be_clean()
        return await checkout.newer_than(here.version.commit)

    async def _wanted(self, here: _Here, wheel: Path | None, packed: Path) -> BuiltVersion:
        """The version to install; of a checkout, its files are then in `packed`."""
        if wheel is not None:
            return await asyncio.to_thread(building.wheel_version, wheel)
        newer = await self._newer(here)
        if newer is None:
            raise UserError(f"Cortex {here.version.label} is the newest version.")
        await asyncio.to_thread(packed.unlink, missing_ok=True)
        await Checkout(root=Path(here.version.checkout)).export(newer.commit, packed)
        label = _label(newer.version, newer.commit)
        name = newer.commit[:NAMED]
        return BuiltVersion(name=name, label=label, commit=newer.commit, checkout=here.version.checkout)

    async def _snapshot(self, say: Say) -> None:
        say("Making a backup, and checking it")
        await self.backups.make()

    async def _rehearse(self, steps: list[list[str]]) -> None:
        """Let programs do to a copy of the database what they are to do to it. UserError with what went wrong."""
        settings = self.settings
        if settings.is_postgresql:  # its own migration, in a transaction that is taken back
            await _step([*steps[0], "--undo"] if steps[0][1] == "migrate" else [*steps[0]], {})
            return
        with TemporaryDirectory(prefix=".backup-rehearsal-", dir=settings.home) as folder:
            copy = Path(folder) / f"{databases.MAIN}.db"
            size_bytes = sum(path.stat().st_size for path in databases.files(settings)[:1])
            archive.refuse_full(os.statvfs(folder), 2 * size_bytes + archive.ROOM_BYTES)
            await databases.copy(settings.database, copy)
            scratch = {
                "CORTEX_HOME": folder,
                "CORTEX_DATABASE_URL": f"sqlite:///{copy}",
                "CORTEX_ENGINE_URL": "",
                "CORTEX_SECRET_KEY": settings.secret_key,
            }
            for step in steps:
                await _step(step, scratch)

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Nobody else updates this HOME meanwhile. Conflict where somebody does."""
        path = self.settings.home / versions.FOLDER / ".lock"
        private.make_file(path)
        with path.open("r+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Conflict("An update is being prepared already; wait for it.") from error
            yield


def _label(version: str, commit: str) -> str:
    return f"{version} ({commit[:SHOWN]})"


def _upgrade(here: _Here, newer: Newer | None) -> Upgrade:
    current = here.version.label
    if newer is None:
        return Upgrade(current=current)
    label = _label(newer.version, newer.commit)
    return Upgrade(current=current, version=label, changes=newer.changes, migrations=newer.migrations)


async def _step(step: list[str], scratch: dict[str, str]) -> None:
    python, *words = step
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PYTHONSAFEPATH": "1"} | scratch
    argv = [python, "-P", "-m", "web", *words]
    ended = await run(argv, cwd=Path.cwd(), timeout_s=REHEARSAL_S, env=environment)
    if ended.code or ended.killed:
        said = (ended.killed or ended.err or ended.out).strip()[-600:]
        raise UserError(f"The trial on a copy of the database failed, so nothing was changed: {said}")
