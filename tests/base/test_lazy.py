"""Modules that are imported at their first use, in real packages on the disk."""

import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from cortex.base import lazy
from tests.patience import PATIENCE_S

Write = Callable[[str, str], None]
DRIVER = "lazy_driver"
TALE = "lazy_tale"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes modules that can be imported for the length of the test."""
    monkeypatch.syspath_prepend(tmp_path)

    def written(file: str, text: str) -> None:
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        importlib.invalidate_caches()

    written(f"{DRIVER}/__init__.py", "from lazy_driver import errors\nVERSION = 3\n")
    written(f"{DRIVER}/errors.py", "class Broken(Exception):\n    pass\n")
    written(f"{TALE}.py", "")
    yield written
    for name in [name for name in sys.modules if name.startswith("lazy_")]:
        del sys.modules[name]


def engine(write: Write, text: str) -> ModuleType:
    """A package of these lines, imported without the driver."""
    write("lazy_engine.py", text)
    lazy.import_without("lazy_engine", DRIVER, f"{DRIVER}.errors", TALE)
    return sys.modules["lazy_engine"]


LIKE_DBOS = f"import {DRIVER}, {TALE}\nfrom {DRIVER} import errors as driver_errors\n"


def test_what_a_package_only_names_is_imported_at_its_first_use(write: Write) -> None:
    made = engine(write, LIKE_DBOS)
    assert sys.modules.keys() & {DRIVER, f"{DRIVER}.errors", TALE} == set()
    broken = made.driver_errors.Broken
    assert broken is importlib.import_module(f"{DRIVER}.errors").Broken
    assert made.lazy_driver.VERSION == 3
    assert TALE not in sys.modules


def test_whoever_else_imports_it_gets_the_real_one(write: Write) -> None:
    made = engine(write, LIKE_DBOS)
    real = importlib.import_module(DRIVER)
    assert not isinstance(real, lazy.StandIn)
    assert made.lazy_driver.errors.Broken is real.errors.Broken


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("class Own(driver_errors.Broken): pass", id="a base class"),
        pytest.param("from lazy_driver.errors import Broken", id="a name out of a module"),
        pytest.param("from lazy_driver.rows import ROW", id="a module nobody thought of"),
        pytest.param("import lazy_driver.rows", id="the same by its dotted name"),
    ],
)
def test_a_version_of_the_package_that_uses_it_at_once_gets_it_at_once(write: Write, line: str) -> None:
    write(f"{DRIVER}/rows.py", "ROW = 1\n")
    made = engine(write, f"{LIKE_DBOS}{line}\n")
    assert not isinstance(sys.modules[DRIVER], lazy.StandIn)
    assert made.driver_errors.Broken is sys.modules[f"{DRIVER}.errors"].Broken


def test_one_that_is_there_already_is_used(write: Write) -> None:
    real = importlib.import_module(DRIVER)
    assert engine(write, LIKE_DBOS).lazy_driver is real


def test_a_package_that_cannot_be_imported_leaves_no_stand_in_behind(write: Write) -> None:
    with pytest.raises(ModuleNotFoundError, match="lazy_nowhere"):
        engine(write, f"{LIKE_DBOS}import lazy_nowhere\n")
    assert "lazy_engine" not in sys.modules
    assert [one for one in sys.modules.values() if isinstance(one, lazy.StandIn)] == []


def test_a_failed_import_is_told_and_tried_anew(write: Write) -> None:
    made = engine(write, LIKE_DBOS)
    write(f"{TALE}.py", "raise ImportError('no library')\n")
    with pytest.raises(ImportError, match="no library"):
        _ = made.lazy_tale.WORD
    write(f"{TALE}.py", "WORD = 'here again, and longer than before'\n")
    assert made.lazy_tale.WORD == "here again, and longer than before"


def test_threads_that_use_it_at_once_all_get_the_whole_of_it(write: Write) -> None:
    write(f"{TALE}.py", "import time\ntime.sleep(0.05)\nWORD = object()\n")
    made = engine(write, LIKE_DBOS)
    line, found = threading.Barrier(8), list[object]()

    def use() -> None:
        line.wait(PATIENCE_S)
        found.append(made.lazy_tale.WORD)

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(found) == 8
    assert len(set(found)) == 1


def test_a_driver_that_is_not_there_has_errors_that_never_happen(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write(f"{DRIVER}/__init__.py", "raise ImportError('no libpq')\n")
    write("lazy_engine/__init__.py", LIKE_DBOS)
    lazy.import_without("lazy_engine", TALE, optional=(DRIVER, f"{DRIVER}.errors"))
    engine = importlib.import_module("lazy_engine")
    assert not isinstance(ValueError(), engine.driver_errors.Broken)
    assert not isinstance(ValueError(), getattr(engine, DRIVER).OperationalError)
    with pytest.raises(ImportError, match="no libpq"):
        importlib.import_module(DRIVER)


def test_what_is_loaded_ahead_is_there(write: Write) -> None:
    lazy.load_ahead(TALE, DRIVER)
    assert sys.modules.keys() >= {TALE, DRIVER, f"{DRIVER}.errors"}


@pytest.mark.parametrize(
    ("line", "is_hollow"),
    [
        pytest.param("FOUND: dict[str, Shape] | None = None", True, id="named alone"),
        pytest.param("FOUND = Shape(sides=3)", False, id="made"),
        pytest.param("FOUND = Shape.SQUARE", False, id="looked into"),
    ],
)
def test_classes_that_a_package_only_names_are_empty(write: Write, line: str, *, is_hollow: bool) -> None:
    write("lazy_drawn/__init__.py", f"from lazy_drawn.shapes import Shape\n{line}\n")
    write("lazy_drawn/shapes.py", "class Shape:\n    SQUARE = 4\n    def __init__(self, sides: int) -> None: ...\n")
    lazy.import_naming("lazy_drawn", "lazy_drawn.shapes")
    made = sys.modules["lazy_drawn"]
    real = importlib.import_module("lazy_drawn.shapes")
    assert real.Shape.SQUARE == 4
    assert (made.Shape is not real.Shape) == is_hollow
    assert [one for one in sys.modules.values() if isinstance(one, lazy.Hollow)] == []


def test_a_package_that_is_there_already_stays_as_it_is(write: Write) -> None:
    write("lazy_drawn/__init__.py", "from lazy_drawn.shapes import Shape\n")
    write("lazy_drawn/shapes.py", "class Shape:\n    pass\n")
    made = importlib.import_module("lazy_drawn")
    lazy.import_naming("lazy_drawn", "lazy_drawn.shapes")
    assert made.Shape is importlib.import_module("lazy_drawn.shapes").Shape
