"""How alike two words are spelt. Loaded late by `index.py` and `discover.py`: rapidfuzz brings forty modules."""

from rapidfuzz.distance import DamerauLevenshtein, JaroWinkler


def slips(one: str, other: str, most: int) -> int:
    """How many letters were missed, added, changed or swapped; `most` + 1 when it is more (Damerau-Levenshtein)."""
    return DamerauLevenshtein.distance(one, other, score_cutoff=most)


def likeness(one: str, other: str) -> float:
    """From 0 to 1; a common beginning counts more (Jaro-Winkler)."""
    return JaroWinkler.similarity(one, other)
