"""Sealed secrets by name. Sees ciphertext only: `base/crypto.py` seals and opens."""

from collections.abc import Sequence

from sqlalchemy import select, update

from cortex.storage.repository import Repository, SharedRepository, reading
from cortex.storage.schema import SecretTable, ServerSecretTable


class SecretsRepository(Repository):
    """One user's secrets."""

    async def put(self, name: str, ciphertext: bytes) -> None:
        """Keep a sealed secret, in place of the one of that name."""
        row = {"ciphertext": ciphertext, "updated_at": self.clock()}
        statement = self._insert(SecretTable, {"name": name, **row})
        await self.session.execute(statement.on_conflict_do_update(index_elements=["owner_id", "name"], set_=row))

    @reading
    async def get(self, name: str) -> bytes | None:
        """The sealed secret, None when there is none."""
        statement = select(SecretTable.ciphertext).where(
            SecretTable.owner_id == self.owner_id, SecretTable.name == name
        )
        return (await self.session.execute(statement)).scalar_one_or_none()

    @reading
    async def names(self) -> Sequence[str]:
        """The names, sorted."""
        statement = select(SecretTable.name).where(SecretTable.owner_id == self.owner_id).order_by(SecretTable.name)
        return (await self.session.execute(statement)).scalars().all()

    async def remove(self, name: str) -> bool:
        """Forget it; whether it was there."""
        return bool(await self._touched(self._remove(SecretTable).where(SecretTable.name == name), SecretTable.name))


class ServerSecretsRepository(SharedRepository):
    """The secrets of the server itself."""

    @reading
    async def get(self, name: str) -> bytes | None:
        """The sealed secret, None when there is none."""
        statement = select(ServerSecretTable.ciphertext).where(ServerSecretTable.name == name)
        return (await self.session.execute(statement)).scalar_one_or_none()

    async def add(self, name: str, ciphertext: bytes) -> bool:
        """Keep it unless one of that name stands: of several who make it at one start, one has made it."""
        row = {"name": name, "ciphertext": ciphertext, "updated_at": self.clock()}
        statement = self._upsert(ServerSecretTable, row).on_conflict_do_nothing().returning(ServerSecretTable.name)
        return (await self.session.execute(statement)).first() is not None

    async def replace(self, name: str, former: bytes, ciphertext: bytes) -> bool:
        """Put it in place of the former one; False when that one does not stand any more."""
        change = update(ServerSecretTable).where(ServerSecretTable.name == name, ServerSecretTable.ciphertext == former)
        values = {"ciphertext": ciphertext, "updated_at": self.clock()}
        return bool(await self._touched(change.values(**values), ServerSecretTable.name))
