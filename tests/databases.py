"""Fresh migrated databases for tests: each kind is migrated once a run, and copied for each test.

Tests that open a house by its home ask `database_of` or `house_settings`: a file in the home, or, in a run with
`--database postgresql`, a database that belongs to that home alone.
"""

import asyncio
import hashlib
import os
import shutil
import sqlite3
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import (
    JSON,
    ColumnClause,
    Connection,
    column,
    create_engine,
    func,
    inspect,
    make_url,
    select,
    table,
    text,
    update,
)

from cortex.base.settings import Settings, load_settings
from cortex.engine.database import open_database
from cortex.storage.db import Database
from tests.patience import PATIENCE_S

# In the environment, for children too: what homes are copied from, a URL or a file.
TEMPLATE = "TESTS_POSTGRESQL_TEMPLATE"
FILE_TEMPLATE = "TESTS_SQLITE_TEMPLATE"


class SqliteTemplate:
    """A migrated file; `fresh` gives the URL of a copy."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "template.db"
        migrate(f"sqlite:///{self.path}")
        with closing(sqlite3.connect(self.path)) as connection:  # a connection that lives on would keep it in the log
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def fresh(self, folder: Path) -> str:
        path = folder / "cortex.db"
        shutil.copyfile(self.path, path)
        return f"sqlite:///{path}"


class PostgresTemplate:
    """A migrated database on a private server; `fresh` gives the URL of a copy, `empty` of one without tables.

    `lent` gives one that goes back when its user is done, and is emptied for the next: a copy takes ten times as long.
    """

    def __init__(self, server_url: str) -> None:
        self._at_rest: list[str] = []
        self.url = _named(server_url, f"template_{uuid.uuid4().hex}")
        _create(self.url, "template1")
        migrate(self.url)
        with psycopg.connect(self.url) as connection:
            self._shape = _shape(connection)

    def fresh(self) -> str:
        return self._made(_name(self.url))

    def empty(self) -> str:
        return self._made("template1")

    @contextmanager
    def lent(self) -> Iterator[str]:
        """A database with no rows; nobody is connected to it any more at the end."""
        url = self._at_rest.pop() if self._at_rest else self.fresh()
        yield url
        with psycopg.connect(url, autocommit=True) as connection:
            is_as_made = _shape(connection) == self._shape
            if is_as_made:
                _empty(connection)
        if is_as_made:
            self._at_rest.append(url)
        else:
            _drop(url)

    def drop(self, url: str) -> None:
        _drop(url)

    def _made(self, template: str) -> str:
        url = _named(self.url, f"test_{uuid.uuid4().hex}")
        _create(url, template)
        return url


def is_on_postgresql() -> bool:
    """Whether this run has its homes on PostgreSQL."""
    return TEMPLATE in os.environ


def database_of(home: Path, template: Path | None = None) -> str:
    """The setting `database_url` of the house in this home: empty on SQLite; else its own, made when it is not there.

    template: a home at rest, whose rows a new one has.
    """
    if not is_on_postgresql():
        return ""
    origin, place = os.environ[TEMPLATE], str(home.absolute())
    url = _named(origin, f"home_{hashlib.sha256(place.encode()).hexdigest()[:40]}")
    with _server(url) as connection:
        is_there = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (_name(url),)).fetchone()
    if not is_there:
        _create(url, _name(database_of(template) if template else origin), place)
    return url


def engine_of(home: Path) -> str:
    """The database of an engine that runs by itself in this home."""
    return database_of(home) or f"sqlite:///{home}/engine.db"


def house_settings(home: Path, **given: Any) -> Settings:
    """Settings of a house on this run's kind of database; its tables are there before it opens."""
    if FILE_TEMPLATE in os.environ:
        _settle(home)
    return load_settings(None, **{"home": home, "database_url": database_of(home), **given})


def mark_open_runs(home: Path, **values: object) -> None:
    """Set columns of the engine's runs that have not ended, in a home that nobody has open."""
    names: list[ColumnClause[Any]] = [column(name) for name in ("status", *values)]
    runs = table("workflow_status", *names, schema="dbos" if is_on_postgresql() else None)
    engine = open_database(engine_of(home))
    with engine.begin() as rows:
        rows.execute(update(runs).where(runs.c.status.in_(["PENDING", "ENQUEUED"])).values(values))
    engine.dispose()


