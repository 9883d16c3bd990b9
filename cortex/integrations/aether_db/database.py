"""One MariaDB or MySQL behind the port: each statement checked, costed, run in a READ ONLY transaction, and counted."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cortex.base import scan
from cortex.base.clock import ticks_s
from cortex.base.errors import ServiceDown, ToolFailed
from cortex.integrations.aether_db import catalog
from cortex.integrations.aether_db.grants import beyond_reading, reads_everything
from cortex.integrations.aether_db.open_names import Access
from cortex.integrations.aether_db.sessions import Sessions
from cortex.ports.aether import Rows, TableFacts, ViewFacts

if TYPE_CHECKING:  # the parser and the driver are loaded with the first statement
    from cortex.integrations.aether_db.guard import Checked
    from cortex.integrations.aether_db.wire import Wire


class ReadOnlyDatabase:
    """A database by its card. Errors are ToolFailed, one sentence each; nothing is opened before the first question."""

    def __init__(self, access: Access) -> None:
        """access: where it is, as whom, what is open, and how much one statement may take."""
        self.access = access
        self._sessions = Sessions(access)

    async def check(self, *, sql: str = "", table: str = "") -> None:
        """ToolFailed for a statement that the guard refuses, or the name of a table that is not open; opens nothing."""
        if sql:
            await self._checked(sql, self.access.limits.rows)
        if table:
            catalog.parts(self.access.names, table)

    async def query(self, sql: str, most: int) -> Rows:
        """The rows of one reading statement, at most the card's limit; what is refused says why."""
        most = min(most, self.access.limits.rows)
        checked = await self._checked(sql, most)
        async with self._sessions.lent() as wire:
            started_s = ticks_s()
            if checked.is_select and not checked.is_plain:
                await self._check_cost(wire, checked.sql)
            columns, rows, is_cut = await self._read(wire, checked.sql, most)
            took_ms = round((ticks_s() - started_s) * 1_000)
        return Rows(columns=columns, rows=rows, is_cut=is_cut, took_ms=took_ms)

    async def tables(self, words: str) -> Sequence[TableFacts]:
        """Open tables and views whose names hold all the words, by name."""
        async with self._sessions.lent() as wire:
            return await catalog.tables(wire.do, self.access.names, words)

    async def table(self, name: str) -> TableFacts:
        """One table with columns, indexes, foreign keys and comment; ToolFailed with near names when there is none."""
        async with self._sessions.lent() as wire:
            return await catalog.table(wire.do, self.access.names, name)

    async def view(self, name: str, most: int) -> ViewFacts:
        """The statement that defines a view, and at most this many of its rows."""
        async with self._sessions.lent() as wire:
            definition = await catalog.view(wire.do, self.access.names, name)
        return ViewFacts(definition=definition, rows=await self.first_rows(name, most) if most else None)

    async def first_rows(self, name: str, most: int) -> Rows:
        """Rows of a table or view, in whatever order it has."""
        schema, table = catalog.parts(self.access.names, name)
        return await self.query(f"SELECT * FROM {catalog.quoted(schema, table)}", most)  # noqa: S608 - the guard reads it

    async def test(self) -> str:
        """Return what answers, as whom it is read, and how much is open, in a sentence or two."""
        names = self.access.names
        async with self._sessions.lent() as wire:
            grants = [str(row[0]) for row in await wire.do("SHOW GRANTS")]
            found = await catalog.tables(wire.do, names, "")
            seen = {str(row[0]) for row in await wire.do("SHOW SCHEMAS")}
            version = wire.version
        schemas = {*names.schemas, *(schema for schema, _ in names.tables)}
        if missing := sorted(schemas - seen):
            named = ", ".join(repr(schema) for schema in missing)
            raise ServiceDown(f"{version} answers, but {named} is not there, or its account may not see it.")
        extra = beyond_reading(grants)
        rights = f"its account may do more than read ({extra}), and is used all the same" if extra else "reading only"
        text = f"{version} answers; {rights}; {_count(len(found), 'table')} in {_count(len(schemas), 'schema')}."
        if not found:
            text += " Nothing is seen there: look at the names, and at what is granted to the account."
        if reads_everything(grants):
            text += " The account may read every schema of the server; one that may read only these is safer."
        return text

    async def close(self) -> None:
        """Close what is open."""
        self._sessions.close()

    async def _checked(self, sql: str, most: int) -> "Checked":
        guard = await asyncio.to_thread(scan.load, "cortex.integrations.aether_db.guard")
        checked: Checked = await asyncio.to_thread(guard.check, sql, self.access.names, most)
        return checked

    async def _check_cost(self, wire: "Wire", sql: str) -> None:
        async with wire.cursor() as cursor:
            await cursor.execute(f"EXPLAIN FORMAT=TRADITIONAL {sql}")
            names = [column[0] for column in cursor.description]
            plan = [_line(names, row) for row in await cursor.fetchall()]
        rows, limit = looked_at(plan), self.access.limits.scan_rows
        if rows > limit:
            largest = max(plan, key=lambda line: int(line["rows"]) if line.get("rows", "").isdecimal() else 0)
            raise ToolFailed(
                f"The statement would look at about {rows:,} rows (at most {limit:,} are allowed), most in "
                f"{largest.get('table') or 'one table'}: narrow it by WHERE on an indexed column, or join on one."
            )

    async def _read(
        self, wire: "Wire", sql: str, most: int
    ) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], bool]:
        """The columns and rows as they come, no more than are wanted; whether there was more."""
        driver = scan.load("cortex.integrations.aether_db.wire")
        wire.left_bytes = self.access.limits.size_bytes
        cursor = await wire.cursor(driver.STREAMED)
        columns: tuple[str, ...] = ()
        rows: list[tuple[str, ...]] = []
        try:
            await cursor.execute(sql)
            columns = tuple(column[0] for column in cursor.description or ())
            while (row := await cursor.fetchone()) is not None:
                if len(rows) == most:
                    wire.abandon()
                    return columns, tuple(rows), True
                rows.append(as_row(row))
        except driver.ProgrammingError as error:
            if error.args[0] != driver.NO_SUCH_TABLE:
                raise
            name = str(error.args[1]).partition("'")[2].partition("'")[0]
            raise await catalog.unknown(wire.do, self.access.names, name) from None
        except driver.TooMuch:
            wire.abandon()
            if not rows:
                raise ToolFailed(
                    "One row alone is too large to read: choose fewer columns, or LEFT(column, 200)."
                ) from None
            return columns, tuple(rows), True
        return columns, tuple(rows), False


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _line(names: Sequence[str], row: Sequence[Any]) -> Mapping[str, str]:
    return {name: "" if value is None else str(value) for name, value in zip(names, row, strict=True)}


