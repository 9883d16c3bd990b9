"""Which models are given to whom: an admin's own gifts, and what a person has been given."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from msgspec import Struct
from sqlalchemy import Select, select

from cortex.storage import kept
from cortex.storage.repository import Repository, SharedRepository, as_row, reading
from cortex.storage.schema import AccountTable, SharedModelTable


class ShareRow(Struct, frozen=True, kw_only=True):
    """A model of the owner's for one person, or for everybody with `person_id` ""; limits of a day, None = none."""

    model: str
    person_id: str = ""
    limit_tokens: int | None = None
    limit_usd: float | None = None


class GivenModel(Struct, frozen=True, kw_only=True):
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
        rows = await self._rows_of(GivenModel, _given(), person_id=person_id)
        return tuple({(row.owner_id, row.model): row for row in rows}.values())

    @reading
    async def given_each(self, people: Sequence[str]) -> Mapping[str, Sequence[GivenModel]]:
        """Return what each of these people has been given, as `given` does, by their id."""
        statement: Any = (  # Any: a Select of these columns
            select(
                SharedModelTable.owner_id,
                AccountTable.name.label("owner"),
                SharedModelTable.model,
                SharedModelTable.limit_tokens,
                SharedModelTable.limit_usd,
                SharedModelTable.person_id,
            )
            .join(AccountTable, AccountTable.id == SharedModelTable.owner_id)
            .where(AccountTable.rank == "admin", AccountTable.is_active)
            .where(SharedModelTable.person_id.in_(("", *people)))
            .order_by(AccountTable.name_key, SharedModelTable.model, SharedModelTable.person_id)
        )
        rows = [dict(row) for row in (await self.session.execute(statement)).mappings()]
        gifts = [(row.pop("person_id"), GivenModel(**row)) for row in rows]
        return {id: _of(id, gifts) for id in people}


@cache
def _given() -> Select[Any]:
    share, account = kept.columns(SharedModelTable), kept.columns(AccountTable)
    shown = (share.owner_id, account.name.label("owner"), share.model, share.limit_tokens, share.limit_usd)
    found: Select[Any] = select(*shown).join(AccountTable.__table__, account.id == share.owner_id)
    found = found.where(account.rank == "admin", account.is_active, share.owner_id != kept.given("person_id"))
    found = found.where((share.person_id == "") | (share.person_id == kept.given("person_id")))
    return found.order_by(account.name_key, share.model, share.person_id)


def _of(person_id: str, gifts: Sequence[tuple[str, GivenModel]]) -> Sequence[GivenModel]:
    """Those of these for everybody or this person, who gave none of them; their own stand behind everybody's."""
    own = [one for to, one in gifts if to in ("", person_id) and one.owner_id != person_id]
    return tuple({(one.owner_id, one.model): one for one in own}.values())
