"""A text as features that a linear model weighs: words in their order, and the letters within them. Pure Python.

Features are hashed into buckets (Weinberger et al. 2009), words and letters apart, so that no vocabulary is kept and
a misspelt or unseen word still shares most of its letters with a known one.
"""

from array import array
from functools import lru_cache
from itertools import chain
from zlib import crc32

from cortex.selection.words import text

WORD_BUCKETS = 1 << 17  # at 1 << 15 each, seven languages fill nearly all and unlike words share one (2026-11-25)
GRAM_BUCKETS = 1 << 16
BUCKETS = WORD_BUCKETS + GRAM_BUCKETS
SIZES = (3, 4)
LONGEST_TERM = 24
MOST_TERMS = 120
TERMS_KEPT = 8_192
BUCKET = "i"  # four bytes each, as numpy's int32


def words(said: str) -> "array[int]":
    """Buckets of the stemmed words, of neighbours, of words one apart, and of how the text begins and ends."""
    terms = _plain(said)
    if not terms:
        return array(BUCKET)
    raws, alone, then, skip = zip(*map(_term, terms), strict=True)
    pairs = chain(map(crc32, raws[1:], then), map(crc32, raws[2:], skip))
    ends = (_word(f"a {terms[0]}"), _word(f"z {terms[-1]}"), _word(f"a {' '.join(terms[:2])}"))
    return array(BUCKET, [*alone, *[each % WORD_BUCKETS for each in pairs], *ends])


def grams(said: str) -> "array[int]":
    """Buckets of the runs of 3 and 4 letters within each word, its edges marked."""
    return array(BUCKET, b"".join(map(_within, _plain(said))))


def _plain(said: str) -> tuple[str, ...]:
    """The terms without their accents, which many people leave out."""
    return text.terms(text.bare(said))[:MOST_TERMS]


@lru_cache(maxsize=TERMS_KEPT)
def _term(term: str) -> tuple[bytes, int, int, int]:
    """Its bytes, its own bucket, and the sums from which those of pairs go on: with the next word, or the one after."""
    return term.encode(), _word(f"w {term}"), crc32(f"p {term} ".encode()), crc32(f"k {term} ".encode())


@lru_cache(maxsize=TERMS_KEPT)
def _within(term: str) -> bytes:
    """The buckets of a term's letters, as an array has them."""
    edged = f"<{term[:LONGEST_TERM]}>"
    runs = (edged[at : at + size] for size in SIZES for at in range(len(edged) - size + 1))
    return array(BUCKET, [WORD_BUCKETS + crc32(run.encode()) % GRAM_BUCKETS for run in runs]).tobytes()


def _word(feature: str) -> int:
    return crc32(feature.encode()) % WORD_BUCKETS
