"""BM25 over bags of weighted terms, in arrays: ten thousand documents are scored in well under a millisecond.

Robertson & Zaragoza 2009. Counts are kept and weights worked out at each question, so that one document can come, go
or change without touching the rest, and the same documents always give the same scores. Loaded late: numpy is heavy.
"""

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
_Slots = tuple["array[int]", "array[float]"]
COMMON_PART, COMMON_KEPT = 8, 256
LEAST_SCORE = np.float32(1e-9)
STRETCH = 64


class Bm25:
    """Documents by slot number. A change makes a new value that shares what did not change."""

    def __init__(self, bags: Iterable[Mapping[str, float]], *, k1: float = 1.5, b: float = 0.75) -> None:
        """Take the documents in; their slots are their places."""
        self._k1, self._b = k1, b
        self._lists: dict[str, _Slots] = {}
        sizes: list[float] = []
        for slot, bag in enumerate(bags):
            sizes.append(sum(bag.values()))
            for term, count in bag.items():
                slots, counts = self._lists.setdefault(term, (array("i"), array("f")))
                slots.append(slot)
                counts.append(count)
        self._sizes = np.array(sizes, dtype=np.float32)
        self._settle()

    def changed(self, changes: Mapping[int, tuple[Mapping[str, float], Mapping[str, float]]]) -> "Bm25":
        """The same with other documents: slot -> (bag before, bag after); {} for one that was or will not be there."""
        made = object.__new__(Bm25)
        made._k1, made._b = self._k1, self._b
        made._lists = dict(self._lists)
        made._sizes = np.zeros(max([len(self._sizes), *(slot + 1 for slot in changes)]), dtype=np.float32)
        made._sizes[: len(self._sizes)] = self._sizes
        copied: set[str] = set()
        for slot, (before, after) in changes.items():
            made._sizes[slot] = sum(after.values())
            for term in before.keys() | after.keys():
                if term not in copied and term in made._lists:
                    slots, counts = made._lists[term]
                    made._lists[term] = slots[:], counts[:]
                copied.add(term)
                made._put(term, slot, after.get(term, 0.0))
        made._settle()
        return made

    def scores(self, asked: Mapping[str, float]) -> Floats:
        """The score of each slot for these terms with their weights."""
        found = np.zeros(len(self._sizes), dtype=np.float32)
        rare: list[tuple[str, float]] = []
        for term, weight in asked.items():
            kept = self._lists.get(term)
            if kept is not None and COMMON_PART * len(kept[0]) >= self._count:
                found += self._common(term, weight)
            elif kept is not None:
                rare.append((term, weight))
        if rare:
            self._add(found, rare)
        return found

    def _add(self, found: Floats, asked: Sequence[tuple[str, float]]) -> None:
        """Add what these terms are worth to the slots that hold them."""
        lists = [self._lists[term] for term, _ in asked]
        slots = np.concatenate([np.frombuffer(each, dtype=np.int32) for each, _ in lists])
        counts = np.concatenate([np.frombuffer(each, dtype=np.float32) for _, each in lists])
        worth = np.array([weight * self.idf(term) for term, weight in asked], dtype=np.float32)
        worth = np.repeat(worth, [len(each) for each, _ in lists])
        np.add.at(found, slots, worth * counts * (self._k1 + 1) / (counts + self._norms[slots]))

    def _everywhere(self, term: str, weight: float) -> Floats:
        """What the term is worth in each slot."""
        found = np.zeros(len(self._sizes), dtype=np.float32)
        self._add(found, [(term, weight)])
        return found

    def would_score(self, bags: Sequence[Mapping[str, float]], asked: Sequence[Mapping[str, float]]) -> Floats:
        """(n_asked, n_bags): what each text would score in these documents, did they stand among those that do."""
        at = {term: number for number, term in enumerate(dict.fromkeys(term for each in asked for term in each))}
        worth = np.zeros((len(asked), len(at)), dtype=np.float32)
        for row, each in enumerate(asked):
            worth[row, [at[term] for term in each]] = [weight * self.idf(term) for term, weight in each.items()]
        counts = np.zeros((len(bags), len(at)), dtype=np.float32)
        for row, bag in enumerate(bags):
            known = [term for term in bag if term in at]
            counts[row, [at[term] for term in known]] = [bag[term] for term in known]
        norms = self._norm(np.array([[sum(bag.values())] for bag in bags], dtype=np.float32))
        found: Floats = worth @ (counts * (self._k1 + 1) / (counts + norms)).T
        return found

    def ceiling(self, asked: Mapping[str, float], unknown_share: float = 0.5) -> float:
        """What a document full of these terms would score; a term that is nowhere counts for a share of a rare one."""
        rare = self._rarity(0) * unknown_share
        known = (weight * (self.idf(term) if term in self._lists else rare) for term, weight in asked.items())
        return (self._k1 + 1) * sum(known) or 1.0

    def idf(self, term: str) -> float:
        """How rare a term is; that of a term in no document where it is unknown."""
        kept = self._lists.get(term)
        return self._rarity(len(kept[0]) if kept else 0)

    @property
    def size(self) -> int:
        """How many slots there are, empty ones included."""
        return len(self._sizes)

    def has(self, term: str) -> bool:
        """Whether any document holds the term."""
        return term in self._lists

    def holders(self, term: str) -> Sequence[int]:
        """The slots of the documents that hold the term, rising."""
        kept = self._lists.get(term)
        return kept[0] if kept else ()

    def holds(self, term: str, slot: int) -> bool:
        """Whether the document holds the term."""
        slots = self.holders(term)
        at = bisect_left(slots, slot)
        return at < len(slots) and slots[at] == slot

    @property
    def terms(self) -> Iterable[str]:
        """Every known term."""
        return self._lists.keys()

    def _rarity(self, holders: int) -> float:
        return math.log(1 + (self._count - holders + 0.5) / (holders + 0.5))

    def _settle(self) -> None:
        """Work out what depends on all documents."""
        filled = self._sizes[self._sizes > 0]
        self._count = len(filled)
        self._mean = float(filled.mean()) if self._count else 1.0
        self._norms = self._norm(self._sizes)
        self._common = lru_cache(maxsize=COMMON_KEPT)(self._everywhere)  # every other question has the same few words

    def _norm(self, sizes: Floats) -> Floats:
        return (self._k1 * (1 - self._b + self._b * sizes / self._mean)).astype(np.float32)

    def _put(self, term: str, slot: int, count: float) -> None:
        """Set the count of a term in a slot; slots stand in rising order, as a fresh build would have them."""
        slots, counts = self._lists.setdefault(term, (array("i"), array("f")))
        at = bisect_left(slots, slot)
        if at < len(slots) and slots[at] == slot:
            del slots[at], counts[at]
        if count:
            slots.insert(at, slot)
            counts.insert(at, count)
        if not slots:
            del self._lists[term]


