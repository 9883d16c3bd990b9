"""Permitted: the role's tools that user and channel may use and that are ready. Later stages only narrow it.

What the person does not want in this conversation is out for every stage: not sent, hinted at, listed or found. Their
word is an instruction, no likelihood, so nothing that a text says brings it back.
"""

from cortex.selection.draft import PlanDraft, marked
from cortex.selection.index import Index
from cortex.selection.rights import rights_of
from cortex.selection.types import PlanInput


def gate(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with the permitted tools in registry order; meta tools only where there is something to find."""
    return marked(draft, rights=rights_of(given, given.never))
