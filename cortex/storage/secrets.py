"""Sealed secrets by name. Sees ciphertext only: `base/crypto.py` seals and opens."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from msgspec import Struct
from sqlalchemy import Select, delete, inspect, select, update

from cortex.storage import kept
from cortex.storage.repository import Repository, SharedRepository, reading
from cortex.storage.schema import AccountTable, SecretTable, ServerSecretTable

MODEL_KEYS = "model:"  # how the names of model keys begin
ADDRESSES = "reach:"  # and of the places that a person's channels lead to, ahead of the channel
SERVER, PEOPLE = ServerSecretTable.__tablename__, SecretTable.__tablename__


class SealedRow(Struct, frozen=True, kw_only=True):
    """A sealed value: whose it is by id and name, both "" for the server's own, and what it is called."""

    owner_id: str
    owner: str
    name: str
    ciphertext: bytes


class SecretsRepository(Repository):
    """One user's secrets."""

    async def put(self, name: str, ciphertext: bytes) -> None:
        """Keep a sealed secret, in place of the one of that name."""
        row = {"ciphertext": ciphertext, "updated_at": self.clock()}
        statement = self._insert(SecretTable, {"name": name, **row})
        await self.session.execute(statement.on_conflict_do_update(index_elements=["owner_id", "name"], set_=row))

    async def replace(self, name: str, former: bytes, ciphertext: bytes) -> bool:
        """Put it in place of the former one; False when that one does not stand any more."""
        change = self._change(SecretTable).where(SecretTable.name == name, SecretTable.ciphertext == former)
        values = {"ciphertext": ciphertext, "updated_at": self.clock()}
        return bool(await self._touched(change.values(**values), SecretTable.name))

    @reading
    async def get(self, name: str) -> bytes | None:
        """The sealed secret, None when there is none."""
        return (await self._run(_sealed(), name=name)).scalar_one_or_none()

    @reading
    async def names(self) -> Sequence[str]:
        """The names, sorted."""
        statement = select(SecretTable.name).where(SecretTable.owner_id == self.owner_id).order_by(SecretTable.name)
        return (await self.session.execute(statement)).scalars().all()

    async def remove(self, name: str) -> bool:
        """Forget it; whether it was there."""
        return bool(await self._touched(self._remove(SecretTable).where(SecretTable.name == name), SecretTable.name))


@cache
def _sealed() -> Select[Any]:
    secret = kept.columns(SecretTable)
    return select(secret.ciphertext).where(kept.is_own(SecretTable), secret.name == kept.given("name"))


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

    async def put(self, name: str, ciphertext: bytes) -> None:
        """Keep a sealed secret, in place of the one of that name."""
        row = {"ciphertext": ciphertext, "updated_at": self.clock()}
        statement = self._upsert(ServerSecretTable, {"name": name, **row})
        await self.session.execute(statement.on_conflict_do_update(index_elements=["name"], set_=row))

    async def remove(self, names: Sequence[str]) -> None:
        """Forget those of these names that are there."""
        await self.session.execute(delete(ServerSecretTable).where(ServerSecretTable.name.in_(names)))

    async def replace(self, name: str, former: bytes, ciphertext: bytes) -> bool:
        """Put it in place of the former one; False when that one does not stand any more."""
        change = update(ServerSecretTable).where(ServerSecretTable.name == name, ServerSecretTable.ciphertext == former)
        values = {"ciphertext": ciphertext, "updated_at": self.clock()}
        return bool(await self._touched(change.values(**values), ServerSecretTable.name))


class AllSecretsRepository(SharedRepository):
    """Everybody's secrets and the server's, for whoever looks whether they can still be opened."""

    @reading
    async def list(self) -> Sequence[SealedRow]:
        """All of them, the server's first, then by person and name."""
        server = select(ServerSecretTable.name, ServerSecretTable.ciphertext).order_by(ServerSecretTable.name)
        people = (
            select(SecretTable.owner_id, AccountTable.name, SecretTable.name, SecretTable.ciphertext)
            .join(AccountTable, AccountTable.id == SecretTable.owner_id)
            .order_by(AccountTable.name, SecretTable.name)
        )
        connection = await self.session.connection()
        tables = await connection.run_sync(
            lambda opened: inspect(opened).get_table_names()
        )  # it may be an older database
        found = [(name, sealed) for name, sealed in await self.session.execute(server)] if SERVER in tables else []
        others = await self.session.execute(people) if PEOPLE in tables else ()
        rows = [*(("", "", name, sealed) for name, sealed in found), *others]
        return [SealedRow(owner_id=id, owner=owner, name=name, ciphertext=sealed) for id, owner, name, sealed in rows]

    @reading
    async def of_models(self, person_id: str) -> Sequence[tuple[str, bytes]]:
        """The model keys of this person, and those of every admin: (owner's id, sealed key)."""
        statement = (
            select(SecretTable.owner_id, SecretTable.ciphertext)
            .join(AccountTable, AccountTable.id == SecretTable.owner_id)
            .where(SecretTable.name.startswith(MODEL_KEYS, autoescape=True))
            .where((SecretTable.owner_id == person_id) | (AccountTable.rank == "admin"))
        )
        return [(owner_id, sealed) for owner_id, sealed in await self.session.execute(statement)]

    async def remove(self, row: SealedRow) -> bool:
        """Delete it unless it was replaced meanwhile; whether it was there."""
        if row.owner_id:
            whose = delete(SecretTable).where(SecretTable.owner_id == row.owner_id, SecretTable.name == row.name)
            return bool(await self._touched(whose.where(SecretTable.ciphertext == row.ciphertext), SecretTable.name))
        own = delete(ServerSecretTable).where(ServerSecretTable.name == row.name)
        return bool(
            await self._touched(own.where(ServerSecretTable.ciphertext == row.ciphertext), ServerSecretTable.name)
        )
