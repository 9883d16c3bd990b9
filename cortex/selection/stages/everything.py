"""Everything permitted, in full: the control that every recipe is measured against."""

from cortex.selection.draft import PlanDraft, marked
from cortex.selection.index import Index
from cortex.selection.types import PlanInput


def everything(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with every permitted tool in."""
    return marked(draft, is_all=True)
