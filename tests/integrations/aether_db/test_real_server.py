"""On a real MariaDB: honest statements answer with their rows, each layer refuses by itself, failures are sentences."""

import asyncio
import warnings
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace

from cortex.base.errors import ServiceDown, ToolFailed
from cortex.integrations.aether_db.database import ReadOnlyDatabase, as_row
from cortex.integrations.aether_db.open_names import OpenNames
from cortex.integrations.aether_db.sessions import Sessions
from tests.mariadb import MariaServer
from tests.patience import PATIENCE_S
from tests.shop import access_to, answered, statements

HONEST = statements("honest.txt")
REFUSED = statements("refused.txt")
LONG = " JOIN ".join(f"information_schema.columns c{number}" for number in range(6))


@pytest.fixture
async def database(shop: MariaServer) -> AsyncIterator[ReadOnlyDatabase]:
    made = ReadOnlyDatabase(access_to(shop))
    yield made
    await made.close()


def directly(server: MariaServer, sql: str) -> list[tuple[str, ...]]:
    """The rows of the text as it stands, to the server's own administrator."""
    with server.root(database="shop", init_command="SET sql_mode = ''") as connection:
        connection.decoders = {}
        cursor = connection.cursor()
        cursor.execute(sql)
        return [as_row(row) for row in cursor.fetchall()]


def fingerprint(server: MariaServer) -> list[tuple[str, ...]]:
    """All that a statement could have changed."""
    tables = [
        ".".join(row)
        for row in directly(
            server,
            "SELECT table_schema, table_name FROM information_schema.tables "
            "WHERE table_schema IN ('shop', 'club', 'old', 'secret') AND table_type = 'BASE TABLE' ORDER BY 1, 2",
        )
    ]
    return [
        *directly(server, f"CHECKSUM TABLE {', '.join(tables)}"),
        *directly(server, "SHOW DATABASES"),
        *directly(server, "SELECT User, Host, Priv FROM mysql.global_priv ORDER BY 1, 2"),
        *directly(server, "SHOW GLOBAL VARIABLES LIKE 'general_log%'"),
        *directly(server, "SELECT routine_name FROM information_schema.routines ORDER BY 1"),
    ]


@pytest.mark.parametrize("heading", sorted({heading for heading, _ in HONEST}))
async def test_honest_statements_answer_with_their_rows(
    shop: MariaServer, database: ReadOnlyDatabase, heading: str
) -> None:
    for _, sql in [each for each in HONEST if each[0] == heading]:
        rows = await database.query(sql, 100)
        assert (sql, [*rows.rows]) == (sql, directly(shop, sql))
        assert not rows.is_cut


async def test_nothing_that_must_not_pass_reaches_the_server(shop: MariaServer, database: ReadOnlyDatabase) -> None:
    before = fingerprint(shop)
    count = shop.run("SHOW GLOBAL STATUS LIKE 'Connections'")
    for _, sql in REFUSED:
        with pytest.raises(ToolFailed):
            await database.query(sql, 10)
    assert shop.run("SHOW GLOBAL STATUS LIKE 'Connections'")[0][1] == str(int(count[0][1]) + 1)
    assert fingerprint(shop) == before


SLOW = ("SLEEP", "BENCHMARK", "_WAIT", "GET_LOCK")  # they would only wait; the limit of a statement ends them
SERVER_ITSELF = (
    "SHUTDOWN",
    "RESTART",
    "KILL",
    "RESET",
    "FLUSH",
    "SET GLOBAL",
    "BACKUP",
    "CACHE INDEX",
    "PURGE",
    "BINLOG",
    "CHANGE MASTER",
    "START SLAVE",
    "STOP SLAVE",
    "INSTALL",
    "UNINSTALL",
    "SET PASSWORD",
    "SET DEFAULT",
)


async def run_raw(sessions: Sessions, sql: str) -> str:
    """What the server says to the text in one of our sessions, the guard left out; "" when it runs."""
    try:
        async with sessions.lent() as wire:
            await wire.do(sql)
    except ToolFailed as error:
        return error.message
    return ""


def is_for_the_layers(sql: str, *, is_writer: bool) -> bool:
    """Whether it can be tried with the guard off: what only waits, or ends the server itself, is not."""
    ends = sql.upper().startswith(SERVER_ITSELF) or "OUTFILE" in sql or "DUMPFILE" in sql
    return not any(word in sql.upper() for word in SLOW) and not (is_writer and ends)


@pytest.mark.parametrize("user", ["reader", "writer"])
async def test_behind_the_guard_the_account_and_the_transaction_refuse(shop: MariaServer, user: str) -> None:
    """With the guard off: the account that may only read, and the READ ONLY transaction of one that may do anything."""
    access = replace(access_to(shop, statement_s=0.3), is_trusted=True)
    if user == "writer":
        access = replace(access, user="writer", password="may-do-anything")
    before = fingerprint(shop)
    sessions = Sessions(access)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the driver, about warnings of the server
        for _, sql in REFUSED:
            if is_for_the_layers(sql, is_writer=user == "writer"):
                await run_raw(sessions, sql)
    sessions.close()
    assert fingerprint(shop) == before


