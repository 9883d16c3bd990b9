"""The registry files and the sealed keys that they name: read, written in one commit, keys that nobody needs forgotten.

Of each file the last copy that could be read is kept (`LastGood`). Several models of a file may name the same key: that
of one provider, typed once.
"""

import asyncio
import logging
from collections.abc import Sequence

from cortex.base.crypto import Vault
from cortex.base.errors import Conflict, CortexError, NotFound, UserError
from cortex.base.ids import new_id
from cortex.services.models.files import FILE, RegistryFile, read, written
from cortex.storage.db import Database
from cortex.storage.home import ABSENT, HomeFile, Homes
from cortex.storage.secrets import MODEL_KEYS, AllSecretsRepository, SecretsRepository

GOOD = "model_registry.good.json"
BROKEN = "model_registry.broken.json"

log = logging.getLogger(__name__)


class LastGood:
    """A copy of each file that could be read, beside it, and the way back to it: a slip stays over a restart."""

    def __init__(self, homes: Homes) -> None:
        self._homes = homes
        self._kept: dict[str, str] = {}  # user id -> version of the file that its copy was made of

    async def keep(self, user_id: str, found: HomeFile) -> None:
        """Copy a file that could be read, unless it was. A disk that takes no copy keeps nobody from working."""
        if self._kept.get(user_id) == found.version:
            return
        self._kept[user_id] = found.version
        try:
            home = self._homes.home_of(user_id)
            if await home.version(GOOD) != found.version:
                await home.write(GOOD, found.text)
        except (CortexError, OSError) as error:
            log.warning("models: no copy of %s is kept: %s", FILE, error)

    async def is_there(self, user_id: str) -> bool:
        """Tell whether there is a copy that can be read."""
        try:
            return bool(read((await self._homes.home_of(user_id).read(GOOD)).text).models)
        except CortexError:
            return False

    async def restore(self, user_id: str) -> None:
        """Put the copy in place of what stands there, which is kept as `BROKEN`. NotFound when there is none."""
        if not await self.is_there(user_id):
            raise NotFound(f"There is no earlier {FILE} to go back to.")
        home = self._homes.home_of(user_id)
        good = await home.read(GOOD)
        await home.set_aside(FILE, BROKEN)
        await home.write(FILE, good.text)


class RegistryStore:
    """The files of all people. `revision` grows with each change that this process makes: some models are shared."""

    def __init__(self, db: Database, homes: Homes, vault: Vault) -> None:
        self._db = db
        self._homes = homes
        self._vault = vault
        self.last_good = LastGood(homes)
        self.revision = 0

    async def read(self, user_id: str) -> tuple[RegistryFile, str]:
        """The file and its version; UserError when it has a slip."""
        found = await self._homes.home_of(user_id).configured(FILE)
        if found is None:
            return RegistryFile(), ABSENT
        file = read(found.text)
        await self.last_good.keep(user_id, found)
        return file, found.version

    async def of_another(self, owner_id: str) -> RegistryFile:
        """Return what an owner shares from; nothing while their file has a slip, which they and the doctor are told."""
        try:
            return (await self.read(owner_id))[0]
        except UserError:
            return RegistryFile()

    async def write(self, user_id: str, before: RegistryFile, after: RegistryFile, version: str) -> None:
        """Put the file in place of the one of this version, and forget the keys that it names no more.

        Conflict when it changed meanwhile: then the keys that `after` alone names are forgotten.
        """
        text = written(after)
        try:
            stored = await self._homes.home_of(user_id).write(FILE, text, expected_version=version)
        except (Conflict, UserError, OSError):
            await self._forget(user_id, after.secrets - before.secrets)
            raise
        await self.last_good.keep(user_id, HomeFile(text=text, version=stored))
        self.revision += 1
        await self._forget(user_id, before.secrets - after.secrets)

    async def seal(self, user_id: str, key: str) -> str:
        """Keep a key; the name by which a file refers to it."""
        name = f"{MODEL_KEYS}{new_id()}"
        await self._secrets(user_id).put(name, await asyncio.to_thread(self._vault.seal, key))
        return name

    async def key(self, user_id: str, name: str) -> str | None:
        """The key of this name; None when there is none, ConfigError when it was sealed under another secret key."""
        sealed = await self._secrets(user_id).get(name) if name else None
        return None if sealed is None else await asyncio.to_thread(self._vault.unseal, sealed)

    async def sealed(self, user_id: str) -> Sequence[tuple[str, bytes]]:
        """The keys that this person's turns may use, still sealed: (owner's id, key)."""
        return await self._db.repository(AllSecretsRepository).of_models(user_id)

    def unseal(self, sealed: bytes) -> str:
        """The key."""
        return self._vault.unseal(sealed)

    async def _forget(self, user_id: str, names: frozenset[str]) -> None:
        for name in sorted(names):
            await self._secrets(user_id).remove(name)

    def _secrets(self, user_id: str) -> SecretsRepository:
        return self._db.repository(SecretsRepository, user_id)
