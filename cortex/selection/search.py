"""BM25 over texts of weighted terms, in flat arrays: ten thousand texts are scored in well under a millisecond.

Robertson & Zaragoza 2009. Built in one pass; equal texts give equal scores, whatever way they came in. Loaded late:
numpy is heavy.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
LEAST_SCORE = np.float32(1e-9)
STRETCH = 64
# A posting in 63 bits: term, slot, and how many halves the term weighs there. So sorted, they are the index.
SLOT_BITS, HALF_BITS = 20, 19
MOST_HALVES = (1 << HALF_BITS) - 1


class Numbers(Protocol):
    """Terms by their numbers."""

    def find(self, term: str, /) -> int:
        """The term's number; -1 where it has none."""


class Background(Protocol):
    """Other texts that count where it is asked how rare a term is."""

    @property
    def count(self) -> int:
        """How many there are."""

    @property
    def terms(self) -> float:
        """How many terms they have together."""

    def holders(self, term: str, /) -> int:
        """How many of them hold the term."""


@dataclass(frozen=True, slots=True)
class _Nothing:
    count: int = 0
    terms: float = 0.0

    def holders(self, term: str) -> int:
        return 0


class _Named(dict[str, int]):
    """Numbers for terms as they come."""

    def find(self, term: str, /) -> int:
        return self.get(term, -1)


class Bm25:
    """Texts by slot number."""

    def __init__(
        self,
        numbers: Numbers,
        terms: NDArray[np.integer],
        slots: NDArray[np.integer],
        halves: NDArray[np.integer],
        size: int,
        *,
        k1: float = 1.5,
        b: float = 0.75,
        among: Background | None = None,
    ) -> None:
        """Take in that terms, by number, stand in slots and weigh so many halves there; what is told twice adds up.

        size: how many slots there are. among: what else counts where rarity is judged.
        """
        self._numbers, self._k1, self._b, self.size = numbers, k1, b, size
        self._among = among or _Nothing()
        packed = terms.astype(np.int64)
        packed <<= SLOT_BITS
        packed |= slots
        packed <<= HALF_BITS
        packed |= np.minimum(halves, MOST_HALVES)
        packed.sort()
        where = packed >> HALF_BITS
        firsts = np.flatnonzero(np.diff(where, prepend=-1))
        counts = (packed & MOST_HALVES).astype(np.float32) / 2
        counts = np.add.reduceat(counts, firsts) if len(firsts) < len(counts) else counts
        where = where[firsts]
        self._slots = (where & ((1 << SLOT_BITS) - 1)).astype(np.int32)
        held = np.bincount(where >> SLOT_BITS) if len(where) else np.zeros(0, dtype=np.int64)
        self._starts = np.concatenate([[0], np.cumsum(held)]).astype(np.int32)
        sizes = np.bincount(self._slots, counts, minlength=size)
        self._count = int(np.count_nonzero(sizes)) + self._among.count
        self._mean = (float(sizes.sum()) + self._among.terms) / max(1, self._count) or 1.0
        norms = self._norm(sizes.astype(np.float32))
        self._worth = counts * np.float32(k1 + 1) / (counts + norms[self._slots])

    @classmethod
    def of(cls, bags: Iterable[Mapping[str, float]], *, among: Background | None = None) -> "Bm25":
        """Over these texts as terms with their weights, which are whole or halves; slots are places."""
        numbers, given = _Named(), list(bags)
        for bag in given:
            for term in bag:
                numbers.setdefault(term, len(numbers))
        terms = np.array([numbers[term] for bag in given for term in bag], dtype=np.int64)
        halves = np.rint([2 * weight for bag in given for weight in bag.values()]).astype(np.int64)
        slots = np.repeat(np.arange(len(given)), [len(bag) for bag in given])
        return cls(numbers, terms, slots, halves, len(given), among=among)

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
        found: Floats = worth @ (counts * (self._k1 + 1) / (counts + norms)).T
        return found

    def ceiling(self, asked: Mapping[str, float], unknown_share: float = 0.5) -> float:
        """What a text full of these terms would score; a term that is nowhere counts for a share of a rare one."""
        rare = rarity(self._count, 0) * unknown_share
        known = (weight * (self.idf(term) if self.has(term) else rare) for term, weight in asked.items())
        return (self._k1 + 1) * sum(known) or 1.0

    def idf(self, term: str) -> float:
        """How rare a term is; that of a term in no text where it is unknown."""
        return rarity(self._count, self._held(term))

    def has(self, term: str) -> bool:
        """Whether any text holds the term."""
        return self._held(term) > 0

    def holders(self, term: str) -> Ints:
        """The slots of the texts that hold the term, rising."""
        return self._slots[self._part(term)]

    def holds(self, term: str, slot: int) -> bool:
        """Whether the text holds the term."""
        slots = self.holders(term)
        at = int(np.searchsorted(slots, slot))
        return at < len(slots) and int(slots[at]) == slot

    @property
    def numbers(self) -> Iterable[int]:
        """The numbers of the terms that some text holds, rising."""
        found: Iterable[int] = np.flatnonzero(np.diff(self._starts)).tolist()
        return found

    def _held(self, term: str) -> int:
        part = self._part(term)
        return int(part.stop - part.start) + self._among.holders(term)

    def _part(self, term: str) -> slice:
        """Where the term's postings stand."""
        number = self._numbers.find(term)
        if not 0 <= number < len(self._starts) - 1:
            return slice(0, 0)
        return slice(int(self._starts[number]), int(self._starts[number + 1]))

    def _norm(self, sizes: Floats) -> Floats:
        return (self._k1 * (1 - self._b + self._b * sizes / self._mean)).astype(np.float32)


