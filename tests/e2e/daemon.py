"""The real daemon as a child process on a home of its own: started, ended, killed, started again, its log kept."""

import os
import re
import signal
import time
from pathlib import Path

from tests.children import ROOT, Child, Limits, Program
from tests.databases import database_of
from tests.patience import PATIENCE_S
from tests.ports import port_for

START_S = PATIENCE_S
END_S = PATIENCE_S


class Daemon:
    """`cortex serve` with its home in a test's folder. It keeps its port over restarts."""

    starts: type[Child | Program] = Child

    def __init__(
        self, home: Path, *, delay_ms: int = 2, umask: int = -1, limits: Limits | None = None, **settings: object
    ) -> None:
        self.home = home
        self.umask = umask
        self.limits = limits
        self.port = port_for(self)
        self.output = home.parent / "daemon.log"
        self.settings = {
            "OFFLINE_DELAY_MS": delay_ms,
            "SHUTDOWN_GRACE_S": 5,
            "database_url": database_of(home),
            **settings,
        }
        self._process: Child | Program | None = None

    @property
    def origin(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it is not there any more, by whatever end."""
        return self._process is None or self._process.poll() is not None

    @property
    def log(self) -> str:
        """Everything it has printed so far, over all its lives."""
        return self.output.read_text(encoding="utf-8", errors="replace") if self.output.exists() else ""

    @property
    def setup_link(self) -> str:
        """The last one-time link that it printed."""
        return str(re.findall(r"http://\S+/setup#\S+", self.log)[-1])

    def start(self) -> None:
        """Start it and wait until it accepts connections."""
        self.home.mkdir(parents=True, exist_ok=True)
        self._begin("serve", "Cortex is at ")

    def stop(self) -> int:
        """End it as a service manager would; its exit code."""
        return self._end(signal.SIGTERM)

    def kill9(self) -> None:
        """No warning, no clean-up."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """End it in order and start it on the same home and port."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Whatever is left of it ends now."""
        if not self.has_ended:
            self.kill9()

    def set(self, **settings: object) -> None:
        """Other settings, from the next start on."""
        self.settings |= settings

    def _begin(self, command: str, ready: str) -> None:
        """Wait until it says so; one that does not is ended: who failed to start it has nothing to close."""
        lives = self.log.count(ready)
        self._process = process = self.starts(
            [command], env=self._environment(), cwd=self.home, output=self.output, umask=self.umask, limits=self.limits
        )
        deadline_s = time.monotonic() + START_S
        while self.log.count(ready) == lives and process.poll() is None and time.monotonic() < deadline_s:
            time.sleep(0.03)
        if self.log.count(ready) == lives:
            self.close()
            raise AssertionError(f"{command} did not get ready, code {process.poll()}:\n{self.log[-3000:]}")

    def _end(self, number: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(END_S)

    def _environment(self) -> dict[str, str]:
        own = {f"CORTEX_{name.upper()}": str(value) for name, value in self.settings.items()}
        return {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.home),
            "CORTEX_HOME": str(self.home),
            "CORTEX_PORT": str(self.port),
            **own,
        }
