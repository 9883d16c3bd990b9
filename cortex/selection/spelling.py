"""How alike two words are spelt. Loaded late, by indexes and searches: rapidfuzz brings forty modules."""

from collections.abc import Mapping, Sequence

from rapidfuzz import process
from rapidfuzz.distance import OSA, DamerauLevenshtein, JaroWinkler


def slips(one: str, other: str, most: int) -> int:
    """How many letters were missed, added, changed or swapped; `most` + 1 when it is more (Damerau-Levenshtein)."""
    return DamerauLevenshtein.distance(one, other, score_cutoff=most)


def first_slip(one: str, others: Sequence[str]) -> str:
    """The first of the others that is one letter missed, added, changed or swapped away; "" when there is none."""
    found = process.extractOne(one, others, scorer=OSA.distance, score_cutoff=1)
    return found[0] if found else ""


def likeness(one: str, other: str) -> float:
    """From 0 to 1; a common beginning counts more (Jaro-Winkler)."""
    return JaroWinkler.similarity(one, other)


def near(one: str, others: Mapping[str, str], least: float) -> list[str]:
    """The keys of those that are alike by `least`, in their order."""
    found = process.extract(one, others, scorer=JaroWinkler.similarity, limit=None, score_cutoff=least)
    keys = {key for _, _, key in found}
    return [key for key in others if key in keys]


def closest(one: str, others: Sequence[str], least: float) -> str:
    """The most alike of the others, the first of equals; "" when none is alike by `least`."""
    found = process.extractOne(one, others, scorer=JaroWinkler.similarity, score_cutoff=least)
    return found[0] if found else ""
