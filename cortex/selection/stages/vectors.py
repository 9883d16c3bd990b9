"""Likeness in meaning to the message, for the tools that the fitted model does not know. Needs the sentence model.

Small talk is not scored. A sentence model that failed or was too slow leaves a label on the plan, and no vote.
"""

from dataclasses import replace

from cortex.selection import encoders, evidence, talk
from cortex.selection.draft import Draft
from cortex.selection.index import Index
from cortex.selection.types import PlanInput


def vectors(given: PlanInput, index: Index, draft: Draft) -> Draft:
    """The draft with a vote for each tool that means what the message asks for."""
    names = index.unlearned(draft.rights.names) - index.metas
    if not names or not (index.snapshot.encoder or given.encoder_skipped) or talk.is_small_talk(given.message):
        return draft
    if given.encoder_skipped:
        return replace(draft, labels={**draft.labels, **encoders.skipped(given.encoder_skipped)})
    found, failed = evidence.meaning(index, given.message, names)
    if failed:
        return replace(draft, labels={**draft.labels, **encoders.skipped(failed)})
    votes = dict(draft.votes)
    for name, vote in found.items():
        votes[name] = (*votes.get(name, ()), vote)
    return replace(draft, votes=votes)
