"""The rescue round: after an answer that does not answer, the unsent tools that the message itself speaks for.

The refusal is not read: what it names is a guess, and what a page wrote may stand in it. As with a search, what comes
first by Cortex's own search on the person's words goes along with what was likely and below its bar.
"""

from msgspec.structs import replace

from cortex.selection.index.index import Index
from cortex.selection.plan.draft import PlanDraft, Vote
from cortex.selection.stage import stage
from cortex.selection.types import PlanInput
from cortex.selection.votes.ranking import ranked

LEAST_P, GRAVE_P = 0.03, 0.06  # of the likeliest tool: below that the answer stands; a grave one comes only as that one
MOST = 5
LIKELIER = "likelier"  # label: a tool that was sent before
WHY = "the answer did without it and came to nothing"


@stage("a second look, where an answer came to nothing")
def missing(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with the best of the message pinned; unchanged in any other round, and where none is likely enough.

    A tool that was sent and is likelier than these is named by a label, so that the model looks at it again.
    """
    if not given.missing:
        return draft
    sent = {item.name for item in given.memory.sent}
    told = {name: [vote.p for vote in draft.votes.get(name, ())] for name in draft.rights.names}
    chances = {name: max([draft.learned.chances.get(name, 0.0), *each]) for name, each in told.items()}
    bars = {name: GRAVE_P if index.entries[name].is_grave else LEAST_P for name in chances}
    likely = sorted((name for name, p in chances.items() if p >= bars[name]), key=lambda name: (-chances[name], name))
    first = next((name for name in likely if name not in sent), "")
    if not first:
        return draft
    plain = frozenset(name for name in chances if name not in sent and not index.entries[name].is_grave)
    found = (hit.name for hit in ranked(index, given.message, plain, MOST))
    best = list(dict.fromkeys((first, *found, *(name for name in likely if name in plain))))[:MOST]
    pins = {name: Vote(stage="missing", p=round(chances[name], 4), why=WHY) for name in best}
    labels = {} if likely[0] == first else {LIKELIER: likely[0]}
    return replace(draft, pins={**pins, **draft.pins}, labels={**draft.labels, **labels})
