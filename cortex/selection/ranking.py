"""Ranks tools for a search in somebody's own words: names, words, letters and the fitted model, the best together.

Half the words, those of the thesaurus among them, and half the letters (BM25 each, against the best tool's), half of
both by the best clause; half of it all by meaning: what held up best on public catalogues (docs/decisions.md). Grants
nothing; the caller says which tools may be found.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from cortex.base import scan
from cortex.selection import bags, evidence, text
from cortex.selection.index import Index
from cortex.selection.semantic_votes import curves, learned, likeness, shares
from cortex.selection.talk import common_terms
from cortex.selection.thesaurus import alike

EXACT, PART, WORDS, WORDS_SHARE, SPELT = 1.0, 0.97, 0.82, 0.15, 0.9
NEAR = 0.93
NAME_WORDS = 4
BY_WORDING = 0.8
MODEL_SHARE = 0.55
LEAST_CHANCE, TELLING_CHANCE, TELLING_ALONE = 0.01, 0.1, 0.25
LEAST_SHARE, LEAST_SPELT = 0.06, 0.25
LEAST_ALONE = 0.4
ALIKE_WEIGHT = 0.6
CANDIDATES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolHit:
    """A permitted tool that fits, with how it was found."""

    name: str
    score: float
    how: str


def ranked(index: Index, query: str, names: Collection[str], most: int) -> tuple[ToolHit, ...]:
    """Those of the named tools that fit the query, best first, `most` at most; none where nothing fits."""
    allowed = index.business(names)
    hits = {name: ToolHit(name=name, score=score, how="its words") for name, score in _worded(index, query, allowed)}
    for name, vote in evidence.phrases(index, query, allowed).items():
        score = round(BY_WORDING * vote.p, 4) if vote.is_own else 0.0
        if score > (hits[name].score if name in hits else 0.0):
            hits[name] = ToolHit(name=name, score=score, how="a phrase of this server")
    for hit in _named(index, query, allowed, tuple(hits)):
        if hit.name not in hits or hits[hit.name].score < hit.score:
            hits[hit.name] = hit
    return tuple(sorted(hits.values(), key=lambda hit: (-hit.score, index.place[hit.name]))[:most])


def _worded(index: Index, query: str, allowed: frozenset[str]) -> list[tuple[str, float]]:
    """Scores up to BY_WORDING by words, letters and the model."""
    search = scan.load("cortex.selection.search")
    whole = _alike(index, query, allowed)
    parts = evidence.clauses(query)[1:]
    if parts:
        best = whole
        for part in parts:
            best = search.highest(best, _alike(index, part, allowed))
        whole = 0.5 * whole + 0.5 * best
    worded = whole
    semantic, is_table = _semantic(index, query, allowed, is_worded=bool(whole.any()))
    if semantic is not None:
        whole = 0.5 * whole + 0.5 * semantic
    found = {index.tools.keys[slot]: float(whole[slot]) for slot in search.best(whole, CANDIDATES)}
    chances = learned(index, query)[0].chances
    likely = {name: p for name, p in chances.items() if p >= LEAST_CHANCE and name in allowed}
    top = max(likely.values(), default=1.0)
    if top < (TELLING_CHANCE if found else TELLING_ALONE):
        likely = {}
    mixed = {}
    for name in found.keys() | likely.keys():
        known = name in index.learned
        wording = float((worded if known and is_table else whole)[index.tools.slots[name]])
        score = (1 - MODEL_SHARE) * wording + MODEL_SHARE * likely.get(name, 0.0) / top if known else wording
        mixed[name] = round(BY_WORDING * min(1.0, score), 4)
    return [(name, score) for name, score in mixed.items() if score > 0]


def _semantic(index: Index, query: str, allowed: frozenset[str], *, is_worded: bool) -> tuple[Any, bool]:
    """Likeness in meaning from 0 to 1 against the best, None where nothing comes near; and whether it is the table's.

    By the table, where no word meets, only what is clearly near. It has no say over tools that the fitted model knows.
    """
    search = scan.load("cortex.selection.search")
    found = likeness(index, query)
    near = found.row.clip(min=0.0) * index.mask(allowed)
    if found.is_table:
        is_near = is_worded or float(near.max(initial=0.0)) >= LEAST_ALONE
        return (search.scaled(near) if is_near else None), True
    worth = curves(index, found)
    if worth is not None:
        chances = index.semantic.chances(found.row, shares(index, query), worth)
        if float(chances.max(initial=0.0, where=near > 0)) < LEAST_CHANCE:
            return None, False
    return search.scaled(near), False


def _alike(index: Index, query: str, allowed: frozenset[str]) -> Any:
    """Likeness of each slot from 0 to 1; 0 everywhere where even the best shares too little with the query."""
    search = scan.load("cortex.selection.search")
    common = common_terms()
    terms = dict.fromkeys(text.terms(text.spaced(query)), 1.0)
    telling = {index.mend(term): 1.0 for term in terms if term not in common}
    grams: dict[str, float] = {}
    for gram in bags.grams(text.spaced(query)):
        grams[gram] = grams.get(gram, 0.0) + 1.0
    mask = index.mask(allowed)
    words, letters = index.tools.words.scores(_widened(telling)) * mask, index.tools.letters.scores(grams) * mask
    is_worded = search.share(words, index.tools.words, telling) >= LEAST_SHARE
    is_spelt = search.share(letters, index.tools.letters, grams) >= LEAST_SPELT
    return 0.5 * (search.scaled(words) + search.scaled(letters)) * (is_worded or is_spelt)


def _widened(telling: Mapping[str, float]) -> dict[str, float]:
    """The terms with the words that mean much the same, which count for less."""
    near = {other: ALIKE_WEIGHT for term in telling for other in alike(term)}
    return {**near, **telling}


def _named(index: Index, query: str, allowed: frozenset[str], likely: tuple[str, ...]) -> list[ToolHit]:
    """Hits by name: the same, a part of it, spelt alike; and those whose every word is in the query."""
    asked = text.normal(query).replace(" ", "_")
    found: dict[str, ToolHit] = {}
    if asked and len(text.words(query)) <= NAME_WORDS:
        found |= {key: ToolHit(name=key, score=SPELT, how="spelt alike") for key in index.spelt.alike(asked, NEAR)}
        if len(asked) > 3:
            found |= {key: ToolHit(name=key, score=PART, how="part of its name") for key in index.spelt.parts(asked)}
        found |= {key: ToolHit(name=key, score=EXACT, how="its name") for key in index.spelt.same(asked)}
    said = {index.mend(term) for term in text.terms(query.replace("_", " "))}
    for key in likely:
        parts = index.name_terms(key)
        if key not in found and len(parts) > 1 and parts <= said:
            own = parts.union(text.terms(index.entries[key].full.description))
            score = round(WORDS + WORDS_SHARE * len(said & own) / len(said), 4)
            found[key] = ToolHit(name=key, score=score, how="shared words")
    return [hit for name, hit in found.items() if name in allowed]
