"""What a database refuses, as a sentence that says what to do; what its disk refuses, by `disk_faults.py`.

The one place that knows those errors: the start, the commands, the doctor and the pages say its words.
"""

import shlex
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import DBAPIError, OperationalError

from cortex.base.disk_faults import ROOM, WRITABLE, allow, is_read_only, of_disk
from cortex.base.errors import ConfigError, DatabaseUnavailable

ENGINE_FILE = "engine.db"
NO_ROOM_BYTES = 1_000_000  # below it SQLite cannot even make the files that it needs to open a database
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_REFUSED = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


@contextmanager
def in_words(database: str = "") -> Iterator[None]:
    """Raise ConfigError with a sentence in place of what a disk or a database refuses; other errors pass.

    database: the URL of the one that is asked inside.
    """
    try:
        yield
    except (OSError, DBAPIError, DatabaseUnavailable) as error:
        if sentence := explain(error, database):
            raise ConfigError(sentence) from error
        raise


def explain(error: BaseException, database: str = "") -> str:
    """The sentence for an error of a file or a database; "" for what is no fault of those."""
    if isinstance(error, DatabaseUnavailable) and error.__cause__:  # what it was made of knows more
        return explain(error.__cause__, database)
    if isinstance(error, DBAPIError):
        return _of_database(error, database)
    return of_disk(error) if isinstance(error, OSError) else ""


def look_through(is_whole: bool) -> str:
    """The statement that finds damage in a SQLite file: in all of it, or in its table of contents alone."""
    return "PRAGMA quick_check(1)" if is_whole else "SELECT CASE WHEN count(*) >= 0 THEN 'ok' END FROM sqlite_master"


def refuse_damage(path: Path, answer: object) -> None:
    """ConfigError unless that statement answered that all is well."""
    if answer != "ok":
        raise ConfigError(_damaged(path, str(answer).strip().splitlines()[-1]))


def _damaged(path: Path, reason: str) -> str:
    return f"The database {str(path)!r} is damaged: {reason}. Nothing was changed. {_mend_damage(path)}"


def _of_database(error: DBAPIError, database: str) -> str:
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is None:
        if not isinstance(error, OperationalError):
            return ""
        reason = str(error.orig).partition("\n")[0]
        return (
            f"CORTEX_DATABASE_URL: the database does not answer: {reason}. Check the setting, and that its server runs."
        )
    path = Path((database and make_url(database).database) or "the database")
    return _of_sqlite(code & 0xFF, str(error.orig), path)  # the low byte is the kind, the rest says more of it


def _of_sqlite(code: int, reason: str, path: Path) -> str:
    if code in _DAMAGED:
        return _damaged(path, reason)
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR) or code in _REFUSED:
        return _of_disk(code, reason, path)
    if code in _BUSY:
        return f"The database {str(path)!r} is kept locked by another program. End that one, and try again."
    return ""


def _of_disk(code: int, reason: str, path: Path) -> str:
    """SQLite says the same of a full disk, a read-only one and one it may not use; the folder knows more."""
    folder = path.parent
    if is_read_only(folder):
        return f"The database {str(path)!r} is on a disk that is mounted read-only. {WRITABLE}"
    if code == sqlite3.SQLITE_FULL or (folder.is_dir() and shutil.disk_usage(folder).free < NO_ROOM_BYTES):
        return f"The disk of the database {str(path)!r} is full. {ROOM}"
    if code in _REFUSED:
        return f"The database {str(path)!r} may not be used by this user: {reason}. {allow(path)}"
    return f"The disk of the database {str(path)!r} fails: {reason}. Check it, and have a backup at hand."


def _mend_damage(path: Path) -> str:
    """Return what to do with a damaged database."""
    name, quoted = path.name, shlex.quote(str(path))
    if name == ENGINE_FILE:
        return (
            f"It holds only turns that were running; conversations are not in it: mv {quoted} {quoted}.damaged, remove "
            f"{name}-wal and {name}-shm beside it, and start again."
        )
    return (
        f"End Cortex, move {name}, {name}-wal and {name}-shm away, and put a backup of {name} back; or save what can "
        f"be read: sqlite3 {name} .recover | sqlite3 saved.db"
    )
