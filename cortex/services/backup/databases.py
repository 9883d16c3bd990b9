"""The database of a backup: copied while it is written to, looked at, and put back on PostgreSQL.

SQLite by its online backup API, PostgreSQL by its own programs (`pg_dump`, `pg_restore`, `psql`), in one transaction.
The engine's is left out: what ran then is not run again hours later, its turns say that they were interrupted.
"""

import asyncio
import itertools
import secrets
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from sqlalchemy import URL, make_url

from cortex.base import private
from cortex.base.clock import ticks_s
from cortex.base.errors import ToolFailed, UserError
from cortex.base.settings import Settings
from cortex.integrations.process import run
from cortex.storage.restored import ACCOUNTS, AT_AN_END, SEALED

MAIN = "cortex"
DUMP_S = 3_600.0
PEOPLE_S = 10.0  # a backup that nobody can vouch for may hold a view that never ends
PEOPLE_MOST = 10_000
OTHERS = (
    "--command=SELECT count(*) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
)
CONNECTED_WAITS_S = (0.5, 1.0, 2.0, 0.0)
ENGINE_SCHEMA = "dbos"
PLAIN = ("--no-owner", "--no-acl", f"--exclude-schema={ENGINE_SCHEMA}")
ONCE = ("--single-transaction", "--no-psqlrc", "--quiet", "--output=/dev/null", "--set=ON_ERROR_STOP=1")


def files(settings: Settings) -> list[Path]:
    """The files of the SQLite databases in use."""
    parsed = [make_url(url) for url in (settings.database, settings.engine_database)]
    return [Path(url.database or "").absolute() for url in parsed if url.get_backend_name() == "sqlite"]


def kind_of(settings: Settings) -> str:
    """`sqlite` or `postgresql`."""
    return "postgresql" if settings.is_postgresql else "sqlite"


async def copy(url: str, target: Path) -> None:
    """Write a consistent copy as the new file `target`. UserError when the database or its program refuses."""
    parsed = make_url(url)
    private.make_file(target)
    if parsed.get_backend_name() == "sqlite":
        await asyncio.to_thread(_copy_sqlite, Path(parsed.database or ""), target)
    else:
        await _program("pg_dump", parsed, "--format=custom", *PLAIN, f"--file={target}")


async def revision_of(path: Path, kind: str) -> str:
    """The revision of a copy's tables, "" where it has none of ours. UserError for a copy that is damaged."""
    if kind == "sqlite":
        return await asyncio.to_thread(_revision_of_sqlite, path)
    await _program("pg_restore", None, "--file=/dev/null", str(path))  # all of it can be read
    listed = await _program("pg_restore", None, "--data-only", "--table=alembic_version", "--file=-", str(path))
    lines = listed.splitlines()
    at = next((n for n, line in enumerate(lines) if line.startswith("COPY public.alembic_version ")), None)
    return "" if at is None else lines[at + 1].strip()


async def people_in(path: Path, kind: str) -> Sequence[tuple[str, str]]:
    """Name and rank of each account in a copy. UserError where there is no list of them."""
    if kind == "sqlite":
        return await asyncio.to_thread(_people_of_sqlite, path)
    listed = await _program("pg_restore", None, "--data-only", "--table=accounts", "--file=-", str(path))
    lines = iter(listed.splitlines())
    head = next((line for line in lines if line.startswith("COPY public.accounts (")), "")
    columns = head.partition("(")[2].partition(")")[0].split(", ")
    if not {"name", "rank"} <= set(columns):
        raise UserError("The backup has no list of accounts.")
    rows = [line.split("\t") for line in itertools.takewhile(lambda line: line != "\\.", lines)]
    name, rank = columns.index("name"), columns.index("rank")
    return [(row[name], row[rank]) for row in rows if len(row) == len(columns)]


async def put_back(path: Path, url: str, *, keeps_sealed: bool) -> None:
    """Replace all that a PostgreSQL database holds by the copy, in one transaction: done, or nothing changed.

    keeps_sealed: the secrets in it can be opened here; else they are deleted.
    """
    script = path.with_suffix(".sql")
    # A hostile dump may hold lines that psql takes for its own commands, `\!` among them (CVE-2025-8714): behind a key
    # that the dump cannot know it takes none. Programs that are too old for that refuse the option.
    locked = f"--restrict-key={secrets.token_hex(16)}"
    await _program("pg_restore", None, *PLAIN, locked, f"--file={script}", str(path))
    over = ("SET search_path TO public", *AT_AN_END, *(() if keeps_sealed else SEALED))
    ended = [f"--command={statement}" for statement in over]
    emptied = "DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public"
    await _program("psql", make_url(url), *ONCE, f"--command={emptied}", f"--file={script}", *ended)


