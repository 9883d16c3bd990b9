"""Core and deferred tools: which are core, how the rest is listed, and how a discovery ranks them.

Scores: exact 1.0, substring 0.97, shared keywords 0.82 + 0.15 x share, domain 0.78, spelt alike 0.9; below them BM25
(k1 1.5, b 0.75: Robertson & Zaragoza 2009) over name, description and parameter names, with likeness and domain.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cortex.base import scan
from cortex.selection import talk, text
from cortex.selection.catalog import CatalogText, quoted
from cortex.selection.types import Domain, RoleView, Snapshot, ToolEntry
from cortex.selection.version_cache import once

DISCOVERY = "tools_discover"
CORE_TOOLS, FIRST_BLOCK_SHARE = 5, 0.45
TOP, MOST, CALLS_A_TURN = 5, 8, 3
EXACT, SUBSTRING, WORDS, WORDS_SHARE, DOMAIN, ALIKE = 1.0, 0.97, 0.82, 0.15, 0.78, 0.9
ALIKE_LEAST, MENDED_LEAST, MENDED_LETTERS = 0.93, 0.85, 4
SUBSTRING_LETTERS = 3
K1, B = 1.5, 0.75
ALIKE_WORTH, DOMAIN_WORTH = 0.35, 0.1
LOWEST, HIGHEST = 0.05, 0.79
HEAD, HEAD_TOKENS = "Deferred tools by domain; tools_discover brings one in full:", 14

_USUAL = ("web_search", "task_list", "task_create", "session_search", "file_read")
_CORE_BY_ROLE = {
    "coder": ("file_read", "file_list", "file_grep", "file_write", "git_status"),
    "research": ("web_search", "web_read", "http_fetch"),
}


# --- policy and catalog -------------------------------------------------------------------------------------------


def core(role: RoleView, entries: Sequence[ToolEntry], discovery_tokens: int) -> tuple[str, ...]:
    """The tools used on nearly every turn: the role's own first, then the usual ones of its name, at most five.

    Only as many as keep the first block (discovery included) within 45 % of all permitted schemas.
    """
    own = [entry.name for entry in entries if entry.is_core or {entry.name, entry.category} & set(role.core)]
    allowed = {entry.name: entry for entry in entries}
    room = FIRST_BLOCK_SHARE * sum(entry.tokens_full for entry in entries) - discovery_tokens
    chosen: list[str] = []
    for name in dict.fromkeys((*own, *_CORE_BY_ROLE.get(role.name, _USUAL))):
        if name in allowed and len(chosen) < CORE_TOOLS and allowed[name].tokens_full <= room:
            chosen.append(name)
            room -= allowed[name].tokens_full
    return tuple(chosen)


def listing(entries: Sequence[ToolEntry], domains: Sequence[Domain]) -> CatalogText:
    """One line a deferred tool, by domain; empty where nothing is deferred. The same tools give the same bytes."""
    members: dict[str, list[ToolEntry]] = {}
    for entry in entries:
        members.setdefault(entry.category, []).append(entry)
    if not members:
        return CatalogText()
    order = [domain.name for domain in domains if domain.name in members]
    rows, tokens = [HEAD], HEAD_TOKENS
    for name in dict.fromkeys((*order, *sorted(members))):
        rows.append(f"{quoted(name)}:")
        rows += [f"- {quoted(entry.name)}: {quoted(entry.summary)}" for entry in members[name]]
        tokens += 4 + sum(entry.tokens_line + 2 for entry in members[name])
    return CatalogText(text="\n".join(rows), tokens=tokens)


# --- discovery ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A tool that fits a query, from 0.05 to 1, and how it was found."""

    name: str
    score: float
    how: str


class _Shelf:
    """What a snapshot is searched by: names, their keywords, domains, and term weights."""

    def __init__(self, snapshot: Snapshot) -> None:
        business = [entry for entry in snapshot.entries if not entry.is_meta]
        self.names = {entry.name: text.normal(entry.name) for entry in business}
        self.domain = {entry.name: entry.category for entry in business}
        self.members: dict[str, list[str]] = {}
        for entry in business:
            self.members.setdefault(entry.category, []).append(entry.name)
        self.domain_terms = {name: frozenset(_terms(name)) for name in self.members}
        self.keywords: dict[str, list[str]] = {}
        for entry in business:
            for term in set(_terms(entry.name)):
                self.keywords.setdefault(term, []).append(entry.name)
        self.weights = _weights({entry.name: _bag(entry) for entry in business})
        self.terms = sorted({*self.weights, *(term for own in self.domain_terms.values() for term in own)})
        self._known = frozenset(self.terms)

    def mend(self, term: str) -> str:
        """The known term that this one was mistyped or misheard for, else the term itself."""
        if term in self._known or len(term) < MENDED_LETTERS:
            return term
        spelling = scan.load("cortex.selection.spelling")
        found: str = spelling.closest(term, self.terms, MENDED_LEAST)
        return found or term


_shelf_of = once(_Shelf)


def search(query: str, snapshot: Snapshot, names: Iterable[str], most: int = TOP) -> tuple[Fit, ...]:
    """What `tools_discover` shows under this way: five unless asked for more, never more than eight."""
    return rank(query, snapshot, names, max(1, min(most, MOST)))


