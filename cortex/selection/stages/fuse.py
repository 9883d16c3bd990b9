"""One probability a tool: the model's chance and the stages' votes, each taken as independent; in from its p*.

The model's gates stand before what it says itself and before shipped phrases: a wish that needs no tool vetoes weak
scores, strong ones too where that is nearly sure, never what the conversation or this server says. Only the votes'
figures choose; the reason begins with the person's own words.
"""

from collections.abc import Sequence

from cortex.selection import evidence
from cortex.selection.cache_economics import threshold
from cortex.selection.draft import PlanDraft, Vote, marked
from cortex.selection.index import Index
from cortex.selection.types import PlanInput, ToolEntry

STRONG = 0.7
LEAST_WORK = 0.5
SHUT = 0.05
WISH_POWER, WORK_POWER = 2.0, 0.3
LEAST, AGREEING = 0.01, 0.04
SAID_FIRST = ("phrases", "lexical")  # what the person can find in the message again; then the strongest
TELLING_P, REASONS_MOST = 0.1, 2


def fuse(given: PlanInput, index: Index, draft: PlanDraft, *, strictness: float = 1.0) -> PlanDraft:
    """The draft with one chance a tool, and the wanted tools in registry order; `strictness` multiplies each p*."""
    names = draft.rights.names
    voted = {name for name in draft.votes if name in names}
    told = {name for name, p in draft.learned.chances.items() if p >= LEAST and name in names}
    chances: dict[str, Vote] = {}
    for name in voted | told:
        chance = _chance(draft, index.entries[name])
        if chance is not None:
            chances[name] = chance
    wanted = [
        name
        for name in chances
        if name not in draft.pins
        and not index.entries[name].is_shy
        and chances[name].p >= strictness * threshold(given.profile, index.entries[name].tokens_stub)
    ]
    pinned = [name for name in draft.pins if name in names]
    return marked(draft, chances=chances, wanted=tuple(sorted((*wanted, *pinned), key=lambda name: index.place[name])))


def _chance(draft: PlanDraft, entry: ToolEntry) -> Vote | None:
    """All that speaks for the tool as one vote, with the reason of the strongest; None when nothing is left."""
    votes = list(draft.votes.get(entry.name, ()))
    p = draft.learned.chances.get(entry.name)
    if p is None:
        votes = [_weighed(draft, vote) for vote in votes]
    else:
        closed = _closed(draft, entry)
        if closed and (p < STRONG or _is_shut(draft, entry)):
            votes = [vote for vote in votes if vote.is_own or vote.stage == "context" or _agrees(vote, p)]
            votes.append(Vote(stage="learned", p=0.0, why=closed))
        else:
            votes.append(Vote(stage="learned", p=round(p, 4), why="similar to requests that use it"))
    if not votes:
        return None
    if len(votes) == 1:
        return votes[0]
    doubt = 1.0
    for vote in votes:
        doubt *= 1 - vote.p
    best = max(votes, key=lambda vote: vote.p)
    return Vote(stage=best.stage, p=round(1 - doubt, 4), why=_reason(votes, best))


def _reason(votes: Sequence[Vote], best: Vote) -> str:
    """What speaks for the tool, the person's own words first: nobody can check a likeness, anybody a phrase."""
    telling = [vote for vote in votes if vote.p >= TELLING_P or vote is best]
    telling.sort(key=lambda vote: (SAID_FIRST.index(vote.stage) if vote.stage in SAID_FIRST else 2, -vote.p))
    return "; ".join(list(dict.fromkeys(vote.why for vote in telling))[:REASONS_MOST])


def _weighed(draft: PlanDraft, vote: Vote) -> Vote:
    """The vote; a likeness in meaning counts for less the more a text reads like talk, or like a wish for words."""
    if vote.stage != "vectors":
        return vote
    wish = min(1.0, draft.learned.wish / evidence.LEAST_WISH)
    p = vote.p * wish**WISH_POWER * draft.learned.work**WORK_POWER
    return Vote(stage=vote.stage, p=round(p, 4), why=vote.why, is_own=vote.is_own)


def _agrees(vote: Vote, p: float) -> bool:
    """Whether a shipped phrase is strong and the model does not hold against it: both together go past its gates."""
    return vote.stage == "phrases" and vote.p >= STRONG and p >= AGREEING


def _is_shut(draft: PlanDraft, entry: ToolEntry) -> bool:
    """Whether the model is so sure that no tool is wanted that not even a strong chance goes past."""
    learned = draft.learned
    return learned.wish < SHUT or (learned.work < SHUT and entry.category != evidence.WEB)


def _closed(draft: PlanDraft, entry: ToolEntry) -> str:
    """Why the model's gates are closed to this tool; "" when they are open."""
    learned = draft.learned
    if learned.wish < evidence.LEAST_WISH:
        return f"this reads like talk that needs no tool ({learned.wish:.2f} of {evidence.LEAST_WISH:.2f})"
    if learned.work < LEAST_WORK and entry.category != evidence.WEB:
        return f"this reads like something to answer in words ({learned.work:.2f} of {LEAST_WORK:.2f})"
    return ""
