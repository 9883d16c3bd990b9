"""Everything that the tables hold of one person, table by table, without what lets anybody in."""

import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import date, datetime
from itertools import count
from typing import Any

from sqlalchemy import delete, exists, select, tuple_

from cortex.base.attachments import Attachment
from cortex.base.record import as_dict
from cortex.storage.event_rows import at_length
from cortex.storage.plans import unpacked
from cortex.storage.repository import Repository, reading
from cortex.storage.schema import EventTable, PlanTable, PreferenceTable, Table

# What opens something, is a list of another's, or was read out of files that are in the archive themselves.
LEFT_OUT = frozenset({"secrets", "logins", "action_links", "setup_links", "task_list_members", "document_pages"})
LEFT_OUT_COLUMNS = frozenset(
    {("api_tokens", "digest"), ("hooks", "address"), ("push_devices", "endpoint"), ("push_devices", "auth")}
    | {("push_devices", "p256dh"), ("push_devices", "signed_for"), ("push_devices", "login_id")}
)
AT_ONCE = 1_000
REMOVED_AT_ONCE = 500  # in one transaction: nobody else writes meanwhile


class OwnedRepository(Repository):
    """One person's rows."""

    def tables(self) -> Sequence[str]:
        """The tables whose rows say whose they are, by name."""
        owned = (name for name, table in Table.metadata.tables.items() if "owner_id" in table.c)
        return sorted(name for name in owned if name not in LEFT_OUT)

    async def rows(self, name: str) -> AsyncIterator[Sequence[dict[str, Any]]]:
        """The person's rows of this table as JSON would have them, some at a time, in the order of their keys."""
        table = Table.metadata.tables[name]
        columns = [column for column in table.c if (name, column.name) not in LEFT_OUT_COLUMNS]
        statement = select(*columns).where(table.c.owner_id == self.owner_id).order_by(*table.primary_key.columns)
        for start in count(0, AT_ONCE):
            found = (await self.session.execute(statement.offset(start).limit(AT_ONCE))).mappings().all()
            yield [{key: _plain(value) for key, value in _whole(name, dict(row)).items()} for row in found]
            if len(found) < AT_ONCE:
                return

    @reading
    async def removable(self) -> Sequence[str]:
        """The tables that hold rows of the person, those that hang on others first; not the marks of their account."""
        tables = [
            table
            for table in reversed(Table.metadata.sorted_tables)
            if "owner_id" in table.c and table.name != PreferenceTable.__tablename__
        ]
        hold = select(*(exists().where(table.c.owner_id == self.owner_id) for table in tables))
        return [
            table.name for table, holds in zip(tables, (await self.session.execute(hold)).one(), strict=True) if holds
        ]

    async def remove_some(self, name: str) -> bool:
        """Delete rows of the person from this table, at most `REMOVED_AT_ONCE`; whether there may be more."""
        table = Table.metadata.tables[name]
        key = tuple_(*table.primary_key.columns)
        some = select(*table.primary_key.columns).where(table.c.owner_id == self.owner_id).limit(REMOVED_AT_ONCE)
        gone = delete(table).where(key.in_(some)).returning(table.c.owner_id)
        return len((await self.session.execute(gone)).all()) == REMOVED_AT_ONCE


def _whole(name: str, row: dict[str, Any]) -> dict[str, Any]:
    """The row with all that it says, where it is kept in a shorter form; one that is damaged as it is."""
    if name == EventTable.__tablename__:
        return {**row, "payload": at_length(row["payload"], row["turn_id"])}
    if name == PlanTable.__tablename__:
        with suppress(ValueError):
            return unpacked(row)
    return row


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, tuple):
        return [as_dict(each) if isinstance(each, Attachment) else each for each in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value