async def test_a_table_is_described_with_keys_and_comments(database: ReadOnlyDatabase) -> None:
    assert [facts.name for facts in await database.tables("")] == [
        "club.events",
        "old.kept",
        "active_members",
        "items",
        "members",
        "orders",
    ]
    assert [facts.name for facts in await database.tables("who")] == ["members"]
    members = await database.table("members")
    assert members.comment == "who is in"
    assert members.columns[1] == "name varchar(40) not null (as on the card)"
    assert members.indexes == ("by_notes (notes)", "by_town (town)", "PRIMARY (id) unique")
    assert (await database.table("shop.orders")).keys == ("member_id -> members (id)",)
    view = await database.view("active_members", 1)
    assert view.definition.startswith("CREATE VIEW `active_members` AS select")
    assert view.rows
    assert (view.rows.columns, view.rows.rows) == (("id", "name"), (("1", "Ada"),))
    assert (await database.view("active_members", 0)).rows is None
    assert (await database.first_rows("old.kept", 1)).rows == (("1", "one"),)


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda one: one.table("member"), "Near: members"),
        (lambda one: one.query("select * from memberz", 5), "Near: members"),
        (lambda one: one.table("secret.salaries"), "not open"),
        (lambda one: one.table("a.b.c"), "write table or schema.table"),
        (lambda one: one.view("members", 5), "no view"),
        (lambda one: one.query("select nope from members", 5), "Unknown column 'nope'"),
        (lambda one: one.query("select repeat('x', 9000000)", 5), "LEFT"),
    ],
)
async def test_what_cannot_be_answered_is_said(database: ReadOnlyDatabase, ask, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ToolFailed, match=says):
        await ask(database)


async def test_what_is_refused_by_itself_is_refused_without_the_server(shop: MariaServer) -> None:
    database = ReadOnlyDatabase(access_to(shop))
    count = shop.run("SHOW GLOBAL STATUS LIKE 'Connections'")
    for refused in ({"sql": "delete from members"}, {"sql": "select * from secret.salaries"}, {"table": "mysql.user"}):
        with pytest.raises(ToolFailed):
            await database.check(**refused)
    await database.check(sql="select * from members", table="club.events")
    assert shop.run("SHOW GLOBAL STATUS LIKE 'Connections'")[0][1] == str(int(count[0][1]) + 1), "that of the count"


async def test_rows_and_bytes_are_capped_while_they_come(shop: MariaServer) -> None:
    database = ReadOnlyDatabase(access_to(shop, rows=100, size_bytes=20_000))
    many = await database.query("select seq from seq_1_to_1000000", 5_000)
    assert (len(many.rows), many.is_cut) == (100, True)
    wide = await database.query("select repeat('x', 5000) from seq_1_to_1000000", 50)
    assert wide.is_cut
    assert 0 < len(wide.rows) < 5
    assert (await database.query("select 1", 5)).rows == (("1",),)
    await database.close()


async def test_a_large_scan_is_refused_before_it_begins(shop: MariaServer) -> None:
    database = ReadOnlyDatabase(access_to(shop, scan_rows=1_000))
    with pytest.raises(ToolFailed, match=r"about 1,000,000 rows .at most 1,000 are allowed., most in .*: narrow it"):
        await database.query("select count(*) from seq_1_to_1000000 where seq like '%7'", 5)
    assert len((await database.query("select seq from seq_1_to_1000000 limit 3", 5)).rows) == 3
    await database.close()


async def test_each_part_of_a_union_that_runs_anew_for_every_row_is_counted_so(shop: MariaServer) -> None:
    database = ReadOnlyDatabase(access_to(shop, scan_rows=1_000_000))
    sql = """
        select count(*) from seq_1_to_1000 o where exists (
            select 1 from members where id = o.seq union all
            select s.seq from seq_1_to_100000 s where s.seq % 7 = o.seq
        )
    """
    with pytest.raises(ToolFailed, match="would look at about 100,"):
        await database.query(sql, 5)
    await database.close()


async def test_a_slow_statement_is_stopped_at_the_server(shop: MariaServer) -> None:
    database = ReadOnlyDatabase(access_to(shop, statement_s=0.3, scan_rows=10**18))
    with pytest.raises(ToolFailed, match=r"longer than 0.3 seconds .*narrow it by WHERE"):
        await database.query("select count(*) from seq_1_to_100000 a, seq_1_to_100000 b where a.seq * b.seq % 7 = 3", 5)
    assert await answered(database, "select 1") == (("1",),)
    await database.close()


