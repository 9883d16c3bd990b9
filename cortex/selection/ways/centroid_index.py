"""A centroid a tool: the mean of the vectors of its example queries, made at the first use of a registry's version.

By the snapshot's sentence model, else by hashed word and character n-grams (feature hashing: Weinberger et al. 2009),
which find .523 of `house` where the table of meanings finds .597. Loaded late: numpy is heavy.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from cortex.selection.index import sentence_models
from cortex.selection.types import SNAPSHOTS_KEPT, Snapshot
from cortex.selection.words import text

DIMENSIONS = 512
GRAMS = (3, 4, 5)
TERMS_KEPT = 8_192
WORD_WEIGHT, PAIR_WEIGHT, GRAM_WEIGHT = 1.0, 0.7, 0.3
DECIMALS = 4

Vectors = NDArray[np.float32]
Centroids = tuple[tuple[str, ...], Vectors]  # names, and (n_tools, dim) rows of unit length, of zeros without a word


def similarities(snapshot: Snapshot, said: str, *, is_semantic: bool = False) -> dict[str, float]:
    """Tool -> cosine with the text, -1 to 1. is_semantic: by the snapshot's sentence model, EncoderFailed without."""
    names, rows = semantic_centroids_of(snapshot) if is_semantic else centroids_of(snapshot)
    query = (sentence_models.named(snapshot.encoder).asked([said]) if is_semantic else encode([said]))[0]
    return dict(zip(names, np.round((rows @ query).astype(np.float64), DECIMALS).tolist(), strict=True))


@lru_cache(maxsize=SNAPSHOTS_KEPT)
def centroids_of(snapshot: Snapshot) -> Centroids:
    """By the n-grams."""
    return _centroids(snapshot, encode)


@lru_cache(maxsize=SNAPSHOTS_KEPT)
def semantic_centroids_of(snapshot: Snapshot) -> Centroids:
    """By the sentence model, which keeps the vectors of the examples; EncoderFailed where they are not at hand."""
    return _centroids(snapshot, sentence_models.named(snapshot.encoder).kept)


def _centroids(snapshot: Snapshot, vectors: Callable[[Sequence[str]], Vectors]) -> Centroids:
    """A tool without examples is known by its name and summary."""
    said: dict[str, list[str]] = {entry.name: [] for entry in snapshot.entries if not entry.is_meta}
    for example in chain.from_iterable(domain.examples for domain in snapshot.domains):
        for name in example.tools:
            said.get(name, []).append(example.text)
    for entry in snapshot.entries:
        if not said.get(entry.name, True):
            said[entry.name].append(f"{entry.name.replace('_', ' ')} {entry.summary}")
    place = {text: at for at, text in enumerate(dict.fromkeys(chain.from_iterable(said.values())))}
    rows = vectors(list(place))
    means = [_unit(rows[[place[text] for text in texts]].mean(axis=0)) for texts in said.values()]
    return tuple(said), np.array(means, dtype=np.float32).reshape(-1, rows.shape[1])


def encode(texts: Sequence[str]) -> Vectors:
    """The texts as (n, DIMENSIONS) float32, rows of unit length; a text without a word is a row of zeros."""
    made = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
    for row, said in zip(made, texts, strict=True):
        terms = text.terms(said)
        pairs = (_mark(f"p {one} {other}", PAIR_WEIGHT) for one, other in pairwise(terms))
        for place, weight in chain(*map(_marks, terms), pairs):
            row[place] += weight
        row[:] = _unit(row)
    return made


@lru_cache(maxsize=TERMS_KEPT)
def _marks(term: str) -> list[tuple[int, float]]:
    """The marks of a stemmed word and of its character n-grams."""
    edged = f"<{term}>"
    grams = (edged[start : start + size] for size in GRAMS for start in range(len(edged) - size + 1))
    return [_mark(f"w {term}", WORD_WEIGHT), *(_mark(f"g {gram}", GRAM_WEIGHT) for gram in grams)]


def _mark(feature: str, weight: float) -> tuple[int, float]:
    """The place of a feature, and its weight with the sign that its hash gives."""
    mark = crc32(feature.encode())
    return mark % DIMENSIONS, weight if mark & 0x80000000 else -weight


def _unit(row: Vectors) -> Vectors:
    size = float(np.sqrt(np.square(row).sum()))
    return row / np.float32(size) if size else row
