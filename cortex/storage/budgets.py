"""Budgets of the server: what a person, a role, a job or everybody together may take in a day."""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any, Literal, TypedDict, Unpack

from msgspec import Struct
from sqlalchemy import Select, delete

from cortex.base.ids import new_id
from cortex.storage import kept
from cortex.storage.repository import SharedRepository, reading, selected
from cortex.storage.schema import BudgetTable

Kind = Literal["user", "role", "job", "house", "model"]
AtLimit = Literal["stop", "model", "chat"]


class BudgetRow(Struct, frozen=True, kw_only=True):
    """A limit for a day. `subject`: account id, role or job; "" = each person for themselves (kind user), or nobody.

    No row is of kind model: that limit stands with the share of a model, and is shown like one.
    At the limit: `stop` with a sentence, go on with `model`, or go on in `chat` without tools.
    """

    id: str
    kind: Kind
    subject: str
    limit_tokens: int | None
    limit_usd: float | None
    at_limit: AtLimit
    model: str
    changed_by: str
    changed_at: datetime


class BudgetLimit(TypedDict):
    """The limits of a subject, as `BudgetRow` has it."""

    limit_tokens: int | None
    limit_usd: float | None
    at_limit: AtLimit
    model: str
    changed_by: str


_ROWS = selected(BudgetRow, BudgetTable)


@cache
def _in_order() -> Select[Any]:
    budget = kept.columns(BudgetTable)
    return kept.whole(BudgetRow, BudgetTable).order_by(budget.kind, budget.subject)


class BudgetsRepository(SharedRepository):
    """The budgets, which admins set."""

    @reading
    async def list(self) -> Sequence[BudgetRow]:
        """All of them, by kind and subject."""
        return await self._rows_of(BudgetRow, _in_order())

    @reading
    async def get(self, id: str) -> BudgetRow:
        """One; NotFound when it is gone."""
        return await self._one(BudgetRow, _ROWS.where(BudgetTable.id == id), "This budget does not exist.")

    async def put(self, kind: Kind, subject: str, **limit: Unpack[BudgetLimit]) -> BudgetRow:
        """Set the budget of this subject; one that stands is changed."""
        values: dict[str, Any] = {**limit, "changed_at": self.clock()}
        row = {"id": new_id(self.clock), "kind": kind, "subject": subject, **values}
        statement = self._upsert(BudgetTable, row)
        await self.session.execute(statement.on_conflict_do_update(index_elements=["kind", "subject"], set_=values))
        return (await self._all(BudgetRow, _ROWS.where(BudgetTable.kind == kind, BudgetTable.subject == subject)))[0]

    async def remove(self, id: str) -> None:
        """Take one away; one that is gone is no error."""
        await self.session.execute(delete(BudgetTable).where(BudgetTable.id == id))