async def running(server: MariaServer) -> int:
    rows = await asyncio.to_thread(server.run, "SHOW FULL PROCESSLIST")
    return sum("seq_1_to_100000" in str(row) for row in rows)


async def test_a_stopped_turn_stops_its_statement(shop: MariaServer) -> None:
    database = ReadOnlyDatabase(access_to(shop, statement_s=PATIENCE_S, scan_rows=10**18))
    sql = "select count(*) from seq_1_to_100000 a, seq_1_to_100000 b where a.seq * b.seq % 7 = 3"
    async with asyncio.timeout(PATIENCE_S):
        asking = asyncio.ensure_future(database.query(sql, 5))
        while not await running(shop):  # noqa: ASYNC110 - nobody tells a test
            await asyncio.sleep(0.02)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        while await running(shop):  # noqa: ASYNC110 - nobody tells a test
            await asyncio.sleep(0.02)
    await database.close()


async def test_more_questions_than_connections_wait_their_turn(database: ReadOnlyDatabase) -> None:
    answers = await asyncio.gather(*(database.query(f"select {number}", 1) for number in range(20)))
    assert [rows.rows for rows in answers] == [((str(number),),) for number in range(20)]


async def test_a_connection_that_comes_back_after_the_close_is_closed(shop: MariaServer) -> None:
    """As when an admin changes the card while a statement runs."""
    sessions = Sessions(access_to(shop))
    async with sessions.lent() as wire:
        sessions.close()
        number = wire.thread_id()
        assert await wire.do("SELECT 1") == [("1",)]
    async with asyncio.timeout(PATIENCE_S):
        while number in [row[0] for row in await asyncio.to_thread(shop.run, "SHOW PROCESSLIST")]:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("host", "says"),
    [
        ("0.0.0.0", "leads to 0.0.0.0, which is never allowed. Check the host under Integrations."),  # noqa: S104
        ("::", "leads to ::, which is never allowed"),
        ("no-such-host.invalid", "The network does not know 'no-such-host.invalid'. Check the host under"),
    ],
)
async def test_a_host_goes_through_the_rule_of_every_outgoing_connection(
    shop: MariaServer, host: str, says: str
) -> None:
    """Without the rule 0.0.0.0 reaches the server: tests have no address that is worse."""
    database = ReadOnlyDatabase(replace(access_to(shop), host=host))
    with pytest.raises(ServiceDown) as refused:
        await database.query("select 1", 1)
    assert says in refused.value.message


async def test_a_name_is_looked_up_once_and_that_address_is_reached(shop: MariaServer) -> None:
    sessions = Sessions(replace(access_to(shop), host="localhost"))
    async with sessions.lent() as wire:
        assert wire.host_info == f"socket 127.0.0.1:{shop.port}"
    sessions.close()


async def test_two_statements_in_one_are_refused_by_the_connection_too(shop: MariaServer) -> None:
    sessions = Sessions(access_to(shop))
    assert "SQL syntax" in await run_raw(sessions, "SELECT 1; SELECT 2")
    sessions.close()


async def test_an_account_that_may_write_is_not_used(shop: MariaServer) -> None:
    access = replace(access_to(shop), user="writer", password="may-do-anything")
    database = ReadOnlyDatabase(access)
    with pytest.raises(ToolFailed, match=r"may do more than read .ALL PRIVILEGES on"):
        await database.query("select 1", 1)
    trusted = ReadOnlyDatabase(replace(access, is_trusted=True))
    assert (await trusted.query("select 1", 1)).rows == (("1",),)
    await trusted.close()


async def test_tls_that_is_asked_for_is_never_left_out(shop: MariaServer) -> None:
    database = ReadOnlyDatabase(replace(access_to(shop), tls="verify"))
    with pytest.raises(ToolFailed, match="offers no TLS"):
        await database.query("select 1", 1)


async def test_a_test_says_what_answers(shop: MariaServer, database: ReadOnlyDatabase) -> None:
    text = await database.test()
    assert text.startswith("MariaDB 10.")
    assert ("6 tables" in text, "3 schemas" in text) == (True, True)
    trusted = replace(access_to(shop), user="writer", password="may-do-anything", is_trusted=True)
    everything = ReadOnlyDatabase(trusted)
    assert "may do more than read (ALL PRIVILEGES on *.*), and is used all the same" in (
        said := await everything.test()
    )
    assert "every schema" in said
    await everything.close()
    nothing = ReadOnlyDatabase(replace(access_to(shop), names=OpenNames(tables=(("shop", "no_such_table"),))))
    assert "0 tables" in await nothing.test()
    await nothing.close()


async def test_a_test_names_a_schema_that_is_not_there(shop: MariaServer) -> None:
    wrong = ReadOnlyDatabase(replace(access_to(shop), names=OpenNames(schemas=("shop", "nowhere"))))
    with pytest.raises(ServiceDown, match="answers, but 'nowhere' is not there, or its account may not see it"):
        await wrong.test()
    await wrong.close()
