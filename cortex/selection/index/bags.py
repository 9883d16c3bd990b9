"""Tools and utterances as bags of weighted terms, for `search.py`. Pure; says nothing about scores."""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b

from cortex.selection.types import ToolEntry
from cortex.selection.words import text
from cortex.selection.words.talk import common_terms

NAME_WEIGHT, SUMMARY_WEIGHT, PARAMETER_WEIGHT, EXAMPLE_WEIGHT = 2.0, 1.0, 0.5, 0.5
UNKNOWN_WORTH = 0.5  # what a term tells that no document holds, beside a rare one
Bag = Mapping[str, float]


def words(entry: ToolEntry, told: Iterable[str]) -> Bag:
    """A tool's stemmed words: name, summary, parameters, and what people say for it."""
    found: dict[str, float] = {}
    for terms, weight in parts(entry, told):
        for term in terms:
            found[term] = found.get(term, 0.0) + weight
    return found


def parts(entry: ToolEntry, told: Iterable[str]) -> Iterator[tuple[tuple[str, ...], float]]:
    """The same part by part, each with what its terms weigh."""
    return ((text.terms(said), weight) for said, weight in _said(entry, told))


def telling(said: str) -> tuple[str, ...]:
    """The stemmed words that say something."""
    common = common_terms()
    return tuple(term for term in text.terms(said) if term not in common)


def digest(entry: ToolEntry, told: Iterable[str]) -> int:
    """What a tool's words are known by, in 64 bits."""
    said = "\n".join(f"{weight} {said}" for said, weight in _said(entry, told))
    return int.from_bytes(blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _said(entry: ToolEntry, told: Iterable[str]) -> Iterator[tuple[str, float]]:
    """What there is to read of a tool, each with its weight."""
    yield text.spaced(entry.name), NAME_WEIGHT
    yield entry.full.description, SUMMARY_WEIGHT
    properties = entry.full.parameters.get("properties", {}).items()
    notes = (node.get("description", "") if isinstance(node, dict) else "" for _, node in properties)
    names = (text.spaced(name) for name, _ in properties)
    yield "\n".join(f"{name} {note}" for name, note in zip(names, notes, strict=True)), PARAMETER_WEIGHT
    for said in told:
        yield said, EXAMPLE_WEIGHT
