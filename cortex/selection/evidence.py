"""What a text says about tools: trigger phrases and lexical likeness, as votes with reasons. Used by several stages.

Reads only the text it is given: who wrote it, and whether it may count, is the stage's business.
"""

import math
import re
from collections.abc import Iterable, Mapping

from cortex.selection import text
from cortex.selection.draft import Vote
from cortex.selection.index import Index, Match

MISS_A_WEIGHT = 0.1
CATEGORY_SHARE = 0.7
LONG_REQUEST_WORDS = 12
_STEEPNESS, _MIDDLE = 13.0, 0.44
_LEAST_P = 0.02
_CLAUSE = re.compile(r"[.;!?\n]+|,?\s+(?:and then|and|then|but|also)\s+", re.IGNORECASE)


def phrases(index: Index, asked: str, names: Iterable[str]) -> dict[str, Vote]:
    """Votes of the trigger phrases in the text: each weight w leaves a tenth to the power of w of doubt."""
    allowed = frozenset(names)
    said = text.words(asked)
    weights: dict[str, float] = {}
    told: dict[str, str] = {}
    for at, word in enumerate(said):
        for phrase in index.phrases.get(word, ()):
            if said[at : at + len(phrase.words)] != phrase.words or any(_holds(said, void) for void in phrase.void):
                continue
            share = 1.0 if phrase.trigger.tools else CATEGORY_SHARE
            for name in phrase.tools:
                if name in allowed:
                    weights[name] = weights.get(name, 0.0) + share * phrase.trigger.weight
                    told.setdefault(name, " ".join(phrase.words))
    return {
        name: Vote(stage="phrases", p=round(1 - MISS_A_WEIGHT**weight, 4), why=f'you wrote "{told[name]}"')
        for name, weight in weights.items()
        if weight > 0
    }


def lexical(index: Index, asked: str, names: Iterable[str]) -> dict[str, Vote]:
    """Votes by likeness to names, summaries, parameters and examples; a long request also clause by clause."""
    allowed = frozenset(names)
    best = dict(index.matches(asked, allowed))
    if len(text.words(asked)) > LONG_REQUEST_WORDS:
        for clause in _CLAUSE.split(asked):
            if len(text.words(clause)) > 1:
                _take_better(best, index.matches(clause, allowed))
    votes = {name: _vote(match) for name, match in best.items()}
    return {name: vote for name, vote in votes.items() if vote.p >= _LEAST_P}


def likeness(match: Match) -> float:
    """One figure from 0 to 1: half what the tool's words cover of the text, half its nearest example."""
    return 0.5 * min(1.0, match.bm25) + 0.5 * min(1.0, match.nearest)


def _vote(match: Match) -> Vote:
    p = 1 / (1 + math.exp(-_STEEPNESS * (likeness(match) - _MIDDLE)))
    met = ", ".join(word for word in match.met if not word.startswith("\u00a7")) or "its shape"
    return Vote(stage="lexical", p=round(p, 4), why=f"close in wording ({met})")


def _take_better(best: dict[str, Match], others: Mapping[str, Match]) -> None:
    for name, match in others.items():
        if name not in best or likeness(match) > likeness(best[name]):
            best[name] = match


def _holds(said: tuple[str, ...], part: tuple[str, ...]) -> bool:
    return bool(part) and any(said[at : at + len(part)] == part for at in range(len(said) - len(part) + 1))
