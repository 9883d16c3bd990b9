"""Tools and utterances as bags of weighted terms, for `search.py`. Pure; says nothing about scores."""

from collections import Counter
from collections.abc import Iterable, Mapping

from cortex.selection import text
from cortex.selection.talk import common_terms
from cortex.selection.types import ToolEntry

NAME_WEIGHT, SUMMARY_WEIGHT, PARAMETER_WEIGHT, EXAMPLE_WEIGHT = 2.0, 1.0, 0.5, 0.5
UNKNOWN_WORTH = 0.5  # what a term tells that no document holds, beside a rare one
GRAM = 3
Bag = Mapping[str, float]


def words(entry: ToolEntry, told: Iterable[str]) -> Bag:
    """A tool's stemmed words: name, summary, parameters, and what people say for it."""
    return _bag(entry, told, text.terms)


def letters(entry: ToolEntry, told: Iterable[str]) -> Bag:
    """The same as runs of letters, common words left out."""
    return _bag(entry, told, grams)


def grams(said: str) -> tuple[str, ...]:
    """Runs of GRAM letters within the words that mean something, their edges marked."""
    common = common_terms()
    edged = (f"<{term}>" for term in text.terms(said) if term not in common)
    return tuple(term[at : at + GRAM] for term in edged for at in range(len(term) - GRAM + 1))


def _bag(entry: ToolEntry, told: Iterable[str], cut: "text.Cut") -> Bag:
    properties = entry.full.parameters.get("properties", {})
    found: Counter[str] = Counter()
    _add(found, cut(text.spaced(entry.name)), NAME_WEIGHT)
    _add(found, cut(entry.full.description), SUMMARY_WEIGHT)
    for name, node in properties.items():
        note = node.get("description", "") if isinstance(node, dict) else ""
        _add(found, cut(f"{text.spaced(name)} {note}"), PARAMETER_WEIGHT)
    for said in told:
        _add(found, cut(said), EXAMPLE_WEIGHT)
    return found


def _add(found: "Counter[str]", terms: Iterable[str], weight: float) -> None:
    for term in terms:
        found[term] += weight  # type: ignore[assignment]  # a Counter of weights
