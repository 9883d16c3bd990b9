"""What a user set in the browser: small JSON values by name. Defaults and files are the services' matter."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import select

from cortex.storage.repository import Repository, SharedRepository, reading
from cortex.storage.schema import AccountTable, PreferenceTable


class _Kept(Struct, frozen=True, kw_only=True):
    key: str
    value: dict[str, Any]


class PreferencesRepository(Repository):
    """One user's preferences. Values are whatever JSON can say, hence Any."""

    @reading
    async def get(self, key: str, default: Any = None) -> Any:
        """The value, or the default when it was never set."""
        found = await self._where(_Kept, PreferenceTable, key=key)
        return found[0].value["value"] if found else default

    @reading
    async def all(self) -> dict[str, Any]:
        """Every value that was set, by name."""
        kept = await self._all(_Kept, self._mine(_Kept, PreferenceTable).order_by(PreferenceTable.key))
        return {row.key: row.value["value"] for row in kept}

    async def set(self, key: str, value: Any) -> None:
        """Keep a value."""
        row = {"value": {"value": value}, "updated_at": self.clock()}
        statement = self._insert(PreferenceTable, {"key": key, **row})
        await self.session.execute(statement.on_conflict_do_update(index_elements=["owner_id", "key"], set_=row))

    async def unset(self, key: str) -> None:
        """Let the default stand again."""
        await self.session.execute(self._remove(PreferenceTable).where(PreferenceTable.key == key))

    @reading
    async def names(self, beginning: str) -> Sequence[str]:
        """The names that were set and begin so, sorted."""
        wanted = PreferenceTable.key.startswith(beginning, autoescape=True)
        kept = await self._all(_Kept, self._mine(_Kept, PreferenceTable).where(wanted).order_by(PreferenceTable.key))
        return [row.key for row in kept]


class AllPreferencesRepository(SharedRepository):
    """The preferences of everybody."""

    @reading
    async def marked(self, key: str) -> Sequence[str]:
        """Return who set this one, closed accounts too."""
        statement = select(PreferenceTable.owner_id).where(PreferenceTable.key == key)
        return (await self.session.execute(statement.order_by(PreferenceTable.owner_id))).scalars().all()

    @reading
    async def owners(self, key: str) -> Sequence[str]:
        """Return who set this one and whose account is open."""
        statement = select(PreferenceTable.owner_id).join(AccountTable, AccountTable.id == PreferenceTable.owner_id)
        wanted = statement.where(PreferenceTable.key == key, AccountTable.is_active)
        return (await self.session.execute(wanted.order_by(PreferenceTable.owner_id))).scalars().all()
