"""The folder is the register: finds and loads modules of ours by name; those of others: `base/lazy.py`.

What is heavy is loaded here on its first use, never at the daemon's start. Loads nothing outside `cortex` and `web`
but modules of plug-ins, by a function of their own: who calls it has asked whether an admin allowed them.
"""

import gc
import importlib
import importlib.machinery
import importlib.metadata
import importlib.util
import logging
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from traceback import format_exception_only
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")

Distribution = importlib.metadata.Distribution
EntryPoint = importlib.metadata.EntryPoint
_OURS = ("cortex", "web")
_loading: list[bool] = []  # an entry for each module that is being loaded: whether the collector was on before
_turn = Lock()

log = logging.getLogger(__name__)


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
    """Keep what is made meanwhile: no garbage is looked for until it is there, nor among it ever after.

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


def bringing(*groups: str) -> Iterator[tuple[Distribution, tuple[EntryPoint, ...]]]:
    """Each installed package with its entry points in these groups, none of them imported; of two of a name the first.

    Reads the metadata of all that is installed, also since the start: off the event loop.
    """
    importlib.invalidate_caches()
    seen: set[str] = set()
    for package in importlib.metadata.distributions():
        read, error = caught(partial(_named_points, package, groups))
        if read is None:
            log.warning("packages: the metadata of one cannot be read: %s", in_words(error))
            continue
        name, found = read
        if found and name not in seen:
            seen.add(name)
            yield package, found


def _named_points(package: Distribution, groups: tuple[str, ...]) -> tuple[str, tuple[EntryPoint, ...]]:
    found = tuple(point for point in package.entry_points if point.group in groups)
    return package_name(package) if found else "", found


def caught(work: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    """Return what work with the code or the files of others gives, and what it raised, which ends nothing of ours."""
    try:
        return work(), None
    except BaseException as error:  # noqa: BLE001 - whatever others raise
        return None, error


def in_words(error: BaseException | None) -> str:
    """Say what was raised in a line, also where its own text fails, without halves of signs that no page takes."""
    text = " ".join("".join(format_exception_only(error)).split())
    return text[:1_000].encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def package_name(package: Distribution) -> str:
    """Its name as installers compare it: `Cortex_Moon` and `cortex-moon` are one."""
    return re.sub(r"[-_.]+", "-", package.metadata["Name"]).casefold()


def files_of(dotted: str) -> tuple[Path, ...]:
    """The files that an import of this module would run: its own and those of the packages around it. () = none.

    Nothing is imported for it, unlike `importlib.util.find_spec`, which runs the packages around.
    """
    found: list[Path] = []
    places: Sequence[str] | None = None
    spec: importlib.machinery.ModuleSpec | None = None
    if dotted.partition(".")[0] in sys.stdlib_module_names:
        return ()
    for name in dotted.split("."):  # each without those ahead of it: of a dotted name Python asks for what is imported
        spec = importlib.machinery.PathFinder.find_spec(name, places) if places != [] else None
        if spec is None:
            return ()
        places = [*(spec.submodule_search_locations or ())]
        found += [Path(spec.origin)] if spec.has_location and spec.origin else []
    return tuple(found) if spec is not None and spec.has_location else ()


def load_plugin(dotted: str) -> ModuleType:
    """A module of an installed package, run with all rights of this process; raises whatever it raises.

    Raises ValueError for a name in our own packages.
    """
    if dotted.partition(".")[0] in _OURS:
        raise ValueError(f"{dotted!r} is a name of Cortex itself")
    importlib.invalidate_caches()
    return importlib.import_module(dotted)
