"""BM25 over texts of weighted terms, in flat arrays: ten thousand texts are scored in well under a millisecond.

Robertson & Zaragoza 2009. Built in one pass; equal texts give equal scores, whatever way they came in. Loaded late:
numpy is heavy.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from cortex.base.packed import WordList

Floats = NDArray[np.float32]
LEAST_SCORE = np.float32(1e-9)
K1, B = 1.5, 0.75
# A posting in 63 bits: term, slot, and how many halves the term weighs there. So sorted, they are the index.
SLOT_BITS, HALF_BITS = 20, 19
MOST_HALVES = (1 << HALF_BITS) - 1


class WordRarity(Struct, frozen=True, kw_only=True, eq=False):
    """The number of texts, of `count`, that hold each word; `terms`: how many words they have together."""

    count: int
    terms: float
    words: WordList
    held: NDArray[np.uint32]

    def holders(self, term: str, /) -> int:
        """Return how many of them hold the term."""
        number = self.words.find(term)
        return int(self.held[number]) if number >= 0 else 0

    def idf(self, term: str) -> float:
        """Return how rare a term is; that of a term in none of them where it is unknown."""
        return rarity(self.count, self.holders(term))


class Bm25:
    """Texts by slot number. `find`: a term's number, or -1; `among`: other texts that count where rarity is judged."""

    def __init__(
        self,
        find: Callable[[str], int],
        terms: NDArray[np.integer],
        slots: NDArray[np.integer],
        halves: NDArray[np.integer],
        size: int,
        *,
        among: WordRarity | None = None,
    ) -> None:
        """Take in that terms, by number, stand in `size` slots and weigh so many halves; what is told twice adds up."""
        self._find, self.size, self._among = find, size, among
        packed = terms.astype(np.int64) << SLOT_BITS | slots
        packed = packed << HALF_BITS | np.minimum(halves, MOST_HALVES)
        packed.sort()
        where = packed >> HALF_BITS
        firsts = np.flatnonzero(np.diff(where, prepend=-1))
        counts = (packed & MOST_HALVES).astype(np.float32) / 2
        counts = np.add.reduceat(counts, firsts) if len(firsts) < len(counts) else counts
        where = where[firsts]
        self._slots = (where & ((1 << SLOT_BITS) - 1)).astype(np.int32)
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(where >> SLOT_BITS))]).astype(np.int32)
        sizes = np.bincount(self._slots, counts, minlength=size)
        self._count = int(np.count_nonzero(sizes)) + (among.count if among else 0)
        self._mean = (float(sizes.sum()) + (among.terms if among else 0)) / max(1, self._count) or 1.0
        norms = self._norm(sizes.astype(np.float32))
        self._worth = counts * np.float32(K1 + 1) / (counts + norms[self._slots])

    @classmethod
    def of(cls, bags: Sequence[Mapping[str, float]], *, among: WordRarity | None = None) -> "Bm25":
        """Over these texts as terms with their weights, which are whole or halves; slots are places."""
        numbers: dict[str, int] = {}
        terms = [numbers.setdefault(term, len(numbers)) for bag in bags for term in bag]
        halves = np.rint([2 * weight for bag in bags for weight in bag.values()]).astype(np.int64)
        slots = np.repeat(np.arange(len(bags)), [len(bag) for bag in bags])
        return cls(lambda term: numbers.get(term, -1), np.array(terms, int), slots, halves, len(bags), among=among)

    def scores(self, asked: Mapping[str, float]) -> Floats:
        """(n_slots,): the score of each slot for these terms with their weights."""
        found = np.zeros(self.size, dtype=np.float32)
        for term, weight in asked.items():
            part = self._part(term)
            if part.start < part.stop:
                found[self._slots[part]] += np.float32(weight * self.idf(term)) * self._worth[part]
        return found

    def would_score(self, bags: Sequence[Mapping[str, float]], asked: Sequence[Mapping[str, float]]) -> Floats:
        """(n_asked, n_bags): what each text would score in these texts, did they stand among those that do."""
        at = {term: number for number, term in enumerate(dict.fromkeys(term for each in asked for term in each))}
        worth = np.zeros((len(asked), len(at)), dtype=np.float32)
        for row, each in enumerate(asked):
            worth[row, [at[term] for term in each]] = [weight * self.idf(term) for term, weight in each.items()]
        counts = np.zeros((len(bags), len(at)), dtype=np.float32)
        for row, bag in enumerate(bags):
            known = [term for term in bag if term in at]
            counts[row, [at[term] for term in known]] = [bag[term] for term in known]
        norms = self._norm(np.array([[sum(bag.values())] for bag in bags], dtype=np.float32))
        found: Floats = worth @ (counts * (K1 + 1) / (counts + norms)).T
        return found

    def ceiling(self, asked: Mapping[str, float], unknown_share: float = 0.5) -> float:
        """Return the score of a text full of these terms; one that is nowhere counts for a share of a rare one."""
        rare = rarity(self._count, 0) * unknown_share
        known = (weight * (self.idf(term) if self.has(term) else rare) for term, weight in asked.items())
        return (K1 + 1) * sum(known) or 1.0

    def idf(self, term: str) -> float:
        """Return how rare a term is; that of a term in no text where it is unknown."""
        return rarity(self._count, self._held(term))

    def has(self, term: str) -> bool:
        """Tell whether any text holds the term."""
        return self._held(term) > 0

    def holds(self, term: str, slot: int) -> bool:
        """Tell whether the text holds the term."""
        return slot in self._slots[self._part(term)]

    @property
    def numbers(self) -> Iterable[int]:
        """The numbers of the terms that some text holds, rising."""
        return map(int, np.flatnonzero(np.diff(self._starts)))

    def _held(self, term: str) -> int:
        part = self._part(term)
        return int(part.stop - part.start) + (self._among.holders(term) if self._among else 0)

    def _part(self, term: str) -> slice:
        """Where the term's postings stand."""
        number = self._find(term)
        if not 0 <= number < len(self._starts) - 1:
            return slice(0, 0)
        return slice(int(self._starts[number]), int(self._starts[number + 1]))

    def _norm(self, sizes: Floats) -> Floats:
        return (K1 * (1 - B + B * sizes / self._mean)).astype(np.float32)


def rarity(count: int, holders: int) -> float:
    """Return how rare a term is that so many of `count` texts hold."""
    return math.log(1 + (count - holders + 0.5) / (holders + 0.5))


def best(scores: Floats, most: int) -> list[int]:
    """The slots with the highest scores above 0, best first, equal ones in slot order."""
    ahead = np.flatnonzero(scores >= LEAST_SCORE)
    return [int(slot) for slot in ahead[np.argsort(-scores[ahead], kind="stable")[:most]]]


def mask(size: int, slots: Mapping[str, int], names: Iterable[str]) -> Floats:
    """(size,) of 1 at the slots of the named texts, else 0."""
    found = np.zeros(size, dtype=np.float32)
    found[[slots[name] for name in names if name in slots]] = 1.0
    return found


def highest(one: Floats, other: Floats) -> Floats:
    """The higher of both, slot by slot."""
    return np.maximum(one, other)
