"""A small shop on a private MariaDB: what the tests of databases read, and the cards by which they read it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec.structs import replace

from cortex.base.errors import ToolFailed
from cortex.integrations.aether_db.database import ReadOnlyDatabase
from cortex.integrations.aether_db.open_names import Access, OpenNames, StatementLimits
from tests.mariadb import MariaServer, private_mariadb
from tests.patience import PATIENCE_S

DATA = Path(__file__).parent / "integrations" / "aether_db"
NAMES = OpenNames(default_schema="shop", schemas=("shop", "club"), tables=(("old", "kept"),))


@contextmanager
def shop_server(*extra: str) -> Iterator[MariaServer]:
    """A server with the shop in it, started with these options besides; skips where there is no MariaDB."""
    with private_mariadb(*extra) as server:
        server.run(*(DATA / "shop.sql").read_text().split(";\n")[:-1])
        yield server


def access_to(server: MariaServer, **limits: float) -> Access:
    """The card of an account that may only read."""
    return Access(
        host="127.0.0.1",
        port=server.port,
        user="reader",
        password="only-reading-ü€",
        names=NAMES,
        limits=replace(StatementLimits(), **limits),
    )


async def answered(database: ReadOnlyDatabase, sql: str) -> tuple[tuple[str, ...], ...]:
    """The rows, also by a card whose limit is shorter than what a busy machine may need: asked until they come."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with suppress(ToolFailed):
                return tuple((await database.query(sql, 5)).rows)


def statements(file: str) -> list[tuple[str, str]]:
    """The statements of a file with the heading that each stands under."""
    found, heading = [], ""
    for line in (DATA / file).read_text().splitlines():
        if line.startswith("# "):
            heading = line.removeprefix("# ")
        elif line:
            found.append((heading, line))
    return found
