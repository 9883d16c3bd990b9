"""Makes `selection/index/shipped_index.bin` of what ships, for `make train`: each time the same."""

from array import array
from collections import Counter
from itertools import accumulate, chain
from typing import Any

from cortex.base import memory, packed
from cortex.base.record import as_dict
from cortex.selection.index import semantic_index, shipped_index, tool_words
from cortex.selection.index.documents import TermNumbers
from cortex.selection.index.index import Index, index_of
from cortex.selection.types import Snapshot
from cortex.selection.words import text
from cortex.selection.words.talk import common_terms
from tests.bench.ground import DEFAULT_PROFILE, ground

Content = tuple[dict[str, Any], dict[str, Any]]


def made() -> Content:
    """What the file should hold: facts, and arrays."""
    snapshot = ground("admin", DEFAULT_PROFILE).snapshot
    index = index_of(snapshot)
    held, count = _sayings(snapshot)
    made_of = [index.tools.texts[entry.name] for entry in snapshot.entries]
    from_tools = {term for each in made_of for terms, _ in tool_words.parts(*each) for term in terms}
    words = sorted(from_tools | held.keys())
    arrays = packed.word_arrays(words)
    terms = TermNumbers(packed.WordList(arrays))
    rows = [terms.row(tool_words.parts(*each)) for each in made_of]
    facts = {
        "names": [entry.name for entry in snapshot.entries],
        "learned": sorted(index.learned),
        "curves": _curves(snapshot, index),
        "count": count,
    }
    return facts, {
        **arrays,
        "held": array("I", [held[word] for word in words]),
        "digests": array("Q", [tool_words.digest(*each) for each in made_of]),
        "flat": array("I", chain.from_iterable(rows)),
        "rows": array("I", accumulate(map(len, rows), initial=0)),
    }


def _sayings(snapshot: Snapshot) -> tuple[Counter[str], int]:
    """How many of the texts that people say, and of the tools' own lines, hold each word; how many texts there are."""
    sets = (*(domain.examples for domain in snapshot.domains), snapshot.several, snapshot.none)
    said = [example.text for each in sets for example in each]
    said += [f"{text.spaced(entry.name)} {entry.summary}" for entry in snapshot.entries]
    held: Counter[str] = Counter()
    for each in said:
        held.update(set(_telling(each)))
    return held, len(said)


def _telling(said: str) -> tuple[str, ...]:
    """The stemmed words that say something."""
    common = common_terms()
    return tuple(term for term in text.terms(said) if term not in common)


def _curves(snapshot: Snapshot, index: Index) -> dict[str, Any] | None:
    found = semantic_index.fitted(snapshot, index.learned, "", index.tools.words)
    return as_dict(found) if found else None


def main() -> None:
    """Write it."""
    memory.replace(shipped_index.SHIPPED, packed.to_bytes(*made()))


if __name__ == "__main__":
    main()
