"""A private MariaDB for tests: unpacked packages or an installed server, its own folder and port, gone afterwards."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql
import pytest

from tests.patience import PATIENCE_S
from tests.ports import port_for

UNPACKED = Path(__file__).resolve().parents[1] / ".venv" / "debian"
READER = ("reader", "only-reading-here")
SYSTEM_TABLES = ("mysql_system_tables.sql", "mysql_system_tables_data.sql")
OPTIONS = (
    "--innodb-buffer-pool-size=32M",
    "--innodb-log-file-size=8M",
    "--innodb-flush-log-at-trx-commit=0",
    "--aria-log-file-size=8M",
    "--performance-schema=OFF",
    "--log-warnings=0",
)


class MariaServer:
    """A server that can be stopped, frozen and started again on its data."""

    def __init__(self, folder: Path, program: Path, extra: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.port = port_for(self)
        self.socket = str(folder / "s.sock")
        self._program, self._extra = program, extra
        self._running: subprocess.Popen[bytes] | None = None
        self._bootstrap()
        self.start()

    def start(self) -> None:
        """Listen, in the same place; ready when this returns."""
        place = (f"--socket={self.socket}", f"--port={self.port}", "--bind-address=127.0.0.1", "--skip-name-resolve")
        with (self.folder / "log").open("ab") as log:
            self._running = subprocess.Popen(
                [*self._command(), *place, f"--pid-file={self.folder}/pid", *self._extra],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment(),
            )
        until = time.monotonic() + PATIENCE_S
        while not self._listens():
            assert self._running.poll() is None, self._log()
            assert time.monotonic() < until, self._log()
            time.sleep(0.02)

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as door:
            return door.connect_ex(self.socket) == 0

    def _log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-2_000:]

    def stop(self) -> None:
        """End every session and listen no more."""
        if self._running is not None:
            self._running.send_signal(signal.SIGCONT)
            self._running.kill()
            self._running.wait(PATIENCE_S)
            self._running = None

    def freeze(self) -> None:
        """Let it stand still: it accepts connections and answers nothing."""
        assert self._running is not None
        self._running.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Go on."""
        assert self._running is not None
        self._running.send_signal(signal.SIGCONT)

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements as the server's own administrator; the rows of the last one."""
        with self.root(autocommit=True) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def root(self, **options: Any) -> "pymysql.Connection[Any]":
        """A connection of the server's own administrator; over a socket file, so no 30 ms for reading certificates."""
        return pymysql.connect(unix_socket=self.socket, user="root", charset="utf8mb4", ssl_disabled=True, **options)

    def _bootstrap(self) -> None:
        """What `mariadb-install-db` does, less the help texts, which take it most of its time."""
        (self.folder / "data" / "mysql").mkdir(parents=True)
        share = self._share()
        tables = "".join((share / name).read_text() for name in SYSTEM_TABLES)
        done = subprocess.run(
            [*self._command(), "--bootstrap"],
            input=f"use mysql;\n{tables}".encode(),
            capture_output=True,
            env=self._environment(),
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")[-2_000:]

    def _command(self) -> list[str]:
        user = ["--user=root"] if os.getuid() == 0 else []
        places = [f"--basedir={self._program.parents[1]}", f"--datadir={self.folder / 'data'}"]
        return [str(self._program), "--no-defaults", *user, *places, f"--lc-messages-dir={self._share()}", *OPTIONS]

    def _share(self) -> Path:
        return self._program.parents[1] / "share" / "mysql"

    def _environment(self) -> dict[str, str]:
        root = self._program.parents[2]
        libraries = [str(path) for path in (*root.glob("usr/lib/*-linux-gnu"), *root.glob("lib/*-linux-gnu"))]
        return os.environ | ({"LD_LIBRARY_PATH": ":".join(libraries)} if root == UNPACKED else {})


def program() -> Path | None:
    """The server's program: unpacked by `make debian`, or installed."""
    unpacked = UNPACKED / "usr" / "sbin" / "mariadbd"
    if unpacked.exists():
        return unpacked
    found = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin")
    return Path(found).resolve() if found else None


@contextmanager
def private_mariadb(*extra: str) -> Iterator[MariaServer]:
    """Start a server; stopped and deleted at the end. No server: the test is skipped."""
    found = program()
    if found is None:
        pytest.skip("MariaDB: needs mariadbd, which `make debian` unpacks on Debian")
    folder = Path(tempfile.mkdtemp(prefix="cortex-mariadb-"))  # a socket's path is short: no test's own folder
    server = None
    try:
        server = MariaServer(folder, found, extra)
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
