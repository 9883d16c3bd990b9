"""Ranks tools for a search in somebody's own words: half what is meant, half which words meet, and what was learned.

Likeness in meaning, plus the share of the query's words that the tool has (BM25), those of the thesaurus among them: a
sum without a fitted weight, which held up best on public and own catalogues (docs/decisions). For tools that the
fitted model knows its chance counts as well. Grants nothing; the caller says which tools may be found.
"""

from collections.abc import Collection

from msgspec import Struct

from cortex.selection.index import search
from cortex.selection.index.index import Index
from cortex.selection.votes import evidence
from cortex.selection.votes.semantic_votes import likeness
from cortex.selection.words import text
from cortex.selection.words.talk import common_terms
from cortex.selection.words.thesaurus import alike, in_english

BY_NAME, SPELT = 1.0, 0.9
NEAR = 0.93
NAME_WORDS = 4
BY_WORDING = 0.8  # of the way to a name
WORDS_SHARE, NAME_SHARE = 1.25, 0.1
MODEL_SHARE = 0.55
LEAST, LEAST_CHANCE = 0.05, 0.25
ENOUGH, ENOUGH_CHANCE = 0.5, 0.1
ALIKE_WEIGHT = 0.3
CANDIDATES = 40


class ToolHit(Struct, frozen=True, kw_only=True):
    """A permitted tool that fits, with how it was found. `score`: from 0 to 1, 1 for its name."""

    name: str
    score: float
    how: str


def ranked(index: Index, query: str, names: Collection[str], most: int) -> tuple[ToolHit, ...]:
    """Those of the named tools that fit the query, best first, `most` at most; none where nothing fits."""
    allowed = index.business(names)
    found = [("its words", _worded(index, query, allowed))]
    own = {name: vote.p for name, vote in evidence.phrases(index, query, allowed).items()}
    found.append(("a phrase of this server", {name: BY_WORDING * p for name, p in own.items()}))
    found.extend(_named(index, query, allowed))
    hits: dict[str, ToolHit] = {}
    for how, scores in found:
        for name, score in scores.items():
            if name not in hits or hits[name].score < score:
                hits[name] = ToolHit(name=name, score=round(score, 4), how=how)
    return tuple(sorted(hits.values(), key=lambda hit: (-hit.score, index.place[hit.name]))[:most])


def _worded(index: Index, query: str, allowed: frozenset[str]) -> dict[str, float]:
    """Scores up to BY_WORDING by meaning, words and the model; none where even the best says too little."""
    chances = {name: p for name, p in evidence.learned(index, query).chances.items() if name in allowed}
    wording = _wording(index, query, allowed, chances)
    best, likeliest = max(wording.values(), default=0.0), max(chances.values(), default=0.0)
    if best < LEAST and likeliest < LEAST_CHANCE:
        return {}
    scores = {name: score / max(ENOUGH, best) for name, score in wording.items()}
    for name in index.learned.intersection(scores):
        scores[name] += MODEL_SHARE * (chances.get(name, 0.0) / max(ENOUGH_CHANCE, likeliest) - scores[name])
    return {name: BY_WORDING * score for name, score in scores.items() if score > 0}


def _wording(index: Index, query: str, allowed: frozenset[str], others: Collection[str]) -> dict[str, float]:
    """Meaning and words of the best tools and of these others: likeness, and shares of the query and of the name."""
    words = index.tools.words
    query = in_english(text.ends(query), words.has)
    said = dict.fromkeys(index.mend(term) for term in text.terms(text.spaced(query)))
    telling = {term: 1.0 for term in said if term not in common_terms()}
    if not telling:
        return {}
    near = {other: ALIKE_WEIGHT for term in telling for other in alike(term)}
    most = words.ceiling(telling)
    found = dict(enumerate(likeness(index, query).row))
    for slot, score in words.scores({**near, **telling}).items():
        found[slot] += WORDS_SHARE * score / most
    keys, slots = index.tools.keys, index.tools.slots
    best = search.best({slot: score for slot, score in found.items() if keys[slot] in allowed}, CANDIDATES)
    names = {keys[slot] for slot in best}.union(others)
    parts = {name: index.name_terms(name) for name in names}
    shares = {name: len(terms.intersection(said)) / max(1, len(terms)) for name, terms in parts.items()}
    return {name: max(0.0, found[slots[name]]) + NAME_SHARE * share for name, share in shares.items()}


def _named(index: Index, query: str, allowed: frozenset[str]) -> list[tuple[str, dict[str, float]]]:
    """Scores by name, where the query is so short that it may be one: spelt alike, a part of it, the same."""
    asked = text.normal(query).replace(" ", "_")
    if not asked or len(text.words(query)) > NAME_WORDS:
        return []
    found = [
        ("spelt alike", SPELT, index.spelt.alike(asked, NEAR)),
        ("part of its name", (BY_NAME + SPELT) / 2, index.spelt.parts(asked) if len(asked) > 3 else []),
        ("its name", BY_NAME, index.spelt.same(asked)),
    ]
    return [(how, {name: score for name in names if name in allowed}) for how, score, names in found]
