"""The fitted model: what a text says about each tool, each category and the ways of needing none. Loads and scores.

One linear model over hashed words and letters (`words/grams.py`), weighed by how rare they are and calibrated by three
logistic regressions. `fit.py` makes it; the file is mapped. Loaded late through `scan.load`: numpy is heavy.
"""

import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from cortex.base import packed
from cortex.selection.model.calibrations import Calibrations, Floats, TextChances
from cortex.selection.words.grams import grams, words
from cortex.selection.words.known_words import KnownWords

SHIPPED = Path(__file__).with_name("weights.bin")
FORMAT = 2  # 1: `.npz` files with rows of the table of meanings, until November 2026
GRAM_SHARE = 0.8
HALF_SHARES = np.array([1.0, GRAM_SHARE])  # of words, of letters
NEED = "need"
FACTS = ("tools", "categories", "examples", "made")  # of the file: the fields that stand there as they are
ARRAYS = ("rows", "matrix", "scale", "bias", "home")


class Weights(Struct, frozen=True, kw_only=True):
    """The model. Columns: tools, then categories, then KINDS, then NEED.

    `rows`: bucket -> row of `matrix`, -1 where no example had it; `matrix` (n_rows, n_columns) int8 with a `scale` a
    column, an `idf` a row; `home`: each tool's category by its number; `known`: the words of the utterances.
    `examples`: hash of what it was fitted on; `made`: when, and from how many.
    """

    tools: tuple[str, ...]
    categories: tuple[str, ...]
    rows: NDArray[np.int32]
    idf: Floats
    matrix: NDArray[np.int8]
    scale: Floats
    bias: Floats
    home: NDArray[np.int32]
    calibrations: Calibrations
    known: KnownWords
    examples: str
    made: str

    def scores(self, texts: Sequence[str]) -> Floats:
        """(n_texts, n_columns): about -1 for "not at all" to 1 for "surely"."""
        found = np.zeros((len(texts), len(self.bias)), dtype=np.float32)
        for place, said in enumerate(texts):
            _, rows, values = self._features([said])
            found[place] = np.einsum("i,ij->j", values, self.matrix.take(rows, axis=0).astype(np.float32))
        return found * self.scale + self.bias

    def vectors(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], Floats]:
        """The rows of the matrix that these texts touch, in order, and the texts over them: (n_texts, n_touched)."""
        at, rows, values = self._features(texts)
        touched, places = np.unique(rows, return_inverse=True)
        dense = np.zeros((len(texts), len(touched)), dtype=np.float32)
        dense[at, places] = values
        return touched, dense

    def _features(self, texts: Sequence[str]) -> tuple[NDArray[np.integer], NDArray[np.integer], Floats]:
        """Features of several texts, a text's together: its number, the row of the matrix, the weight.

        A text's words and its letters are each of length 1, letters at GRAM_SHARE.
        """
        halves = [half(said) for said in texts for half in (words, grams)]
        at = np.repeat(np.arange(len(halves)), [len(half) for half in halves])
        rows = self.rows[np.frombuffer(b"".join(halves), dtype=np.int32)]
        known = rows >= 0
        keys, counts = np.unique(at[known] * len(self.idf) + rows[known], return_counts=True)
        half, rows = np.divmod(keys, len(self.idf))
        weight = (1 + np.log(counts.astype(np.float32))) * self.idf[rows]
        length = np.sqrt(np.bincount(half, np.square(weight)))[half]
        values = weight * HALF_SHARES[half % 2] / np.where(length > 0, length, 1.0)
        return half // 2, rows, values.astype(np.float32)

    def mended(self, texts: Sequence[str]) -> list[str]:
        """The texts without the slips of the pen that can be told."""
        return [self.known.mended(said) for said in texts]

    def judged(self, texts: Sequence[str]) -> "TextChances":
        """The chances of each text's tools and gates; no tool's, and all that a wish may be, where no word is known."""
        read = [self.known.readable(said) for said in texts]
        found = self.calibrations.judged(read, self.scores(read), self.home, len(self.categories))
        unread = [self.known.knows_none(said) for said in texts]
        found.tools[unread], found.wish[unread], found.work[unread] = 0, 1, 1
        return found


def quantised(dense: NDArray[Any]) -> tuple[NDArray[np.int8], Floats]:
    """Weights (n_rows, n_columns) in eight bits, and the scale of each column."""
    scale = np.maximum(np.abs(dense).max(axis=0) / 127, np.float32(1e-9)).astype(np.float32)
    return np.rint(dense / scale).astype(np.int8), scale


def to_bytes(weights: Weights) -> bytes:
    """The model as a file that can be mapped, the same bytes for the same model."""
    facts = {name: getattr(weights, name) for name in FACTS}
    arrays = {name: getattr(weights, name) for name in ARRAYS} | {
        "idf": weights.idf.astype(np.float16),
        "words": np.frombuffer(weights.known.lines.encode(), dtype=np.uint8),
    }
    return packed.to_bytes(
        {**facts, "format": FORMAT, "repeated": weights.known.repeated}, {**arrays, **weights.calibrations.arrays()}
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
        return Weights(**told, idf=found["idf"].astype(np.float32), calibrations=Calibrations.of(found), known=known)
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
