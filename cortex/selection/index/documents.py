"""Texts with a slot each, searched by words; of a change only what is new is cut into words.

Slots are the places of the texts. Equal texts give equal scores, whatever way they came in. What ships is cut already:
`shipped_index.py`.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from threading import Lock

from msgspec import Struct

from cortex.base.packed import Arrays, WordList
from cortex.selection.index import tool_words
from cortex.selection.index.search import HALF_BITS, MOST_HALVES, Bm25, Row
from cortex.selection.types import ToolEntry

MadeOf = tuple[ToolEntry, tuple[str, ...]]
Texts = Mapping[str, MadeOf]
_numbering = Lock()


class TermNumbers(dict[str, int]):
    """Numbers for terms: those that ship, then others as they are met. Only ever grows; shared by what is derived."""

    def __init__(self, shipped: WordList | None = None) -> None:
        super().__init__()
        self.shipped = shipped
        self.more: list[str] = []

    def __missing__(self, term: str) -> int:
        number = self.shipped.find(term) if self.shipped else -1
        if number < 0:
            number = len(self.shipped or ()) + len(self.more)
            self.more.append(term)
        self[term] = number
        return number

    def find(self, term: str, /) -> int:
        """The term's number; -1 where it has none. Nothing is added."""
        number = self.get(term, -1)
        return self.shipped.find(term) if number < 0 and self.shipped else number

    def of(self, number: int) -> str:
        """The term of this number."""
        first = len(self.shipped or ())
        return self.shipped[number] if self.shipped and number < first else self.more[number - first]

    def row(self, parts: Iterable[tuple[Iterable[str], float]]) -> Row:
        """These terms with their weights as a row."""
        found: dict[int, float] = {}
        for terms, weight in parts:
            for term, times in Counter(terms).items():
                number = self[term]
                found[number] = found.get(number, 0.0) + weight * times
        made = [number << HALF_BITS | min(MOST_HALVES, round(2 * weight)) for number, weight in found.items()]
        return array("I", made)


class Documents(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """`texts`: what each was made of, to see what changed; `rows`: what stands in each slot."""

    texts: Texts
    terms: TermNumbers
    rows: Sequence[Row]

    @cached_property
    def slots(self) -> Mapping[str, int]:
        """The slot of each key."""
        return {key: slot for slot, key in enumerate(self.texts)}

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The key of each slot."""
        return tuple(self.texts)

    @cached_property
    def words(self) -> Bm25:
        """The texts by their words."""
        return Bm25(self.terms.find, self.rows)


class CutRows:
    """Rows that were cut when Cortex was built, by the name of the tool and what they were made of."""

    def __init__(self, words: WordList, places: Mapping[str, int], arrays: Arrays) -> None:
        self.words, self._places = words, places
        self._digests, self._flat, self._starts = (arrays[name] for name in ("digests", "flat", "rows"))

    def row(self, name: str, made_of: MadeOf) -> Row | None:
        """The row of a tool with what people say for it; None for one that is not as it shipped."""
        place = self._places.get(name)
        if place is None or self._digests[place] != tool_words.digest(*made_of):
            return None
        row: Row = self._flat[self._starts[place] : self._starts[place + 1]]
        return row


def tools_as_documents(texts: Texts, before: Documents | None, shipped: CutRows | None = None) -> Documents:
    """Tools with what people say for them: name -> (entry, utterances). Of those `before` what changed is cut anew."""
    terms = before.terms if before else TermNumbers(shipped.words if shipped else None)
    rows: list[Row] = []
    with _numbering:
        for key, made_of in texts.items():
            row = before.rows[before.slots[key]] if before and before.texts.get(key) == made_of else None
            if row is None and shipped:
                row = shipped.row(key, made_of)
            rows.append(terms.row(tool_words.parts(*made_of)) if row is None else row)
    return Documents(texts=texts, terms=terms, rows=rows)
