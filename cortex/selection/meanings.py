"""What words mean, as vectors: a static table made from a sentence model, so that nothing but numpy runs here.

The pieces of words are read by the model one by one (Model2Vec, Minish 2024), rid of what they share (Mu & Viswanath
2018), kept as product codes (Jégou et al. 2011). `tests/bench/meanings.py` makes it; `facts` name model and licence.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cortex.selection import packed, text
from cortex.selection.word_list import WordList, word_arrays

SHIPPED = Path(__file__).with_name("meanings.bin")
SUB = 4
LONGEST_WORD = 40
AT_ONCE = 256  # texts: their words' vectors together stay within a few MB

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False, kw_only=True)
class Meanings:
    """The table. A text is the sum of its pieces, the rarer ones counting more, brought to length 1.

    `pieces` in the order of their rows, those within a word after "##"; `codes` (n_pieces, n_books) uint8; `books`
    (n_books, 256, SUB); `weight` (n_pieces,): how much a piece tells; `facts`: what it was made of.
    """

    pieces: WordList
    codes: NDArray[np.uint8]
    books: Floats
    weight: Floats
    facts: Mapping[str, str]

    @property
    def key(self) -> str:
        """What it is known by among the sentence models."""
        return ""

    def kept(self, texts: Sequence[str]) -> Floats:
        """As `vectors`: nothing is slow enough to be kept."""
        return self.vectors(texts)

    def asked(self, texts: Sequence[str]) -> Floats:
        """As `vectors`."""
        return self.vectors(texts)

    @property
    def size(self) -> int:
        """How many figures a vector has."""
        return len(self.books) * SUB

    def vectors(self, texts: Sequence[str]) -> Floats:
        """(n_texts, size), each of length 1; 0 for a text without a known word."""
        found = np.zeros((len(texts), self.size), dtype=np.float32)
        for start in range(0, len(texts), AT_ONCE):
            part = found[start : start + AT_ONCE]
            said = [text.words(text.unhumped(each)) for each in texts[start : start + AT_ONCE]]
            numbers: dict[str, int] = {}
            order = [numbers.setdefault(word, len(numbers)) for words in said for word in words]
            if order:
                sizes = np.array([len(words) for words in said])
                known = np.stack([self._word(word) for word in numbers])
                full = np.flatnonzero(sizes)
                starts = np.cumsum(sizes) - sizes
                part[full] = np.add.reduceat(known[order], starts[full], axis=0)
        length = np.sqrt(np.einsum("ij,ij->i", found, found))[:, None]
        np.divide(found, length, out=found, where=length > 0)
        return found

    def cut(self, word: str) -> list[int]:
        """The rows of a word's pieces, which bear no accents; a part with an unknown piece has none."""
        return [row for part in text.bare(word).split("'") for row in self._pieces(part[:LONGEST_WORD])]

    def _pieces(self, part: str) -> list[int]:
        """The longest piece first, then the longest of what is left (WordPiece)."""
        rows, start = [], 0
        while start < len(part):
            for end in range(len(part), start, -1):
                row = self.pieces.find(f"{'##' if start else ''}{part[start:end]}")
                if row >= 0:
                    break
            else:
                return []
            rows.append(row)
            start = end
        return rows

    def is_whole(self, word: str) -> bool:
        """Whether the word is a piece by itself."""
        return not word.startswith("##") and self.pieces.find(word) >= 0

    @lru_cache(maxsize=4_096)  # noqa: B019  (the shipped table lives as long as its process)
    def _word(self, word: str) -> Floats:
        """A word's share of a text's sum."""
        found = np.zeros((len(self.books), SUB), dtype=np.float32)
        for row in self.cut(word):
            found += self._pages.take(self.codes[row] + self._places, axis=0) * self.weight[row]
        return found.reshape(-1)

    @cached_property
    def _pages(self) -> Floats:
        """The books one behind the other, a row a code."""
        return self.books.reshape(-1, SUB)

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        """Where each book begins in them."""
        found: NDArray[np.intp] = np.arange(len(self.books)) * self.books.shape[1]
        return found


def to_file(path: Path, meanings: Meanings) -> None:
    """Write the table; the same bytes for the same table."""
    arrays = {
        **word_arrays(tuple(meanings.pieces)),
        "codes": meanings.codes,
        "books": meanings.books.astype(np.float32),
        "weight": meanings.weight.astype(np.float32),
    }
    path.write_bytes(packed.to_bytes(meanings.facts, arrays))


def digest() -> str:
    """What the shipped table is known by."""
    return hashlib.sha256(SHIPPED.read_bytes()).hexdigest()[:16]


@lru_cache(maxsize=1)
def shipped() -> Meanings:
    """The table that came with Cortex, mapped: what no text asks for is not read."""
    facts, arrays = packed.mapped(SHIPPED)
    pieces = WordList(arrays)
    return Meanings(pieces=pieces, codes=arrays["codes"], books=arrays["books"], weight=arrays["weight"], facts=facts)
