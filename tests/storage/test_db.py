import asyncio
import sqlite3
import sys
from collections import Counter
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, event, func, inspect, select, text
from sqlalchemy.exc import DBAPIError

from cortex.base.clock import now
from cortex.base.errors import Busy, ConfigError, NotFound
from cortex.base.messages import assistant, user
from cortex.storage.accounts import AccountsRepository
from cortex.storage.calls import CallRow, CallsRepository
from cortex.storage.chat_shares import ChatSharesRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import TRY_TO_WRITE_S, Database
from cortex.storage.integrations import IntegrationRow, IntegrationsRepository
from cortex.storage.messages import MessagesRepository
from cortex.storage.notices import NoticesRepository
from cortex.storage.preferences import PreferencesRepository
from cortex.storage.revisions import newest
from cortex.storage.schema import PreferenceTable, Table
from cortex.storage.tasks import TasksRepository
from cortex.storage.turns import NOTHING_READ, NewTurn, TurnsRepository
from cortex.storage.write_line import people_first, writes_within
from tests.databases import PostgresTemplate, SqliteTemplate, is_on_postgresql, migrate
from tests.patience import PATIENCE_S
from tests.plain_world import PLAIN_TURN


def differences(connection: Connection) -> list[object]:
    context = MigrationContext.configure(connection, opts={"include_name": _is_ours})
    return list(compare_metadata(context, Table.metadata))


def _is_ours(name: str | None, kind: str, _parents: object) -> bool:
    return (
        not (name or "").startswith(("message_index", "journal_index", "document_index")) and name != "alembic_version"
    )


async def test_migrations_make_exactly_the_tables_that_the_code_knows(db: Database) -> None:
    async with db.write.connect() as connection:
        assert await connection.run_sync(differences) == []


@pytest.mark.skipif(not is_on_postgresql(), reason="SQLite is tried on a copy: it does not undo all of a migration")
async def test_a_rehearsed_migration_leaves_the_tables_as_they_were(db: Database, ann: str) -> None:
    here = await db.revision()
    assert await db.rehearse("0008") == "0008"
    assert await db.revision() == here
    async with db.transaction(ann):
        """The tables of now are there, and are not held."""


async def test_migrating_down_leaves_nothing_and_up_again_works(db: Database, ann: str) -> None:
    assert await db.move_to("base") == ""
    async with db.write.connect() as connection:
        assert await connection.run_sync(lambda c: inspect(c).get_table_names()) == ["alembic_version"]
    assert await db.migrate() == newest()
    assert await db.migrate() == newest()
    assert await db.repository(PreferencesRepository, ann).all() == {}


async def test_the_coding_agents_repositories_become_one_list(db: Database, ann: str) -> None:
    await db.move_to("0039")
    cards = db.repository(IntegrationsRepository)
    was = {"cortex": "/srv/cortex", "aether_api": "", "others": ["shop=/srv/shop"], "timeout_s": 90.0}
    await cards.save(IntegrationRow(kind="coding", settings=was), ann)
    await db.migrate()
    (card,) = await cards.list()
    assert card.settings == {"timeout_s": 90.0, "repositories": ["cortex=/srv/cortex", "shop=/srv/shop"]}


async def test_a_share_up_to_a_place_becomes_one_of_the_turns_that_stand_there(db: Database, ann: str) -> None:
    ben = await db.repository(AccountsRepository).add("ben", "Ben", "member", None, "UTC")
    cid = (
        await db.repository(ConversationsRepository, ann).create("orchestrator", "auto", "Jam", is_title_tainted=False)
    ).id
    for number in range(1, 4):
        await db.repository(TurnsRepository, ann).create(NewTurn(f"turn:{number}", cid, "go on", **PLAIN_TURN))
        await db.repository(TurnsRepository, ann).move(f"turn:{number}", "running")
        await db.repository(TurnsRepository, ann).move(f"turn:{number}", "done")
    await db.repository(ChatSharesRepository, ann).give(cid, "", ["turn:1", "turn:2"], [ben.id])
    await db.repository(ChatSharesRepository, ann).give(cid, "turn:1", ["turn:1"], [ben.id])
    await db.move_to("0042")
    await db.migrate()
    shares = await db.repository(ChatSharesRepository, ben.id).given()
    assert {share.turn_id: share.turn_ids for share in shares} == {"": ("turn:1", "turn:2"), "turn:1": ("turn:1",)}


