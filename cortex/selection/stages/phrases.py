"""Phrases that were added on this server, in the user's message, on word bounds."""

from cortex.selection import evidence
from cortex.selection.draft import PlanDraft, marked
from cortex.selection.index import Index
from cortex.selection.types import PlanInput


def phrases(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with a vote for each tool that a phrase in the message speaks for."""
    found = evidence.phrases(index, given.message, draft.rights.names)
    if not found:
        return draft
    votes = dict(draft.votes)
    for name, vote in found.items():
        votes[name] = (*votes.get(name, ()), vote)
    return marked(draft, votes=votes)
