"""What a text says about tools: what this server taught, in phrases and utterances, and the fitted model, as votes.

Used by several stages. Reads only the text it is given: who wrote it, and whether it may count, is the stage's
business.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from cortex.selection.index.index import Index
from cortex.selection.plan.draft import NOT_LEARNED, ModelChances, Vote
from cortex.selection.words import quoted, text

DOUBT, GENERAL_DOUBT = 0.1, 0.2
LONG_REQUEST_WORDS = 12
TEXT_CHARACTERS = 160  # of a message that a sentence model reads
TAUGHT_LEAST = 0.5
LEAST_WISH, LEAST_WORK = 0.64, 0.3
GRAVE_SHARE = 0.15  # of the chance of the likeliest tool of its clause
FULL_WISH, WISH_POWER = 0.5, 4.0  # from here on the gate takes nothing
WEB = "web"
FIRST_CLAUSES, LAST_CLAUSES = 24, 8  # of a long text; each is looked up among all tools
_JOINING = (  # the longest first; "e", "y" and "en" bring more second requests than they cut in two
    "and then|and|then|but|also|und dann|und|dann|aber|außerdem|et puis|et|puis|mais|y luego|y|luego|pero|"
    "e poi|e|poi|ma|en dan|en|dan|maar|e depois|depois|mas"
)
_CLAUSE = re.compile(
    rf"[.;!?\n]+|,?(?<![^\S\n])\s++(?:{_JOINING})\s+", re.IGNORECASE
)  # a run of blanks is looked at once


def phrases(index: Index, asked: str, names: frozenset[str]) -> dict[str, Vote]:
    """Votes of this server's phrases in the text: one leaves a tenth of the doubt, or a fifth for a whole category."""
    said = text.words(asked)
    doubts: dict[str, float] = {}
    told: dict[str, str] = {}
    near = ((at, phrase) for at, word in enumerate(said) for phrase in index.phrases.get(word, ()))
    for phrase in (phrase for at, phrase in near if said[at : at + len(phrase.words)] == phrase.words):
        for name in (name for name in phrase.tools if name in names):
            doubts[name] = doubts.get(name, 1.0) * (GENERAL_DOUBT if phrase.is_general else DOUBT)
            told.setdefault(name, " ".join(phrase.words))
    return {
        name: Vote(stage="phrases", p=round(1 - doubt, 4), why=f'you wrote "{told[name]}"', is_own=True)
        for name, doubt in doubts.items()
    }


@lru_cache(maxsize=256)
def learned(index: Index, asked: str) -> ModelChances:
    """Return what the model makes of the text: the best chances of any clause, the whole text the first of them.

    Its gates are those of the whole; where that reads like talk, of the clause that wishes most: a wish between three
    sentences of small talk is one. Where the words up to a colon ask by themselves for work on words ("translate: …"),
    what follows is no wish.
    """
    model = index.model
    if model is None or not text.words(asked):
        return NOT_LEARNED
    parts = clauses(asked)
    judged = [model.judged(said) for said in model.mended(parts)]
    whole = judged[0]
    if head := quoted.head_of(parts[0]):
        (alone,) = map(model.judged, model.mended((head,)))
        if alone.work < min(LEAST_WORK, alone.wish, whole.work):
            judged, whole = [alone], alone
    best, near = whole.tools, _shares(whole.tools)  # what is left of the whole is `fuse`'s matter
    for part in judged[1:]:
        heard = min(1.0, part.wish / FULL_WISH) ** WISH_POWER
        best = [max(p, heard * other) for p, other in zip(best, part.tools, strict=True)]
        near = list(map(max, near, _shares(part.tools)))  # what does harm is no second thought
    by = whole if whole.wish >= LEAST_WISH else max(judged, key=lambda part: part.wish * part.work)
    told = zip(model.tools, best, near, strict=True)
    of_here = ((name, p, share >= GRAVE_SHARE) for name, p, share in told if name in index.learned)
    known = {name: p for name, p, is_near in of_here if is_near or not index.entries[name].is_grave}
    return ModelChances(chances=known, wish=by.wish, work=by.work)


def _shares(tools: Sequence[float]) -> list[float]:
    """Return how near each chance comes to the likeliest of its clause."""
    likeliest = max(1e-9, *tools)  # 0 where no word is known
    return [p / likeliest for p in tools]


def taught(index: Index, asked: str, names: frozenset[str]) -> dict[str, Vote]:
    """Votes of the utterances that this server taught."""
    return {
        name: Vote(stage="lexical", p=round(value, 4), why="similar to an example added here", is_own=True)
        for name, value in index.nearest_taught(asked, names).items()
        if value >= TAUGHT_LEAST
    }


@lru_cache(maxsize=256)
def clauses(asked: str) -> tuple[str, ...]:
    """Return what the person wishes, as a whole, then the clauses of a long text. What is only quoted is left out.

    Of what is longer than people write the ends alone are read, and of many clauses the first and the last.
    """
    asked = text.ends(quoted.wish_of(asked))
    if len(text.words(asked)) <= LONG_REQUEST_WORDS:
        return (asked,)
    parts = [part for part in _CLAUSE.split(asked) if len(text.words(part)) > 1]
    if len(parts) > FIRST_CLAUSES + LAST_CLAUSES:
        parts[FIRST_CLAUSES:-LAST_CLAUSES] = []
    return (asked, *parts)
