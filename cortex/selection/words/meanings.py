"""What words mean, as vectors: a static table made from a sentence model, so that nothing but numpy runs here.

The pieces of words are read by the model one by one (Model2Vec, Minish 2024), rid of what they share (Mu & Viswanath
2018), kept as product codes (Jégou et al. 2011). `tests/bench/meanings.py` makes it; `facts` name model and licence.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from cortex.base import packed
from cortex.base.packed import WordList
from cortex.selection.words import text

SHIPPED = Path(__file__).with_name("meanings.bin")
SUB = 4
LONGEST_WORD = 40

Floats = NDArray[np.float32]


class Meanings(Struct, frozen=True, kw_only=True, eq=False):
    """The table. A text is the sum of its pieces, the rarer ones counting more, brought to length 1.

    `pieces` in the order of their rows, those within a word after "##"; `codes` (n_pieces, n_books) uint8; `books`
    (n_books, 256, SUB); `weight` (n_pieces,): how much a piece tells; `facts`: what it was made of.
    """

    pieces: WordList
    codes: NDArray[np.uint8]
    books: Floats
    weight: Floats
    facts: Mapping[str, str]

    key: ClassVar[str] = ""  # what it is known by among the sentence models

    def vectors(self, texts: Sequence[str]) -> Floats:
        """(n_texts, size), each of length 1; 0 for a text without a known word."""
        found = np.zeros((len(texts), len(self.books) * SUB), dtype=np.float32)
        pages, places = self.books.reshape(-1, SUB), np.arange(len(self.books)) * self.books.shape[1]
        for place, said in enumerate(texts):
            rows = [row for word in text.words(text.unhumped(said)) for row in self.cut(word)]
            if rows:
                parts = pages.take(self.codes[rows] + places, axis=0)
                found[place] = np.einsum("i,ijk->jk", self.weight[rows], parts).reshape(-1)
        length = np.sqrt(np.einsum("ij,ij->i", found, found))[:, None]
        np.divide(found, length, out=found, where=length > 0)
        return found

    asked = kept = vectors  # as any sentence model has them; nothing is slow enough to be kept

    @lru_cache(maxsize=8_192)  # noqa: B019  (the shipped table lives as long as its process)
    def cut(self, word: str) -> tuple[int, ...]:
        """The rows of a word's pieces, which bear no accents; a part with an unknown piece has none."""
        return tuple(row for part in text.bare(word).split("'") for row in self._pieces(part[:LONGEST_WORD]))

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
        """Tell whether the word is a piece by itself."""
        return not word.startswith("##") and self.pieces.find(word) >= 0


@lru_cache(maxsize=1)
def shipped() -> Meanings:
    """The table that came with Cortex, mapped: what no text asks for is not read. DamagedFile where it cannot be."""
    parts = ("codes", "books", "weight")
    return packed.loaded(
        SHIPPED,
        lambda facts, told: Meanings(
            pieces=WordList(told), facts=facts, **{each: np.asarray(told[each]) for each in parts}
        ),
    )
