"""Real servers that stand between: nginx and Caddy before the page, pgbouncer before PostgreSQL."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.mariadb import UNPACKED
from tests.patience import PATIENCE_S
from tests.ports import port_for

LIBRARIES = UNPACKED / "usr" / "lib" / "x86_64-linux-gnu"


class FrontServer:
    """One that will listen on `port` of 127.0.0.1; its files are in `folder`, which every user can read."""

    def __init__(self) -> None:
        self.port = port_for(self)
        self.folder = Path(tempfile.mkdtemp(prefix="cortex-front-"))
        self.folder.chmod(0o755)

    @contextmanager
    def running(self, name: str, *arguments: str) -> Iterator[None]:
        """Until the block ends. The test is skipped where there is no such program."""
        log = self.folder / "log"
        with log.open("wb") as written:
            process = subprocess.Popen(
                [_program(name), *arguments],
                stdout=written,
                stderr=subprocess.STDOUT,
                env={**os.environ, "LD_LIBRARY_PATH": str(LIBRARIES), "HOME": str(self.folder)},
            )
        try:
            self._await(process, log)
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE_S)
            shutil.rmtree(self.folder, ignore_errors=True)

    def _await(self, process: subprocess.Popen[bytes], log: Path) -> None:
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S).close()
            except OSError:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < until, log.read_text()
                time.sleep(0.02)
            else:
                return


def _program(name: str) -> str:
    places = [UNPACKED / "usr" / folder / name for folder in ("sbin", "bin")]
    found = next((str(place) for place in places if place.exists()), shutil.which(name))
    if found is None:
        pytest.skip(f"{name}: not on this machine, and .ci/debian could not unpack it")
    return found
