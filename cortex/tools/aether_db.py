"""The Aether database, to be read only: query, describe, views. The guard and the account stand behind the port."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

from msgspec.structs import replace
from pydantic import Field

from cortex.base.csv_text import csv_text
from cortex.base.errors import CortexError, ToolFailed
from cortex.base.ids import derived_id
from cortex.integrations.files import WRITE_BYTES, Files
from cortex.ports.aether import AetherDatabase, Rows, TableFacts
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.stretch import RESULT_CHARACTERS

SUMMARY = "SQL database, read only"
PREFIXES = ("ae_db_",)
NEEDS = ("AetherDatabase",)
ROLES = {"orchestrator": ("aether_db",)}
TESTED = "MariaDB 10.11, unpacked and started by the tests"
SQL_CHARACTERS = 8_000
ROWS_MOST = 100
ROWS_SAVED = 2_000
CELL_CHARACTERS = 120
NAMES_SHOWN = 100
FOLDER = "query-results"


def _statement(sql: str) -> str:
    statement = sql.strip().rstrip(";").strip()
    if not 0 < len(statement) <= SQL_CHARACTERS:
        raise ToolFailed(f"A statement has 1 to {SQL_CHARACTERS} characters.")
    return statement


async def _can_query(ctx: Ctx, sql: str, limit: int, database: str) -> None:
    await ctx.use(AetherDatabase).check(sql=_statement(sql), database=database, role=ctx.role)


async def _can_describe(ctx: Ctx, table: str, query: str, database: str) -> None:
    await ctx.use(AetherDatabase).check(table=table.strip(), database=database, role=ctx.role)


async def _can_show_view(ctx: Ctx, view: str, rows: int, database: str) -> None:
    await ctx.use(AetherDatabase).check(table=view.strip(), database=database, role=ctx.role)


@tool(
    words="Query the database[ {database}]: {sql}",
    risk="medium",
    effect="read",
    reads_private=True,
    reads_untrusted=True,
    check=_can_query,
)
async def ae_db_query(
    ctx: Ctx, sql: str, limit: Annotated[int, Field(ge=1, le=ROWS_MOST)] = 30, database: str = ""
) -> str:
    """Read the SQL database with one SELECT, SHOW or DESCRIBE.

    Args:
        sql: The statement, MariaDB dialect.
        limit: Most rows to show.
        database: Its name, when there are several.
    """
    rows = await ctx.use(AetherDatabase).query(_statement(sql), ROWS_SAVED, database=database, role=ctx.role)
    shown = replace(rows, rows=rows.rows[:limit], is_cut=rows.is_cut or len(rows.rows) > limit)
    text, count = _table(shown)
    return text if count == len(rows.rows) else f"{text}\n{await _saved(ctx, rows)}"


@tool(
    words="Look at the tables of the database[ {database}][: {table}][, for {query}]",
    risk="medium",
    effect="read",
    reads_private=True,
    reads_untrusted=True,
    check=_can_describe,
)
async def ae_db_describe(ctx: Ctx, table: str = "", query: str = "", database: str = "") -> str:
    """List the tables of the SQL database, or describe one.

    Args:
        table: Whose columns to show; empty lists the tables.
        query: Words in the tables' names.
        database: Its name, when there are several.
    """
    port = ctx.use(AetherDatabase)
    if table.strip():
        facts = await port.table(table.strip(), database=database, role=ctx.role)
        lines = [_named(facts), *(f"- {column}" for column in facts.columns)]
        lines += [f"index: {index}" for index in facts.indexes]
        lines += [f"key: {key}" for key in facts.keys]
        return "\n".join(lines)[:RESULT_CHARACTERS]
    return _names(await port.tables(query.strip(), database=database, role=ctx.role))


@tool(
    words="Look at a database view[: {view}]",
    risk="medium",
    effect="read",
    reads_private=True,
    reads_untrusted=True,
    check=_can_show_view,
)
async def ae_db_show_view(
    ctx: Ctx, view: str = "", rows: Annotated[int, Field(ge=0, le=ROWS_MOST)] = 10, database: str = ""
) -> str:
    """Show a view of the SQL database, its SQL and rows, or list the views.

    Args:
        view: Its name; empty lists the views.
        rows: How many rows to show.
        database: Its name, when there are several.
    """
    port = ctx.use(AetherDatabase)
    if not view.strip():
        return _names([one for one in await port.tables("", database=database, role=ctx.role) if one.kind == "view"])
    facts = await port.view(view.strip(), rows, database=database, role=ctx.role)
    shown = _table(facts.rows)[0] if facts.rows else ""
    return f"{facts.definition[:RESULT_CHARACTERS]}\n{shown}".rstrip()


def _named(facts: TableFacts) -> str:
    comment = f": {facts.comment}" if facts.comment else ""
    return f"{facts.name} ({facts.kind}{f', about {facts.rows:,} rows' if facts.rows is not None else ''}){comment}"


def _names(found: Sequence[TableFacts]) -> str:
    lines = [f"- {_named(one)}" for one in found[:NAMES_SHOWN]]
    if len(found) > NAMES_SHOWN:
        lines.append(f"... and {len(found) - NAMES_SHOWN} more: narrow it by query.")
    return "\n".join(lines) or "Nothing fits, or no schema is open to you; an admin decides which are."


def _table(rows: Rows) -> tuple[str, int]:
    """The rows as lines with bars, cut where the text grows too long, with what was left out said; how many fit."""
    if not rows.rows:
        return f"No row ({', '.join(rows.columns)}).", 0
    lines, size = [" | ".join(rows.columns)], 0
    for row in rows.rows:
        line = " | ".join(" ".join(value.split())[:CELL_CHARACTERS] for value in row)
        size += len(line)
        if size > RESULT_CHARACTERS:
            fit = len(lines) - 1
            return "\n".join([*lines, f"[only {fit} of the rows fit: ask for fewer columns or rows]"]), fit
        lines.append(line)
    more = "; there are more: raise limit or narrow it" if rows.is_cut else ""
    count = f"[{len(rows.rows)} row{'' if len(rows.rows) == 1 else 's'} in {rows.took_ms} ms{more}]"
    return "\n".join([*lines, count]), len(rows.rows)


async def _saved(ctx: Ctx, rows: Rows) -> str:
    """Put all rows that were read into the user's files as CSV; where they are. A call run again writes them anew."""
    path = f"{FOLDER}/{derived_id(ctx.call_id)[:12]}.csv"
    data, kept = await asyncio.to_thread(_csv_bytes, rows)
    try:
        await ctx.use(Files).write(path, data)
    except CortexError as error:
        return f"[the whole result could not be kept as a file: {error.message}]"
    which = "all" if kept == len(rows.rows) and not rows.is_cut else "the first"
    link = f"/databases/result?name={path.rpartition('/')[2]}"
    return f"[{which} {kept:,} rows as CSV: {path}, download at {link}]"


def _csv_bytes(rows: Rows) -> tuple[bytes, int]:
    """The CSV with as many of the rows as a file may hold, and how many these are."""
    kept = list(rows.rows)
    while len(data := csv_text(rows.columns, kept).encode()) > WRITE_BYTES and kept:
        kept = kept[: min(len(kept) * WRITE_BYTES // len(data), len(kept) - 1)]
    return data, len(kept)
