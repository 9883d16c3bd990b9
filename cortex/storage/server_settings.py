"""The settings of the server that were changed on the page, each with what it was before. Seals nothing."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import inspect

from cortex.storage.repository import SharedRepository, as_row, reading, selected
from cortex.storage.schema import AccountTable, ServerSettingTable


class ServerSettingRow(Struct, frozen=True, kw_only=True):
    """One setting; the fields are those of `ServerSettingTable`. `by`: the name of who set it, "" of nobody's here."""

    name: str
    value: str | None = None
    before: str | None = None
    set_by: str = ""
    set_at: datetime | None = None
    is_on_trial: bool = False
    trial_ends_at: datetime | None = None
    note: str = ""
    by: str | None = None

    def text(self, at: datetime) -> str | None:
        """The text in force at this moment: a trial that waits for its restart, or is over, holds no more."""
        if not self.is_on_trial:
            return self.value
        return self.value if self.trial_ends_at is not None and self.trial_ends_at > at else self.before


class ServerSettingsRepository(SharedRepository):
    """The settings that were set; who may is the services' matter."""

    @reading
    async def list(self, *, is_held: bool = False) -> Sequence[ServerSettingRow]:
        """All of them by name; none in a database of an earlier version. is_held: till this transaction ends."""
        connection = await self.session.connection()
        names = await connection.run_sync(lambda opened: inspect(opened).get_table_names())
        if ServerSettingTable.__tablename__ not in names:
            return []
        statement = (
            selected(ServerSettingRow, ServerSettingTable)
            .add_columns(AccountTable.name.label("by"))
            .outerjoin(AccountTable, AccountTable.id == ServerSettingTable.set_by)
            .order_by(ServerSettingTable.name)
        )
        held = statement.with_for_update(of=ServerSettingTable) if is_held else statement
        return await self._all(ServerSettingRow, held)

    async def save(self, row: ServerSettingRow) -> None:
        """Keep it in place of what stood there."""
        values = {name: value for name, value in as_row(row).items() if name != "by"}
        values["set_at"] = row.set_at or self.clock()
        statement = self._upsert(ServerSettingTable, values)
        kept = {name: value for name, value in values.items() if name != "name"}
        await self.session.execute(statement.on_conflict_do_update(index_elements=["name"], set_=kept))
