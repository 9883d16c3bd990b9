"""Whether a database is one that Cortex can run on: its version, its search, and sessions that last.

Asked ahead of the first table, at start and by the doctor, so that what is missing is one sentence and no traceback.
"""

import asyncio
import sqlite3
from collections.abc import Iterable

from sqlalchemy.engine import make_url

from cortex.base import scan
from cortex.base.errors import ConfigError

# Tried 2026-11-27 with 3.37.2 (Ubuntu 22.04), 3.40.1 (Debian 12) and 3.54.1; `engine/database.py` adds what 3.42 has.
OLDEST_SQLITE = (3, 37)


async def refuse_unfit(urls: Iterable[str]) -> None:
    """ConfigError, in a sentence that names the version, unless Cortex can run on each of these databases.

    An error of the driver where a server does not answer: `faults.in_words` has the sentences for those.
    """
    for url in dict.fromkeys(urls):
        await asyncio.to_thread(_refuse, url)


def _refuse(url: str) -> None:
    if url.startswith("sqlite"):
        refuse_sqlite()
    else:
        scan.load("cortex.base.postgresql").refuse_unfit(make_url(url))


def refuse_sqlite(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> None:
    """ConfigError when the SQLite of this Python is too old, or was built without search for words (FTS5)."""
    here = ".".join(map(str, version))
    if version < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE))
        raise ConfigError(
            f"This Python has SQLite {here}; Cortex needs {oldest} or newer. Use another Python, or PostgreSQL by "
            "CORTEX_DATABASE_URL."
        )
    memory = sqlite3.connect(":memory:")
    try:
        memory.execute("CREATE VIRTUAL TABLE looked USING fts5(words)")
    except sqlite3.OperationalError as error:
        raise ConfigError(
            f"This Python's SQLite {here} was built without FTS5, which Cortex searches with. Use another Python, or "
            "PostgreSQL by CORTEX_DATABASE_URL."
        ) from error
    finally:
        memory.close()
