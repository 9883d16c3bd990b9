"""The databases that one user may read, by name, behind the port of the tools."""

from collections.abc import Mapping, Sequence

from cortex.base.errors import ToolFailed
from cortex.integrations.aether_db.database import ReadOnlyDatabase
from cortex.ports.aether import Rows, TableFacts


class Databases:
    """Hands each question to the database that it names. Keeps none of them open itself."""

    def __init__(self, found: Mapping[str, ReadOnlyDatabase]) -> None:
        """found: the databases by the names of their cards."""
        self._found = dict(sorted(found.items()))

    @property
    def names(self) -> Sequence[str]:
        """Their names, sorted."""
        return list(self._found)

    def named(self, name: str) -> ReadOnlyDatabase:
        """The database of this name, the only one for ""; ToolFailed names those there are."""
        wanted = name.strip()
        if not wanted and len(self._found) == 1:
            return next(iter(self._found.values()))
        by_name = {known.lower(): database for known, database in self._found.items()}
        if wanted.lower() in by_name:
            return by_name[wanted.lower()]
        known = ", ".join(self._found) or "none"
        if wanted:
            raise ToolFailed(f"There is no database {wanted!r}. Known: {known}.")
        raise ToolFailed(f"There are several databases: give one of them as database ({known}).")

    async def query(self, sql: str, most: int, *, database: str = "") -> Rows:
        """The rows of one reading statement."""
        return await self.named(database).query(sql, most)

    async def tables(self, words: str, *, database: str = "") -> Sequence[TableFacts]:
        """Open tables and views whose names or comments hold the words."""
        return await self.named(database).tables(words)

    async def table(self, name: str, *, database: str = "") -> TableFacts:
        """One table or view with its columns."""
        return await self.named(database).table(name)

    async def view(self, name: str, *, database: str = "") -> str:
        """The statement that defines a view."""
        return await self.named(database).view(name)

    async def first_rows(self, name: str, most: int, *, database: str = "") -> Rows:
        """Rows of a table or view by its name."""
        return await self.named(database).first_rows(name, most)
