"""Changes of the server to its tools: settings of single tools, words of categories, a count of changes.

And messages with the tools that they must be given: kept by the admins, run on the Tools page.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any, Literal

from msgspec import Struct
from sqlalchemy import Select, delete, insert, select, update

from cortex.base.errors import NotFound
from cortex.base.ids import new_id
from cortex.base.user import Rank
from cortex.storage import kept
from cortex.storage.repository import SharedRepository, as_row, reading, selected
from cortex.storage.schema import CounterTable, ToolCaseTable, ToolSettingTable, ToolWordTable

Kind = Literal["phrase", "example"]
COUNTER = "tools"


class ToolSettingRow(Struct, frozen=True, kw_only=True):
    """The settings of a tool; None = as it ships. `description`: read by models in place of the shipped one."""

    tool: str
    is_on: bool | None = None
    sending: str | None = None
    asks_first: bool | None = None
    description: str | None = None


class ToolWordRow(Struct, frozen=True, kw_only=True):
    """A phrase or an example of a category: added here, or an example that ships and `is_left_out`.

    text_key: the text as it is compared. tools: whom it speaks for, () = the whole category.
    """

    category: str
    kind: Kind
    text: str
    text_key: str
    tools: tuple[str, ...] = ()
    is_left_out: bool = False


class ToolSettingsRepository(SharedRepository):
    """Settings and words of the whole server; who may change them is the services' matter."""

    @reading
    async def number(self) -> int:
        """Grows with each change: whoever knows this number knows everything else here."""
        return (await self._run(_number())).scalar_one_or_none() or 0

    @reading
    async def all(self) -> Sequence[ToolSettingRow]:
        """Every tool for which something is set."""
        return await self._all(
            ToolSettingRow, selected(ToolSettingRow, ToolSettingTable).order_by(ToolSettingTable.tool)
        )

    @reading
    async def words(self, category: str | None = None) -> Sequence[ToolWordRow]:
        """Return what was added or left out, of one category or of all, in the order in which it was.

        No phrase ships any more: rows that left one out, in homes older than that, say nothing.
        """
        is_said = ~(ToolWordTable.is_left_out & (ToolWordTable.kind == "phrase"))
        statement = (
            selected(ToolWordRow, ToolWordTable).where(is_said).order_by(ToolWordTable.added_at, ToolWordTable.id)
        )
        if category is not None:
            statement = statement.where(ToolWordTable.category == category)
        return await self._all(ToolWordRow, statement)

    async def set(self, setting: ToolSettingRow, by: str) -> None:
        """Keep all that is set for a tool; nothing set = nothing kept."""
        await self._count_change()
        values = as_row(setting)
        if all(value is None for name, value in values.items() if name != "tool"):
            await self.session.execute(delete(ToolSettingTable).where(ToolSettingTable.tool == setting.tool))
            return
        values |= {"changed_by": by, "changed_at": self.clock()}
        statement = self._upsert(ToolSettingTable, values)
        await self.session.execute(statement.on_conflict_do_update(index_elements=["tool"], set_=values))

    async def add_words(self, words: Sequence[ToolWordRow], by: str) -> None:
        """Keep these, each in the place of one that reads the same."""
        await self._count_change()
        for word in words:
            values = {**as_row(word), "added_by": by, "added_at": self.clock()}
            statement = self._upsert(ToolWordTable, {"id": new_id(self.clock), **values})
            keys = ["category", "kind", "text_key", "is_left_out"]
            await self.session.execute(statement.on_conflict_do_update(index_elements=keys, set_=values))

    async def drop_words(self, words: Sequence[ToolWordRow]) -> None:
        """Forget these: what was added goes, what was left out is back."""
        await self._count_change()
        for word in words:
            await self.session.execute(
                delete(ToolWordTable).where(
                    ToolWordTable.category == word.category,
                    ToolWordTable.kind == word.kind,
                    ToolWordTable.text_key == word.text_key,
                    ToolWordTable.is_left_out == word.is_left_out,
                )
            )

    async def changed(self) -> None:
        """Something else that plans rest on changed in this transaction: whoever keeps what stands here reads again."""
        await self._count_change()

    async def _count_change(self) -> None:
        """Let the number grow in the same transaction: who keeps what it read compares the number alone."""
        grown = update(CounterTable).where(CounterTable.name == COUNTER).values(number=CounterTable.number + 1)
        if (await self.session.execute(grown.returning(CounterTable.name))).first() is None:
            first = self._upsert(CounterTable, {"name": COUNTER, "number": 1})
            more = {"number": CounterTable.number + 1}
            await self.session.execute(first.on_conflict_do_update(index_elements=["name"], set_=more))


@cache
def _number() -> Select[Any]:
    counter = kept.columns(CounterTable)
    return select(counter.number).where(counter.name == COUNTER)


class ToolCaseRow(Struct, frozen=True, kw_only=True):
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
        statement = selected(ToolCaseRow, ToolCaseTable).order_by(ToolCaseTable.added_at, ToolCaseTable.id)
        return await self._all(ToolCaseRow, statement)

    async def add(self, text: str, role: str, rank: Rank, tools: tuple[str, ...], by: str) -> ToolCaseRow:
        """Keep a case."""
        case = ToolCaseRow(
            id=new_id(self.clock), text=text, role=role, rank=rank, tools=tools, added_by=by, added_at=self.clock()
        )
        await self.session.execute(insert(ToolCaseTable), as_row(case))
        return case

    async def remove(self, id: str) -> ToolCaseRow:
        """Forget a case and hand it back; NotFound when there is none."""
        case = await self._first(ToolCaseRow, selected(ToolCaseRow, ToolCaseTable).where(ToolCaseTable.id == id))
        if case is None:
            raise NotFound("This message in the list does not exist.")
        await self.session.execute(delete(ToolCaseTable).where(ToolCaseTable.id == id))
        return case
