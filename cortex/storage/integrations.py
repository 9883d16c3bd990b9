"""The outside systems that admins set up, for the whole server: settings, who may use them, how the last calls went."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import delete, update

from cortex.storage.repository import SharedRepository, reading, selected
from cortex.storage.schema import IntegrationTable

PLUGIN = "plugin"  # the kind of a package of others that an admin allowed


class IntegrationRow(Struct, frozen=True, kw_only=True):
    """One system as it is stored; the fields are those of `IntegrationTable`. `settings` holds no secret."""

    kind: str
    name: str = ""
    settings: dict[str, Any]
    is_on: bool = True
    roles: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    version: int = 1
    changed_at: datetime | None = None
    worked_at: datetime | None = None
    failed_at: datetime | None = None
    failure: str = ""


_ROWS = selected(IntegrationRow, IntegrationTable)


class IntegrationsRepository(SharedRepository):
    """The systems that were set up; who may change them is the services' matter."""

    @reading
    async def list(self) -> Sequence[IntegrationRow]:
        """All of them, by kind and name."""
        return await self._all(IntegrationRow, _ROWS.order_by(IntegrationTable.kind, IntegrationTable.name))

    @reading
    async def get(self, kind: str, name: str) -> IntegrationRow | None:
        """The one of this kind and name, or None."""
        where = (IntegrationTable.kind == kind, IntegrationTable.name == name)
        return await self._first(IntegrationRow, _ROWS.where(*where))

    async def save(self, row: IntegrationRow, by: str) -> None:
        """Keep what is set, in place of what was; its version grows. How the last calls went is forgotten."""
        kept = {name: getattr(row, name) for name in ("settings", "is_on", "roles", "people")}
        values = {**kept, "changed_by": by, "changed_at": self.clock()}
        values |= {"worked_at": row.worked_at, "failed_at": row.failed_at, "failure": row.failure}
        first = self._upsert(IntegrationTable, {"kind": row.kind, "name": row.name, "version": 1, **values})
        again = {**values, "version": IntegrationTable.version + 1}
        await self.session.execute(first.on_conflict_do_update(index_elements=["kind", "name"], set_=again))

    async def remove(self, kind: str, name: str) -> bool:
        """Forget it; whether it was there."""
        gone = delete(IntegrationTable).where(IntegrationTable.kind == kind, IntegrationTable.name == name)
        return bool(await self._touched(gone, IntegrationTable.kind))

    async def note(self, kind: str, name: str, version: int, *, failure: str) -> None:
        """Keep that it worked just now, or why it did not; nothing for a system whose settings changed meanwhile."""
        at = {"failed_at": self.clock(), "failure": failure} if failure else {"worked_at": self.clock(), "failure": ""}
        change = update(IntegrationTable).where(
            IntegrationTable.kind == kind, IntegrationTable.name == name, IntegrationTable.version == version
        )
        await self.session.execute(change.values(**at))
