"""The keys by which push services know this server (VAPID), and the admins to whom they may write.

Made at the first start, sealed, rotated by an admin.

The newest signs for new devices; former ones sign on for devices that subscribed under them.
"""

import asyncio
import json
import logging
from collections.abc import Sequence

from sqlalchemy.exc import SQLAlchemyError

from cortex.base import scan
from cortex.base.crypto import Vault
from cortex.base.errors import ConfigError, Conflict, DatabaseUnavailable, NotAllowed
from cortex.base.user import User
from cortex.storage.accounts import AccountRow, AccountsRepository
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Database
from cortex.storage.secrets import ADDRESSES, SecretsRepository, ServerSecretsRepository

NAME = "push"
KEYS = "cortex.notify.push_keys"  # cryptography weighs 7 MB

log = logging.getLogger(__name__)


class PushKeys:
    """The server's key pairs. Several processes may share them: what another one rotated is seen at the next use."""

    def __init__(self, db: Database, vault: Vault) -> None:
        self._db = db
        self._vault = vault
        self._opened: tuple[bytes, tuple[str, ...]] | None = None
        self._public: dict[str, str] = {}

    async def prepare(self) -> None:
        """At the start: make the first key. A database that does not answer is asked again with the first device."""
        try:
            await self.ensure()
        except (DatabaseUnavailable, SQLAlchemyError) as error:
            log.warning("push: database error, the key is made with the first device: %s", error)

    async def ensure(self) -> None:
        """Make the first key unless there is one; cheap when there is."""
        secrets = self._db.repository(ServerSecretsRepository)
        if await secrets.get(NAME) is None:
            await secrets.add(NAME, await asyncio.to_thread(self._sealed, ()))

    async def keys(self) -> tuple[str, ...]:
        """The private keys, newest first. ConfigError when the server's secret key is another one now."""
        sealed = await self._stored()
        if self._opened is None or self._opened[0] != sealed:
            self._opened = (sealed, tuple(json.loads(await asyncio.to_thread(self._vault.unseal, sealed))))
        return self._opened[1]

    async def public(self) -> tuple[str, ...]:
        """The public halves, newest first, as a browser wants them for `applicationServerKey`."""
        keys = await self.keys()
        for key in keys:
            if key not in self._public:
                self._public[key] = await asyncio.to_thread(_public_key, key)
        return tuple(self._public[key] for key in keys)

    async def admin_mails(self) -> Sequence[str]:
        """The mail addresses at which the admins are notified, by the admins' names; one that cannot be read is not."""
        found = []
        for account in await self._db.repository(AccountsRepository).list():
            sealed = await self._mail(account) if account.rank == "admin" and account.is_active else None
            try:
                found += [json.loads(await asyncio.to_thread(self._vault.unseal, sealed))["address"]] if sealed else []
            except ConfigError:  # sealed under a former key: its owner is told so under Notifications
                continue
        return found

    async def _mail(self, account: AccountRow) -> bytes | None:
        return await self._db.repository(SecretsRepository, account.id).get(f"{ADDRESSES}email")

    async def rotate(self, by: User) -> None:
        """A new key in front; devices subscribe anew at their next visit. NotAllowed for all but admins."""
        if not by.is_admin:
            raise NotAllowed("Only admins can change the push keys.")
        former, keys = await self._stored(), await self.keys()
        sealed = await asyncio.to_thread(self._sealed, keys)
        async with self._db.transaction() as repository:
            # Only in place of what was read: else of two rotations at once one key is lost, with devices under it.
            if not await repository(ServerSecretsRepository).replace(NAME, former, sealed):
                raise Conflict("Somebody else just changed the keys.")
            await repository(AuditRepository).add(by.id, "push.rotated", "the keys of push")

    async def _stored(self) -> bytes:
        sealed = await self._db.repository(ServerSecretsRepository).get(NAME)
        if sealed is None:  # a page asked before the first daemon started
            await self.ensure()
            return await self._stored()
        return sealed

    def _sealed(self, former: tuple[str, ...]) -> bytes:
        return self._vault.seal(json.dumps(scan.load(KEYS).rotated(former)))


def _public_key(key: str) -> str:
    return str(scan.load(KEYS).public_key(key))
