"""Texts as vectors without a model: hashed word and character n-grams, folded into a few hundred dimensions.

The default encoder of the `vector` recipe; a sentence model can stand in for it. Feature hashing: Weinberger et al.
2009. Loaded late through `scan.load`: numpy is heavy. Equal texts give equal vectors on every machine.
"""

from collections.abc import Iterator, Sequence
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from cortex.selection import text

DIMENSIONS = 512
GRAMS = (3, 4, 5)
WORD_WEIGHT, PAIR_WEIGHT, GRAM_WEIGHT = 1.0, 0.7, 0.3

Vectors = NDArray[np.float32]


def encode(texts: Sequence[str]) -> Vectors:
    """The texts as (n, DIMENSIONS) float32, rows of unit length; a text without a word is a row of zeros."""
    made = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
    for row, said in enumerate(texts):
        for feature, weight in features(said):
            mark = crc32(feature.encode())
            made[row, mark % DIMENSIONS] += weight if mark & 0x80000000 else -weight
    norms = np.sqrt(np.square(made).sum(axis=1, keepdims=True))
    return (made / np.where(norms > 0, norms, 1.0)).astype(np.float32)


def features(said: str) -> Iterator[tuple[str, float]]:
    """Stemmed words, pairs of neighbours, and the character n-grams of each word, with weights."""
    terms = text.terms(said)
    for at, term in enumerate(terms):
        yield f"w {term}", WORD_WEIGHT
        if at:
            yield f"p {terms[at - 1]} {term}", PAIR_WEIGHT
        edged = f"<{term}>"
        for size in GRAMS:
            for start in range(len(edged) - size + 1):
                yield f"g {edged[start : start + size]}", GRAM_WEIGHT