def best(scores: Floats, most: int) -> list[int]:
    """The slots with the highest scores above 0, best first, equal ones in slot order."""
    bar = LEAST_SCORE
    tops = np.maximum.reduceat(scores, np.arange(0, len(scores), STRETCH)) if len(scores) else scores
    if 0 < most < len(tops):  # so many stretches have a slot at this bar or above it
        bar = max(bar, np.partition(tops, len(tops) - most)[len(tops) - most])
    ahead = np.flatnonzero(scores >= bar)
    ranked = ahead[np.argsort(-scores[ahead], kind="stable")]
    return [int(slot) for slot in ranked[:most]]


def mask(size: int, slots: Mapping[str, int], names: Iterable[str]) -> Floats:
    """(size,) of 1 at the slots of the named documents, else 0."""
    found = np.zeros(size, dtype=np.float32)
    found[[slots[name] for name in names if name in slots]] = 1.0
    return found


def numbered(size: int, groups: Mapping[int, str]) -> NDArray[np.intp]:
    """(size,): a number for the group of each slot, 0 where there is none."""
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups.values()), start=1)}
    found = np.zeros(size, dtype=np.intp)
    found[list(groups)] = [numbers[group] for group in groups.values()]
    return found


def spread(groups: NDArray[np.intp], slots: Sequence[int]) -> int:
    """Over how many of the groups, as `numbered` has them, the slots are spread."""
    return int(np.count_nonzero(np.bincount(groups[np.asarray(slots, dtype=np.intp)])))


def scaled(scores: Floats) -> Floats:
    """The scores against the best of them, 0 to 1."""
    top = float(scores.max()) if len(scores) else 0.0
    return scores / np.float32(top) if top > 0 else scores


def share(scores: Floats, searched: Bm25, asked: Mapping[str, float]) -> float:
    """How much of what the question is worth the best document has, 0 to 1 and hardly more."""
    return float(scores.max()) / searched.ceiling(asked) if len(scores) and asked else 0.0


def highest(one: Floats, other: Floats) -> Floats:
    """The higher of both, slot by slot."""
    return np.maximum(one, other)
