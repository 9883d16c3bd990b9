"""Messages with the tools that they must be given: kept by the admins, run on the Tools page."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, insert, select

from cortex.base.errors import NotFound
from cortex.base.ids import new_id
from cortex.base.user import Rank
from cortex.storage.repository import SharedRepository, reading
from cortex.storage.schema import ToolCaseTable


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCaseRow:
    """A message that somebody of this rank writes in this role. `tools`: all must be sent; () = none may be."""

    id: str
    text: str
    role: str
    rank: Rank
    tools: tuple[str, ...]
    added_by: str
    added_at: datetime


class ToolCasesRepository(SharedRepository):
    """The cases of the server."""

    @reading
    async def all(self) -> Sequence[ToolCaseRow]:
        """Every case, oldest first."""
        columns = (getattr(ToolCaseTable, name) for name in ToolCaseRow.__dataclass_fields__)
        statement = select(*columns).order_by(ToolCaseTable.added_at, ToolCaseTable.id)
        return await self._all(ToolCaseRow, statement)

    async def add(self, text: str, role: str, rank: Rank, tools: tuple[str, ...], by: str) -> ToolCaseRow:
        """Keep a case."""
        case = ToolCaseRow(
            id=new_id(self.clock), text=text, role=role, rank=rank, tools=tools, added_by=by, added_at=self.clock()
        )
        await self.session.execute(
            insert(ToolCaseTable), {name: getattr(case, name) for name in ToolCaseRow.__dataclass_fields__}
        )
        return case

    async def remove(self, id: str) -> ToolCaseRow:
        """Forget a case and hand it back; NotFound when there is none."""
        columns = (getattr(ToolCaseTable, name) for name in ToolCaseRow.__dataclass_fields__)
        case = await self._first(ToolCaseRow, select(*columns).where(ToolCaseTable.id == id))
        if case is None:
            raise NotFound("This message in the list does not exist.")
        await self.session.execute(delete(ToolCaseTable).where(ToolCaseTable.id == id))
        return case
