"""The fitted model: what a text says about each tool, each category and the ways of needing none. Loads and scores.

One linear model over hashed words and letters (`words/grams.py`), weighed by how rare they are and calibrated by three
logistic regressions. `fit.py` makes it; the file is mapped. Rows are added up as long integers (`base/lanes.py`).
"""

import math
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from operator import mul
from pathlib import Path
from typing import Any

from msgspec import Struct

from cortex.base import packed
from cortex.base.lanes import Lanes
from cortex.base.packed import View
from cortex.selection.model.calibrations import Calibrations, TextChances
from cortex.selection.words.grams import grams, words
from cortex.selection.words.known_words import KnownWords

SHIPPED = Path(__file__).with_name("weights.bin")
FORMAT = 2  # 1: `.npz` files with rows of the table of meanings, until November 2026
GRAM_SHARE = 0.8
HALVES = ((words, 1.0), (grams, GRAM_SHARE))
NEED = "need"
FACTS = ("tools", "categories", "examples", "made")  # of the file: the fields that stand there as they are
ARRAYS = ("rows", "idf", "matrix", "scale", "bias", "home")
MOST_WEIGHT = 127  # of an entry of the matrix
ROWS_KEPT = 2_048  # common words and letters: half of the rows of a message, at half a kilobyte each


class Weights(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """The model. Columns: tools, then categories, then KINDS, then NEED.

    `rows`: bucket -> row of `matrix`, -1 where no example had it; `matrix` (n_rows, n_columns) int8 with a `scale` a
    column, an `idf` a row; `home`: each tool's category by its number; `known`: the words of the utterances.
    `examples`: hash of what it was fitted on; `made`: when, and from how many.
    """

    tools: tuple[str, ...]
    categories: tuple[str, ...]
    rows: View
    idf: View
    matrix: View
    scale: View
    bias: View
    home: View
    calibrations: Calibrations
    known: KnownWords
    examples: str
    made: str

    def scores(self, said: str) -> list[float]:
        """A number a column: about -1 for "not at all" to 1 for "surely"."""
        features = self.features(said)
        most = MOST_WEIGHT * sum(features.values()) or 1.0
        fine = self._lanes.most / 2 / most  # no lane overflows, and the weights have all the bits that are left
        factors = [round(fine * weight) for weight in features.values()]
        sums = self._lanes.unpack(sum(map(mul, factors, map(self.row, features))))
        return [each * scale / fine + bias for each, scale, bias in zip(sums, self.scale, self.bias, strict=True)]

    def features(self, said: str) -> dict[int, float]:
        """The rows of the matrix that a text touches, each with its weight.

        Its words and its letters are each of length 1, letters at GRAM_SHARE.
        """
        found: dict[int, float] = {}
        row_of, idf = self.rows.__getitem__, self.idf
        for half, share in HALVES:
            counts = Counter(map(row_of, half(said)))
            counts.pop(-1, None)
            weights = {row: idf[row] if n == 1 else (1 + math.log(n)) * idf[row] for row, n in counts.items()}
            length = math.hypot(*weights.values()) or 1.0
            found |= {row: share * weight / length for row, weight in weights.items()}
        return found

    @cached_property
    def row(self) -> Callable[[int], int]:
        """Number of a row of the matrix -> the row as lanes; those in use are kept."""
        flat, width = self.matrix.cast("B"), len(self.bias)
        return lru_cache(ROWS_KEPT)(lambda at: self._lanes.pack_bytes(flat[at * width : (at + 1) * width]))

    @cached_property
    def _lanes(self) -> Lanes:
        return Lanes(4, len(self.bias))

    def mended(self, texts: Sequence[str]) -> list[str]:
        """The texts without the slips of the pen that can be told."""
        return [self.known.mended(said) for said in texts]

    def judged(self, said: str) -> TextChances:
        """The chances of a text's tools and gates; no tool's, and all that a wish may be, where no word is known."""
        if self.known.knows_none(said):
            return TextChances(tools=[0.0] * len(self.tools), wish=1.0, work=1.0)
        read = self.known.readable(said)
        return self.calibrations.judged(read, self.scores(read), self.home, len(self.categories))


def to_bytes(weights: Weights) -> bytes:
    """The model as a file that can be mapped, the same bytes for the same model."""
    facts = {name: getattr(weights, name) for name in FACTS}
    arrays = {name: getattr(weights, name) for name in ARRAYS} | {"words": weights.known.lines.encode()}
    return packed.to_bytes(
        {**facts, "format": FORMAT, "repeated": weights.known.repeated},
        {**arrays, **weights.calibrations.arrays()},
        halves=("idf",),
    )


def from_bytes(data: bytes) -> Weights:
    """The model that `to_bytes` wrote; ValueError for anything else, and for what another version of Cortex wrote."""
    return _read(*packed.read(data))


def compressed(weights: Weights) -> bytes:
    """As `to_bytes`, for a database: half the size, and nothing of it can be mapped."""
    return zlib.compress(to_bytes(weights))


def from_compressed(data: bytes) -> Weights:
    """The model that `compressed` wrote; ValueError for anything else."""
    try:
        return from_bytes(zlib.decompress(data))
    except zlib.error as error:
        raise ValueError(f"these are no weights ({error})") from error


def _read(facts: Mapping[str, Any], found: packed.Arrays) -> Weights:
    if facts.get("format") != FORMAT:
        raise ValueError("another version of Cortex wrote them")
    try:
        told: dict[str, Any] = {name: facts[name] for name in FACTS} | {name: found[name] for name in ARRAYS}
        told |= {"tools": tuple(facts["tools"]), "categories": tuple(facts["categories"])}
        known = KnownWords(lines=found["words"].tobytes().decode(), repeated=facts["repeated"])
        return Weights(**told, calibrations=Calibrations.of(found), known=known)
    except (KeyError, TypeError) as error:
        raise ValueError(f"these are no weights ({error})") from error


@lru_cache(maxsize=1)
def shipped() -> Weights:
    """The model that came with Cortex, mapped once; DamagedFile where it cannot be."""
    return packed.loaded(SHIPPED, _read)


_OWN: dict[str, Weights] = {}
OWN_KEPT = 4


def keep(key: str, weights: Weights) -> None:
    """Have a server's own model at hand under this key; the oldest of several goes."""
    _OWN.pop(key, None)
    _OWN[key] = weights
    for old in list(_OWN)[:-OWN_KEPT]:
        del _OWN[old]


def is_kept(key: str) -> bool:
    """Tell whether the model of this key is at hand."""
    return key in _OWN


def in_force(key: str) -> Weights:
    """The model that a snapshot names: the shipped one for "". LookupError for one that nobody brought here."""
    if not key:
        return shipped()
    if key not in _OWN:
        raise LookupError(f"the fitted model {key!r} was not loaded before it was planned with")
    return _OWN[key]
