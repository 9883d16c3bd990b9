"""The databases as a person reads them by hand, on their page: audited, and refused while their work is stopped."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from cortex.base.errors import ToolFailed
from cortex.ports.aether import Rows, TableFacts
from cortex.services.integrations.databases import UserDatabases
from cortex.storage.audit import AuditRepository
from cortex.storage.db import Database
from cortex.storage.halts import HaltsRepository

AUDITED_CHARACTERS = 1_000
STOPPED = "All your work is stopped. Databases can be read again after you resume."


class BrowsedTable(Struct, frozen=True, kw_only=True):
    """A table or view with its first rows. `definition`: the statement of a view."""

    facts: TableFacts
    rows: Rows | None
    definition: str = ""


class BrowsedDatabases(Struct, frozen=True, kw_only=True):
    """The databases that one person reads by hand. ToolFailed for whatever is refused, unknown or too slow."""

    databases: UserDatabases
    db: Database

    async def names(self) -> Sequence[str]:
        """The databases that are open to them."""
        return await self.databases.names()

    async def ask(self, sql: str, most: int, *, database: str) -> Rows:
        """The rows of one reading statement that they typed."""
        await self._begin("database.asked", database, {"sql": sql})
        return await self.databases.query(sql, most, database=database)

    async def tables(self, words: str, *, database: str) -> Sequence[TableFacts]:
        """Open tables and views whose names or comments hold the words."""
        await self._begin("database.browsed", database, {"words": words})
        return await self.databases.tables(words, database=database)

    async def table(self, name: str, most: int, *, database: str) -> BrowsedTable:
        """A table or view with its columns and at most this many of its rows."""
        await self._begin("database.browsed", database, {"table": name})
        facts = await self.databases.table(name, database=database)
        if facts.kind != "view":
            rows = await self.databases.first_rows(facts.name, most, database=database)
            return BrowsedTable(facts=facts, rows=rows)
        view = await self.databases.view(facts.name, most, database=database)
        return BrowsedTable(facts=facts, rows=view.rows, definition=view.definition)

    async def _begin(self, action: str, database: str, detail: Mapping[str, str]) -> None:
        """Audit it, in the transaction that finds no stop; nothing for a database that is not theirs."""
        if database not in await self.names():
            return
        user_id = self.databases.user_id
        async with self.db.transaction() as repository:
            if await repository(HaltsRepository).of(user_id):
                raise ToolFailed(STOPPED)
            shown = {key: value[:AUDITED_CHARACTERS] for key, value in detail.items()}
            await repository(AuditRepository).add(user_id, action, database, shown)