async def test_every_earlier_version_is_reached_and_left_again(db: Database, ann: str) -> None:
    earlier = [f"{number:04}" for number in range(1, int(newest()))]
    for revision in [*reversed(earlier), *earlier[1:]]:
        assert await db.move_to(revision) == revision
    assert await db.migrate() == newest()
    async with db.write.connect() as connection:
        assert await connection.run_sync(differences) == []
    assert [account.id for account in await db.repository(AccountsRepository).list()] == [ann]


async def test_what_was_read_before_the_marks_were_kept_is_worked_out(db: Database, ann: str) -> None:
    """The second turn fetched a page, the third read a file of the user's own; the others called nothing."""
    cid = (
        await db.repository(ConversationsRepository, ann).create(
            "orchestrator", "auto", "Before", is_title_tainted=False
        )
    ).id
    for ordinal in range(1, 5):
        turn = await db.repository(TurnsRepository, ann).create(
            NewTurn(f"turn:{ordinal}", cid, "go on", mode="auto", role="admin", is_tainted=False, reads=NOTHING_READ)
        )
        for index, message in enumerate((user("go on"), assistant("It says so."))):
            await db.repository(MessagesRepository, ann).add(turn.id, index, message, is_tainted=False)
    for turn_id, name, is_tainted in (("turn:2", "web_read", True), ("turn:3", "file_read", False)):
        call = CallRow(
            id=f"{turn_id}:1",
            turn_id=turn_id,
            conversation_id=cid,
            round=1,
            name=name,
            arguments="{}",
            arguments_hash="",
            risk="low",
            state="done",
            is_tainted=is_tainted,
        )
        await db.repository(CallsRepository, ann).decided(call)
    assert await db.move_to("0008") == "0008"
    assert await db.migrate() == newest()
    turns = await db.repository(TurnsRepository, ann).list(cid)
    assert [turn.has_read_outside for turn in turns] == [False, True, False, False]
    assert [turn.has_read_private for turn in turns] == [False, False, True, False]
    stored = await db.repository(MessagesRepository, ann).of_conversation(cid)
    assert [row.is_tainted for row in stored if row.message.speaker == "assistant"] == [False, True, True, True]
    assert not any(row.is_tainted for row in stored if row.message.speaker == "user")


async def test_two_processes_that_start_at_once_migrate_once(postgres_template: PostgresTemplate) -> None:
    url = postgres_template.empty()
    first, second = Database(url), Database(url)
    assert list(await asyncio.gather(first.migrate(), second.migrate())) == [newest(), newest()]
    await first.close()
    await second.close()
    postgres_template.drop(url)


async def test_fifty_writers_at_once_lose_nothing(db: Database, ann: str) -> None:
    async def write(writer: int) -> None:
        for number in range(20):
            async with db.session_scope() as session:  # read, then write: what a deferred BEGIN loses
                await session.execute(select(func.count()).select_from(PreferenceTable))
                await PreferencesRepository(session, ann).set(f"{writer}.{number}", number)

    async with asyncio.TaskGroup() as group:
        for writer in range(50):
            group.create_task(write(writer))
    assert len(await db.repository(PreferencesRepository, ann).all()) == 1000


async def test_what_fails_halfway_leaves_nothing_behind(db: Database, ann: str) -> None:
    async def write_and_fail() -> None:
        async with db.transaction(ann) as repository:
            await repository(TasksRepository).create("milk", "Milk", is_tainted=False)
            await repository(ConversationsRepository).append("nowhere", [("notice", {}, None)])

    with pytest.raises(NotFound):
        await write_and_fail()
    assert await db.repository(TasksRepository, ann).list() == []


async def test_readers_are_not_held_up_by_a_writer(db: Database, ann: str) -> None:
    await db.repository(TasksRepository, ann).create("milk", "Milk", is_tainted=False)
    async with db.transaction(ann) as repository:
        await repository(TasksRepository).create("eggs", "Eggs", is_tainted=False)
        async with asyncio.timeout(PATIENCE_S):
            assert [task.title for task in await db.repository(TasksRepository, ann).list()] == ["Milk"]
    assert len(await db.repository(TasksRepository, ann).list()) == 2


