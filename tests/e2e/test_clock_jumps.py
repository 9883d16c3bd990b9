"""The clock is set a day forwards and a day back under the real daemon: it goes on, and the doctor says so."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.children import ROOT, environment
from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon
from tests.e2e.person import poll

pytestmark = pytest.mark.names_its_database("a file: what is shown is the clock")
LIBRARY = sorted((ROOT / ".venv" / "debian").glob("usr/lib/*/faketime/libfaketimeMT.so.1"))
needs_library = pytest.mark.skipif(not LIBRARY, reason="needs libfaketime, which `make debian` unpacks on Debian")

# libfaketime 0.9.10 refuses a sleep until a moment of the true monotonic clock, which is what `time.sleep` asks for.
START = """
import select, sys, time
time.sleep = lambda wait_s: select.select([], [], [], wait_s)
from web.__main__ import main
sys.argv = ["cortex", *sys.argv[1:]]
main()
"""


class JumpingDaemon(Daemon):
    """`cortex serve` whose clock a file sets, while its monotonic one goes on."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self._offset = home.parent / "offset"
        self.jump("+0")

    def jump(self, offset: str) -> None:
        self._offset.write_text(f"{offset}\n")

    @property
    def clock(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(LIBRARY[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self._offset),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }

    def begin(self) -> subprocess.Popen[str]:
        self.home.mkdir()
        with self.output.open("ab") as printed:
            return subprocess.Popen(
                [sys.executable, "-c", START, "serve"],
                cwd=ROOT,
                env={**self._environment(), **self.clock},
                stdout=printed,
                stderr=subprocess.STDOUT,
                text=True,
            )

    def examined(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", START, "doctor"],
            cwd=ROOT,
            env={**environment(self.home, CORTEX_PORT=str(self.port)), **self.clock},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def jumping(tmp_path: Path) -> Iterator[JumpingDaemon]:
    daemon = JumpingDaemon(tmp_path / "home")
    process = daemon.begin()
    try:
        assert poll(lambda: "Cortex is at " in daemon.log or process.poll() is not None)
        yield daemon
    finally:
        process.terminate()
        process.wait()


@pytest.mark.full  # 5 starts of the program under another clock; `test_faults.py` has a sample
@needs_library
def test_a_day_forwards_and_a_day_back_lose_nobody_and_the_doctor_says_it(jumping: JumpingDaemon) -> None:
    assert jumping.examined().returncode == 0
    with Caller(jumping) as ada:
        ada.set_up()
        chat = ada.send("new", "message 1")
        poll(lambda: ada.get(f"/c/{chat}").text.count('class="foot"') == 1)
        for count, (offset, words) in enumerate([("+1d", "forwards"), ("-1d", "backwards")], 2):
            jumping.jump(offset)
            ada.send(chat, f"message {count}")
            poll(lambda: ada.get(f"/c/{chat}").text.count('class="foot"') == count)  # noqa: B023 - asked at once
            found = jumping.examined()
            assert found.returncode == 1, found.stdout
            assert (f"set {words} by" in found.stdout, "1 day, 0:00:0" in found.stdout) == (True, True)
            assert "start Cortex again" in found.stdout
        page = ada.get(f"/c/{chat}").text
        places = [page.rindex(f"message {count}") for count in (1, 2, 3)]
        assert places == sorted(places)
        assert "set backwards" in ada.get("/health").text
    assert "Traceback" not in jumping.log
