"""Children that run `cortex` as the program does, forked from a process that has imported it already.

Python and its thousand modules cost 2 of the 2.4 seconds of processor that a start takes, and the tests start the
program some two hundred times. From `web/__main__.py` on a child is what `python -m web` is: a process of its own with
its own environment, folder, files and signals. `module`: what else of ours is run so in place of `web`, as by `python
-m`. `test_main_job.py`, `test_cli.py` and `test_house.py` start the program from nothing.
"""

import atexit
import multiprocessing
import os
import resource
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from tests import knife, watchdog
from tests.databases import database_of
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[1]
PROGRAM = "web"
Limits = tuple[int, int]  # of open files, soft and hard

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(["tests.loaded"])


@cache
def held() -> Path:
    """The folder in which this process's children tell what held their event loop."""
    folder = Path(tempfile.mkdtemp(prefix="cortex-held-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def environment(home: Path, **more: str) -> dict[str, str]:
    """This process's environment with `home` as HOME and no other setting of Cortex than `more`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CORTEX_")}
    own = {"CORTEX_HOME": str(home), "CORTEX_DATABASE_URL": database_of(home), "PYTHONPATH": str(ROOT)}
    return {**clean, **own, **more}


class Child:
    """A running `cortex <words>`; both its outputs are added to `output`. `limits`: of open files, soft and hard."""

    module = PROGRAM

    def __init__(
        self,
        words: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        output: Path,
        umask: int = -1,
        limits: Limits | None = None,
    ) -> None:
        files = (os.devnull, str(output), str(output))
        self._process = _forks.Process(
            target=_program,
            args=(self.module, words, dict(env), str(cwd), umask, files, str(held()), limits),
            daemon=True,
        )
        self._process.start()

    @property
    def pid(self) -> int:
        """Its number."""
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """Its exit code, negative for a signal's; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout_s: float = PATIENCE_S) -> int:
        """Its exit code, once it has ended; TimeoutError."""
        self._process.join(timeout_s)
        if self._process.exitcode is None:
            raise TimeoutError(f"process {self.pid} did not end")
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        """As `kill` does."""
        os.kill(self.pid, number)


class Program:
    """The same, started from nothing as a person does it: `python -m web <words>`."""

    python = sys.executable
    module = PROGRAM

    def __init__(
        self,
        words: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        output: Path,
        umask: int = -1,
        limits: Limits | None = None,
    ) -> None:
        assert limits is None, "only a Child takes limits"
        with output.open("ab") as printed:
            self._process = subprocess.Popen(
                [self.python, "-m", self.module, *words],
                cwd=cwd,
                env=env,
                stdout=printed,
                stderr=subprocess.STDOUT,
                umask=umask,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self, timeout_s: float = PATIENCE_S) -> int:
        return self._process.wait(timeout_s)

    def send_signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)


def run(
    words: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    given: str = "",
    umask: int = -1,
    module: str = PROGRAM,
    timeout_s: float = PATIENCE_S,
) -> subprocess.CompletedProcess[str]:
    """`cortex <words>` to its end: its exit code and what it printed; `given` is what it can read."""
    with tempfile.TemporaryDirectory() as folder:
        files = tuple(str(Path(folder) / name) for name in ("given", "stdout", "stderr"))
        Path(files[0]).write_text(given, encoding="utf-8")
        process = _forks.Process(
            target=_program, args=(module, words, dict(env), str(cwd), umask, files, str(held())), daemon=True
        )
        process.start()
        process.join(timeout_s)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"{module} {' '.join(words)} did not end")
        printed = [Path(one).read_text(encoding="utf-8") for one in files[1:]]
        return subprocess.CompletedProcess(["cortex", *words], process.exitcode, *printed)


def _program(
    module: str,
    words: Sequence[str],
    env: dict[str, str],
    cwd: str,
    umask: int,
    files: Sequence[str],
    held: str,
    limits: Limits | None = None,
) -> None:
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    os.chdir(cwd)
    for number, path in enumerate(files):
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY
        opened = os.open(path, flags)
        os.dup2(opened, number)
        os.close(opened)
    if umask >= 0:
        os.umask(umask)
    if limits:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    if knife.VARIABLE in env:
        knife.Knife(Path(env[knife.VARIABLE])).install()
    sys.stdin, sys.stderr = open(0), open(2, "w")  # noqa: SIM115
    sys.stdout = watchdog.output(Path(held))
    sys.argv = ["cortex", *words]
    runpy.run_module(module, run_name="__main__", alter_sys=False)
