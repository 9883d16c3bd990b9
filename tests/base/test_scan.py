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
