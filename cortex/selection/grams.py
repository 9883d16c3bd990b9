"""A text as features that a linear model weighs: words in their order, and the letters within them. Pure Python.

Features are hashed into buckets (Weinberger et al. 2009), words and letters apart, so that no vocabulary is kept and
a misspelt or unseen word still shares most of its letters with a known one.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import NamedTuple
from zlib import crc32

from cortex.selection import text

WORD_BUCKETS = 1 << 17  # at 1 << 15 each, seven languages fill nearly all and unlike words share one (2026-11-25)
GRAM_BUCKETS = 1 << 16
BUCKETS = WORD_BUCKETS + GRAM_BUCKETS
SIZES = (3, 4, 5)
LONGEST_TERM = 24
MOST_TERMS = 120
TERMS_KEPT = 8_192


def words(said: str) -> list[int]:
    """Buckets of the stemmed words, of neighbours, of words one apart, and of how the text begins and ends."""
    terms = _plain(said)
    if not terms:
        return []
    parts = [_term(term) for term in terms]
    found: list[int] = []
    for at, part in enumerate(parts):
        found.append(part.alone)
        if at:
            found.append(crc32(part.raw, parts[at - 1].then) % WORD_BUCKETS)
        if at > 1:
            found.append(crc32(part.raw, parts[at - 2].skip) % WORD_BUCKETS)
    return [*found, _word(f"a {terms[0]}"), _word(f"z {terms[-1]}"), _word(f"a {' '.join(terms[:2])}")]


def grams(said: str) -> Iterator[int]:
    """Buckets of the runs of 3 to 5 letters within each word, its edges marked."""
    return chain.from_iterable(map(_within, _plain(said)))


def _plain(said: str) -> tuple[str, ...]:
    """The terms without their accents, which many people leave out."""
    return text.terms(text.bare(said))[:MOST_TERMS]


class _Term(NamedTuple):
    """A term as the features of words hold it: its own bucket, and the sums up to what follows it, next or after one.

    A sum of a pair goes on from that of its first word, so that no pair is written out.
    """

    raw: bytes
    alone: int
    then: int
    skip: int


@lru_cache(maxsize=TERMS_KEPT)
def _term(term: str) -> _Term:
    return _Term(term.encode(), _word(f"w {term}"), crc32(f"p {term} ".encode()), crc32(f"k {term} ".encode()))


@lru_cache(maxsize=TERMS_KEPT)
def _within(term: str) -> tuple[int, ...]:
    edged = f"<{term[:LONGEST_TERM]}>"
    runs = (edged[at : at + size] for size in SIZES for at in range(len(edged) - size + 1))
    return tuple(WORD_BUCKETS + crc32(run.encode()) % GRAM_BUCKETS for run in runs)


def _word(feature: str) -> int:
    return crc32(feature.encode()) % WORD_BUCKETS
