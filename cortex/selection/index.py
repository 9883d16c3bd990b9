"""What a registry snapshot is searched by: triggers by first word, words and letters of tools, utterances, the model.

Built once for a snapshot's version and kept; one that differs in a few tools is derived from the one before. Reading
it changes nothing. What needs numpy is loaded at the first search.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from cortex.base import scan
from cortex.selection import sentence_models, text
from cortex.selection.bags import UNKNOWN_WORTH
from cortex.selection.documents import Documents, tools_as_documents, utterances_as_documents
from cortex.selection.talk import common_terms
from cortex.selection.types import Snapshot, ToolEntry, Trigger
from cortex.selection.version_cache import NamesKey

if TYPE_CHECKING:
    from cortex.selection.semantic_index import Curves, SemanticIndex
    from cortex.selection.sentence_weights import SentenceWeights
    from cortex.selection.spelling import Vocabulary
    from cortex.selection.tool_names import ToolNames
    from cortex.selection.weights import Weights

SEMANTIC_INDEX = "cortex.selection.semantic_index"
TYPO_LETTERS = 5
CANDIDATES = 24
KEPT = 4
RARE_SHARE = 0.25


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

    @property
    def likeness(self) -> float:
        """One figure from 0 to 1: half what the tool's words cover of the text, half its nearest example."""
        return _likeness(self.bm25, self.nearest)


def _likeness(bm25: float, nearest: float) -> float:
    return 0.5 * min(1.0, bm25) + 0.5 * min(1.0, nearest)


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

    def build(self) -> None:
        """Make all parts now that need no sentence model; else the messages that need one first wait for it."""
        for part in ("learned", "tools", "utterances", "table", "table_curves", "spelt", "_vocabulary", "_homes"):
            getattr(self, part)

    # --- the model

    @cached_property
    def model(self) -> "Weights | None":
        """The fitted model, where the snapshot has tools that it knows and talk that needs none."""
        if not self.snapshot.none:
            return None
        model: Weights = scan.load("cortex.selection.weights").in_force(self.snapshot.weights)
        return model if any(name in self.entries for name in model.tools) else None

    @cached_property
    def second(self) -> "SentenceWeights | None":
        """The second fitted model, where the sentence model is the one that it was fitted by; EncoderFailed without."""
        if self.model is None or not self.snapshot.encoder:
            return None
        late = scan.load("cortex.selection.sentence_weights")
        found: SentenceWeights = late.at_hand()
        probes = sentence_models.named(self.snapshot.encoder).kept(late.PROBES)
        return found if found.fits(self.model, probes) else None

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
        found: Curves | None = scan.load(SEMANTIC_INDEX).fitted(
            self.snapshot, self.learned, self.snapshot.encoder, self.tools.words
        )
        return found

    @cached_property
    def table_curves(self) -> "Curves | None":
        """The same under the table of meanings."""
        found: Curves | None = scan.load(SEMANTIC_INDEX).fitted(self.snapshot, self.learned, "", self.tools.words)
        return found

    # --- names and slips

    @cached_property
    def spelt(self) -> "ToolNames":
        """The tools by how their names are spelt; meta tools left out."""
        made: ToolNames = scan.load("cortex.selection.tool_names").ToolNames(self.names - self.metas)
        return made

    @lru_cache(maxsize=4096)  # noqa: B019  (as below)
    def name_terms(self, name: str) -> frozenset[str]:
        """The stemmed words of a tool's name."""
        return frozenset(text.terms(text.spaced(name)))

    @lru_cache(maxsize=4096)  # noqa: B019  (an index lives no longer than its snapshot is in use)
    def mend(self, term: str) -> str:
        """The known term that this one is a slip of the pen for, else the term itself."""
        if len(term) < TYPO_LETTERS or not term.isalpha() or self.tools.words.has(term):
            return term
        found: str = self._vocabulary.slip(term, 1 if len(term) < 8 else 2)
        return found or term

    @cached_property
    def _vocabulary(self) -> "Vocabulary":
        """The known words, for slips of the pen."""
        made: Vocabulary = scan.load("cortex.selection.spelling").Vocabulary(self.tools.words.terms, TYPO_LETTERS - 1)
        return made

    def matches(self, asked: str, names: frozenset[str], least: float = 0.0) -> Mapping[str, Match]:
        """How well the text fits the best of the named tools; those less like it than `least` are left out.

        The rarest-term gate: a tool whose shared words all are common or spread over many categories is left out.
        """
        said = self._terms(asked)
        if not said or not names:
            return {}
        search = scan.load("cortex.selection.search")
        shares = self.shares(asked) * self.mask(names)
        nearest = self._nearest(said, names, self.utterances)
        telling = {term for term in said if term not in self._common and self._spread(term) <= self._few}
        found = {}
        for slot in search.best(shares, CANDIDATES):
            name = self.tools.keys[slot]
            share, near = float(shares[slot]), nearest.get(name, 0.0)
            if _likeness(share, near) < least:
                continue
            bag = self.tools.bags[slot][0]
            met = tuple(term for term in said if term in bag)
            if not telling.isdisjoint(met):
                found[name] = Match(share, near, met)
        return found

    @lru_cache(maxsize=64)  # noqa: B019  (as above)
    def shares(self, asked: str) -> Any:
        """What the words of each tool cover of the text's weight: (n_slots,) float32, from 0 on."""
        said, words = self._terms(asked), self.tools.words
        return words.scores(said) / words.ceiling(said, UNKNOWN_WORTH)

    def _terms(self, asked: str) -> dict[str, float]:
        """The terms of a text, slips of the pen mended."""
        return dict.fromkeys((self.mend(term) for term in text.terms(asked)), 1.0)

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

    @lru_cache(maxsize=16)  # noqa: B019  (as above)
    def mask(self, names: frozenset[str]) -> Any:
        """1 at the slots of these tools, else 0: (n_slots,) float32."""
        return scan.load("cortex.selection.search").mask(self.tools.words.size, self.tools.slots, names)

    def business(self, names: Collection[str]) -> frozenset[str]:
        """Those of the names that are no meta tools."""
        return self._business(NamesKey(tuple(names)))

    @lru_cache(maxsize=16)  # noqa: B019  (as above)
    def _business(self, key: NamesKey) -> frozenset[str]:
        return frozenset(key.names) - self.metas

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
        found: int = scan.load("cortex.selection.search").spread(self._homes, self.tools.words.holders(term))
        return found

    @cached_property
    def _homes(self) -> Any:
        """The category of each slot, as a number: (n_slots,)."""
        homes = {slot: self.entries[name].category for name, slot in self.tools.slots.items()}
        return scan.load("cortex.selection.search").numbered(self.tools.words.size, homes)


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
        self._making = Lock()

    def of(self, snapshot: Snapshot) -> Index:
        """The index of this version: one for all threads, so that none makes a part that another is at already."""
        found = self._made.get(snapshot.version)
        if found is not None:
            return found
        with self._making:
            found = self._made.get(snapshot.version)
            if found is None:
                newest = next(reversed(self._made.values()), None)
                found = self._made[snapshot.version] = Index(snapshot, newest)
                while len(self._made) > KEPT:
                    del self._made[next(iter(self._made))]
            return found


_kept = _Kept()


def index_of(snapshot: Snapshot) -> Index:
    """The snapshot's index, built at its first use and kept for its version."""
    return _kept.of(snapshot)
