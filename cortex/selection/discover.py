"""The search behind `tools_discover`: exact name, part of a name, shared words, BM25; over the permitted tools only.

Bears typos; may answer that nothing fits and name the domains that exist. Grants nothing.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cortex.base import scan
from cortex.selection import evidence, text
from cortex.selection.index import Index, index_of
from cortex.selection.types import Entry, Snapshot
from cortex.selection.ways import ora

MOST = 5
EXACT, PART, WORDS, WORDS_SHARE, SPELT = 1.0, 0.97, 0.82, 0.15, 0.9
NEAR = 0.93
LEAST_LEXICAL = 0.10


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A permitted tool that fits, with how it was found."""

    name: str
    score: float
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Up to five hits, best first, and the words for the model: signatures, or the domains that exist."""

    hits: tuple[Hit, ...]
    text: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names found, best first."""
        return tuple(hit.name for hit in self.hits)


def discover(
    query: str, snapshot: Snapshot, permitted: Sequence[str], *, is_bridged: bool = False, recipe: str = ""
) -> Found:
    """What of the permitted tools fits the query. `is_bridged`: say that they are called through tool_call.

    `recipe`: one that brings its own ranking is asked for it; all others share this house's.
    """
    allowed = frozenset(permitted)
    hits = RANKINGS.get(recipe, rank)(query, snapshot, permitted, MOST)
    if not hits:
        return Found(hits=(), text=_domains(snapshot, allowed))
    index = index_of(snapshot)
    rows = [f"- {signature(index.entries[hit.name])}" for hit in hits]
    way = "Call one with tool_call(name, arguments)." if is_bridged else "They can be called by name from now on."
    return Found(hits=hits, text="\n".join((*rows, way)))


def rank(query: str, snapshot: Snapshot, names: Sequence[str], most: int) -> tuple[Hit, ...]:
    """Those of the named tools that fit the query, best first, `most` at most; meta tools never."""
    index = index_of(snapshot)
    allowed = frozenset(names)
    entries = [entry for entry in snapshot.entries if entry.name in allowed and not entry.is_meta]
    scored: dict[str, Hit] = {}
    for entry in entries:
        hit = _by_name(query, entry, index)
        if hit is not None:
            scored[entry.name] = hit
    for name, score in _by_words(query, index, [entry.name for entry in entries]).items():
        if name not in scored or scored[name].score < score:
            scored[name] = Hit(name=name, score=round(score, 4), how="its words")
    return tuple(sorted(scored.values(), key=lambda hit: (-hit.score, hit.name))[:most])


def _rank_as_ora(query: str, snapshot: Snapshot, names: Sequence[str], most: int) -> tuple[Hit, ...]:
    """The ranking of the recipe `ora`."""
    found = ora.rank(query, snapshot, names, most)
    return tuple(Hit(name=fit.name, score=fit.score, how=fit.how) for fit in found)


Ranking = Callable[[str, Snapshot, Sequence[str], int], tuple[Hit, ...]]
RANKINGS: dict[str, Ranking] = {"cortex": rank, "ora": _rank_as_ora}


def signature(entry: Entry) -> str:
    """`name(argument: type, optional?: type): summary`, with the allowed values where they are few."""
    properties: dict[str, Any] = entry.full.parameters.get("properties", {})
    required = entry.full.parameters.get("required", [])
    names = [*required, *(name for name in properties if name not in required)]
    told = (
        f"{name}{'' if name in required else '?'}: {_kind(properties[name])}" for name in names if name in properties
    )
    return f"{entry.name}({', '.join(told)}): {entry.summary}"


def _by_name(query: str, entry: Entry, index: Index) -> Hit | None:
    """The hit by name, parts of it, or words shared with name and summary."""
    asked = text.normal(query).replace(" ", "_")
    name = text.normal(entry.name)
    if asked == name:
        return Hit(name=entry.name, score=EXACT, how="its name")
    if len(asked) > 3 and (asked in name or (name in asked and "_" in name)):
        return Hit(name=entry.name, score=PART, how="part of its name")
    if scan.load("cortex.selection.spelling").likeness(asked, name) >= NEAR:
        return Hit(name=entry.name, score=SPELT, how="spelt alike")
    said = {index.mend(term) for term in text.terms(query.replace("_", " "))}
    parts = set(text.terms(entry.name.replace("_", " ")))
    if said and parts <= said:
        own = set(text.terms(entry.summary)) | parts
        return Hit(
            name=entry.name, score=round(WORDS + WORDS_SHARE * len(said & own) / len(said), 4), how="shared words"
        )
    return None


def _by_words(query: str, index: Index, names: list[str]) -> dict[str, float]:
    """Phrases and BM25 with examples, scaled below the hits by name."""
    found: dict[str, float] = {}
    allowed = frozenset(names)
    for votes in (evidence.phrases(index, query, allowed), evidence.lexical(index, query, allowed)):
        for name, vote in votes.items():
            found[name] = max(found.get(name, 0.0), 0.8 * vote.p)
    return {name: score for name, score in found.items() if score >= LEAST_LEXICAL}


def _domains(snapshot: Snapshot, allowed: frozenset[str]) -> str:
    """The answer when nothing fits."""
    there = {entry.category for entry in snapshot.entries if entry.name in allowed and not entry.is_meta}
    rows = [f"- {domain.name}: {domain.summary}" for domain in snapshot.domains if domain.name in there]
    if not rows:
        return "No tool may be used here. Answer without one."
    return "\n".join(("Nothing fits that. Tools exist for:", *rows, "Search again in other words, or answer without."))


def _kind(node: dict[str, Any]) -> str:
    if "enum" in node:
        return "|".join(json.dumps(value, ensure_ascii=False) for value in node["enum"])
    kind = node.get("type", "any")
    words = "|".join(kind) if isinstance(kind, list) else str(kind)
    return f"{words} ({node['format']})" if "format" in node else words