async def refuse_while_used(url: str) -> None:
    """UserError while others are connected to a PostgreSQL database; those of a process that ends go in a moment."""
    for wait_s in CONNECTED_WAITS_S:
        connected = int(await _program("psql", make_url(url), "--no-psqlrc", "--tuples-only", OTHERS))
        if not connected:
            return
        await asyncio.sleep(wait_s)
    raise UserError(
        f"{connected} connections to the database are open: end every `cortex serve`, `web` and `worker`, and whatever "
        "else uses it, then run the command again."
    )


async def forget_runs(url: str) -> None:
    """Empty the engine's PostgreSQL database; its next start makes what it needs anew."""
    await _program("psql", make_url(url), *ONCE, f"--command=DROP SCHEMA IF EXISTS {ENGINE_SCHEMA} CASCADE")


async def end_what_is_over(path: Path, *, keeps_sealed: bool) -> None:
    """Have a SQLite copy, about to be put back, hold nothing in force that may have ended since. UserError.

    keeps_sealed: as for `put_back`.
    """
    await asyncio.to_thread(_end_what_is_over, path, (*AT_AN_END, *(() if keeps_sealed else SEALED)))


def _end_what_is_over(path: Path, statements: Sequence[str]) -> None:
    try:
        with closing(sqlite3.connect(path)) as opened, opened:
            opened.execute("PRAGMA foreign_keys = ON")
            for statement in statements:
                opened.execute(statement)
    except sqlite3.Error as error:
        raise UserError(f"The database in the backup cannot be used: {error}.") from error


def _people_of_sqlite(path: Path) -> Sequence[tuple[str, str]]:
    end_s = ticks_s() + PEOPLE_S
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as opened:
            opened.execute("PRAGMA trusted_schema = OFF")
            opened.set_progress_handler(lambda: ticks_s() > end_s, 100_000)
            return [(str(name), str(rank)) for name, rank in opened.execute(ACCOUNTS).fetchmany(PEOPLE_MOST)]
    except sqlite3.Error as error:
        raise UserError(f"The list of accounts in the backup cannot be read: {error}.") from error


def _copy_sqlite(source: Path, target: Path) -> None:
    try:
        with (
            closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as opened,
            closing(sqlite3.connect(target)) as copied,
        ):
            opened.backup(copied)  # all pages in one step: writers go on meanwhile, and never begin it anew
            copied.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise UserError(f"The database {str(source)!r} could not be copied: {error}.") from error


def _revision_of_sqlite(path: Path) -> str:
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as opened:
            told = opened.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if told != "ok":
                raise UserError(f"The database in the backup is damaged: {told}.")
            if opened.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone() is None:
                return ""
            row = opened.execute("SELECT version_num FROM alembic_version").fetchone()
            return str(row[0]) if row else ""
    except sqlite3.Error as error:
        raise UserError(f"The database in the backup cannot be opened: {error}.") from error


async def _program(name: str, url: URL | None, *arguments: str) -> str:
    """Return what one of PostgreSQL's programs prints; the password goes by its environment."""
    found = shutil.which(name)
    if found is None:
        raise UserError(f"{name!r} is not installed: backups of PostgreSQL need its client programs.")
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PGCONNECT_TIMEOUT": "10"}
    argv = [found, *arguments]
    if url is not None:
        environment |= {"PGPASSWORD": url.password} if url.password else {}
        argv.insert(1, "--no-password")
        argv.insert(1, "--dbname=" + _plain(url))
    try:
        ended = await run(argv, cwd=Path("/"), timeout_s=DUMP_S, env=environment, output_bytes=1_000_000)
    except ToolFailed as error:
        raise UserError(error.message) from error
    if ended.code or ended.killed:
        raise UserError(f"{name} failed: {(ended.killed or ended.err).strip()[-500:]}")
    return ended.out


def _plain(url: URL) -> str:
    return url.set(drivername="postgresql", password=None).render_as_string(hide_password=False)
