"""What a registry snapshot is searched by: phrases by first word, words of tools, the model.

Built once for a snapshot's version and kept; one that differs in a few tools is derived from the one before. Reading
it changes nothing.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any

from msgspec import Struct

from cortex.base import spelling
from cortex.selection.index import semantic_index, shipped_index
from cortex.selection.index.documents import Documents, tools_as_documents
from cortex.selection.index.search import Scores
from cortex.selection.index.semantic_index import Curves, SemanticIndex
from cortex.selection.index.tool_words import UNKNOWN_WORTH
from cortex.selection.model import weights
from cortex.selection.model.weights import Weights
from cortex.selection.types import SNAPSHOTS_KEPT, NamesKey, Snapshot, ToolEntry
from cortex.selection.words import text

TYPO_LETTERS = 5
CANDIDATES = 24


class TriggerPattern(Struct, frozen=True):
    """A trigger ready to match: its words, and the tools it speaks for. `is_general`: the whole category."""

    words: tuple[str, ...]
    tools: tuple[str, ...]
    is_general: bool


class SpeltNames:
    """Names as they are compared, blanks as underscores, with what has them."""

    def __init__(self, names: Iterable[str]) -> None:
        """Take the names in."""
        self._holders: dict[str, list[str]] = {}
        for name in names:
            self._holders.setdefault(text.normal(name), []).append(name)

    def same(self, asked: str) -> list[str]:
        """Return what has this name."""
        return self._holders.get(asked, [])

    def parts(self, asked: str) -> list[str]:
        """Return what has a name that holds this, or one of several words that stands in it."""
        found = (name for name in self._holders if asked in name or (name in asked and "_" in name))
        return [holder for name in found for holder in self._holders[name]]

    def alike(self, asked: str, least: float) -> list[str]:
        """Return what has a name that is alike by `least` (Jaro-Winkler), in their order."""
        return [holder for name in spelling.alike(asked, self._holders, least) for holder in self._holders[name]]


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

    def build(self) -> None:
        """Make the parts now that a plan needs without a sentence model; else the first message waits for them."""
        if self.unlearned(self.names) - self.metas:
            self.table, self.table_curves, self.tools.words  # noqa: B018  (are made when they are read)
        self._taught  # noqa: B018  (as above)

    @cached_property
    def model(self) -> Weights | None:
        """The fitted model, where the snapshot has tools that it knows and talk that needs none."""
        if not self.snapshot.none:
            return None
        model = weights.in_force(self.snapshot.weights)
        return model if any(name in self.entries for name in model.tools) else None

    @cached_property
    def learned(self) -> frozenset[str]:
        """The tools that the model knows, standing in the category that it learned them in."""
        model = self.model
        if model is None:
            return frozenset()
        homes = zip(model.tools, (model.categories[at] for at in model.home), strict=True)
        return frozenset(name for name, home in homes if name in self.entries and self.entries[name].category == home)

    @cached_property
    def tools(self) -> Documents:
        """The tools as documents."""
        told: dict[str, list[str]] = {}
        for domain in self.snapshot.domains:
            for example in domain.examples:
                for name in example.tools:
                    told.setdefault(name, []).append(example.text)
        texts = {name: (entry, tuple(told.get(name, ()))) for name, entry in self.entries.items()}
        return tools_as_documents(texts, self._derived.get("tools"), shipped_index.shipped().rows)

    @property
    def documents(self) -> Mapping[str, Any]:
        """Return what another index can be derived from: these parts if they were searched, else those before them."""
        made: dict[str, Any] = {
            name: self.__dict__[name] for name in ("tools", "semantic", "table") if name in self.__dict__
        }
        return {**self._derived, **made}

    @cached_property
    def semantic(self) -> SemanticIndex:
        """The tools as vectors of the snapshot's sentence model; EncoderFailed until they are at hand."""
        return self._by_meaning(self.snapshot.encoder, "semantic")

    @cached_property
    def table(self) -> SemanticIndex:
        """The same by the table of meanings that ships."""
        return self._by_meaning("", "table")

    def _by_meaning(self, key: str, part: str) -> SemanticIndex:
        told = semantic_index.documents_of(self.snapshot, self.names, self.learned)
        return SemanticIndex(key, self.snapshot.entries, told, self._derived.get(part))

    @cached_property
    def curves(self) -> Curves | None:
        """Return what a likeness is worth under the sentence model, from the tools that the fitted model knows."""
        return self._fitted(self.snapshot.encoder)

    @cached_property
    def table_curves(self) -> Curves | None:
        """The same under the table of meanings; as it ships where the fitted model knows what it knew there."""
        shipped = shipped_index.shipped()
        return shipped.curves if self.learned and self.learned == shipped.learned else self._fitted("")

    def _fitted(self, key: str) -> Curves | None:
        return semantic_index.fitted(self.snapshot, self.learned, key, self.tools.words)

    @cached_property
    def spelt(self) -> SpeltNames:
        """The tools by how their names are spelt; meta tools left out."""
        return SpeltNames(self.names - self.metas)

    def name_terms(self, name: str) -> frozenset[str]:
        """The stemmed words of a tool's name."""
        return frozenset(text.terms(text.spaced(name)))

    @lru_cache(maxsize=4096)  # noqa: B019  (an index lives no longer than its snapshot is in use)
    def mend(self, term: str) -> str:
        """The known term that this one is a slip of the pen for, else the term itself."""
        if len(term) < TYPO_LETTERS or not term.isalpha() or self.tools.words.has(term):
            return term
        words = self._by_letter.get(term[0], [])
        return spelling.first_slip(term, words, 1 if len(term) < 8 else 2) or term

    @cached_property
    def _by_letter(self) -> dict[str, list[str]]:
        """The known words of a length in which slips are told, by their first letter."""
        found: dict[str, list[str]] = {}
        for word in map(self.tools.terms.of, self.tools.words.numbers):
            if len(word) >= TYPO_LETTERS - 1:
                found.setdefault(word[0], []).append(word)
        return found

    @lru_cache(maxsize=8)  # noqa: B019  (as above; of 10,000 tools one takes .8 MB)
    def shares(self, asked: str) -> Scores:
        """Return what the words of each tool cover of the text's weight, by slot, from 0 on."""
        said, words = dict.fromkeys(map(self.mend, text.terms(asked)), 1.0), self.tools.words
        most = words.ceiling(said, UNKNOWN_WORTH)
        return {slot: score / most for slot, score in words.scores(said).items()}

    def nearest_taught(self, asked: str, names: frozenset[str]) -> Mapping[str, float]:
        """The best cosine of the text with an utterance that this server taught, for the named tools that it taught.

        A word tells as much as few tools know it: among a house's own sentences alone its names are the common words.
        """
        said = dict.fromkeys(text.terms(asked))
        found: dict[str, float] = {}
        for terms, length, tools in self._taught if said else ():
            met = [term for term in terms if term in said]
            value = self._length(met) ** 2 / (self._length(said) * length) if met else 0.0
            for name in names.intersection(tools) if met else ():
                found[name] = max(value, found.get(name, 0.0))
        return found

    @cached_property
    def _taught(self) -> tuple[tuple[dict[str, None], float, tuple[str, ...]], ...]:
        """Return what this server taught: each utterance's terms, its length as a vector, the tools that it wants."""
        told = (example for domain in self.snapshot.domains for example in domain.examples if example.is_own)
        cut = [(dict.fromkeys(text.terms(example.text)), example.tools) for example in told]
        return tuple((terms, self._length(terms), tools) for terms, tools in cut if terms)

    def _length(self, terms: Iterable[str]) -> float:
        """The length of these terms as a vector: a rare one tells more, one that no tool has less than a rare one."""
        words = self.tools.words
        unknown = words.idf("") * UNKNOWN_WORTH
        return math.sqrt(sum((words.idf(term) if words.has(term) else unknown) ** 2 for term in terms))

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


def _phrases(
    snapshot: Snapshot, by_category: Mapping[str, tuple[ToolEntry, ...]]
) -> dict[str, tuple[TriggerPattern, ...]]:
    """Phrases by their first word."""
    found: dict[str, list[TriggerPattern]] = {}
    for domain in snapshot.domains:
        every = tuple(entry.name for entry in by_category.get(domain.name, ()))
        for trigger in domain.triggers:
            if said := text.words(trigger.text):
                made = TriggerPattern(said, trigger.tools or every, not trigger.tools)
                found.setdefault(said[0], []).append(made)
    return {word: tuple(phrases) for word, phrases in found.items()}


_kept: dict[str, Index] = {}
_making = Lock()


def index_of(snapshot: Snapshot) -> Index:
    """The snapshot's index, built at its first use from the newest one, and kept for its version with a few others.

    One for all threads, so that none makes a part that another is at already.
    """
    if found := _kept.get(snapshot.version):
        return found
    with _making:
        if snapshot.version not in _kept:
            _kept[snapshot.version] = Index(snapshot, next(reversed(_kept.values()), None))
            for old in list(_kept)[:-SNAPSHOTS_KEPT]:
                del _kept[old]
        return _kept[snapshot.version]
