"""The Aether database, to be read only: query, describe, views. The guard and the account stand behind the port."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from cortex.base.errors import ToolFailed
from cortex.ports.aether import AetherDatabase, Rows, TableFacts
from cortex.toolkit.context import Ctx
from cortex.toolkit.decorator import tool
from cortex.toolkit.examples import examples_for
from cortex.toolkit.spec import TriggerPhrase
from cortex.toolkit.stretch import RESULT_CHARACTERS

SUMMARY = "SQL database, read only"
PREFIXES = ("ae_db_",)
NEEDS = ("AetherDatabase",)
SQL_CHARACTERS = 8_000
ROWS_MOST = 100
CELL_CHARACTERS = 120
NAMES_SHOWN = 100


@tool(risk="medium", effect="read", reads_private=True, reads_untrusted=True)
async def ae_db_query(ctx: Ctx, sql: str, limit: Annotated[int, Field(ge=1, le=ROWS_MOST)] = 30) -> str:
    """Read the SQL database with one SELECT, SHOW or DESCRIBE.

    Args:
        sql: The statement, MariaDB dialect.
        limit: Most rows to show.
    """
    statement = sql.strip().rstrip(";").strip()
    if not 0 < len(statement) <= SQL_CHARACTERS:
        raise ToolFailed(f"A statement has 1 to {SQL_CHARACTERS} characters.")
    return _table(await ctx.use(AetherDatabase).query(statement, limit))


@tool(risk="medium", effect="read", reads_private=True, reads_untrusted=True)
async def ae_db_describe(ctx: Ctx, table: str = "", query: str = "") -> str:
    """List the tables of the SQL database, or describe one.

    Args:
        table: Whose columns to show; empty lists the tables.
        query: Words in the tables' names.
    """
    database = ctx.use(AetherDatabase)
    if table.strip():
        facts = await database.table(table.strip())
        return "\n".join([_named(facts), *(f"- {column}" for column in facts.columns)])
    return _names(await database.tables(query.strip()))


@tool(risk="medium", effect="read", reads_private=True, reads_untrusted=True)
async def ae_db_show_view(ctx: Ctx, view: str = "", rows: Annotated[int, Field(ge=0, le=ROWS_MOST)] = 10) -> str:
    """Show a view of the SQL database, its SQL and rows, or list the views.

    Args:
        view: Its name; empty lists the views.
        rows: How many rows to show.
    """
    database = ctx.use(AetherDatabase)
    if not view.strip():
        return _names([one for one in await database.tables("") if one.kind == "view"])
    facts = await database.table(view.strip())
    definition = await database.view(facts.name)
    shown = f"\n{_table(await database.first_rows(facts.name, rows))}" if rows else ""
    return f"{definition[:RESULT_CHARACTERS]}{shown}"


def _named(facts: TableFacts) -> str:
    return f"{facts.name} ({facts.kind}{f', about {facts.rows:,} rows' if facts.rows is not None else ''})"


def _names(found: Sequence[TableFacts]) -> str:
    lines = [f"- {_named(one)}" for one in found[:NAMES_SHOWN]]
    if len(found) > NAMES_SHOWN:
        lines.append(f"... and {len(found) - NAMES_SHOWN} more: narrow it by query.")
    return "\n".join(lines) or "Nothing fits, or no schema is open to you; an admin decides which are."


def _table(rows: Rows) -> str:
    """The rows as lines with bars, cut where the text grows too long, with what was left out said."""
    if not rows.rows:
        return f"No row ({', '.join(rows.columns)})."
    lines, size = [" | ".join(rows.columns)], 0
    for row in rows.rows:
        line = " | ".join(" ".join(value.split())[:CELL_CHARACTERS] for value in row)
        size += len(line)
        if size > RESULT_CHARACTERS:
            return "\n".join([*lines, f"[only {len(lines) - 1} of the rows fit: ask for fewer columns or rows]"])
        lines.append(line)
    more = "; there are more: raise limit or narrow it" if rows.is_cut else ""
    count = f"[{len(rows.rows)} row{'' if len(rows.rows) == 1 else 's'} in {rows.took_ms} ms{more}]"
    return "\n".join([*lines, count])


PHRASES = (
    TriggerPhrase(text="sql", weight=0.8, unless=("explain sql", "learn sql", "sql injection", "write me a sql")),
    TriggerPhrase(
        text="database", weight=0.9, unless=("explain", "what is a database", "cortex database", "design a database")
    ),
    TriggerPhrase(text="mariadb", weight=1.1, unless=("install mariadb",)),
    TriggerPhrase(text="mysql", weight=1.0, unless=("install mysql", "mysql or")),
    TriggerPhrase(text="select from", weight=0.8, tools=("ae_db_query",)),
    TriggerPhrase(text="run a query", weight=1.1, tools=("ae_db_query",)),
    TriggerPhrase(text="run this query", weight=1.2, tools=("ae_db_query",)),
    TriggerPhrase(text="query the", weight=0.9, tools=("ae_db_query",)),
    TriggerPhrase(text="how many rows", weight=1.0, tools=("ae_db_query", "ae_db_describe")),
    TriggerPhrase(
        text="in the table", weight=0.7, tools=("ae_db_query", "ae_db_describe"), unless=("markdown", "word")
    ),
    TriggerPhrase(text="which tables", weight=1.1, tools=("ae_db_describe",)),
    TriggerPhrase(text="what tables", weight=1.1, tools=("ae_db_describe",)),
    TriggerPhrase(text="describe the table", weight=1.2, tools=("ae_db_describe",)),
    TriggerPhrase(
        text="columns of", weight=0.8, tools=("ae_db_describe",), unless=("csv", "excel", "spreadsheet", "greek")
    ),
    TriggerPhrase(
        text="schema", weight=0.7, tools=("ae_db_describe",), unless=("json schema", "color schema", "xml schema")
    ),
    TriggerPhrase(
        text="the view", weight=0.6, tools=("ae_db_show_view",), unless=("from the window", "mountain", "balcony")
    ),
    TriggerPhrase(text="show view", weight=1.2, tools=("ae_db_show_view",)),
    TriggerPhrase(text="show the view", weight=1.2, tools=("ae_db_show_view",)),
    TriggerPhrase(text="definition of the view", weight=1.3, tools=("ae_db_show_view",)),
)

EXAMPLES = examples_for(__file__)