def rank(query: str, snapshot: Snapshot, names: Iterable[str], most: int) -> tuple[Fit, ...]:
    """The named tools that fit, best first: by name and keywords, then, in the places left free, by BM25."""
    shelf = _shelf_of(snapshot)
    allowed = frozenset(names)
    asked = text.normal(query).replace(" ", "_")
    if not asked:
        return ()
    said = _said(query, shelf)
    first = _by_name(asked, said, shelf, {name: own for name, own in shelf.names.items() if name in allowed})
    ranked = _sorted(first, asked, shelf)[:most]
    if len(ranked) < most:
        rest = _by_words(asked, said, shelf, allowed - {fit.name for fit in first})
        ranked += _sorted(rest, asked, shelf)[: most - len(ranked)]
    return tuple(ranked)


def _sorted(fits: list[Fit], asked: str, shelf: _Shelf) -> list[Fit]:
    """Best first; of equals the one that is spelt more alike."""
    alike = scan.load("cortex.selection.spelling").likeness
    return sorted(fits, key=lambda fit: (-fit.score, -alike(asked, shelf.names[fit.name]), fit.name))


def _by_name(asked: str, said: tuple[str, ...], shelf: _Shelf, open_to: Mapping[str, str]) -> list[Fit]:
    """The deterministic tier: each tool with the best of its scores."""
    best: dict[str, tuple[float, str]] = {}

    def put(name: str, score: float, how: str) -> None:
        if name in open_to and score > best.get(name, (0.0, ""))[0]:
            best[name] = (score, how)

    for home in _domains(said, shelf):
        for name in shelf.members[home]:
            put(name, DOMAIN, "its domain")
    for name, count in Counter(name for term in said for name in shelf.keywords.get(term, ())).items():
        put(name, WORDS + WORDS_SHARE * count / len(said), "shared words")
    for name in scan.load("cortex.selection.spelling").near(asked, open_to, ALIKE_LEAST):
        put(name, ALIKE, "spelt alike")
    for name, own in open_to.items():
        if (own in asked or asked in own) and min(len(own), len(asked)) >= SUBSTRING_LETTERS:
            put(name, SUBSTRING, "part of its name")
        if asked == own:
            put(name, EXACT, "its name")
    return [Fit(name=name, score=round(score, 4), how=how) for name, (score, how) in best.items()]


def _by_words(asked: str, said: tuple[str, ...], shelf: _Shelf, allowed: frozenset[str]) -> list[Fit]:
    """The BM25 tier: the query's best match = 1, plus likeness and domain, scaled into 0.05 to 0.79."""
    sums: dict[str, float] = {}
    for term in said:
        for name, weight in shelf.weights.get(term, {}).items():
            if name in allowed:
                sums[name] = sums.get(name, 0.0) + weight
    best = max(sums.values(), default=1.0)
    homes = _domains(said, shelf)
    likeness = scan.load("cortex.selection.spelling").likeness
    fits = []
    for name, value in sums.items():
        beside = ALIKE_WORTH * likeness(asked, shelf.names[name]) + DOMAIN_WORTH * (shelf.domain[name] in homes)
        share = (value / best + beside) / (1 + ALIKE_WORTH + DOMAIN_WORTH)
        fits.append(Fit(name=name, score=round(LOWEST + (HIGHEST - LOWEST) * share, 4), how="its description"))
    return fits


def _domains(said: tuple[str, ...], shelf: _Shelf) -> frozenset[str]:
    """The domains whose whole name was said."""
    terms = frozenset(said)
    return frozenset(name for name, own in shelf.domain_terms.items() if own and own <= terms)


def _said(query: str, shelf: _Shelf) -> tuple[str, ...]:
    """The query's terms, mended; common words count only where there is nothing else."""
    terms = tuple(dict.fromkeys(_terms(query)))
    rare = tuple(term for term in terms if term not in talk.common_terms())
    return tuple(dict.fromkeys(shelf.mend(term) for term in rare or terms))


def _terms(told: str) -> tuple[str, ...]:
    return tuple(text.stem(word) for word in text.words(told.replace("_", " ").replace("-", " ")))


def _bag(entry: ToolEntry) -> Counter[str]:
    properties = entry.full.parameters.get("properties", {})
    return Counter(_terms(" ".join((entry.name, entry.full.description, *properties))))


def _weights(bags: Mapping[str, Counter[str]]) -> dict[str, dict[str, float]]:
    """Term -> tool -> BM25 weight."""
    sizes = {name: sum(bag.values()) for name, bag in bags.items()}
    mean = sum(sizes.values()) / len(sizes) if sizes else 1.0
    spread = Counter(term for bag in bags.values() for term in bag)
    found: dict[str, dict[str, float]] = {}
    for name, bag in bags.items():
        norm = K1 * (1 - B + B * sizes[name] / mean)
        for term, count in bag.items():
            idf = math.log(1 + (len(bags) - spread[term] + 0.5) / (spread[term] + 0.5))
            found.setdefault(term, {})[name] = idf * count * (K1 + 1) / (count + norm)
    return found
