"""Pages are loaded by whoever asks for them first: by many at once, when that fails, after the program was changed."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.children import ROOT, Program
from tests.e2e.caller import Caller
from tests.e2e.daemon import Daemon

# What a page does as it is loaded: says so, and fails while it is told to.
MARKED = """
from pathlib import Path as _Path
with _Path({told!r}).open("a") as _told:
    _told.write("loaded\\n")
if _Path({failing!r}).exists():
    raise RuntimeError("a library is missing")
"""


class Checkout(Daemon):
    """A daemon of a copy of the program, started from nothing."""

    starts = Program

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "home")
        self.tree = folder / "program"
        self.told, self.failing = folder / "told", folder / "failing"
        for room in ("cortex", "web", "migrations"):
            left_out = shutil.ignore_patterns("node_modules", "*.jinja")
            shutil.copytree(ROOT / room, self.tree / room, ignore=left_out)
        with self.page.open("a") as page:
            page.write(MARKED.format(told=str(self.told), failing=str(self.failing)))

    @property
    def page(self) -> Path:
        return self.tree / "web" / "pages" / "skills.py"

    @property
    def loads(self) -> int:
        """How often the page was loaded."""
        return self.told.read_text().count("loaded") if self.told.exists() else 0

    def _environment(self) -> dict[str, str]:
        return {**super()._environment(), "PYTHONPATH": str(self.tree)}


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Checkout]:
    made = Checkout(tmp_path)
    made.start()
    yield made
    made.close()


def test_a_page_is_loaded_once_by_however_many_ask_first(daemon: Checkout) -> None:
    with Caller(daemon).set_up() as ada:
        assert "/skills" in ada.get("/more").text  # with how many there are, which a new home has none of
        first = daemon.loads
        ada.get("/c/new")
        with ThreadPoolExecutor(8) as several:
            answers = list(several.map(ada.get, ["/skills"] * 8))
        assert [one.status_code for one in answers] == [200] * 8
        assert daemon.loads == 1 >= first
    daemon.kill9()
    daemon.start()
    with Caller(daemon).log_in() as ada:
        assert daemon.loads == 1
        assert ada.send_body("/skills", "", b"").status_code == 422  # a form is refused by the page's own route
        assert daemon.loads == 2


def test_a_page_that_cannot_be_loaded_is_told_and_tried_anew(daemon: Checkout) -> None:
    daemon.failing.touch()
    with Caller(daemon).set_up() as ada:
        for _ in range(2):
            answer = ada.get("/skills")
            assert answer.status_code == 500
            assert answer.headers["x-request-id"] in answer.text
        assert "RuntimeError: a library is missing" in daemon.log
        assert ada.get("/tasks").status_code == 200
        daemon.failing.unlink()
        assert ada.get("/skills").status_code == 200


@pytest.mark.parametrize("changed", ["web/pages/skills.py", "web/visit.py", "cortex/base/clock.py"])
def test_a_page_of_a_program_that_was_changed_meanwhile_asks_for_a_restart(daemon: Checkout, changed: str) -> None:
    with Caller(daemon).set_up() as ada:
        assert ada.get("/tasks").status_code == 200
        with (daemon.tree / changed).open("a") as module:
            module.write("# of the version after\n")
        answer = ada.get("/skills")
        assert (answer.status_code, "Restart Cortex" in answer.text) == (503, True)
        assert "skills.py is not loaded: restart Cortex" in daemon.log
        assert ada.get("/tasks").status_code == 200
        assert daemon.loads == 0
        daemon.restart()
        assert ada.get("/skills").status_code == 200
