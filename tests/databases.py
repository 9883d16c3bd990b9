"""Fresh migrated databases for tests: each kind is migrated once a run, and copied for each test."""

import asyncio
import shutil
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg

from cortex.storage.db import Database


class SqliteTemplate:
    """A migrated file; `fresh` gives the URL of a copy."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "template.db"
        migrate(f"sqlite:///{self._path}")

    def fresh(self, folder: Path) -> str:
        path = folder / "cortex.db"
        shutil.copyfile(self._path, path)
        return f"sqlite:///{path}"


class PostgresTemplate:
    """A migrated database on a private server; `fresh` gives the URL of a copy, `empty` of one without tables."""

    def __init__(self, server_url: str) -> None:
        self._server_url = server_url
        self._name = f"template_{uuid.uuid4().hex}"
        self._create(self._name, "template1")
        migrate(self._at(self._name))

    def fresh(self) -> str:
        return self._at(self._create(f"test_{uuid.uuid4().hex}", self._name))

    def empty(self) -> str:
        return self._at(self._create(f"test_{uuid.uuid4().hex}", "template1"))

    def drop(self, url: str) -> None:
        name = url.split("?")[0].rsplit("/", 1)[1]
        with psycopg.connect(self._server_url, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())

    def _create(self, name: str, template: str) -> str:
        with psycopg.connect(self._server_url, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"'.encode())
        return name

    def _at(self, name: str) -> str:
        return self._server_url.replace("/postgres?", f"/{name}?", 1)


def migrate(url: str) -> None:
    """Bring a database up to date, in a loop and thread of its own (fixtures of a whole run have no loop)."""

    async def up() -> None:
        database = Database(url)
        await database.migrate()
        await database.close()

    with ThreadPoolExecutor(max_workers=1) as thread:
        thread.submit(asyncio.run, up()).result()