def wear_out_open_runs(home: Path, lives: int) -> None:
    """Let the engine's open runs have been begun so often without completing a step, in a home that nobody has open."""
    schema = "dbos" if is_on_postgresql() else None
    runs = table(
        "workflow_status", column("workflow_uuid"), column("status"), column("attributes", JSON), schema=schema
    )
    outputs = table("operation_outputs", column("workflow_uuid"), schema=schema)
    steps = select(func.count()).where(outputs.c.workflow_uuid == runs.c.workflow_uuid).scalar_subquery()
    engine = open_database(engine_of(home))
    with engine.begin() as rows:
        open_runs = select(runs.c.workflow_uuid, steps).where(runs.c.status.in_(["PENDING", "ENQUEUED"]))
        for run_id, count in rows.execute(open_runs).all():
            worn = update(runs).where(runs.c.workflow_uuid == run_id)
            rows.execute(worn.values(attributes={"lives": lives, "steps": count}))
    engine.dispose()


@contextmanager
def rows_of(home: Path) -> Iterator[Connection]:
    """A connection of its own to a house's tables, beside whoever has it open; commits in the end."""
    with rows_at(house_settings(home).database) as connection:
        yield connection


@contextmanager
def rows_at(url: str) -> Iterator[Connection]:
    """The same by the address of the tables."""
    is_file = url.startswith("sqlite")
    address = make_url(url.replace("postgresql://", "postgresql+psycopg://", 1))
    engine = create_engine(address, connect_args={"timeout": PATIENCE_S} if is_file else {})
    with engine.begin() as connection:
        yield connection
    engine.dispose()


async def everything(db: Database) -> str:
    """Every row of every table, in words."""
    return "\n".join(await every_row(db))


async def every_row(db: Database) -> list[str]:
    """Every row of every table, each in words after its table's name."""
    async with db.connection() as connection:
        names = await connection.run_sync(lambda opened: inspect(opened).get_table_names())
        return [
            f"{name}: {dict(row)}"
            for name in names
            for row in (await connection.execute(select(text("*")).select_from(table(name)))).mappings()
        ]


def copy_home(template: Path, home: Path) -> None:
    """A second home with all that the first one holds; nobody has the first one open."""
    shutil.copytree(template, home, dirs_exist_ok=True)
    database_of(home, template)


def drop_homes(folder: Path) -> None:
    """Let go of the databases of a folder's homes."""
    origin = os.environ[TEMPLATE]
    found = "SELECT datname FROM pg_database WHERE starts_with(shobj_description(oid, 'pg_database') || '/', %s)"
    with _server(origin) as connection:
        names = [name for (name,) in connection.execute(found, (f"{folder.absolute()}/",)).fetchall()]
    for name in names:
        _drop(_named(origin, name))


def migrate(url: str) -> None:
    """Bring a database up to date, in a loop and thread of its own (fixtures of a whole run have no loop)."""

    async def up() -> None:
        database = Database(url)
        await database.migrate()
        await database.close()

    with ThreadPoolExecutor(max_workers=1) as thread:
        thread.submit(asyncio.run, up()).result()


def _settle(home: Path) -> None:
    """Let a home that holds nothing have its tables: to migrate them takes three quarters of a house's opening."""
    if not (home.is_dir() and any(home.iterdir())):
        home.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(os.environ[FILE_TEMPLATE], home / "cortex.db")


def _create(url: str, template: str, words: str = "") -> None:
    name = sql.Identifier(_name(url))
    with _server(url) as connection:
        # To copy files takes a third of the time that logging their pages does (0.09 s on 2026-11-22).
        made = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
        connection.execute(made.format(name, sql.Identifier(template)))
        connection.execute(sql.SQL("COMMENT ON DATABASE {} IS {}").format(name, words))


def _drop(url: str) -> None:
    with _server(url) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(_name(url))))


def _shape(connection: psycopg.Connection[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """What a test of migrations or of a trigger leaves otherwise."""
    rows = connection.execute(
        "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'"
        " UNION ALL SELECT format('%s %s', tgname, tgenabled) FROM pg_trigger ORDER BY 1"
    ).fetchall()
    if ("alembic_version",) in rows:
        rows += connection.execute("SELECT version_num FROM alembic_version").fetchall()
    return rows


def _empty(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    """Remove all rows, and let ids be counted from one again; triggers that refuse it are passed by."""
    connection.execute("SET session_replication_role = replica")
    found = "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'"
    names = [name for (name,) in connection.execute(found).fetchall() if name != "alembic_version"]
    used = " UNION ALL ".join(f"SELECT '{name}' WHERE EXISTS (SELECT FROM {name})" for name in names)  # noqa: S608
    if filled := [name for (name,) in connection.execute(used.encode()).fetchall()]:
        connection.execute(f"TRUNCATE {', '.join(filled)} RESTART IDENTITY CASCADE".encode())


def _server(url: str) -> psycopg.Connection[tuple[Any, ...]]:
    return psycopg.connect(_named(url, "postgres"), autocommit=True)


def _name(url: str) -> str:
    return str(make_url(url).database)


def _named(url: str, name: str) -> str:
    return make_url(url).set(database=name).render_as_string(hide_password=False)
