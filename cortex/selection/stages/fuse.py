"""One probability a tool from all votes, each taken as independent; in from the threshold that the prices give."""

from dataclasses import replace

from cortex.selection.draft import Draft, Vote
from cortex.selection.index import Index
from cortex.selection.profile import threshold
from cortex.selection.types import PlanInput


def fuse(given: PlanInput, index: Index, draft: Draft) -> Draft:
    """The draft with one chance a tool, and the wanted tools in registry order."""
    chances: dict[str, Vote] = {}
    for name, votes in draft.votes.items():
        doubt = 1.0
        for vote in votes:
            doubt *= 1 - vote.p
        best = max(votes, key=lambda vote: vote.p)
        chances[name] = Vote(stage=best.stage, p=round(1 - doubt, 4), why=best.why)
    least = threshold(given.profile)
    wanted = tuple(
        entry.name
        for entry in draft.permitted
        if not entry.is_meta
        and (entry.name in draft.pins or (entry.name in chances and chances[entry.name].p >= least))
    )
    return replace(draft, chances=chances, wanted=wanted, threshold=least)
