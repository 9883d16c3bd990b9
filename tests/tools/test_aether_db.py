"""The database from the chat: tables, views and rows in short text; what the guard refuses is said."""

import re
import sqlite3
from collections.abc import Iterator, Sequence

import pytest
from pydantic import ValidationError

from cortex.base.errors import ToolFailed
from cortex.base.user import User
from cortex.ports.aether import AetherDatabase, Rows, TableFacts, ViewFacts
from tests.tool_world import World


class LiteDatabase:
    """A real database with the rules of the real port: one reading statement, a limit, names checked."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:")
        self.connection.executescript(
            "create table members (id integer, name text, note text);"
            "insert into members values (1, 'Ada', 'x'), (2, 'Bo', null), (3, 'Cy', 'a\nb');"
            "create view active_members as select id, name from members where id < 3;"
        )
        self.asked: list[str] = []

    async def check(self, *, sql: str = "", table: str = "", database: str = "", role: str = "") -> None:
        if database:
            raise ToolFailed(f"There is no database {database!r}. Known: shop.")
        if sql and (not re.match(r"(?i)(select|show|describe)\b", sql) or ";" in sql):
            raise ToolFailed("Only one reading statement is run here: SELECT, SHOW or DESCRIBE.")

    async def query(self, sql: str, most: int, *, database: str = "", role: str = "") -> Rows:
        self.asked.append(sql)
        await self.check(sql=sql, database=database)
        try:
            cursor = self.connection.execute(sql)
        except sqlite3.Error as error:
            raise ToolFailed(f"The database refused it: {error}.") from error
        rows = cursor.fetchmany(most + 1)
        cells = tuple(tuple("NULL" if cell is None else str(cell) for cell in row) for row in rows[:most])
        names = tuple(column[0] for column in cursor.description)
        return Rows(columns=names, rows=cells, is_cut=len(rows) > most, took_ms=2)

    async def tables(self, words: str, *, database: str = "", role: str = "") -> Sequence[TableFacts]:
        rows = self.connection.execute("select name, type from sqlite_master order by name").fetchall()
        return [TableFacts(name=name, kind=kind) for name, kind in rows if words in name]

    async def table(self, name: str, *, database: str = "", role: str = "") -> TableFacts:
        known = {one.name: one for one in await self.tables("")}
        if name not in known:
            raise ToolFailed(f"There is no table {name!r}. Near: {', '.join(known)}.")
        columns = self.connection.execute(f"pragma table_info({name})").fetchall()
        return TableFacts(
            name=name,
            kind=known[name].kind,
            rows=3,
            comment="who is in",
            columns=tuple(f"{c[1]} {c[2]}" for c in columns),
            indexes=("PRIMARY (id) unique",),
            keys=("town_id -> towns (id)",),
        )

    async def view(self, name: str, most: int, *, database: str = "", role: str = "") -> ViewFacts:
        (text,) = self.connection.execute("select sql from sqlite_master where name = ?", (name,)).fetchone()
        rows = await self.query(f"select * from {name}", most) if most else None  # noqa: S608 - sqlite knew the name
        return ViewFacts(definition=str(text), rows=rows)


class SlowDatabase(LiteDatabase):
    async def query(self, sql: str, most: int, *, database: str = "", role: str = "") -> Rows:
        raise ToolFailed("The statement took longer than 5 seconds and was stopped.")


@pytest.fixture
def database(world: World) -> Iterator[LiteDatabase]:
    made = LiteDatabase()
    world.wired[AetherDatabase] = made
    yield made
    made.connection.close()


async def test_rows_are_shown_with_how_many_there_are(world: World, ann: User, database: LiteDatabase) -> None:
    text = await world.text(ann, "ae_db_query", sql=" select name, note from members order by id; ")
    assert text.splitlines() == ["name | note", "Ada | x", "Bo | NULL", "Cy | a b", "[3 rows in 2 ms]"]
    (statement,) = database.asked
    assert (statement.startswith("select"), statement.endswith("by id")) == (True, True), (
        "without the blanks and the end sign"
    )


@pytest.mark.usefixtures("database")
async def test_a_limit_cuts_and_says_so(world: World, ann: User) -> None:
    text = await world.text(ann, "ae_db_query", sql="select 1 from members", limit=1)
    assert ("[1 row in" in text, "there are more" in text) == (True, True)
    empty = await world.text(ann, "ae_db_query", sql="select id, name from members where id > 9")
    assert "(id, name)" in empty


@pytest.mark.usefixtures("database")
async def test_a_wide_result_stays_a_short_text(world: World, ann: User) -> None:
    wide = ", ".join(["hex(zeroblob(200))"] * 30)
    text = await world.text(ann, "ae_db_query", sql=" ".join(["select", wide, "from members"]))
    assert "1 of the rows" in text
    assert "[all 3 rows as CSV: query-results/" in text
    assert len(text) < 5_000


@pytest.mark.usefixtures("database")
async def test_what_is_not_shown_is_kept_as_a_file(world: World, ann: User) -> None:
    ctx = world.ctx(ann, call_id="one-call")
    text = (await world.run(ctx, "ae_db_query", sql="select id, '=1+1' as note from members", limit=2)).text
    path = text.rpartition("CSV: ")[2].partition(",")[0]
    name = path.rpartition("/")[2]
    assert f"/databases/result?name={name}]" in text
    own = world.homes.root / ann.id / "files"
    assert (own / path).read_bytes() == b"id,note\r\n1,'=1+1\r\n2,'=1+1\r\n3,'=1+1\r\n"
    again = await world.run(ctx, "ae_db_query", sql="select id, '=1+1' as note from members", limit=2)
    assert again.text == text
    assert len(list((own / "query-results").iterdir())) == 1
    await world.text(ann, "ae_db_query", sql="select id from members")
    assert len(list((own / "query-results").iterdir())) == 1


@pytest.mark.usefixtures("database")
async def test_a_file_holds_as_many_rows_as_fit(world: World, ann: User) -> None:
    wide = "select hex(zeroblob(300000)) as wide from members"
    assert "first 1 rows" in await world.text(ann, "ae_db_query", sql=wide, limit=1)


@pytest.mark.usefixtures("database")
async def test_an_unknown_database_is_said(world: World, ann: User) -> None:
    with pytest.raises(ToolFailed, match=r"no database 'pub'\. Known: shop"):
        await world.text(ann, "ae_db_query", sql="select 1", database="pub")


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("delete from members", "Only one reading statement"),
        ("select 1; drop table members", "Only one reading statement"),
        ("select id from nowhere", "no such table"),
        (" ; ", "1 to 8000"),
        ("select " + "x" * 8_000, "1 to 8000"),
    ],
    ids=["write", "two", "unknown", "empty", "long"],
)
async def test_what_is_refused_says_why(world: World, ann: User, sql: str, says: str) -> None:
    with pytest.raises(ToolFailed, match=says):
        await world.text(ann, "ae_db_query", sql=sql)


@pytest.mark.usefixtures("database")
async def test_wrong_arguments_run_nothing(world: World, ann: User) -> None:
    for arguments in ({}, {"sql": "select 1", "limit": 1_000}):
        with pytest.raises(ValidationError):
            await world.text(ann, "ae_db_query", **arguments)


@pytest.mark.usefixtures("database")
async def test_tables_are_listed_and_described(world: World, ann: User) -> None:
    listed = await world.text(ann, "ae_db_describe")
    assert listed.splitlines() == ["- active_members (view)", "- members (table)"]
    assert await world.text(ann, "ae_db_describe", query="active") == "- active_members (view)"
    none = await world.text(ann, "ae_db_describe", query="dragon")
    assert ("members" in none, "no schema" in none) == (False, True)
    text = await world.text(ann, "ae_db_describe", table="members")
    assert [line[:10] for line in text.splitlines()[:2]] == ["members (t", "- id INTEG"]
    assert ("about 3 rows" in text, "who is in" in text) == (True, True)
    assert text.splitlines()[-2:] == ["index: PRIMARY (id) unique", "key: town_id -> towns (id)"]
    with pytest.raises(ToolFailed, match="Near: active_members, members"):
        await world.text(ann, "ae_db_describe", table="member")


@pytest.mark.usefixtures("database")
async def test_a_view_is_shown_with_its_statement_and_rows(world: World, ann: User) -> None:
    assert (await world.text(ann, "ae_db_show_view")).splitlines() == ["- active_members (view)"]
    text = await world.text(ann, "ae_db_show_view", view="active_members")
    assert text.startswith("CREATE VIEW active_members")
    assert "Bo" in text
    without = await world.text(ann, "ae_db_show_view", view="active_members", rows=0)
    assert "Bo" not in without


@pytest.mark.usefixtures("database")
async def test_rows_are_marked_as_from_outside(world: World) -> None:
    names = ("ae_db_query", "ae_db_describe", "ae_db_show_view")
    assert all(world.registry.tools[name].reads_untrusted for name in names)
    assert all(world.registry.tools[name].effect == "read" for name in names)


async def test_a_slow_database_is_said(world: World, ann: User) -> None:
    slow = SlowDatabase()
    world.wired[AetherDatabase] = slow
    with pytest.raises(ToolFailed, match="longer than 5 seconds"):
        await world.text(ann, "ae_db_query", sql="select 1")
    slow.connection.close()
