"""A text as features that a linear model weighs: words in their order, and the letters within them. Pure Python.

Features are hashed into buckets (Weinberger et al. 2009), words and letters apart, so that no vocabulary is kept and
a misspelt or unseen word still shares most of its letters with a known one.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from zlib import crc32

from cortex.selection import text

WORD_BUCKETS = 1 << 17  # at 1 << 15 each, seven languages fill nearly all and unlike words share one (2026-11-25)
GRAM_BUCKETS = 1 << 16
BUCKETS = WORD_BUCKETS + GRAM_BUCKETS
SIZES = (3, 4, 5)
LONGEST_TERM = 24
MOST_TERMS = 120


def words(said: str) -> Iterator[int]:
    """Buckets of the stemmed words, of neighbours, of words one apart, and of how the text begins and ends."""
    terms = _plain(said)
    for at, term in enumerate(terms):
        yield _word(f"w {term}")
        if at:
            yield _word(f"p {terms[at - 1]} {term}")
        if at > 1:
            yield _word(f"k {terms[at - 2]} {term}")
    if terms:
        yield _word(f"a {terms[0]}")
        yield _word(f"z {terms[-1]}")
        yield _word(f"a {' '.join(terms[:2])}")


def grams(said: str) -> Iterator[int]:
    """Buckets of the runs of 3 to 5 letters within each word, its edges marked."""
    return chain.from_iterable(map(_within, _plain(said)))


def _plain(said: str) -> tuple[str, ...]:
    """The terms without their accents, which many people leave out."""
    return text.terms(text.bare(said))[:MOST_TERMS]


@lru_cache(maxsize=8_192)
def _within(term: str) -> tuple[int, ...]:
    edged = f"<{term[:LONGEST_TERM]}>"
    runs = (edged[at : at + size] for size in SIZES for at in range(len(edged) - size + 1))
    return tuple(WORD_BUCKETS + crc32(run.encode()) % GRAM_BUCKETS for run in runs)


def _word(feature: str) -> int:
    return crc32(feature.encode()) % WORD_BUCKETS
