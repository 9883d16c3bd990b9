"""The databases that are open to this person: tables, columns, first rows, and a box for one reading statement."""

from collections.abc import Sequence
from urllib.parse import quote

from fastapi.responses import Response

from cortex.base.csv_text import csv_text
from cortex.base.errors import ToolFailed
from cortex.ports.aether import Rows, TableFacts
from cortex.services.integrations.browsed_databases import BrowsedDatabases, BrowsedTable
from web.deps import Text
from web.errors import not_found
from web.render import MORE, Context, NavEntry, described
from web.routes import PageRouter
from web.visit import UserVisit, Visit

router = PageRouter()
HREF = "/databases"
NAV = NavEntry(
    title="Databases",
    href=HREF,
    icon="table",
    order=32,
    under=MORE,
    about="Ask and read the databases that an admin connected.",
    port="AetherDatabase",
)
ROWS_SHOWN = 100
FIRST_ROWS = 20
TABLES_SHOWN = 500
SQL_CHARACTERS = 8_000
CSV = "text/csv; charset=utf-8"


class DatabasesContext(Context, frozen=True, kw_only=True):
    """One database."""

    names: Sequence[str] = described("the databases that this person may read")
    database: str = described("the one that is shown")
    words: str = described("what the tables are filtered by", default="")
    tables: Sequence[TableFacts] = described("its open tables and views", default=())
    facts: TableFacts | None = described("the table that is shown, with its columns", default=None)
    definition: str = described("the statement of the view that is shown", default="")
    rows: Rows | None = described("first rows of the table, or what the statement answered", default=None)
    sql: str = described("the statement as it was typed", default="")
    rows_shown: int = described("how many rows the page shows; the file has them all", default=ROWS_SHOWN)


@router.get(HREF)
async def show(visit: UserVisit, db: str = "", table: str = "", q: str = "") -> Response:
    """The tables of a database, or one table with its columns and first rows."""
    databases, names, name = await _opened(visit, db)
    tables: Sequence[TableFacts] = ()
    shown: BrowsedTable | None = None
    error = ""
    try:
        if names and table:
            shown = await databases.table(table, FIRST_ROWS, database=name)
        elif names:
            tables = (await databases.tables(q, database=name))[:TABLES_SHOWN]
    except ToolFailed as failed:
        error = failed.message
    context = DatabasesContext(
        names=names,
        database=name,
        words=q,
        tables=tables,
        facts=shown.facts if shown else None,
        definition=shown.definition if shown else "",
        rows=shown.rows if shown else None,
        error=error,
    )
    return await visit.show("databases.html", context)


@router.post(HREF + "/query")
async def query(visit: UserVisit, sql: Text = "", db: Text = "") -> Response:
    """The rows of one reading statement."""
    databases, names, name = await _opened(visit, db)
    try:
        rows = await databases.ask(_short_enough(sql), ROWS_SHOWN, database=name)
    except ToolFailed as failed:
        return await _refused(visit, names, name, sql, failed)
    context = DatabasesContext(names=names, database=name, rows=rows, sql=sql)
    return await visit.show("databases.html", context)


@router.post(HREF + "/query.csv")
async def download(visit: UserVisit, sql: Text = "", db: Text = "") -> Response:
    """The same as a file, up to the limit of the database's card."""
    databases, names, name = await _opened(visit, db)
    try:
        rows = await databases.ask(_short_enough(sql), ROWS_SHOWN * ROWS_SHOWN, database=name)
    except ToolFailed as failed:
        return await _refused(visit, names, name, sql, failed)
    return _file(f"{name}.csv", csv_text(rows.columns, rows.rows))


@router.get(HREF + "/result")
async def result(visit: UserVisit, name: str = "") -> Response:
    """A result that a tool kept as a file, of this person's own."""
    return _file(name, await visit.services.databases(visit.user.id).result(name))


async def _opened(visit: Visit, wanted: str) -> tuple[BrowsedDatabases, Sequence[str], str]:
    """This person's databases and the one that is meant, "" where none is open; NotFound for one that is not."""
    databases = visit.services.browsed_databases(visit.user.id)
    names = await databases.names()
    await visit.services.end_view()  # the database may take its time
    if wanted and wanted not in names:
        raise not_found()
    return databases, names, wanted or (names[0] if names else "")


def _short_enough(sql: str) -> str:
    """ToolFailed for a statement that is longer than the tool would take."""
    if len(sql) > SQL_CHARACTERS:
        raise ToolFailed(f"At most {SQL_CHARACTERS:,} characters per statement; this one has {len(sql):,}.")
    return sql


async def _refused(visit: Visit, names: Sequence[str], name: str, sql: str, failed: ToolFailed) -> Response:
    """The page with the statement as it was typed, and why it was not answered."""
    context = DatabasesContext(
        names=names,
        database=name,
        sql=sql,
        error=failed.message,
    )
    return await visit.show("databases.html", context, status=422)


def _file(name: str, text: str) -> Response:
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    headers = {"Content-Disposition": disposition, "X-Content-Type-Options": "nosniff"}
    return Response(text, media_type=CSV, headers=headers)
