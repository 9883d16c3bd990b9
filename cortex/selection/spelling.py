"""How alike two words are spelt. Loaded late, by indexes and searches: rapidfuzz brings forty modules."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import OSA, DamerauLevenshtein, JaroWinkler


def slips(one: str, other: str, most: int) -> int:
    """How many letters were missed, added, changed or swapped; `most` + 1 when it is more (Damerau-Levenshtein)."""
    return DamerauLevenshtein.distance(one, other, score_cutoff=most)


def first_slip(one: str, others: Sequence[str]) -> str:
    """The first of the others that is one letter missed, added, changed or swapped away; "" when there is none."""
    found = process.extractOne(one, others, scorer=OSA.distance, score_cutoff=1)
    return found[0] if found else ""


class Vocabulary:
    """Words in which one is looked for that another is a slip of the pen for: the same first letter, nearly as long."""

    def __init__(self, words: Iterable[str], least_letters: int) -> None:
        """Take the words in; shorter ones are no slip of anything."""
        letters: dict[str, list[str]] = {}
        for word in words:
            if len(word) >= least_letters:
                letters.setdefault(word[0], []).append(word)
        self._shelves = {letter: Shelf(words=tuple(found)) for letter, found in letters.items()}

    def slip(self, term: str, most: int) -> str:
        """The word with the fewest slips, `most` at most, and of equal ones the first; "" where there is none."""
        shelf = self._shelves.get(term[0])
        best, least = "", most + 1
        for word in shelf.near(term, most) if shelf else ():
            distance = slips(term, word, most)
            if distance < least:
                best, least = word, distance
        return best


@dataclass(frozen=True, eq=False, kw_only=True)
class Shelf:
    """Words among which few can be a slip away."""

    words: tuple[str, ...]

    def near(self, term: str, most: int) -> list[str]:
        """Those that so few slips could make of the term: at most one letter longer or shorter, and few other letters.

        A slip brings in one letter and takes one away, if any. Nine words in ten need not be compared letter by letter.
        """
        start, end = np.searchsorted(self._sizes, [len(term) - 1, len(term) + 2])
        held, asked = self._held[start:end], bits(term)
        close = (np.bitwise_count(held & ~asked) <= most) & (np.bitwise_count(~held & asked) <= most)
        return [self.words[at] for at in np.sort(self._by_size[start:end][close]).tolist()]

    @cached_property
    def _by_size(self) -> NDArray[np.intp]:
        """The places of the words, the shortest words first."""
        return np.argsort([len(word) for word in self.words], kind="stable")

    @cached_property
    def _sizes(self) -> NDArray[np.int64]:
        return np.array([len(word) for word in self.words])[self._by_size]

    @cached_property
    def _held(self) -> NDArray[np.uint32]:
        return letters(self.words)[self._by_size]


def letters(words: Sequence[str]) -> NDArray[np.uint32]:
    """(n_words,): the letters of each word as the bits of 32; two that share one make words more alike."""
    sizes = np.fromiter(map(len, words), dtype=np.intp, count=len(words))
    points = np.frombuffer("".join(f"{word} " for word in words).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    held: NDArray[np.uint32] = np.asarray(np.uint32(1) << (points & 31), dtype=np.uint32)
    ends = np.cumsum(sizes + 1) - 1
    held[ends] = 0
    found: NDArray[np.uint32] = np.bitwise_or.reduceat(held, ends - sizes) if words else held
    return found


def bits(word: str) -> np.uint32:
    """The letters of one word, as `letters` has them of many."""
    found = 0
    for letter in word:
        found |= 1 << (ord(letter) & 31)
    return np.uint32(found)


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
