"""How alike two words are spelt. Loaded late, by indexes and searches: rapidfuzz brings forty modules."""

from collections.abc import Mapping, Sequence

from rapidfuzz import process
from rapidfuzz.distance import OSA, DamerauLevenshtein, JaroWinkler


def first_slip(one: str, others: Sequence[str], most: int = 1) -> str:
    """Of the others, a letter longer or shorter at most, the first with the fewest slips, up to `most`; "" for none."""
    near = [other for other in others if abs(len(other) - len(one)) <= 1]
    scorer = OSA if most == 1 else DamerauLevenshtein  # one slip is the same in both, and ten times as fast by OSA
    found = process.extractOne(one, near, scorer=scorer.distance, score_cutoff=most)
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
