"""Many rows for a home that has a few: one in every table, and each again, joined to copies of what it hangs on."""

from collections.abc import Collection, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Any

from sqlalchemy import Column, Connection, UniqueConstraint, insert, select
from sqlalchemy import Table as SqlTable

from cortex.storage.table import StorableText, Table

# What there is one of, what no program but Cortex can write, and what stops work or leaves the machine.
LEFT_OUT = frozenset(
    {
        "accounts",
        "audit",
        "counters",
        "halts",
        "house_secrets",
        "integrations",
        "learning_answers",
        "mcp_tools",
        "preferences",
        "refits",
        "setup_links",
    }
)
KEPT = frozenset({"kind", "owner_id", "person_id"})
AT_ONCE = 500
AT = datetime(2026, 11, 27, 12, tzinfo=UTC)
VALUES: dict[str, object] = {
    "StorableText": "x",
    "Moment": AT,
    "Names": (),
    "Attachments": (),
    "JSON": {},
    "PackedJson": {},
    "Date": date(2026, 11, 27),
    "Boolean": False,
    "LargeBinary": b"x",
}
FIT = {
    ("approvals", "state"): "denied",
    ("budgets", "kind"): "role",
    ("budgets", "subject"): "orchestrator",
    ("budgets", "at_limit"): "stop",
    ("budgets", "limit_tokens"): 1_000,
    ("coding_runs", "state"): "done",
    ("contacts", "rest"): "{}",
    ("deliveries", "state"): "delivered",
    ("facts", "certainty"): "stated",
    ("facts", "source"): "user",
    ("facts", "state"): "kept",
    ("jobs", "kind"): "prompt",
    ("jobs", "timing_kind"): "cron",
    ("jobs", "expression"): "0 9 * * *",
    ("jobs", "time_zone"): "UTC",
    ("jobs", "notify_on"): "always",
    ("jobs", "on_miss"): "once",
    ("jobs", "overlap"): "skip",
    ("mail_accounts", "security"): "tls",
    ("mail_accounts", "way"): "password",
    ("mails", "recipients"): "[]",
    ("notices", "kind"): "job",
    ("notices", "read_at"): AT,
    ("notices", "urgency"): "normal",
    ("reminders", "expression"): "2026-12-01T09:00+01:00",
    ("reminders", "state"): "planned",
    ("reminders", "time_zone"): "UTC",
    ("reminders", "timing_kind"): "at",
    ("shared_models", "limit_tokens"): 1_000,
    ("slots", "state"): "done",
}


def fill(connection: Connection, owner_id: str) -> None:
    """Give every table that is empty a row of this account's, joined to rows that are there."""
    for table in Table.metadata.sorted_tables:
        if table.name not in LEFT_OUT and connection.execute(select(table).limit(1)).first() is None:
            needed = [one for one in table.columns if _is_needed(one)]
            connection.execute(insert(table), [{one.name: _value(connection, one, owner_id) for one in needed}])


def multiply(connection: Connection, times: int, *, only: Collection[str] = (), apart: timedelta = timedelta()) -> None:
    """Add `times` copies of each row, parents ahead of their children; `only`: of these tables.

    apart: how much earlier each copy was than the one before it.
    """
    copied = ({*only} or Table.metadata.tables.keys()) - LEFT_OUT
    for table in Table.metadata.sorted_tables:
        if table.name in copied:
            names = frozenset(_names(table, copied))
            serial = {column.name for column in table.primary_key if column.autoincrement is True}
            has = [column for column in table.columns if column.name not in serial]
            rows = [dict(row) for row in connection.execute(select(*has)).mappings()]
            copies = (_copy(row, names, number, (number + 1) * apart) for number in range(times) for row in rows)
            while some := list(islice(copies, AT_ONCE)):
                connection.execute(insert(table), some)


def _is_needed(column: Column[Any]) -> bool:
    is_serial = column.primary_key and column.autoincrement is True
    return (column.table.name, column.name) in FIT or not (is_serial or column.nullable)


def _value(connection: Connection, column: Column[Any], owner_id: str) -> object:
    goal = next(iter(column.foreign_keys), None)
    if column.name == "owner_id":
        return owner_id
    if goal is not None:
        return connection.execute(select(goal.column).limit(1)).scalar_one()
    return FIT.get((column.table.name, column.name), VALUES.get(type(column.type).__name__, 1))


def _copy(row: dict[str, Any], names: Collection[str], number: int, earlier: timedelta) -> dict[str, Any]:
    return {
        name: f"{value}~{number}" if name in names and value else _earlier(value, earlier)
        for name, value in row.items()
    }


def _earlier(value: object, by: timedelta) -> object:
    return value - by if isinstance(value, datetime) else value


def _names(table: SqlTable, copied: Collection[str]) -> Iterator[str]:
    """The columns by which this row, or another one that is copied too, is known."""
    constraints = [one for one in table.constraints if isinstance(one, UniqueConstraint)]
    unique = {column.name for one in constraints for column in one.columns}
    unique |= {column.name for index in table.indexes if index.unique for column in index.columns}
    for column in table.columns:
        goals = {key.column.table.name for key in column.foreign_keys}
        is_name = column.primary_key or column.unique or column.name in unique or column.name.endswith("_id")
        is_copied = isinstance(column.type, StorableText) and goals <= {*copied}
        if is_name and is_copied and column.name not in KEPT:
            yield column.name
