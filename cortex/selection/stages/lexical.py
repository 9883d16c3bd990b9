"""BM25 and the nearest example of each tool against the user's message; small talk is not scored."""

from dataclasses import replace

from cortex.selection import evidence, talk
from cortex.selection.draft import Draft
from cortex.selection.index import Index
from cortex.selection.types import PlanInput


def lexical(given: PlanInput, index: Index, draft: Draft) -> Draft:
    """The draft with a vote for each tool whose words or examples are like the message."""
    if talk.is_small_talk(given.message):
        return draft
    names = [entry.name for entry in draft.permitted if not entry.is_meta]
    votes = dict(draft.votes)
    for name, vote in evidence.lexical(index, given.message, names).items():
        votes[name] = (*votes.get(name, ()), vote)
    return replace(draft, votes=votes)