CAP = 10**18
ANEW = ("DEPENDENT", "UNCACHEABLE", "LATERAL")  # SUBQUERY, UNION or DERIVED behind it, by server and version


def looked_at(plan: Sequence[Mapping[str, str]]) -> int:
    """The rows that the plan reads: those of joined tables multiplied, those of the parts added up.

    A part that is run anew for each row of the one before counts as often as that one has rows.
    """
    products: dict[str, int] = {}
    repeated: set[str] = set()
    for line in plan:
        part = line.get("id", "")
        if line.get("select_type", "").upper().startswith(ANEW):
            repeated.add(part)
        products[part] = min(products.get(part, 1) * _rows(line), CAP)
    outer = max((rows for part, rows in products.items() if part not in repeated), default=1)
    return min(sum(rows * (outer if part in repeated else 1) for part, rows in products.items()), CAP)


def _rows(line: Mapping[str, str]) -> int:
    text = line.get("rows", "")
    return max(int(text), 1) if text.isdecimal() else 1


NULL = "NULL"
BYTES_SHOWN = 32


def as_row(values: Sequence[str | bytes | None]) -> tuple[str, ...]:
    """A row's cells."""
    return tuple(as_text(value) for value in values)


def as_text(value: str | bytes | None) -> str:
    """A cell: numbers, dates and JSON come as the server's own text already."""
    if value is None:
        return NULL
    if isinstance(value, str):
        return value
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return _hex(value)
    return text if all(sign.isprintable() or sign in "\n\r\t" for sign in text) else _hex(value)


def _hex(value: bytes) -> str:
    more = f"... ({len(value)} bytes)" if len(value) > BYTES_SHOWN else ""
    return f"0x{value[:BYTES_SHOWN].hex()}{more}"
