"""What the fitted models make of the user's message: a chance a tool, and two gates for wishes that need none.

By the first one alone where no sentence model is at hand for the second; one that failed leaves a label on the plan.
What the gates stop is `fuse`'s matter.
"""

from cortex.selection import evidence, semantic_votes, sentence_models
from cortex.selection.draft import PlanDraft, marked
from cortex.selection.index import Index
from cortex.selection.types import PlanInput


def learned(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with the model's chances of the message, and how sure it is that anything is wished at all."""
    votes = dict(draft.votes)
    for name, vote in evidence.taught(index, given.message, draft.rights.names & index.learned).items():
        votes[name] = (*votes.get(name, ()), vote)
    if given.mode != "auto" or given.recipe != "cortex":  # what it says chooses nothing then
        return marked(draft, votes=votes, learned=evidence.learned(index, given.message))
    found, failed = semantic_votes.learned(index, given.message, given.encoder_skipped)
    labels = {**draft.labels, **sentence_models.skipped(failed)} if failed else draft.labels
    return marked(draft, votes=votes, learned=found, labels=labels)
