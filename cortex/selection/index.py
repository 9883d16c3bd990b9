"""What a registry snapshot is searched by: triggers by first word, words and letters of tools, utterances, the model.

Built once for a snapshot's version and kept; one that differs in a few tools is derived from the one before. Reading
it changes nothing. What needs numpy is loaded at the first search.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from cortex.base import scan
from cortex.selection import text
from cortex.selection.documents import Documents, tools_as_documents, utterances_as_documents
from cortex.selection.talk import common_terms
from cortex.selection.types import Snapshot, ToolEntry, Trigger

if TYPE_CHECKING:
    from cortex.selection.semantic_index import Curves, SemanticIndex
    from cortex.selection.weights import Weights

SEMANTIC_INDEX = "cortex.selection.semantic_index"
TYPO_LETTERS = 5
CANDIDATES = 24
KEPT = 4
RARE_SHARE = 0.25
UNKNOWN_WORTH = 0.5


@dataclass(frozen=True, slots=True)
class TriggerPattern:
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

    def __init__(self, snapshot: Snapshot, before: "Index | None" = None) -> None:
        """Index the snapshot; `before`: an earlier index, whose unchanged parts are taken over."""
        self.snapshot = snapshot
        self.entries: dict[str, ToolEntry] = {entry.name: entry for entry in snapshot.entries}
        self.names = frozenset(self.entries)
        self.metas = frozenset(entry.name for entry in snapshot.entries if entry.is_meta)
        self.place = {entry.name: at for at, entry in enumerate(snapshot.entries)}
        members: dict[str, list[ToolEntry]] = {}
        for entry in snapshot.entries:
            members.setdefault(entry.category, []).append(entry)
        self.by_category = {name: tuple(entries) for name, entries in members.items()}
        self.phrases = _phrases(snapshot, self.by_category)
        self._derived = before.documents if before else {}
        self._common = common_terms()
        self._few = max(2, round(len(self.by_category) * RARE_SHARE))

    # --- the model

    @cached_property
    def model(self) -> "Weights | None":
        """The fitted model, where the snapshot has tools that it knows and talk that needs none."""
        if not self.snapshot.none:
            return None
        model: Weights = scan.load("cortex.selection.weights").in_force(self.snapshot.weights)
        return model if any(name in self.entries for name in model.tools) else None

    @cached_property
    def learned(self) -> frozenset[str]:
        """The tools that the model knows, standing in the category that it learned them in."""
        model = self.model
        if model is None:
            return frozenset()
        homes = zip(model.tools, (model.categories[at] for at in model.home), strict=True)
        return frozenset(name for name, home in homes if name in self.entries and self.entries[name].category == home)

    # --- tools by words and letters

    @cached_property
    def tools(self) -> Documents:
        """The tools as documents."""
        told: dict[str, list[str]] = {}
        for domain in self.snapshot.domains:
            for example in domain.examples:
                for name in example.tools:
                    told.setdefault(name, []).append(example.text)
        texts = {name: (entry, tuple(told.get(name, ()))) for name, entry in self.entries.items()}
        return tools_as_documents(texts, self._derived.get("tools"))

    @cached_property
    def utterances(self) -> Documents:
        """What people say for tools that the model does not know, and what this server taught, as documents."""
        texts = {
            f"{example.text}\n{' '.join(example.tools)}": (example.text, example.tools)
            for domain in self.snapshot.domains
            for example in domain.examples
            if example.is_own or not self.learned.issuperset(example.tools)
        }
        return utterances_as_documents(texts, self._derived.get("utterances"))

    @property
    def documents(self) -> Mapping[str, Any]:
        """What another index can be derived from: these parts where they were searched, else those before them."""
        parts: tuple[str, ...] = ("tools", "utterances", "semantic", "table")
        return {**self._derived, **{name: self.__dict__[name] for name in parts if name in self.__dict__}}

    # --- tools by what their words mean

    @cached_property
    def semantic(self) -> "SemanticIndex":
        """The tools as vectors of the snapshot's sentence model, with examples where the fitted model has none.

        EncoderFailed where they are not at hand; asked again, it tries again.
        """
        return self._by_meaning(self.snapshot.encoder, "semantic")

    @cached_property
    def table(self) -> "SemanticIndex":
        """The same by the table of meanings that ships."""
        return self._by_meaning("", "table")

    def _by_meaning(self, key: str, part: str) -> "SemanticIndex":
        late, before = scan.load(SEMANTIC_INDEX), self._derived.get(part)
        told = late.documents_of(self.snapshot, self.names, self.learned)
        size = self.tools.words.size
        made: SemanticIndex = late.SemanticIndex(key, self.tools.slots, self.entries, told, size, before)
        return made

    @cached_property
    def curves(self) -> "Curves | None":
        """What a likeness is worth under the sentence model, from the tools that the fitted model knows."""
        found: Curves | None = scan.load(SEMANTIC_INDEX).fitted(self.snapshot, self.learned, self.snapshot.encoder)
        return found

    @cached_property
    def table_curves(self) -> "Curves | None":
        """The same under the table of meanings."""
        found: Curves | None = scan.load(SEMANTIC_INDEX).fitted(self.snapshot, self.learned, "")
        return found

    # --- names and slips

    @cached_property
    def normal_names(self) -> dict[str, str]:
        """The tools' names as they are compared; meta tools left out."""
        return {name: text.normal(name) for name, entry in self.entries.items() if not entry.is_meta}

    @cached_property
    def by_normal_name(self) -> dict[str, list[str]]:
        """The tools of each such name."""
        found: dict[str, list[str]] = {}
        for name, normal in self.normal_names.items():
            found.setdefault(normal, []).append(name)
        return found

    def mend(self, term: str) -> str:
        """The known term that this one is a slip of the pen for, else the term itself."""
        words = self.tools.words
        if len(term) < TYPO_LETTERS or not term.isalpha() or words.has(term):
            return term
        allowed = 1 if len(term) < 8 else 2
        spelling = scan.load("cortex.selection.spelling")
        best, least = term, allowed + 1
        for word in self._by_letter.get(term[0], ()):
            if abs(len(word) - len(term)) <= 1 and len(word) >= TYPO_LETTERS - 1:
                distance: int = spelling.slips(term, word, allowed)
                if distance < least:
                    best, least = word, distance
        return best

    def matches(self, asked: str, names: frozenset[str]) -> Mapping[str, Match]:
        """How well the text fits the best of the named tools; those with no word in common are left out.

        The rarest-term gate: a tool whose shared words all are common or spread over many categories is left out.
        """
        said = dict.fromkeys((self.mend(term) for term in text.terms(asked)), 1.0)
        if not said or not names:
            return {}
        words, search = self.tools.words, scan.load("cortex.selection.search")
        weight = words.ceiling(said, UNKNOWN_WORTH)
        scores = words.scores(said) * self.mask(names)
        nearest = self._nearest(said, names, self.utterances)
        telling = {term for term in said if term not in self._common and self._spread(term) <= self._few}
        found = {}
        for slot in search.best(scores, CANDIDATES):
            met = tuple(term for term in said if words.holds(term, slot))
            if not telling.isdisjoint(met):
                name = self.tools.keys[slot]
                found[name] = Match(float(scores[slot]) / weight, nearest.get(name, 0.0), met)
        return found

    def nearest_taught(self, asked: str, names: frozenset[str]) -> Mapping[str, float]:
        """The best cosine of the text with an utterance that this server taught, for the named tools that it taught.

        A word tells as much as few tools know it: among a house's own sentences alone its names are the common words.
        """
        taught = names & self._taught
        said = dict.fromkeys(text.terms(asked), 1.0)
        return self._nearest(said, taught, self.tools) if taught and said else {}

    @cached_property
    def _taught(self) -> frozenset[str]:
        told = (example for domain in self.snapshot.domains for example in domain.examples if example.is_own)
        return frozenset(name for example in told for name in example.tools)

    @lru_cache(maxsize=16)  # noqa: B019  (an index lives no longer than its snapshot is in use)
    def mask(self, names: frozenset[str]) -> Any:
        """1 at the slots of these tools, else 0: (n_slots,) float32."""
        return scan.load("cortex.selection.search").mask(self.tools.words.size, self.tools.slots, names)

    @lru_cache(maxsize=16)  # noqa: B019  (as above)
    def unlearned(self, names: frozenset[str]) -> frozenset[str]:
        """Those of the names that the model does not know."""
        return names - self.learned

    def _nearest(self, said: Mapping[str, float], names: frozenset[str], among: Documents) -> dict[str, float]:
        """The best cosine, 0 to 1, of these terms with an utterance of each named tool; what is rare `among` tells."""
        rows = self.utterances
        if not rows.slots:
            return {}
        worth = {term: _worth(among, term) for term in said}
        norm = math.sqrt(sum(value**2 for value in worth.values())) or 1.0
        found: dict[str, float] = {}
        for slot in scan.load("cortex.selection.search").best(rows.words.scores(said), 2 * CANDIDATES):
            words, tools = rows.bags[slot][0], rows.texts[rows.keys[slot]][1]
            size = self._size(slot, among is rows)
            value = sum(worth[term] ** 2 for term in said if term in words) / (norm * size)
            for name in tools:
                if name in names and value > found.get(name, 0.0):
                    found[name] = value
        return found

    @lru_cache(maxsize=65_536)  # noqa: B019  (as above)
    def _size(self, slot: int, is_among_utterances: bool) -> float:
        """The length of an utterance as a vector."""
        among = self.utterances if is_among_utterances else self.tools
        return math.sqrt(sum(_worth(among, term) ** 2 for term in self.utterances.bags[slot][0])) or 1.0

    @lru_cache(maxsize=4096)  # noqa: B019  (as above)
    def _spread(self, term: str) -> int:
        """In how many categories the term occurs."""
        return len({self.entries[self.tools.keys[slot]].category for slot in self.tools.words.holders(term)})

    @cached_property
    def _by_letter(self) -> dict[str, list[str]]:
        """The known words by their first letter, for slips of the pen."""
        found: dict[str, list[str]] = {}
        for word in self.tools.words.terms:
            found.setdefault(word[:1], []).append(word)
        return found


