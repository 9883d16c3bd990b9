"""The tool categories, a file each. `load()` scans the folder; only `app.py` (and tests) call it."""

from copy import copy
from functools import cache
from pathlib import Path

from cortex.base import scan
from cortex.toolkit.examples import read
from cortex.toolkit.registry import Registry, category_of

UTTERANCES = Path(__file__).parent / "utterances"


def load() -> Registry:
    """A registry of its own for each house, over every category of this folder, which is read once a process.

    TypeError at the first tool that is not whole.
    """
    return copy(_read())


@cache
def _read() -> Registry:
    categories = (category_of(scan.load(f"{__name__}.{stem}")) for stem in scan.modules(__name__))
    return Registry(categories, several=read(UTTERANCES / "several.txt"), none=read(UTTERANCES / "none.txt"))
