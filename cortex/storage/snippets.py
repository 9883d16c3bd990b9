"""Snippets: a person's own, and those that others of the household let everybody use."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import or_, select

from cortex.base.errors import Conflict
from cortex.storage.repository import Repository, reading
from cortex.storage.schema import AccountTable, SnippetTable

MISSING = "This snippet does not exist."


class SnippetRow(Struct, frozen=True, kw_only=True):
    """A snippet. `by`: the name of whose it is, "" for the reader's own."""

    id: str
    owner_id: str
    name: str
    text: str
    is_shared: bool
    created_at: datetime
    updated_at: datetime
    by: str = ""


class SnippetsRepository(Repository):
    """The snippets that one user may use; only their own are changed here."""

    @reading
    async def list(self) -> Sequence[SnippetRow]:
        """All of them by name, the user's own ahead of another's of the same name."""
        columns = [getattr(SnippetTable, name) for name in SnippetRow.__struct_fields__ if hasattr(SnippetTable, name)]
        statement = (
            select(*columns, AccountTable.name.label("owner"))
            .join(AccountTable, AccountTable.id == SnippetTable.owner_id)
            .where(or_(self._reach(SnippetTable), SnippetTable.is_shared & AccountTable.is_active))
        )
        found = (await self.session.execute(statement)).mappings().all()
        rows = [
            SnippetRow(
                **{name: row[name] for name in row if name != "owner"},
                by="" if row["owner_id"] == self.owner_id else row["owner"],
            )
            for row in found
        ]
        return sorted(rows, key=lambda row: (row.name, row.by != "", row.by))

    @reading
    async def get(self, id: str) -> SnippetRow:
        """The user's own; NotFound."""
        return await self._get(SnippetRow, SnippetTable, id, MISSING)

    async def put(self, snippet: SnippetRow) -> None:
        """Keep a new one, or one that was removed, under its id; Conflict where its owner has one of this name."""
        await self._must_be_free(snippet.name, snippet.id)
        values = {
            "id": snippet.id,
            "name": snippet.name,
            "text": snippet.text,
            "is_shared": snippet.is_shared,
            "created_at": snippet.created_at,
            "updated_at": self.clock(),
        }
        await self.session.execute(self._insert(SnippetTable, values).on_conflict_do_nothing())

    async def change(self, id: str, *, name: str, text: str, is_shared: bool) -> None:
        """Say it otherwise; NotFound, and Conflict where its owner has another one of this name."""
        await self._must_be_free(name, id)
        change = self._change(SnippetTable).where(SnippetTable.id == id)
        values = change.values(name=name, text=text, is_shared=is_shared, updated_at=self.clock())
        await self._must_touch(values, SnippetTable.id, MISSING)

    async def remove(self, id: str) -> None:
        """Forget it; NotFound."""
        await self._must_touch(self._remove(SnippetTable).where(SnippetTable.id == id), SnippetTable.id, MISSING)

    async def _must_be_free(self, name: str, id: str) -> None:
        taken = select(SnippetTable.id).where(
            self._reach(SnippetTable), SnippetTable.name == name, SnippetTable.id != id
        )
        if (await self.session.execute(taken)).first():
            raise Conflict(f"You have a snippet /{name} already. Choose another name.")