def _worth(among: Documents, term: str) -> float:
    """How rare the term is among these; one that none of them holds says less than a rare one."""
    return among.words.idf(term) if among.words.has(term) else among.words.idf("") * UNKNOWN_WORTH


def _phrases(
    snapshot: Snapshot, by_category: Mapping[str, tuple[ToolEntry, ...]]
) -> dict[str, tuple[TriggerPattern, ...]]:
    """Phrases by their first word."""
    found: dict[str, list[TriggerPattern]] = {}
    for domain in snapshot.domains:
        for trigger in domain.triggers:
            said = text.words(trigger.text)
            if said:
                void = tuple(text.words(each) for each in trigger.unless)
                every = tuple(entry.name for entry in by_category.get(domain.name, ()))
                made = TriggerPattern(said, void, trigger, domain.name, trigger.tools or every)
                found.setdefault(said[0], []).append(made)
    return {word: tuple(phrases) for word, phrases in found.items()}


class _Kept:
    """The last few indexes by version; each new one is derived from the newest."""

    def __init__(self) -> None:
        self._made: dict[str, Index] = {}

    def of(self, snapshot: Snapshot) -> Index:
        """The index of this version."""
        found = self._made.get(snapshot.version)
        if found is None:
            newest = next(reversed(self._made.values()), None)
            found = Index(snapshot, newest)
            self._made[snapshot.version] = found
            while len(self._made) > KEPT:
                del self._made[next(iter(self._made))]
        return found


_kept = _Kept()


def index_of(snapshot: Snapshot) -> Index:
    """The snapshot's index, built at its first use and kept for its version."""
    return _kept.of(snapshot)
