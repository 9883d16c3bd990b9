"""The tool categories, a file each. `load()` scans the folder; only `app.py` (and tests) call it."""

from cortex.base import scan
from cortex.toolkit.registry import Registry, category_of


def load() -> Registry:
    """Every category of this folder; TypeError at the first tool that is not whole."""
    return Registry(category_of(scan.load(f"{__name__}.{stem}")) for stem in scan.modules(__name__))
