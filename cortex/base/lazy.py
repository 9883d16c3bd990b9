"""Modules of others that are imported at their first use. Who asks for a module of ours uses `base/scan.py`.

No lock of its own: importlib's, one a module, let threads meet here. A failed import leaves nothing behind, is raised
to whoever asked, and tried anew by whoever asks next.
"""

import importlib
import sys
from types import ModuleType
from typing import Any


class StandIn(ModuleType):
    """Looks like the module of this name; the real one is imported once something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        """Return what the real module has. Any: it is what it is there."""
        if name.startswith("__"):  # the import system asks each module for such, and has no use for the real one's
            raise AttributeError(f"{self.__name__} is not imported yet and has no {name} of its own")
        if sys.modules.get(self.__name__) is self:
            _withdraw()
        return getattr(importlib.import_module(self.__name__), name)


_standing: list[StandIn] = []  # in `sys.modules`, while a package is imported without them


def import_without(package: str, *late: str) -> None:
    """Import a package, with stand-ins in it for modules that it imports and hardly ever uses.

    Whoever else imports them gets the real ones. If the package uses one as it is imported, that becomes real at once.

    Args:
        package: What is imported; called while only one thread imports.
        late: Dotted names, a package ahead of its submodules.
    """
    for name in late:
        parent, _, stem = name.rpartition(".")
        if name in sys.modules or (parent and not isinstance(sys.modules.get(parent), StandIn)):
            continue  # real already
        sys.modules[name] = stand_in = StandIn(name)
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


def _withdraw() -> None:
    while _standing:
        stand_in = _standing.pop()
        if sys.modules.get(stand_in.__name__) is stand_in:
            del sys.modules[stand_in.__name__]
