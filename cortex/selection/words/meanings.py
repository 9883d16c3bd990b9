"""What words mean, as vectors: a static table made from a sentence model, so that no library runs here.

The pieces of words are read by the model one by one (Model2Vec, Minish 2024), rid of what they share (Mu & Viswanath
2018), kept as product codes (Jégou et al. 2011). `tests/bench/meanings.py` makes it; `facts` name model and licence.
"""

import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from cortex.base import packed
from cortex.base.lanes import Lanes
from cortex.base.packed import View, WordList
from cortex.selection.words import text

SHIPPED = Path(__file__).with_name("meanings.bin")
SUB = 4
LONGEST_WORD = 40
LANE_BYTES, FINE, FINE_WEIGHT = 8, 1 << 28, 1 << 18  # parts of a book's number, of a weight
PIECES_KEPT = 1_024  # two kilobytes each


class Meanings(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """The table. A text is the sum of its pieces, the rarer ones counting more, brought to length 1.

    `pieces` in the order of their rows, those within a word after "##"; `codes` (n_pieces, n_books) uint8; `books`
    (n_books, 256, SUB); `weight` (n_pieces,): how much a piece tells; `facts`: what it was made of.
    """

    pieces: WordList
    codes: View
    books: View
    weight: View
    facts: Mapping[str, str]

    key: ClassVar[str] = ""  # what it is known by among the sentence models

    def vectors(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """A vector a text, of length 1; 0 for a text without a known word."""
        return [self._vector(said) for said in texts]

    def _vector(self, said: str) -> Sequence[float]:
        """The vector of a text, or of its ends: a lane holds 486,000 pieces, and a sign becomes 18 pieces at most."""
        rows = [row for word in text.words(text.unhumped(text.ends(said))) for row in self.cut(word)]
        numbers = self._lanes.unpack(sum(map(self._piece, rows)))
        length = math.hypot(*numbers) or 1.0
        return array("f", [each / length for each in numbers])

    asked = kept = vectors  # as any sentence model has them; nothing is slow enough to be kept

    @cached_property
    def _piece(self) -> Callable[[int], int]:
        """Row of a piece -> the piece times its weight, as lanes; those in use are kept."""
        n_books, width = len(self.books), SUB * LANE_BYTES
        numbers = self.books.cast("B").cast("f")
        books, codes = memoryview(array("q", (round(FINE * each) for each in numbers))).cast("B"), self.codes.cast("B")
        firsts = range(0, len(books), len(books) // n_books)

        def piece(row: int) -> int:
            places = zip(firsts, codes[row * n_books : (row + 1) * n_books], strict=True)
            parts = (books[first + width * code : first + width * (code + 1)] for first, code in places)
            return round(FINE_WEIGHT * self.weight[row]) * self._lanes.read(b"".join(parts), LANE_BYTES)

        return lru_cache(PIECES_KEPT)(piece)

    @cached_property
    def _lanes(self) -> Lanes:
        return Lanes(LANE_BYTES, len(self.books) * SUB)

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
        lambda facts, told: Meanings(pieces=WordList(told), facts=facts, **{each: told[each] for each in parts}),
    )
