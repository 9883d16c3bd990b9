"""The user's own switch: Chat only shuts the plan, All opens it whole, Auto goes on. Adds and removes nothing else."""

from cortex.selection.draft import PlanDraft, marked
from cortex.selection.index import Index
from cortex.selection.types import PlanInput


def mode(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft, shut or whole where the tool mode says so. The later stages still score, for the hints."""
    if given.mode == "auto":
        return draft
    return marked(draft, is_shut=given.mode == "chat", is_all=draft.is_all or given.mode == "all")
