"""Modules of others that are imported at their first use. Who asks for a module of ours uses `base/scan.py`.

No lock of its own: importlib's, one a module, let threads meet here. A failed import leaves nothing behind, is raised
to whoever asked, and tried anew by whoever asks next.
"""

import importlib
import sys
from types import ModuleType
from typing import Any


class NeverRaised(Exception):
    """Stands for each error of a driver that is not installed: nothing is one of these."""


class StandIn(ModuleType):
    """Looks like the module of this name; the real one is imported once something of it is asked for.

    `is_optional`: where it cannot be imported, all that is asked of it are kinds of errors that never happen.
    """

    def __init__(self, name: str, *, is_optional: bool = False) -> None:
        super().__init__(name)
        self._is_optional, self._is_absent = is_optional, False

    def __getattr__(self, name: str) -> Any:
        """Return what the real module has. Any: it is what it is there."""
        if name.startswith("__"):  # the import system asks each module for such, and has no use for the real one's
            raise AttributeError(f"{self.__name__} is not imported yet and has no {name} of its own")
        if sys.modules.get(self.__name__) is self:
            _withdraw()
        if self._is_absent:  # it is looked for once: each look would search the disk for a C library
            return NeverRaised
        try:
            return getattr(importlib.import_module(self.__name__), name)
        except ImportError:
            self._is_absent = self._is_optional
            if not self._is_optional:
                raise
            return NeverRaised


_standing: list[StandIn] = []  # in `sys.modules`, while a package is imported without them


def import_without(package: str, *late: str, optional: tuple[str, ...] = ()) -> None:
    """Import a package, with stand-ins in it for modules that it imports and hardly ever uses.

    Whoever else imports them gets the real ones. If the package uses one as it is imported, that becomes real at once.

    Args:
        package: What is imported; called while only one thread imports.
        late: Dotted names, a package ahead of its submodules.
        optional: Those after them, of which only errors are named, and which need not be installed.
    """
    for name in (*late, *optional):
        parent, _, stem = name.rpartition(".")
        if name in sys.modules or (parent and not isinstance(sys.modules.get(parent), StandIn)):
            continue  # real already
        sys.modules[name] = stand_in = StandIn(name, is_optional=name in optional)
        _standing.append(stand_in)
        if parent:
            setattr(sys.modules[parent], stem, stand_in)
    try:
        importlib.import_module(package)
    except ImportError:  # a version of it that takes more of them apart
        if not _standing:
            raise
        _withdraw()
        importlib.import_module(package)
    finally:
        _withdraw()


class Hollow(ModuleType):
    """Looks like a module of classes, each of which is empty."""

    def __getattr__(self, name: str) -> Any:
        """Return an empty class of this name. Any: it stands for one of theirs."""
        if name.startswith("__"):  # as above
            raise AttributeError(f"{self.__name__} has no {name}")
        made = type(name, (), {"__module__": self.__name__})
        setattr(self, name, made)
        return made


def import_naming(package: str, *named: str) -> None:
    """Import a package that takes classes from these modules of its own and uses none of them here.

    It holds empty ones; whoever else imports those modules gets the real ones. A version of the package that does more
    with them than to name them is imported as it is.

    Args:
        package: What is imported, unless it is there already; called while only one thread imports.
        named: Dotted names.
    """
    if package in sys.modules:
        return
    sys.modules.update({name: Hollow(name) for name in named})
    try:
        importlib.import_module(package)
    except (ImportError, TypeError, AttributeError):
        for name in [name for name in sys.modules if name.partition(".")[0] == package]:
            del sys.modules[name]
        importlib.import_module(package)
    finally:
        for name in named:
            if isinstance(sys.modules.get(name), Hollow):
                del sys.modules[name]


def _withdraw() -> None:
    while _standing:
        stand_in = _standing.pop()
        if sys.modules.get(stand_in.__name__) is stand_in:
            del sys.modules[stand_in.__name__]


def load_ahead(*names: str) -> None:
    """Import these now, in the thread of whoever calls, so that whoever uses them first waits for none of it."""
    for name in names:
        importlib.import_module(name)
