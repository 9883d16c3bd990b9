"""How alike words and names are spelt. Loaded late, by indexes and searches: rapidfuzz brings forty modules.

Ten thousand names are looked through in a millisecond.
"""

from collections.abc import Iterable, Sequence

from rapidfuzz import process
from rapidfuzz.distance import OSA, DamerauLevenshtein, JaroWinkler

from cortex.selection.words import text


def first_slip(one: str, others: Sequence[str], most: int = 1) -> str:
    """Of the others, a letter longer or shorter at most, the first with the fewest slips, up to `most`; "" for none."""
    near = [other for other in others if abs(len(other) - len(one)) <= 1]
    scorer = OSA if most == 1 else DamerauLevenshtein  # one slip is the same in both, and ten times as fast by OSA
    found = process.extractOne(one, near, scorer=scorer.distance, score_cutoff=most)
    return found[0] if found else ""


def likeness(one: str, other: str) -> float:
    """From 0 to 1; a common beginning counts more (Jaro-Winkler)."""
    return JaroWinkler.similarity(one, other)


def closest(one: str, others: Sequence[str], least: float) -> str:
    """The most alike of the others, the first of equals; "" when none is alike by `least`."""
    found = process.extractOne(one, others, scorer=JaroWinkler.similarity, score_cutoff=least)
    return found[0] if found else ""


class SpeltNames:
    """Names as they are compared, blanks as underscores, with what has them."""

    def __init__(self, names: Iterable[str]) -> None:
        """Take the names in."""
        self._holders: dict[str, list[str]] = {}
        for name in names:
            self._holders.setdefault(text.normal(name), []).append(name)
        self._spelt = {name: name for name in self._holders}

    def same(self, asked: str) -> list[str]:
        """Return what has this name."""
        return self._holders.get(asked, [])

    def parts(self, asked: str) -> list[str]:
        """Return what has a name that holds this, or one of several words that stands in it."""
        found = (name for name in self._holders if asked in name or (name in asked and "_" in name))
        return [holder for name in found for holder in self._holders[name]]

    def alike(self, asked: str, least: float) -> list[str]:
        """Return what has a name that is alike by `least` (Jaro-Winkler), in their order."""
        found = process.extract(asked, self._spelt, scorer=JaroWinkler.similarity, limit=None, score_cutoff=least)
        keys = {key for _, _, key in found}
        return [holder for name, holders in self._holders.items() if name in keys for holder in holders]
