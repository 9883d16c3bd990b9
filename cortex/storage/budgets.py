"""Budgets of the server: what a person, a role, a job or everybody together may take in a day."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Select, delete, select

from cortex.base.errors import NotFound
from cortex.base.ids import new_id
from cortex.storage.repository import SharedRepository, reading
from cortex.storage.schema import BudgetTable

Kind = Literal["user", "role", "job", "house", "model"]
AtLimit = Literal["stop", "model", "chat"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRow:
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


class BudgetsRepository(SharedRepository):
    """What the admins set."""

    @reading
    async def list(self) -> Sequence[BudgetRow]:
        """All of them, by kind and subject."""
        return await self._all(BudgetRow, _rows().order_by(BudgetTable.kind, BudgetTable.subject))

    @reading
    async def get(self, id: str) -> BudgetRow:
        """One; NotFound when it is gone."""
        found = await self._first(BudgetRow, _rows().where(BudgetTable.id == id))
        if found is None:
            raise NotFound("This budget does not exist.")
        return found

    async def put(
        self,
        kind: Kind,
        subject: str,
        *,
        limit_tokens: int | None,
        limit_usd: float | None,
        at_limit: AtLimit,
        model: str,
        changed_by: str,
    ) -> BudgetRow:
        """Set the budget of this subject; one that stands is changed."""
        values: dict[str, Any] = {
            "limit_tokens": limit_tokens,
            "limit_usd": limit_usd,
            "at_limit": at_limit,
            "model": model,
            "changed_by": changed_by,
            "changed_at": self.clock(),
        }
        row = {"id": new_id(self.clock), "kind": kind, "subject": subject, **values}
        statement = self._upsert(BudgetTable, row)
        await self.session.execute(statement.on_conflict_do_update(index_elements=["kind", "subject"], set_=values))
        return (await self._all(BudgetRow, _rows().where(BudgetTable.kind == kind, BudgetTable.subject == subject)))[0]

    async def remove(self, id: str) -> None:
        """Take one away; one that is gone is no error."""
        await self.session.execute(delete(BudgetTable).where(BudgetTable.id == id))


def _rows() -> Select[Any]:
    return select(*(getattr(BudgetTable, name) for name in BudgetRow.__dataclass_fields__))
