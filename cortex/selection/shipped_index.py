"""What is worked out of the shipped tools when Cortex is built: their words, how rare each is, what likeness is worth.

`make train` writes the file; it is mapped, so that a start reads next to nothing of it. A tool that is not as it
shipped is cut anew, so an old file costs time and never a wrong answer. Loaded late: numpy is heavy.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cortex.selection import bags, packed, text
from cortex.selection.documents import CutRows, Documents, TermNumbers
from cortex.selection.search import rarity
from cortex.selection.semantic_index import Curves, LikenessCurve
from cortex.selection.types import Snapshot
from cortex.selection.word_list import WordList, word_arrays

SHIPPED = Path(__file__).with_name("shipped_index.bin")

Content = tuple[dict[str, Any], dict[str, NDArray[Any]]]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WordRarity:
    """How many of `count` texts that people say hold each word; `terms`: how many words they have together."""

    count: int
    terms: float
    words: WordList
    held: NDArray[np.uint32]

    def holders(self, term: str, /) -> int:
        """How many of them hold the term."""
        number = self.words.find(term)
        return int(self.held[number]) if number >= 0 else 0

    def idf(self, term: str) -> float:
        """How rare a term is; that of a term in none of them where it is unknown."""
        return rarity(self.count, self.holders(term))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShippedIndex:
    """The file. `curves`: what a likeness by the table of meanings is worth, fitted on the tools that are `learned`."""

    rows: CutRows
    rarity: WordRarity
    learned: frozenset[str]
    curves: Curves | None


@lru_cache(maxsize=1)
def shipped() -> ShippedIndex:
    """What came with Cortex; an empty one where the file is missing or damaged, which the log says."""
    try:
        return _read(*packed.mapped(SHIPPED))
    except (OSError, ValueError) as error:
        log.warning("%s; tools are cut into words at each start. Install Cortex anew, or run `make train`.", error)
        return _read(*_content((), (), frozenset(), None, Counter(), 0))


def made(snapshot: Snapshot, documents: Documents, learned: Iterable[str], curves: Curves | None) -> Content:
    """What the file holds of these tools. `documents`: they with what people say for them."""
    held: Counter[str] = Counter()
    sets = (*(domain.examples for domain in snapshot.domains), snapshot.several, snapshot.none)
    said = [example.text for each in sets for example in each]
    said += [f"{text.spaced(entry.name)} {entry.summary}" for entry in snapshot.entries]
    for each in said:
        held.update(set(bags.telling(each)))
    made_of = [documents.texts[entry.name] for entry in snapshot.entries]
    return _content(snapshot.entries, made_of, frozenset(learned), curves, held, len(said))


def _content(
    entries: Any, made_of: Any, learned: frozenset[str], curves: Curves | None, held: Counter[str], count: int
) -> Content:
    from_tools = {term for each in made_of for terms, _ in bags.parts(*each) for term in terms}
    words = sorted(from_tools | held.keys())
    arrays = word_arrays(words)
    terms = TermNumbers(WordList(arrays))
    rows = [terms.row(bags.parts(*each)) for each in made_of]
    return (
        {
            "names": [entry.name for entry in entries],
            "learned": sorted(learned),
            "curves": asdict(curves) if curves else None,
            "count": count,
            "terms": held.total(),
        },
        {
            **arrays,
            "held": np.array([held[word] for word in words], dtype="<u4"),
            "digests": np.array([bags.digest(*each) for each in made_of], dtype="<u8"),
            "flat": np.concatenate(rows) if rows else np.zeros(0, dtype="<u4"),
            "rows": np.cumsum([0, *map(len, rows)]).astype("<u4"),
        },
    )


def _read(facts: Mapping[str, Any], arrays: packed.Arrays) -> ShippedIndex:
    words, curves = WordList(arrays), facts["curves"]
    places = {name: place for place, name in enumerate(facts["names"])}
    return ShippedIndex(
        rows=CutRows(words, places, arrays),
        rarity=WordRarity(count=facts["count"], terms=facts["terms"], words=words, held=arrays["held"]),
        learned=frozenset(facts["learned"]),
        curves=curves and Curves(**{name: LikenessCurve(**each) for name, each in curves.items()}),
    )
