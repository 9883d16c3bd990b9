"""What the fitted model makes of the user's message: a chance a tool, and two gates for wishes that need none.

What the gates stop is `fuse`'s matter.
"""

from cortex.selection import evidence
from cortex.selection.draft import PlanDraft, marked
from cortex.selection.index import Index
from cortex.selection.types import PlanInput


def learned(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with the model's chances of the message, and how sure it is that anything is wished at all."""
    votes = dict(draft.votes)
    for name, vote in evidence.taught(index, given.message, draft.rights.names).items():
        votes[name] = (*votes.get(name, ()), vote)
    return marked(draft, votes=votes, learned=evidence.learned(index, given.message))
