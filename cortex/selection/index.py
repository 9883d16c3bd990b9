"""What a registry snapshot is searched by: triggers by first word, BM25 terms of tools, terms of examples.

Built once for a snapshot's version and kept; reading it changes nothing. BM25: Robertson & Zaragoza 2009.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from cortex.base import scan
from cortex.selection import text
from cortex.selection.talk import common_terms
from cortex.selection.types import Entry, Snapshot, Trigger

K1, B = 1.5, 0.75
TYPO_LETTERS = 5
_RARE_SHARE = 0.25
UNKNOWN_WORTH = 0.5


@dataclass(frozen=True, slots=True)
class Phrase:
    """A trigger ready to match: its words, the words that void it, and the tools it speaks for."""

    words: tuple[str, ...]
    void: tuple[tuple[str, ...], ...]
    trigger: Trigger
    category: str
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """How well a text fits a tool: share of the text's weight, nearest example, the words that met."""

    bm25: float
    nearest: float
    met: tuple[str, ...]


class Index:
    """Search structures of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.entries: dict[str, Entry] = {entry.name: entry for entry in snapshot.entries}
        self.names = frozenset(self.entries)
        self.by_category: dict[str, tuple[Entry, ...]] = {}
        for entry in snapshot.entries:
            self.by_category[entry.category] = (*self.by_category.get(entry.category, ()), entry)
        self.phrases = self._phrases()
        self._common = common_terms()
        self._tools: dict[str, dict[str, float]] = {}
        self._examples: dict[str, list[int]] = {}
        self._example: list[tuple[tuple[str, ...], float]] = []
        self._spread: dict[str, set[str]] = {}
        self._index_tools()
        self._index_examples()
        self._letters: dict[str, list[str]] = {}
        for term in self._spread:
            self._letters.setdefault(term[:1], []).append(term)

    def _phrases(self) -> dict[str, tuple[Phrase, ...]]:
        """Phrases by their first word."""
        found: dict[str, list[Phrase]] = {}
        for domain in self.snapshot.domains:
            every = tuple(entry.name for entry in self.by_category.get(domain.name, ()))
            for trigger in domain.triggers:
                said = text.words(trigger.text)
                if said:
                    void = tuple(text.words(each) for each in trigger.unless)
                    made = Phrase(said, void, trigger, domain.name, trigger.tools or every)
                    found.setdefault(said[0], []).append(made)
        return {word: tuple(phrases) for word, phrases in found.items()}

    def _index_tools(self) -> None:
        """Term weights of each tool over name, summary, parameters and examples."""
        examples: dict[str, list[str]] = {entry.name: [] for entry in self.snapshot.entries}
        for domain in self.snapshot.domains:
            for example in domain.examples:
                for name in example.tools:
                    examples.get(name, []).append(example.text)
        counts = {entry.name: _tool_terms(entry, examples[entry.name]) for entry in self.snapshot.entries}
        sizes = {name: sum(bag.values()) for name, bag in counts.items()}
        mean = sum(sizes.values()) / len(sizes) if sizes else 1.0
        spread = Counter(term for bag in counts.values() for term in bag)
        total = len(counts)
        self.idf = {term: math.log(1 + (total - n + 0.5) / (n + 0.5)) for term, n in spread.items()}
        self.unknown = math.log(1 + (total + 0.5) / 0.5) * UNKNOWN_WORTH
        for name, bag in counts.items():
            norm = K1 * (1 - B + B * sizes[name] / mean)
            for term, n in bag.items():
                self._tools.setdefault(term, {})[name] = self.idf[term] * n * (K1 + 1) / (n + norm)
                self._spread.setdefault(term, set()).add(self.entries[name].category)

    def _index_examples(self) -> None:
        """Each example's terms, weighted by how few examples hold them."""
        told = [each for domain in self.snapshot.domains for each in domain.examples]
        rows = [(frozenset(text.terms(each.text)), each.tools) for each in told]
        spread = Counter(term for row, _ in rows for term in row)
        self.example_idf = {term: math.log(1 + len(rows) / n) for term, n in spread.items()}
        for at, (row, tools) in enumerate(rows):
            self._example.append((tools, math.sqrt(sum(self.example_idf[term] ** 2 for term in row))))
            for term in row:
                self._examples.setdefault(term, []).append(at)

    def mend(self, term: str) -> str:
        """The known term that this one is a slip of the pen for, else the term itself."""
        if term in self._spread or len(term) < TYPO_LETTERS or not term.isalpha():
            return term
        allowed = 1 if len(term) < 8 else 2
        near = [word for word in self._letters.get(term[0], ()) if abs(len(word) - len(term)) <= 1]
        best, least = term, allowed + 1
        spelling = scan.load("cortex.selection.spelling")
        for word in near:
            distance: int = spelling.slips(term, word, allowed)
            if distance < least and len(word) >= TYPO_LETTERS - 1:
                best, least = word, distance
        return best

    def matches(self, asked: str, names: Iterable[str]) -> Mapping[str, Match]:
        """How well the text fits each of the tools; those with no word in common are left out.

        The rarest-term gate: a tool whose shared words all are common or spread over many categories is left out.
        """
        said = tuple(dict.fromkeys(self.mend(term) for term in text.terms(asked)))
        weight = sum(self.idf.get(term, self.unknown) * (K1 + 1) for term in said) or 1.0
        allowed = frozenset(names)
        scores: dict[str, float] = {}
        met: dict[str, list[str]] = {}
        for term in said:
            for name, value in self._tools.get(term, {}).items():
                if name in allowed:
                    scores[name] = scores.get(name, 0.0) + value
                    met.setdefault(name, []).append(term)
        nearest = self._nearest(said)
        few = max(2, round(len(self.by_category) * _RARE_SHARE))
        return {
            name: Match(score / weight, nearest.get(name, 0.0), tuple(met[name]))
            for name, score in scores.items()
            if any(term not in self._common and len(self._spread[term]) <= few for term in met[name])
        }

    def _nearest(self, said: tuple[str, ...]) -> dict[str, float]:
        """The best cosine of the text with an example of each tool."""
        longest = math.log(1 + len(self._example)) if self._example else 1.0
        norm = math.sqrt(sum(self.example_idf.get(term, longest * UNKNOWN_WORTH) ** 2 for term in said)) or 1.0
        dots: dict[int, float] = {}
        for term in said:
            square = self.example_idf.get(term, 0.0) ** 2
            for at in self._examples.get(term, ()):
                dots[at] = dots.get(at, 0.0) + square
        best: dict[str, float] = {}
        for at, dot in dots.items():
            tools, size = self._example[at]
            value = dot / (norm * size)
            for name in tools:
                if value > best.get(name, 0.0):
                    best[name] = value
        return best


def _tool_terms(entry: Entry, examples: list[str]) -> Counter[str]:
    """A tool as a bag of terms: name twice, summary, parameters, examples."""
    properties = entry.full.parameters.get("properties", {})
    told = [f"{name} {node.get('description', '')}" for name, node in properties.items() if isinstance(node, dict)]
    bag: Counter[str] = Counter()
    for piece in (entry.name.replace("_", " "),) * 2:
        bag.update(text.terms(piece))
    for piece in (entry.summary, *told, *examples):
        bag.update(text.terms(piece.replace("_", " ")))
    return bag


class _Key:
    """A snapshot as a cache key: equal when the versions are."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def __hash__(self) -> int:
        return hash(self.snapshot.version)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and other.snapshot.version == self.snapshot.version


@lru_cache(maxsize=4)
def _kept(key: _Key) -> Index:
    return Index(key.snapshot)


def index_of(snapshot: Snapshot) -> Index:
    """The snapshot's index, built at its first use and kept for its version."""
    return _kept(_Key(snapshot))
