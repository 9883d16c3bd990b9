"""A centroid a tool: the mean of the vectors of its example queries, made at the first use of a registry's version.

By the snapshot's sentence model, else by hashed word and character n-grams (feature hashing: Weinberger et al. 2009),
which find .523 of `house` where the table of meanings finds .597.
"""

import math
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain, pairwise
from zlib import crc32

from cortex.selection.index import sentence_models
from cortex.selection.index.vectors import Vector, Vectors
from cortex.selection.types import SNAPSHOTS_KEPT, Snapshot
from cortex.selection.words import text

DIMENSIONS = 512
GRAMS = (3, 4, 5)
TERMS_KEPT = 8_192
WORD_WEIGHT, PAIR_WEIGHT, GRAM_WEIGHT = 1.0, 0.7, 0.3
DECIMALS = 4

Centroids = tuple[tuple[str, ...], Vectors]  # names, and a vector each, 0 without a word
Numbers = Iterable[tuple[int, float]]  # of a vector, by their places; those that are 0 may be left out


def similarities(snapshot: Snapshot, said: str, *, is_semantic: bool = False) -> dict[str, float]:
    """Tool -> cosine with the text, -1 to 1. is_semantic: by the snapshot's sentence model, EncoderFailed without."""
    if is_semantic:
        names, rows = semantic_centroids_of(snapshot)
        asked = sentence_models.named(snapshot.encoder).asked([said])[0]
    else:
        names, rows = centroids_of(snapshot)
        asked = _filled(DIMENSIONS, [encoded(said).items()])
    return {name: round(each, DECIMALS) for name, each in zip(names, rows.cosines(asked), strict=True)}


@lru_cache(maxsize=SNAPSHOTS_KEPT)
def centroids_of(snapshot: Snapshot) -> Centroids:
    """By the n-grams."""
    told = _told(snapshot)
    return tuple(told), Vectors(
        [_filled(DIMENSIONS, (encoded(each).items() for each in texts)) for texts in told.values()]
    )


@lru_cache(maxsize=SNAPSHOTS_KEPT)
def semantic_centroids_of(snapshot: Snapshot) -> Centroids:
    """By the sentence model, which keeps the vectors of the examples; EncoderFailed where they are not at hand."""
    told = _told(snapshot)
    texts = list(dict.fromkeys(chain.from_iterable(told.values())))
    rows = dict(zip(texts, sentence_models.named(snapshot.encoder).kept(texts), strict=True))
    size = max(map(len, rows.values()), default=0)
    return tuple(told), Vectors([_filled(size, (enumerate(rows[each]) for each in texts)) for texts in told.values()])


def _told(snapshot: Snapshot) -> dict[str, list[str]]:
    """The example queries of each tool; of one without any its name and summary."""
    said: dict[str, list[str]] = {entry.name: [] for entry in snapshot.entries if not entry.is_meta}
    for example in chain.from_iterable(domain.examples for domain in snapshot.domains):
        for name in example.tools:
            said.get(name, []).append(example.text)
    for entry in snapshot.entries:
        if not said.get(entry.name, True):
            said[entry.name].append(f"{entry.name.replace('_', ' ')} {entry.summary}")
    return said


def _filled(size: int, rows: Iterable[Numbers]) -> Vector:
    """The mean of these vectors, brought to length 1."""
    made = [0.0] * size
    for place, number in chain.from_iterable(rows):
        made[place] += number
    length = math.hypot(*made) or 1.0
    return [number / length for number in made]


def encoded(said: str) -> dict[int, float]:
    """The text as a vector of DIMENSIONS, of length 1, by its places that are not 0; of a text without a word none."""
    terms = text.terms(said)
    pairs = (_mark(f"p {one} {other}", PAIR_WEIGHT) for one, other in pairwise(terms))
    made: dict[int, float] = {}
    for place, weight in chain(*map(_marks, terms), pairs):
        made[place] = made.get(place, 0.0) + weight
    length = math.hypot(*made.values()) or 1.0
    return {place: weight / length for place, weight in made.items()}


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
