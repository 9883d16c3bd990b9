"""BM25 and the nearest utterance against the user's message, for the tools that the model was not fitted on.

Small talk is not scored. Tools of a server that somebody connected have a name, a summary and parameters: these are
enough to be found from the first minute.
"""

from cortex.selection import evidence, talk
from cortex.selection.draft import PlanDraft, marked
from cortex.selection.index import Index
from cortex.selection.types import PlanInput


def lexical(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with a vote for each tool whose words or examples are like the message."""
    if talk.is_small_talk(given.message):
        return draft
    found = evidence.lexical(index, given.message, index.unlearned(draft.rights.names))
    if not found:
        return draft
    votes = dict(draft.votes)
    for name, vote in found.items():
        votes[name] = (*votes.get(name, ()), vote)
    return marked(draft, votes=votes)
