"""A text as features that a linear model weighs: words in their order, and the letters within them. Pure Python.

Features are hashed into buckets (Weinberger et al. 2009), words and letters apart, so that no vocabulary is kept and
a misspelt or unseen word still shares most of its letters with a known one.
"""

from collections.abc import Iterator
from zlib import crc32

from cortex.selection import text

WORD_BUCKETS = 1 << 15
GRAM_BUCKETS = 1 << 15
BUCKETS = WORD_BUCKETS + GRAM_BUCKETS
SIZES = (3, 4, 5)
LONGEST_TERM = 24
MOST_TERMS = 120


def words(said: str) -> Iterator[int]:
    """Buckets of the stemmed words, of neighbours, of words one apart, and of how the text begins and ends."""
    terms = text.terms(said)[:MOST_TERMS]
    for at, term in enumerate(terms):
        yield _bucket(f"w {term}", 0, WORD_BUCKETS)
        if at:
            yield _bucket(f"p {terms[at - 1]} {term}", 0, WORD_BUCKETS)
        if at > 1:
            yield _bucket(f"k {terms[at - 2]} {term}", 0, WORD_BUCKETS)
    if terms:
        yield _bucket(f"a {terms[0]}", 0, WORD_BUCKETS)
        yield _bucket(f"z {terms[-1]}", 0, WORD_BUCKETS)
        yield _bucket(f"a {' '.join(terms[:2])}", 0, WORD_BUCKETS)


def grams(said: str) -> Iterator[int]:
    """Buckets of the runs of 3 to 5 letters within each word, its edges marked."""
    for term in text.terms(said)[:MOST_TERMS]:
        edged = f"<{term[:LONGEST_TERM]}>"
        for size in SIZES:
            for start in range(len(edged) - size + 1):
                yield _bucket(edged[start : start + size], WORD_BUCKETS, GRAM_BUCKETS)


def _bucket(feature: str, first: int, count: int) -> int:
    return first + crc32(feature.encode()) % count
