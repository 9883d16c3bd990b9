import gc
import sys
from pathlib import Path

import pytest

from cortex.base import scan


def test_modules_come_sorted_and_without_private_ones() -> None:
    stems = scan.modules("cortex.base")
    assert list(stems) == sorted(stems)
    assert {"errors", "scan", "tokens"} <= set(stems)
    assert not any(stem.startswith("_") for stem in stems)


def test_an_absent_package_has_no_modules() -> None:
    assert scan.modules("cortex.nowhere") == ()


def test_loads_a_module_of_ours() -> None:
    assert scan.load("cortex.base.errors").CortexError.status == 500


@pytest.mark.parametrize("name", ["os", "json", "cortexx.base"])
def test_refuses_what_is_not_ours(name: str) -> None:
    with pytest.raises(ValueError, match="not a module of ours"):
        scan.load(name)


def test_an_absent_module_says_so() -> None:
    with pytest.raises(ModuleNotFoundError):
        scan.load("cortex.providers.never_written")


def test_what_is_loaded_late_is_not_looked_through_for_garbage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = "import gc\nWAS_ON = gc.isenabled()\nKEPT = [[] for _ in range(1000)]\n"
    outer = "from cortex.base import scan\nINNER = scan.load('cortex.late_inner')\n" + inner
    for name, text in (("late_inner", inner), ("late_outer", outer), ("late_broken", "1 / 0\n")):
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr("cortex.__path__", [*sys.modules["cortex"].__path__, str(tmp_path)])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = gc.get_freeze_count()
    loaded = scan.load("cortex.late_outer")
    assert (loaded.WAS_ON, loaded.INNER.WAS_ON, gc.isenabled()) == (False, False, True)
    assert gc.get_freeze_count() >= before + 2_000
    assert not any(one is loaded.KEPT for one in gc.get_objects())
    with pytest.raises(ZeroDivisionError):
        scan.load("cortex.late_broken")
    assert gc.isenabled()
