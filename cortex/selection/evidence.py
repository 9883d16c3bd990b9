"""What a text says about tools: what this server taught, in phrases and utterances, and the fitted model, as votes.

Used by several stages. Reads only the text it is given: who wrote it, and whether it may count, is the stage's
business.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from cortex.selection import quoted, text
from cortex.selection.draft import NOT_LEARNED, ModelChances, Vote
from cortex.selection.index import Index

if TYPE_CHECKING:
    from cortex.selection.calibrations import TextChances

DOUBT, GENERAL_DOUBT = 0.1, 0.2
LONG_REQUEST_WORDS = 12
TEXT_CHARACTERS = 160  # of a message that a sentence model reads
TAUGHT_LEAST = 0.5
LEAST_WISH = 0.64
WEB = "web"
_JOINING = (  # the longest first; "e", "y" and "en" bring more second requests than they cut in two
    "and then|and|then|but|also|und dann|und|dann|aber|außerdem|et puis|et|puis|mais|y luego|y|luego|pero|"
    "e poi|e|poi|ma|en dan|en|dan|maar|e depois|depois|mas"
)
_CLAUSE = re.compile(rf"[.;!?\n]+|,?\s+(?:{_JOINING})\s+", re.IGNORECASE)


def phrases(index: Index, asked: str, names: frozenset[str]) -> dict[str, Vote]:
    """Votes of this server's phrases in the text: one leaves a tenth of the doubt, or a fifth for a whole category."""
    said = text.words(asked)
    doubts: dict[str, float] = {}
    told: dict[str, str] = {}
    for at, word in enumerate(said):
        for phrase in index.phrases.get(word, ()):
            if said[at : at + len(phrase.words)] != phrase.words:
                continue
            for name in phrase.tools:
                if name in names:
                    doubts[name] = doubts.get(name, 1.0) * (GENERAL_DOUBT if phrase.is_general else DOUBT)
                    told.setdefault(name, " ".join(phrase.words))
    return {
        name: Vote(stage="phrases", p=round(1 - doubt, 4), why=f'you wrote "{told[name]}"', is_own=True)
        for name, doubt in doubts.items()
    }


@lru_cache(maxsize=256)
def learned(index: Index, asked: str) -> ModelChances:
    """What the model makes of the text; a long request also by clause."""
    model = index.model
    if model is None or not text.words(asked):
        return NOT_LEARNED
    return _best(index, model.tools, model.judged(model.mended(clauses(asked))))


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
    """Votes of the utterances that this server taught."""
    return {
        name: Vote(stage="lexical", p=round(value, 4), why="similar to an example added here", is_own=True)
        for name, value in index.nearest_taught(asked, names).items()
        if value >= TAUGHT_LEAST
    }


@lru_cache(maxsize=256)
def clauses(asked: str) -> tuple[str, ...]:
    """What the person wishes, as a whole, then the clauses of a long text. What is only quoted is left out."""
    asked = quoted.wish_of(asked)
    if len(text.words(asked)) <= LONG_REQUEST_WORDS:
        return (asked,)
    return (asked, *(part for part in _CLAUSE.split(asked) if len(text.words(part)) > 1))
