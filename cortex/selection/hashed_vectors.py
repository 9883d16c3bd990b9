"""Texts as vectors without a model: hashed word and character n-grams, folded into a few hundred dimensions.

The default encoder of the `vector` recipe; a sentence model can stand in for it. Feature hashing: Weinberger et al.
2009. Loaded late through `scan.load`: numpy is heavy. Equal texts give equal vectors on every machine.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from cortex.selection import text

DIMENSIONS = 512
GRAMS = (3, 4, 5)
TERMS_KEPT = 8_192
WORD_WEIGHT, PAIR_WEIGHT, GRAM_WEIGHT = 1.0, 0.7, 0.3

Vectors = NDArray[np.float32]


def encode(texts: Sequence[str]) -> Vectors:
    """The texts as (n, DIMENSIONS) float32, rows of unit length; a text without a word is a row of zeros."""
    made = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
    for row, said in zip(made, texts, strict=True):
        terms = text.terms(said)
        for term in terms:
            places, weights = _term(term)
            row[places] += weights
        for one, other in pairwise(terms):
            place, weight = _mark(f"p {one} {other}", PAIR_WEIGHT)
            row[place] += weight
    norms = np.sqrt(np.square(made).sum(axis=1, keepdims=True))
    return (made / np.where(norms > 0, norms, 1.0)).astype(np.float32)


@lru_cache(maxsize=TERMS_KEPT)
def _term(term: str) -> tuple[NDArray[np.intp], Vectors]:
    """Where a stemmed word and its character n-grams fall, each place once, and with which weights."""
    edged = f"<{term}>"
    grams = [edged[start : start + size] for size in GRAMS for start in range(len(edged) - size + 1)]
    marks = [_mark(f"w {term}", WORD_WEIGHT), *(_mark(f"g {gram}", GRAM_WEIGHT) for gram in grams)]
    summed: dict[int, float] = {}
    for place, weight in marks:
        summed[place] = summed.get(place, 0.0) + weight
    return np.array(list(summed), dtype=np.intp), np.array(list(summed.values()), dtype=np.float32)


def _mark(feature: str, weight: float) -> tuple[int, float]:
    """The place of a feature, and its weight with the sign that its hash gives."""
    mark = crc32(feature.encode())
    return mark % DIMENSIONS, weight if mark & 0x80000000 else -weight
