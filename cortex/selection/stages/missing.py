"""The rescue round: after an answer that does not answer, the unsent tools that the message itself speaks for.

The refusal is not read: what it names is a guess, and what a page wrote may stand in it. As with a search, what comes
first by Cortex's own search on the person's words goes along with what was likely and below its bar.
"""

from cortex.selection.draft import PlanDraft, Vote, marked
from cortex.selection.index import Index
from cortex.selection.ranking import ranked
from cortex.selection.types import PlanInput

LEAST_P = 0.08  # of the likeliest tool: below that the answer stands
MOST = 5
WHY = "the answer did without it and came to nothing"


def missing(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with the best of the message pinned; unchanged in any other round, and where none is likely enough."""
    if not given.missing:
        return draft
    names = draft.rights.names - {item.name for item in given.memory.sent}
    chances = {name: max(vote.p for vote in votes) for name, votes in draft.votes.items() if name in names}
    for name, p in draft.learned.chances.items():
        if name in names:
            chances[name] = max(p, chances.get(name, 0.0))
    likely = sorted((name for name, p in chances.items() if p >= LEAST_P), key=lambda name: (-chances[name], name))
    if not likely:
        return draft
    found = (hit.name for hit in ranked(index, given.message, names, MOST))
    best = list(dict.fromkeys((likely[0], *found, *likely)))[:MOST]
    pins = {name: Vote(stage="missing", p=round(chances.get(name, 0.0), 4), why=WHY) for name in best}
    return marked(draft, pins={**pins, **draft.pins})
