"""One probability a tool: the model's chance and the stages' votes, each taken as independent; in from its price.

The less a text reads like a wish for a tool, the less the model's chances and likenesses count, never what the
conversation or this server says. The votes' figures choose; a reason begins with the person's own words.
"""

import math
from collections.abc import Sequence

from msgspec.structs import replace

from cortex.selection.index.index import Index
from cortex.selection.plan.cache_economics import price
from cortex.selection.plan.draft import PlanDraft, Vote
from cortex.selection.stage import stage
from cortex.selection.types import PlanInput
from cortex.selection.votes import evidence
from cortex.selection.votes.evidence import FULL_WISH, WISH_POWER

FULL_WORK, WORK_POWER = 0.2, 2.0  # from here on the gate takes nothing
LEAST, AGREEING = 0.01, 0.04
SAID_FIRST = ("phrases", "lexical")  # what the person can find in the message again; then the strongest
TELLING_P, REASONS_MOST = 0.1, 2


@stage("one chance a tool, held against its price", is_guess=True)
def fuse(given: PlanInput, index: Index, draft: PlanDraft, *, strictness: float = 1.0) -> PlanDraft:
    """The draft with one chance a tool, and the wanted tools in registry order; `strictness` multiplies each p*."""
    names, entries = draft.rights.names, index.entries
    told = [name for name, p in draft.learned.chances.items() if p >= LEAST]
    gates = {is_web: _shares(draft, is_web=is_web) for is_web in (False, True)}
    chances = {
        name: _chance(draft, name, gates[entries[name].category == evidence.WEB])
        for name in dict.fromkeys((*draft.votes, *told))
        if name in names
    }
    wanted = {
        name
        for name, chance in chances.items()
        if not entries[name].is_shy and chance.p >= strictness * price(given.profile, entries[name])
    }
    wanted |= names & draft.pins.keys()
    return replace(draft, chances=chances, wanted=tuple(sorted(wanted, key=lambda name: index.place[name])))


def _chance(draft: PlanDraft, name: str, gate: tuple[float, str]) -> Vote:
    """All that speaks for the tool as one vote, with the reason of the strongest."""
    p = draft.learned.chances.get(name, 0.0)
    said = (Vote(stage="learned", p=round(p, 4), why="similar to requests that use it"),) if p else ()
    votes = tuple(_gated(vote, *gate) for vote in (*draft.votes.get(name, ()), *said))
    best = max(votes, key=lambda vote: vote.p)
    p = 1 - math.prod(1 - vote.p for vote in votes)
    return Vote(stage=best.stage, p=round(p, 4), why=_reason(votes, best))


def _reason(votes: Sequence[Vote], best: Vote) -> str:
    """Return what speaks for the tool, the person's own words first: nobody can check a likeness, anybody a phrase."""
    telling = [vote for vote in votes if vote.p >= TELLING_P or vote is best]
    telling.sort(key=lambda vote: (SAID_FIRST.index(vote.stage) if vote.stage in SAID_FIRST else 2, -vote.p))
    return "; ".join(list(dict.fromkeys(vote.why for vote in telling))[:REASONS_MOST])


def _gated(vote: Vote, share: float, why: str) -> Vote:
    """Return what the gates leave of it; where that is little, and less than what they take, they are the reason.

    They take nothing of what the conversation says, nor of this server's own words.
    """
    if vote.is_own or vote.stage == "context":
        return vote
    p = round(vote.p * share, 4)
    return Vote(stage=vote.stage, p=p, why=why if p < AGREEING and 2 * p < vote.p else vote.why)


def _shares(draft: PlanDraft, *, is_web: bool) -> tuple[float, str]:
    """Return what share of a chance the gates leave to the web's tools, or to the others, and why it is less than 1."""
    learned = draft.learned
    wish = min(1.0, learned.wish / FULL_WISH) ** WISH_POWER
    work = 1.0 if is_web else min(1.0, learned.work / FULL_WORK) ** WORK_POWER
    if wish <= work:
        return wish * work, f"this reads like talk that needs no tool ({learned.wish:.2f} of {FULL_WISH:.2f})"
    return wish * work, f"this reads like something to answer in words ({learned.work:.2f} of {FULL_WORK:.2f})"
