"""One probability a tool: the model's chance and the stages' votes, each taken as independent; in from its p*.

The model's gates stand before what it says itself and before shipped phrases, which count only where the model holds
nothing against them: a wish that needs no tool vetoes weak scores, strong ones too where that is nearly sure, never
what the conversation or this server says. The votes' figures choose; a reason begins with the person's own words.
"""

from collections.abc import Sequence

from cortex.selection import evidence
from cortex.selection.cache_economics import threshold
from cortex.selection.draft import PlanDraft, Vote, marked
from cortex.selection.index import Index
from cortex.selection.types import PlanInput

STRONG = 0.7
LEAST_WORK = 0.42
SHUT = 0.05
WISH_POWER, WORK_POWER = 2.0, 0.3
LEAST, AGREEING = 0.01, 0.04
SAID_FIRST = ("phrases", "lexical")  # what the person can find in the message again; then the strongest
TELLING_P, REASONS_MOST = 0.1, 2


def fuse(given: PlanInput, index: Index, draft: PlanDraft, *, strictness: float = 1.0) -> PlanDraft:
    """The draft with one chance a tool, and the wanted tools in registry order; `strictness` multiplies each p*."""
    names, entries = draft.rights.names, index.entries
    told = [name for name, p in draft.learned.chances.items() if p >= LEAST and name in names]
    gates = {is_web: _gate(draft, is_web=is_web) for is_web in (False, True)}
    chances: dict[str, Vote] = {}
    for name in dict.fromkeys((*draft.votes, *told)):
        if name in names:
            chance = _chance(draft, name, gates[entries[name].category == evidence.WEB])
            if chance is not None:
                chances[name] = chance
    wanted = [
        name
        for name, chance in chances.items()
        if name not in draft.pins
        and not entries[name].is_shy
        and chance.p >= strictness * threshold(given.profile, entries[name].tokens_stub)
    ]
    pinned = [name for name in draft.pins if name in names]
    return marked(draft, chances=chances, wanted=tuple(sorted((*wanted, *pinned), key=lambda name: index.place[name])))


def _chance(draft: PlanDraft, name: str, gate: tuple[str, bool]) -> Vote | None:
    """All that speaks for the tool as one vote, with the reason of the strongest; None when nothing is left."""
    votes = draft.votes.get(name, ())
    p = draft.learned.chances.get(name)
    if p is None:
        votes = tuple(_weighed(draft, vote) for vote in votes)
    else:
        closed, is_shut = gate
        votes = tuple(vote for vote in votes if p >= AGREEING or vote.is_own or vote.stage != "phrases")
        if closed and (p < STRONG or is_shut):
            votes = tuple(vote for vote in votes if vote.is_own or vote.stage == "context" or _is_strong(vote))
            votes = (*votes, Vote(stage="learned", p=0.0, why=closed))
        else:
            votes = (*votes, Vote(stage="learned", p=round(p, 4), why="similar to requests that use it"))
    if len(votes) < 2:
        return votes[0] if votes else None
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


def _is_strong(vote: Vote) -> bool:
    """Whether it is a shipped phrase that goes past the gates together with the model, which lets it count at all."""
    return vote.stage == "phrases" and vote.p >= STRONG


def _gate(draft: PlanDraft, *, is_web: bool) -> tuple[str, bool]:
    """Why the model's gates are closed to the web's tools, or to the others, "" when they are open.

    And whether it is so sure that none of them is wanted that not even a strong chance goes past.
    """
    learned = draft.learned
    is_shut = learned.wish < SHUT or (learned.work < SHUT and not is_web)
    if learned.wish < evidence.LEAST_WISH:
        return f"this reads like talk that needs no tool ({learned.wish:.2f} of {evidence.LEAST_WISH:.2f})", is_shut
    if learned.work < LEAST_WORK and not is_web:
        return f"this reads like something to answer in words ({learned.work:.2f} of {LEAST_WORK:.2f})", is_shut
    return "", is_shut
