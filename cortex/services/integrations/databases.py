"""The databases that an admin set up, as one user's tools and pages read them, each by its name."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from msgspec import Struct

from cortex.base.errors import ToolFailed
from cortex.integrations.aether_db.database import ReadOnlyDatabase
from cortex.ports.aether import Rows, TableFacts, ViewFacts
from cortex.services.integrations.clients import IntegrationClients
from cortex.services.integrations.query_results import QueryResults
from cortex.storage.home import Home

KIND = "aether_db"


class UserDatabases(Struct, frozen=True, kw_only=True):
    """The databases that one user may read; `AetherDatabase` of `ports/aether.py`."""

    clients: IntegrationClients
    home: Home
    user_id: str

    async def names(self, role: str = "") -> Sequence[str]:
        """The names of the databases, sorted."""
        return sorted(await self.clients.integrations.names(KIND, self.user_id, role))

    async def result(self, name: str) -> str:
        """The CSV that a tool kept under this name; NotFound when there is none."""
        return await QueryResults(home=self.home).read(name)

    async def check(self, *, sql: str = "", table: str = "", database: str = "", role: str = "") -> None:
        """ToolFailed for what would be refused without asking the server: the database, a statement, a table's name."""
        one: ReadOnlyDatabase = await self.clients.peek(KIND, await self._name(database, role), user_id=self.user_id)
        await one.check(sql=sql, table=table)

    async def query(self, sql: str, most: int, *, database: str = "", role: str = "") -> Rows:
        """The rows of one reading statement."""
        async with self._named(database, role) as one:
            return await one.query(sql, most)

    async def tables(self, words: str, *, database: str = "", role: str = "") -> Sequence[TableFacts]:
        """Open tables and views whose names or comments hold the words."""
        async with self._named(database, role) as one:
            return await one.tables(words)

    async def table(self, name: str, *, database: str = "", role: str = "") -> TableFacts:
        """One table or view with its columns."""
        async with self._named(database, role) as one:
            return await one.table(name)

    async def view(self, name: str, most: int, *, database: str = "", role: str = "") -> ViewFacts:
        """The statement that defines a view, and at most this many of its rows."""
        async with self._named(database, role) as one:
            return await one.view(name, most)

    async def first_rows(self, name: str, most: int, *, database: str = "", role: str = "") -> Rows:
        """Rows of a table or view by its name."""
        async with self._named(database, role) as one:
            return await one.first_rows(name, most)

    @asynccontextmanager
    async def _named(self, database: str, role: str) -> AsyncIterator[ReadOnlyDatabase]:
        """The client of this name."""
        async with self.clients.using(KIND, await self._name(database, role), user_id=self.user_id) as one:
            yield one

    async def _name(self, database: str, role: str) -> str:
        """The name that is meant, of the only one for ""; ToolFailed names those there are."""
        names, wanted = await self.names(role), database.strip()
        found = [name for name in names if not wanted or name.casefold() == wanted.casefold()]
        if len(found) != 1:
            raise ToolFailed(_which(names, wanted))
        return found[0]


def _which(names: Sequence[str], wanted: str) -> str:
    if not names:
        return "No database is configured for you. An admin can set one up under Integrations."
    if wanted:
        return f"There is no database {wanted!r}. Known: {', '.join(names)}."
    return f"There are several databases: give one of them as database ({', '.join(names)})."