@pytest.mark.names_its_database("it is about SQLite itself")
async def test_the_read_engine_of_sqlite_cannot_write(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'a.db'}")
    await database.migrate()
    async with database.read.connect() as connection:
        with pytest.raises(DBAPIError, match="readonly"):
            await connection.execute(text("DELETE FROM accounts"))
    await database.close()


@pytest.mark.names_its_database("it is about SQLite itself")
async def test_sqlite_keeps_every_acknowledged_commit_and_its_file_to_itself(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.db"
    database = Database(f"sqlite:///{path}")
    async with database.write.connect() as connection:
        pragmas = [
            (await connection.exec_driver_sql(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        ]
    await database.close()
    assert pragmas == ["wal", 2, 1, 1_000]  # of one try; `Database` tries again
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.names_its_database("only SQLite locks the whole database for a writer")
async def test_a_writer_waits_for_another_process_and_one_in_a_hurry_is_refused(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'a.db'}")
    await database.migrate()
    holder = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(Busy), writes_within(0.05):
        await database.repository(NoticesRepository, "ada").read_all(now())
    waiting = asyncio.create_task(database.repository(NoticesRepository, "ada").read_all(now()))
    with pytest.raises(Busy), writes_within(2.5 * TRY_TO_WRITE_S):  # behind it; it goes on trying meanwhile
        await database.repository(NoticesRepository, "ada").read_all(now())
    assert not waiting.done()
    assert await database.repository(NoticesRepository, "ada").unread() == 0
    holder.execute("ROLLBACK")
    await waiting
    holder.close()
    await database.close()


async def writing(db: Database, owner: str, title: str, written: list[str]) -> None:
    """One short transaction; its title is noted in the order in which they had their turn."""
    async with db.transaction(owner) as repository:
        written.append(title)
        await repository(TasksRepository).create(title, title, is_tainted=False)


async def until_in_line(db: Database, waiting: tuple[int, int]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while db.write_line.waiting != waiting:  # noqa: ASYNC110 - the line tells nobody who joins it
            await asyncio.sleep(0)


@pytest.mark.names_its_database("SQLite has one writer")
async def test_what_people_send_is_written_ahead_of_the_turns_that_wait_and_keeps_none_of_them_out(
    tmp_path: Path, sqlite_template: SqliteTemplate
) -> None:
    db = Database(sqlite_template.fresh(tmp_path))
    ann = (await db.repository(AccountsRepository).add("ann", "Ann", "admin", None, "UTC")).id
    written: list[str] = []
    async with asyncio.TaskGroup() as group, db.transaction(ann):  # a turn writes just now
        for number in range(3):
            group.create_task(writing(db, ann, f"turn {number}", written))
        await until_in_line(db, (0, 3))
        with people_first(), writes_within(PATIENCE_S):  # a task takes both from where it is begun
            for number in range(20):
                group.create_task(writing(db, ann, f"message {number}", written))
        gone = group.create_task(writing(db, ann, "turn that is stopped", written))
        await until_in_line(db, (20, 4))
        gone.cancel()
        await until_in_line(db, (20, 3))
    people = [f"message {number}" for number in range(20)]
    turns = [f"turn {number}" for number in range(3)]
    assert written == [*people[:8], turns[0], *people[8:16], turns[1], *people[16:], turns[2]]
    assert {task.title for task in await db.repository(TasksRepository, ann).list()} == set(people + turns)
    async with db.transaction(ann):  # the place is free again
        assert db.write_line.waiting == (0, 0)
    await db.close()


@pytest.mark.parametrize("url", ["", "mysql://x/y", "sqlite://", "sqlite:///:memory:", "just words"])
def test_a_database_that_cortex_cannot_use_is_refused_in_words(url: str) -> None:
    with pytest.raises(ConfigError):
        Database(url)


async def test_a_repository_without_its_user_cannot_be_opened(db: Database) -> None:
    with pytest.raises(ValueError, match="needs the user"):
        db.repository(TasksRepository, "")
    async with db.transaction() as repository:
        with pytest.raises(ValueError, match="needs the user"):
            repository(TasksRepository)


async def test_what_one_view_reads_belongs_together(db: Database, ann: str) -> None:
    tasks = db.repository(TasksRepository, ann)
    await tasks.create("milk", "Milk", is_tainted=False)
    ended = Counter[str]()
    event.listen(db.read.sync_engine, "rollback", lambda *_: ended.update(["read"]))
    async with db.one_view():
        assert len(await tasks.list()) == 1
        async with db.read_transaction(ann) as repository:
            assert len(await repository(TasksRepository).list()) == 1
        assert not ended
        await tasks.create("eggs", "Eggs", is_tainted=False)  # what is read next must know it
        assert len(await tasks.list()) == 2
        other = asyncio.create_task(
            tasks.create("ham", "Ham", is_tainted=False)
        )  # another task has transactions of its own
        await other
        async with db.one_view():
            assert len(await tasks.list()) == (3 if db.is_postgresql else 2)
    assert len(await tasks.list()) == 3
    assert ended["read"] == 2


async def test_a_view_goes_on_after_a_read_that_failed(db: Database, ann: str) -> None:
    async with db.one_view():
        with pytest.raises(DBAPIError):
            async with db.session_scope(reading=True) as session:
                await session.execute(text("SELECT * FROM nowhere"))
        assert await db.repository(TasksRepository, ann).list() == []


async def test_text_that_no_database_can_hold_is_stored_mended(db: Database, ann: str) -> None:
    task = await db.repository(TasksRepository, ann).create("odd", "a\x00b \ud800 ☃", is_tainted=False)
    assert task.title == "a\ufffdb \ufffd ☃"
    await db.repository(PreferencesRepository, ann).set("odd", {"text": "a\x00b \ud800"})
    assert await db.repository(PreferencesRepository, ann).get("odd") == {"text": "a\x00b \ud800"}


@pytest.mark.names_its_database("it is about SQLite itself")
async def test_alembic_is_not_loaded_when_the_tables_are_up_to_date(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    migrate(url)
    script = (
        "import asyncio, sys\n"
        "from cortex.storage.db import Database\n"
        f"print(asyncio.run(Database({url!r}).migrate()), 'alembic' in sys.modules)"
    )
    done = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE)
    output, _ = await asyncio.wait_for(done.communicate(), PATIENCE_S)
    assert output.split() == [newest().encode(), b"False"]


async def test_tables_of_a_newer_version_are_left_alone(db: Database) -> None:
    async with db.session_scope() as session:
        await session.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(ConfigError, match="newer Cortex"):
        await db.migrate()
    assert await db.revision() == "9999"


@pytest.mark.names_its_database("it is about SQLite itself")
async def test_a_write_goes_through_at_once_after_any_number_of_cancelled_ones(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/cancelled.db")
    rows = text("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 3000) SELECT x FROM n")
    async with database.session_scope() as session:
        await session.execute(text("CREATE TABLE t (x INTEGER)"))

    async def work() -> None:
        async with database.session_scope() as session:
            await session.execute(text("INSERT INTO t VALUES (1)"))
            for _ in range(4):
                await session.execute(rows)

    kept: list[BaseException | None] = []  # a traceback that is kept keeps the cancelled cursor alive
    for number in range(60):
        worker = asyncio.create_task(work())
        await asyncio.sleep(number % 20 / 1000)
        worker.cancel()
        kept += await asyncio.gather(worker, return_exceptions=True)
        async with asyncio.timeout(PATIENCE_S), database.session_scope() as session:
            await session.execute(text("INSERT INTO t VALUES (2)"))
    assert any(isinstance(error, asyncio.CancelledError) for error in kept)
    await database.close()


@pytest.mark.names_its_database("it is about the driver of SQLite")
async def test_a_cancel_while_the_database_closes_cuts_off_no_connection(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    db = Database(f"sqlite:///{tmp_path}/shut.db")
    for turns_of_the_loop in range(8):
        async with db.write.connect(), db.read.connect():
            """A connection of each is open."""
        closing = asyncio.create_task(db.close())
        for _ in range(turns_of_the_loop):
            await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
    assert caplog.text == ""
    await db.close()
