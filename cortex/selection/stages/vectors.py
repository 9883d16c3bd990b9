"""Likeness in meaning to the message, for the tools that the fitted model does not know.

By the sentence model where one is installed, else by the table of meanings that ships. Small talk is not scored. A
sentence model that failed or was too slow leaves a label on the plan.
"""

from cortex.selection import semantic_votes, sentence_models
from cortex.selection.draft import PlanDraft, marked
from cortex.selection.index import Index
from cortex.selection.types import PlanInput


def vectors(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with a vote for each tool that means what the message asks for."""
    names = semantic_votes.needs(index, given.message, draft.rights.names)
    if not names:
        return draft
    found, failed = semantic_votes.votes(index, given.message, names, given.encoder_skipped)
    if failed:
        draft = marked(draft, labels={**draft.labels, **sentence_models.skipped(failed)})
    votes = dict(draft.votes)
    for name, vote in found.items():
        votes[name] = (*votes.get(name, ()), vote)
    return marked(draft, votes=votes)
