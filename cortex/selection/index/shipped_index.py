"""What is worked out of the shipped tools when Cortex is built: their words, how rare each is, what likeness is worth.

`make train` writes the file (`tests/bench/index_table.py`); mapped, so that a start reads next to nothing of it. A tool
that is not as it shipped is cut anew, so an old file costs time and never a wrong answer.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from cortex.base import memory, packed
from cortex.selection.index.documents import CutRows
from cortex.selection.index.search import WordRarity
from cortex.selection.index.semantic_index import Curves, LikenessCurve

SHIPPED = Path(__file__).with_name("shipped_index.bin")
NOTHING: Mapping[str, Any] = {"names": (), "learned": (), "curves": None, "count": 0}


class ShippedIndex(Struct, frozen=True, kw_only=True, eq=False):
    """The file. `curves`: what a likeness by the table of meanings is worth, fitted on the tools that are `learned`."""

    rows: CutRows
    rarity: WordRarity
    learned: frozenset[str]
    curves: Curves | None


@lru_cache(maxsize=1)
def shipped() -> ShippedIndex:
    """Return what came with Cortex; an empty one where the file is missing or damaged, which the log says."""
    means = "Or run `make train`. Until then tools are cut into words at each start."
    none = dict.fromkeys(("held", "digests", "flat", "rows"), b"")
    found = memory.spared(SHIPPED, lambda: _read(*packed.mapped(SHIPPED)), means)
    return found or _read(NOTHING, {**packed.word_arrays(()), **none})


def _read(facts: Mapping[str, Any], arrays: packed.Arrays) -> ShippedIndex:
    words, curves = packed.WordList(arrays), facts["curves"]
    places = {name: place for place, name in enumerate(facts["names"])}
    return ShippedIndex(
        rows=CutRows(words, places, arrays),
        rarity=WordRarity(count=facts["count"], words=words, held=arrays["held"]),
        learned=frozenset(facts["learned"]),
        curves=curves and Curves(**{name: LikenessCurve(**each) for name, each in curves.items()}),
    )
