"""The folder is the register: finds and loads modules of ours by name. The only user of importlib here.

What is heavy is loaded here on its first use, never at the daemon's start. Loads nothing outside `cortex` and `web`.
"""

import gc
import importlib
import importlib.metadata
import importlib.util
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from types import ModuleType

_OURS = ("cortex", "web")
_loading: list[bool] = []  # an entry for each module that is being loaded: whether the collector was on before
_turn = Lock()


def load(dotted: str) -> ModuleType:
    """The module of this dotted name, imported on first use; ModuleNotFoundError when it is absent.

    Raises ValueError for a name outside our own packages.
    """
    if dotted.partition(".")[0] not in _OURS:
        raise ValueError(f"{dotted!r} is not a module of ours")
    if dotted in sys.modules:
        return importlib.import_module(dotted)
    with uncollected():
        return importlib.import_module(dotted)


@contextmanager
def uncollected() -> Iterator[None]:
    """What is made meanwhile stays: no garbage is looked for until it is there, nor among it ever after.

    A model's SDK is 200,000 objects, and each look through them held the event loop for 0.2 s (2026-11-24).
    """
    with _turn:
        _loading.append(_loading[0] if _loading else gc.isenabled())
        gc.disable()
    try:
        yield
    finally:
        with _turn:
            was_on = _loading.pop()
            if not _loading:
                gc.freeze()
                if was_on:
                    gc.enable()


def modules(package_name: str) -> tuple[str, ...]:
    """The sorted stems of the modules in a package of ours, without importing them; private (`_x`) ones left out."""
    if package_name.partition(".")[0] not in _OURS:
        raise ValueError(f"{package_name!r} is not a package of ours")
    spec = importlib.util.find_spec(package_name)
    places = [] if spec is None or spec.submodule_search_locations is None else list(spec.submodule_search_locations)
    found = {info.name for info in pkgutil.iter_modules(places) if not info.name.startswith("_")}
    return tuple(sorted(found))


def is_installed(name: str) -> bool:
    """Tell whether a package of an extra is there, without importing it."""
    return importlib.util.find_spec(name) is not None


def installed_version(name: str) -> str:
    """The version of a package, by its name in an index; "" where it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
