"""What a text says about tools: trigger phrases, wording, and the fitted model, as votes with reasons.

Used by several stages. Reads only the text it is given: who wrote it, and whether it may count, is the stage's
business.
"""

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from cortex.selection import sentence_models, text
from cortex.selection.draft import NOT_LEARNED, ModelChances, Vote
from cortex.selection.index import Index, Match

if TYPE_CHECKING:
    from cortex.selection.calibrations import TextChances

MISS_A_WEIGHT = 0.1
CATEGORY_SHARE = 0.7
LONG_REQUEST_WORDS = 12
TEXT_CHARACTERS, TEXTS_MOST = 160, 4  # what a sentence model reads: the message, then its first clauses
LEAST_WORDING = 0.18
TAUGHT_LEAST = 0.5
LEAST_WISH = 0.64
WEB = "web"
_STEEPNESS, _MIDDLE = 13.0, 0.44
_LEAST_LIKENESS = _MIDDLE + math.log(LEAST_WORDING / (1 - LEAST_WORDING)) / _STEEPNESS - 1e-3  # a hair less, to round
_JOINING = (  # the longest first; "e", "y" and "en" bring more second requests than they cut in two
    "and then|and|then|but|also|und dann|und|dann|aber|außerdem|et puis|et|puis|mais|y luego|y|luego|pero|"
    "e poi|e|poi|ma|en dan|en|dan|maar|e depois|depois|mas"
)
_CLAUSE = re.compile(rf"[.;!?\n]+|,?\s+(?:{_JOINING})\s+", re.IGNORECASE)


def phrases(index: Index, asked: str, names: frozenset[str]) -> dict[str, Vote]:
    """Votes of the trigger phrases in the text: each weight w leaves a tenth to the power of w of doubt."""
    said = text.words(asked)
    whole = _as_text(said)
    weights: dict[str, float] = {}
    told: dict[str, str] = {}
    own: set[str] = set()
    for at, word in enumerate(said):
        for phrase in index.phrases.get(word, ()):
            if said[at : at + len(phrase.words)] != phrase.words:
                continue
            if any(void and _as_text(void) in whole for void in phrase.void):
                continue
            share = 1.0 if phrase.trigger.tools else CATEGORY_SHARE
            for name in phrase.tools:
                if name in names:
                    weights[name] = weights.get(name, 0.0) + share * phrase.trigger.weight
                    told.setdefault(name, " ".join(phrase.words))
                    if phrase.trigger.is_own:
                        own.add(name)
    return {
        name: Vote(
            stage="phrases",
            p=round(1 - MISS_A_WEIGHT**weight, 4),
            why=f'you wrote "{told[name]}"',
            is_own=name in own,
        )
        for name, weight in weights.items()
        if weight > 0
    }


def lexical(index: Index, asked: str, names: frozenset[str]) -> dict[str, Vote]:
    """Votes by likeness to names, summaries, parameters and examples; a long request also clause by clause."""
    if not names:
        return {}
    best = dict(index.matches(asked, names, _LEAST_LIKENESS))
    for clause in clauses(asked)[1:]:
        for name, match in index.matches(clause, names, _LEAST_LIKENESS).items():
            if name not in best or match.likeness > best[name].likeness:
                best[name] = match
    votes = {name: _vote(match) for name, match in best.items()}
    return {name: vote for name, vote in votes.items() if vote.p >= LEAST_WORDING}


@lru_cache(maxsize=256)
def learned(index: Index, asked: str) -> ModelChances:
    """What the model makes of the text; a long request also by clause."""
    model = index.model
    if model is None or not text.words(asked):
        return NOT_LEARNED
    return _best(index, model.tools, model.judged(model.mended(clauses(asked))))


@lru_cache(maxsize=256)
def learned_twice(index: Index, asked: str) -> ModelChances:
    """The same by the second model too, over vectors of the sentence model; EncoderFailed without one of them.

    Of a text with many clauses the first ones are read, as far as TEXT_CHARACTERS: time grows with each word.
    """
    model, second = index.model, index.second
    if model is None or second is None or not text.words(asked):
        return learned(index, asked)
    texts = model.mended(clauses(asked))
    read, rest = texts[:TEXTS_MOST], texts[TEXTS_MOST:]
    vectors = sentence_models.named(index.snapshot.encoder).asked([each[:TEXT_CHARACTERS] for each in read])
    judged = second.judged(model, read, vectors)
    return _best(index, model.tools, judged.with_more(model.judged(rest)) if rest else judged)


def _best(index: Index, tools: Sequence[str], judged: "TextChances") -> ModelChances:
    """The best chances of any clause, the whole text the first of them.

    Its gates are those of the whole; where that reads like talk, of the clause that wishes most: a wish between three
    sentences of small talk is one.
    """
    best, known = judged.tools.max(axis=0).tolist(), index.learned
    chances = {name: p for name, p in zip(tools, best, strict=True) if name in known}
    by = 0 if judged.wish[0] >= LEAST_WISH else int((judged.wish * judged.work).argmax())
    return ModelChances(chances=chances, wish=float(judged.wish[by]), work=float(judged.work[by]))


def taught(index: Index, asked: str, names: frozenset[str]) -> dict[str, Vote]:
    """Votes of the utterances that this server taught for tools that the model knows."""
    return {
        name: Vote(stage="lexical", p=round(value, 4), why="similar to an example added here", is_own=True)
        for name, value in index.nearest_taught(asked, names).items()
        if value >= TAUGHT_LEAST
    }


@lru_cache(maxsize=256)
def clauses(asked: str) -> tuple[str, ...]:
    """The whole text, then the clauses of a long one."""
    if len(text.words(asked)) <= LONG_REQUEST_WORDS:
        return (asked,)
    return (asked, *(part for part in _CLAUSE.split(asked) if len(text.words(part)) > 1))


def _vote(match: Match) -> Vote:
    p = 1 / (1 + math.exp(-_STEEPNESS * (match.likeness - _MIDDLE)))
    met = ", ".join(word for word in match.met if not word.startswith("\u00a7")) or "its shape"
    return Vote(stage="lexical", p=round(p, 4), why=f"close in wording ({met})")


def _as_text(said: tuple[str, ...]) -> str:
    """Words between blanks, so that one such text stands in another where its words do."""
    return f" {' '.join(said)} "
