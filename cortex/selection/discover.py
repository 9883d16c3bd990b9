"""The search behind `tools_discover`, over the permitted tools only, in the words that the model reads.

Each recipe may bring its own ranking; this server's is `votes/ranking.py`. May answer that nothing fits and name the
domains that exist. Grants nothing.
"""

from collections.abc import Callable, Collection, Iterable

from msgspec import Struct

from cortex.selection.index.index import index_of
from cortex.selection.types import Snapshot
from cortex.selection.votes.ranking import ToolHit, ranked
from cortex.selection.ways import ora
from cortex.selection.words import text
from cortex.selection.words.talk import common_terms, is_assent
from cortex.selection.words.thesaurus import in_english

MOST = 5


class DiscoveryResult(Struct, frozen=True, kw_only=True):
    """Up to five hits, best first, and the words for the model: signatures, or the domains that exist."""

    hits: tuple[ToolHit, ...]
    text: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names found, best first."""
        return tuple(hit.name for hit in self.hits)


def discover(
    query: str, snapshot: Snapshot, permitted: Collection[str], *, is_bridged: bool = False, recipe: str = ""
) -> DiscoveryResult:
    """Return what of the permitted tools fits the query. `is_bridged`: say that they are called through tool_call.

    `recipe`: one that brings its own ranking is asked for it; all others share this server's.
    """
    hits = RANKINGS.get(recipe, rank)(query, snapshot, permitted, MOST)
    if not hits:
        return DiscoveryResult(hits=(), text=_domains(snapshot, frozenset(permitted)))
    index = index_of(snapshot)
    rows = [f"- {index.entries[hit.name].signature}" for hit in hits]
    way = "Call one with tool_call(name, arguments)." if is_bridged else "They can be called by name from now on."
    return DiscoveryResult(hits=hits, text="\n".join((*rows, way)))


def in_words(query: str, said: Iterable[str]) -> str:
    """The query; one that only points ("do that", "that tool") behind the first of these texts that says more."""
    told = next((each for each in said if not _points(each)), "") if _points(query) else ""
    return f"{told}\n{query}" if told else query


def _points(said: str) -> bool:
    terms = text.terms(in_english(said, lambda _: False))
    return is_assent(said) or all(term in common_terms() or term == "tool" for term in terms)


def rank(query: str, snapshot: Snapshot, names: Collection[str], most: int) -> tuple[ToolHit, ...]:
    """Those of the named tools that fit the query, best first, `most` at most; meta tools never."""
    return ranked(index_of(snapshot), query, names, most)


Ranking = Callable[[str, Snapshot, Collection[str], int], tuple[ToolHit, ...]]
RANKINGS: dict[str, Ranking] = {"cortex": rank, "ora": ora.rank}


def _domains(snapshot: Snapshot, allowed: frozenset[str]) -> str:
    """The answer when nothing fits."""
    there = {entry.category for entry in snapshot.entries if entry.name in allowed and not entry.is_meta}
    rows = [f"- {domain.name}: {domain.summary}" for domain in snapshot.domains if domain.name in there]
    if not rows:
        return "No tool may be used here. Answer without one."
    return "\n".join(("Nothing fits that. Tools exist for:", *rows, "Search again in other words, or answer without."))
