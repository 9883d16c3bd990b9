"""The last change that a person made by a page, kept until the next one: that is what *Undo* has.

It holds texts that name others, so it stands sealed among the person's secrets.
"""

import asyncio
import secrets

import msgspec
from msgspec import Struct

from cortex.base.crypto import Vault
from cortex.base.errors import ConfigError, NotFound
from cortex.ports.calendars import Written
from cortex.storage.db import Database
from cortex.storage.secrets import SecretsRepository

TOO_LATE = "This can no longer be undone: something else was changed since."


class KeptChange(Struct, frozen=True, kw_only=True):
    """A change that was written. `key`: by which it is taken back; `version`: what stood there behind it."""

    key: str
    version: str
    written: Written


class LastChanges(Struct, frozen=True, kw_only=True):
    """The last change of everybody, of one kind. `name`: of the secret."""

    db: Database
    vault: Vault
    name: str

    async def keep(self, user_id: str, written: Written, version: str) -> str:
        """Keep this one in place of the one before; the key by which it is taken back."""
        made = KeptChange(key=secrets.token_urlsafe(12), version=version, written=written)
        sealed = await asyncio.to_thread(self.vault.seal, msgspec.json.encode(made).decode())
        await self.db.repository(SecretsRepository, user_id).put(self.name, sealed)
        return made.key

    async def of(self, user_id: str, key: str) -> KeptChange:
        """The change of this key. NotFound where that is not the last one any more."""
        sealed = await self.db.repository(SecretsRepository, user_id).get(self.name)
        if not sealed:
            raise NotFound(TOO_LATE)
        try:
            kept = msgspec.json.decode(await asyncio.to_thread(self.vault.unseal, sealed), type=KeptChange)
        except ConfigError as error:
            raise NotFound(TOO_LATE) from error
        if not secrets.compare_digest(kept.key, key):
            raise NotFound(TOO_LATE)
        return kept

    async def forget(self, user_id: str) -> None:
        """Forget it: it was taken back."""
        await self.db.repository(SecretsRepository, user_id).remove(self.name)
