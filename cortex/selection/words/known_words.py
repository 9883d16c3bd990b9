"""Slips of the pen mended before the fitted model reads a text: a word nobody knows, one letter from one it has met.

Known are the words of the utterances and the whole words of the table of meanings; what begins with a capital within a
sentence is a name.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property, lru_cache

from msgspec import Struct

from cortex.base import spelling
from cortex.selection.words import meanings, text

LEAST_LETTERS = 4
TELLING_LETTERS = 3  # shorter ones are found in any language
MOST_WORDS = 120
_WORD = re.compile(r"[^\W\d_]+")
_MARKED = re.compile(r"[`/\\@<>{}]|\w\.\w|\w_\w")


class KnownWords(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """`lines`: words without accents, each in a line, the most frequent first; `repeated` are in several utterances."""

    lines: str
    repeated: int

    def mended(self, said: str) -> str:
        """The text with its slips mended; as it is where code, a path or an address stands in it, or another language.

        Of a sentence without a known word, one of which a single word is a letter away from one is in another language.
        """
        if all(len(word) < LEAST_LETTERS or self._knows(word) for word in _plain(said)) or _MARKED.search(said):
            return said
        made = _WORD.sub(lambda met: self._mended(met[0], is_first=not met.start()), said, count=MOST_WORDS)
        known = [self._knows(word) for word in _plain(made) if len(word) >= TELLING_LETTERS]
        return said if self.knows_none(said) and 2 * sum(known) < len(known) else made

    def readable(self, said: str) -> str:
        """The text without words in letters that no utterance has: hashed, they would say anything."""
        if said.isascii():
            return said
        is_met = self.lines.__contains__
        return _WORD.sub(lambda met: met[0] if all(map(is_met, text.bare(text.normal(met[0])))) else " ", said)

    def knows_none(self, said: str) -> bool:
        """Tell whether no longer word is known; a single one in known letters, and code, are read by their letters."""
        read = self.readable(said)
        words = [word for word in _plain(read) if len(word) >= TELLING_LETTERS]
        is_read = read == said and (len(words) < 2 or _MARKED.search(said))
        return not is_read and not any(map(self._knows, words))

    def is_strange(self, said: str) -> bool:
        """Tell whether words stand at its ends that say nothing here of what is wished, or only pictures."""
        said = text.ends(said)
        return not text.words(said) or self.readable(said) != said or self.knows_none(said)

    def with_words(self, texts: Sequence[str]) -> "KnownWords":
        """The same, these texts' words known too."""
        known = self.lines.split("\n")
        fresh = sorted({word for said in texts for word in _plain(said)}.difference(known))
        return KnownWords(lines="\n".join([*known, *fresh]), repeated=self.repeated)

    def _mended(self, word: str, *, is_first: bool) -> str:
        if len(word) < LEAST_LETTERS or (word[0].isupper() and not word.isupper() and not is_first):
            return word
        plain = text.bare(word.casefold())
        return word if self._knows(plain) else self._nearest(plain) or word

    @lru_cache(maxsize=4_096)  # noqa: B019  (few are in use, each as long as its model)
    def _nearest(self, word: str) -> str:
        """The most frequent word that is one letter away; "" where none is."""
        return spelling.first_slip(word, self._repeated)

    @lru_cache(maxsize=4_096)  # noqa: B019  (as above)
    def _knows(self, word: str) -> bool:
        """Looked up in the text as it is: as a set, its words would take 3 MB."""
        return meanings.shipped().is_whole(word) or f"\n{word}\n" in f"\n{self.lines}\n"

    @cached_property
    def _repeated(self) -> list[str]:
        """The shortest first, of equals the most frequent."""
        words = self.lines.split("\n")[: self.repeated]
        return sorted((word for word in words if len(word) >= LEAST_LETTERS), key=len)


def of_texts(texts: Sequence[str]) -> KnownWords:
    """The words of these texts."""
    counts = Counter(word for said in texts for word in set(_plain(said)))
    words = sorted(counts, key=lambda word: (-counts[word], word))
    return KnownWords(lines="\n".join(words), repeated=sum(count > 1 for count in counts.values()))


def _plain(said: str) -> list[str]:
    return _WORD.findall(text.bare(text.normal(said)))
