"""Which models are given to whom: an admin's own gifts, and what a person has been given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from cortex.storage.repository import Repository, SharedRepository, as_row, reading
from cortex.storage.schema import AccountTable, SharedModelTable


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareRow:
    """A model of the owner's for one person, or for everybody with `person_id` ""; limits of a day, None = none."""

    model: str
    person_id: str = ""
    limit_tokens: int | None = None
    limit_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenModel:
    """A model as somebody has been given it: whose it is, its name there, and what each day may take."""

    owner_id: str
    owner: str
    model: str
    limit_tokens: int | None = None
    limit_usd: float | None = None


class SharesRepository(Repository):
    """The models that one admin gives away."""

    @reading
    async def list(self) -> Sequence[ShareRow]:
        """All of it, by model, everybody's row first."""
        statement = self._mine(ShareRow, SharedModelTable)
        return await self._all(ShareRow, statement.order_by(SharedModelTable.model, SharedModelTable.person_id))

    async def put(self, model: str, rows: Sequence[ShareRow]) -> None:
        """Give the model as these rows say and in no other way; none = it is given to nobody."""
        await self.session.execute(self._remove(SharedModelTable).where(SharedModelTable.model == model))
        values = [{**as_row(row), "model": model, "changed_at": self.clock()} for row in rows]
        if values:
            await self.session.execute(self._insert(SharedModelTable, *values))


class AllSharesRepository(SharedRepository):
    """The models that everybody gives away. Only the gifts of admins whose account is open count."""

    @reading
    async def given(self, person_id: str) -> Sequence[GivenModel]:
        """Return what this person has been given, by owner and model; their own row outranks everybody's."""
        statement: Any = (  # Any: a Select of these columns
            select(
                SharedModelTable.owner_id,
                AccountTable.name.label("owner"),
                SharedModelTable.model,
                SharedModelTable.limit_tokens,
                SharedModelTable.limit_usd,
            )
            .join(AccountTable, AccountTable.id == SharedModelTable.owner_id)
            .where(AccountTable.rank == "admin", AccountTable.is_active)
            .where(SharedModelTable.owner_id != person_id, SharedModelTable.person_id.in_(("", person_id)))
            .order_by(AccountTable.name_key, SharedModelTable.model, SharedModelTable.person_id)
        )
        rows = await self._all(GivenModel, statement)
        return tuple({(row.owner_id, row.model): row for row in rows}.values())
