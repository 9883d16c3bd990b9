"""BM25 over texts of weighted terms: only the texts that hold a term that is asked for are looked at.

Robertson & Zaragoza 2009. Built in one pass; equal texts give equal scores, whatever way they came in.
"""

import math
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from cortex.base.packed import View, WordList

LEAST_SCORE = 1e-9
K1, B = 1.5, 0.75
HALF_BITS = 12  # of a row's figures: a term's number, then how many halves it weighs; of a posting: the slot, the same
MOST_HALVES = (1 << HALF_BITS) - 1

Row = Sequence[int]
Scores = Mapping[int, float]  # by slot; what does not stand there is 0


class WordRarity(Struct, frozen=True, kw_only=True, eq=False):
    """The number of texts, of `count`, that hold each word."""

    count: int
    words: WordList
    held: View

    def idf(self, term: str) -> float:
        """Return how rare a term is; that of a term in none of them where it is unknown."""
        number = self.words.find(term)
        return rarity(self.count, self.held[number] if number >= 0 else 0)


class Bm25:
    """Texts by slot number. `find`: a term's number, or -1; `rows`: what stands in each slot, a term once."""

    def __init__(self, find: Callable[[str], int], rows: Sequence[Row]) -> None:
        """Turn what stands in each slot into the slots of each term."""
        self._find = find
        postings: dict[int, list[int]] = defaultdict(list)
        sizes = []  # in halves
        for slot, row in enumerate(rows):
            size, here = 0, slot << HALF_BITS
            for told in row:
                halves = told & MOST_HALVES
                postings[told >> HALF_BITS].append(here | halves)
                size += halves
            sizes.append(size)
        self._postings, self._starts = array("I"), array("I", [0])
        for number in range(max(postings, default=-1) + 1):
            self._postings.extend(postings.get(number, ()))
            self._starts.append(len(self._postings))
        self._count = sum(map(bool, sizes))
        self._mean = sum(sizes) / max(1, self._count) or 1.0
        self._norms = array("d", map(self._norm, sizes))

    @classmethod
    def of(cls, bags: Sequence[Mapping[str, float]]) -> "Bm25":
        """Over these texts as terms with their weights, which are whole or halves; slots are places."""
        numbers: dict[str, int] = {}
        rows = [
            [
                numbers.setdefault(term, len(numbers)) << HALF_BITS | min(MOST_HALVES, round(2 * weight))
                for term, weight in bag.items()
            ]
            for bag in bags
        ]
        return cls(lambda term: numbers.get(term, -1), rows)

    def scores(self, asked: Mapping[str, float]) -> Scores:
        """The score of each slot for these terms with their weights."""
        found: dict[int, float] = {}
        for term, weight in asked.items():
            worth = weight * self.idf(term) * (K1 + 1)
            for told in self._part(term):
                slot, halves = told >> HALF_BITS, told & MOST_HALVES
                found[slot] = found.get(slot, 0.0) + worth * halves / (halves + self._norms[slot])
        return found

    def would_score(self, bags: Sequence[Mapping[str, float]], asked: Sequence[Mapping[str, float]]) -> list[Scores]:
        """Return what each text that is asked would score in these texts, did they stand among those that do."""
        norms = [self._norm(2 * sum(bag.values())) for bag in bags]
        holders: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for at, bag in enumerate(bags):
            for term, weight in bag.items():
                holders[term].append((at, 2 * weight / (2 * weight + norms[at])))
        rows: list[Scores] = []
        for each in asked:
            found: dict[int, float] = {}
            for term in each.keys() & holders.keys():
                worth = each[term] * self.idf(term) * (K1 + 1)
                for at, share in holders[term]:
                    found[at] = found.get(at, 0.0) + worth * share
            rows.append(found)
        return rows

    def ceiling(self, asked: Mapping[str, float], unknown_share: float = 0.5) -> float:
        """Return the score of a text full of these terms; one that is nowhere counts for a share of a rare one."""
        rare = rarity(self._count, 0) * unknown_share
        known = (weight * (self.idf(term) if self.has(term) else rare) for term, weight in asked.items())
        return (K1 + 1) * sum(known) or 1.0

    def idf(self, term: str) -> float:
        """Return how rare a term is; that of a term in no text where it is unknown."""
        return rarity(self._count, len(self._part(term)))

    def has(self, term: str) -> bool:
        """Tell whether any text holds the term."""
        return len(self._part(term)) > 0

    @property
    def numbers(self) -> Iterable[int]:
        """The numbers of the terms that some text holds, rising."""
        return (at for at in range(len(self._starts) - 1) if self._starts[at] < self._starts[at + 1])

    def _part(self, term: str) -> "array[int]":
        """The term's postings."""
        number = self._find(term)
        if not 0 <= number < len(self._starts) - 1:
            return self._postings[:0]
        return self._postings[self._starts[number] : self._starts[number + 1]]

    def _norm(self, halves: float) -> float:
        return 2 * K1 * (1 - B + B * halves / self._mean)


def rarity(count: int, holders: int) -> float:
    """Return how rare a term is that so many of `count` texts hold."""
    return math.log(1 + (count - holders + 0.5) / (holders + 0.5))


def best(scores: Scores, most: int) -> list[int]:
    """The slots with the highest scores above 0, best first, equal ones in slot order."""
    ahead = [slot for slot, score in scores.items() if score >= LEAST_SCORE]
    return sorted(ahead, key=lambda slot: (-scores[slot], slot))[:most]


def highest(rows: Iterable[Scores]) -> Scores:
    """The highest of these, slot by slot, of which there is one at least; no two need stand at once."""
    rows = iter(rows)
    found = dict(next(rows))
    for row in rows:
        for slot, score in row.items():
            found[slot] = max(score, found.get(slot, score))
    return found