def rarity(count: int, holders: int) -> float:
    """How rare a term is that so many of `count` texts hold."""
    return math.log(1 + (count - holders + 0.5) / (holders + 0.5))


class Letters:
    """Runs of three characters, numbered by their place among all that were met."""

    def __init__(self, words: Sequence[str]) -> None:
        """Take in the runs of these words; a word's stand in `codes` between its two `starts`."""
        sizes = np.fromiter(map(len, words), dtype=np.int64, count=len(words))
        points = np.frombuffer("".join(words).encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64)
        runs = np.maximum(sizes - 2, 0)
        self.starts = np.concatenate([[0], np.cumsum(runs)])
        firsts = np.repeat(np.cumsum(sizes) - sizes - self.starts[:-1], runs) + np.arange(self.starts[-1])
        met = points[firsts] << 42 | points[firsts + 1] << 21 | points[firsts + 2]
        self._known, places = np.unique(met, return_inverse=True)
        self.codes = places.astype(np.int32)

    def find(self, run: str, /) -> int:
        """The run's number; -1 where no word has it."""
        code = 0
        for letter in run:
            code = code << 21 | ord(letter)
        at = int(np.searchsorted(self._known, code))
        return at if at < len(self._known) and int(self._known[at]) == code else -1


def spread_out(starts: NDArray[np.integer], chosen: NDArray[np.integer]) -> tuple[Ints, Ints]:
    """For rows that lie one behind the other: how long each chosen one is, and where all that is in them stands."""
    sizes = (starts[chosen + 1] - starts[chosen]).astype(np.int32)
    ends = np.cumsum(sizes, dtype=np.int32)
    where = np.repeat(starts[chosen].astype(np.int32) - (ends - sizes), sizes)
    where += np.arange(len(where), dtype=np.int32)
    return sizes, where


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
    """(size,) of 1 at the slots of the named texts, else 0."""
    found = np.zeros(size, dtype=np.float32)
    found[[slots[name] for name in names if name in slots]] = 1.0
    return found


def scaled(scores: Floats) -> Floats:
    """The scores against the best of them, 0 to 1."""
    top = float(scores.max()) if len(scores) else 0.0
    return scores / np.float32(top) if top > 0 else scores


def share(scores: Floats, searched: Bm25, asked: Mapping[str, float]) -> float:
    """How much of what the question is worth the best text has, 0 to 1 and hardly more."""
    return float(scores.max()) / searched.ceiling(asked) if len(scores) and asked else 0.0


def highest(one: Floats, other: Floats) -> Floats:
    """The higher of both, slot by slot."""
    return np.maximum(one, other)
