"""Round 1 in full, never stripped; from round 2 names, arguments and types alone, but a tool's first sight in full.

What the arguments mean stands in round 1 of the same turn; an error of a call brings the expected ones back.
"""

from cortex.selection.draft import PlanDraft, marked
from cortex.selection.index import Index
from cortex.selection.types import Form, PlanInput

SHORT: Form = "compact"


def compact(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with the forms of this round; the user's own All is left whole."""
    is_first = given.round == 1 or given.memory.turn != given.turn
    if is_first or given.mode == "all":
        return draft
    seen = {item.name for item in given.memory.sent}
    forms = {entry.name: SHORT for entry in draft.permitted if entry.name in seen}
    return marked(draft, forms={**draft.forms, **forms})
