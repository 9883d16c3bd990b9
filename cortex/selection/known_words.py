"""Slips of the pen mended before the fitted model reads a text: a word nobody knows, one letter from one it has met.

Known are the words of the utterances and the whole words of the table of meanings; what begins with a capital within a
sentence is a name.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from cortex.base import scan
from cortex.selection import meanings, text

if TYPE_CHECKING:
    from cortex.selection.spelling import Shelf

SPELLING = "cortex.selection.spelling"
LEAST_LETTERS = 4
MOST_WORDS = 120
_WORD = re.compile(r"[^\W\d_]+")
_MARKED = re.compile(r"[`/\\@<>{}]|\w\.\w|\w_\w")


@dataclass(frozen=True, eq=False, kw_only=True)
class KnownWords:
    """`words` without accents, the most frequent first; the first `repeated` stand in more than one utterance."""

    words: tuple[str, ...]
    repeated: int

    def mended(self, said: str) -> str:
        """The text with its slips mended; as it is where code, a path or an address stands in it."""
        if all(len(word) < LEAST_LETTERS for word in self._unknown(said)) or _MARKED.search(said):
            return said
        return _WORD.sub(lambda met: self._mended(met[0], is_first=not met.start()), said, count=MOST_WORDS)

    def with_words(self, texts: Sequence[str]) -> "KnownWords":
        """The same, these texts' words known too."""
        known = set(self.words)
        fresh = sorted({word for said in texts for word in _plain(said)} - known)
        return KnownWords(words=(*self.words, *fresh), repeated=self.repeated)

    def _unknown(self, said: str) -> set[str]:
        """The words that nobody knows, whatever stands before or behind them."""
        odd = {word for word in text.words(said) if not self._knows(word)}  # most texts have none
        return {word for word in _WORD.findall(text.bare(" ".join(odd))) if not self._knows(word)} if odd else odd

    def _mended(self, word: str, *, is_first: bool) -> str:
        if len(word) < LEAST_LETTERS or (word[0].isupper() and not word.isupper() and not is_first):
            return word
        plain = text.bare(word.casefold())
        return word if self._knows(plain) else self._nearest(plain) or word

    @lru_cache(maxsize=4_096)  # noqa: B019  (few are in use, each as long as its model)
    def _nearest(self, word: str) -> str:
        """The most frequent word that is one letter away; "" where none is."""
        near = sorted(self._repeated.near(word, 1), key=len)
        found: str = scan.load(SPELLING).first_slip(word, near)
        return found

    def _knows(self, word: str) -> bool:
        return word in self._told or meanings.shipped().is_whole(word)

    @cached_property
    def _told(self) -> frozenset[str]:
        return frozenset(self.words)

    @cached_property
    def _repeated(self) -> "Shelf":
        words = tuple(word for word in self.words[: self.repeated] if len(word) >= LEAST_LETTERS)
        made: Shelf = scan.load(SPELLING).Shelf(words=words)
        return made


def of_texts(texts: Sequence[str]) -> KnownWords:
    """The words of these texts."""
    counts: dict[str, int] = {}
    for said in texts:
        for word in set(_plain(said)):
            counts[word] = counts.get(word, 0) + 1
    words = sorted(counts, key=lambda word: (-counts[word], word))
    return KnownWords(words=tuple(words), repeated=sum(count > 1 for count in counts.values()))


def _plain(said: str) -> list[str]:
    return _WORD.findall(text.bare(text.normal(said)))
