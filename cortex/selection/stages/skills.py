"""The user's skills that fit the message: their titles ride behind it, and the tool that reads them is pinned.

Reads the user's own words alone. Without the right to read a skill none is shown.
"""

from msgspec.structs import replace

from cortex.selection.index.index import Index
from cortex.selection.index.skill_search import fits
from cortex.selection.plan.draft import PlanDraft, Vote
from cortex.selection.stage import stage
from cortex.selection.types import PlanInput

READ = "skill_read"
HINT_MOST = 0.9


@stage("your how-tos that fit")
def skills(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with the skills that fit; unchanged where nothing fits or nothing could be read."""
    is_closed = draft.is_shut or (given.is_last and given.round == 1)
    if is_closed or READ not in draft.rights.names:
        return draft
    found = fits(given.message, given.skills)
    if not found:
        return draft
    best = found[0]
    pin = Vote(stage="skills", p=min(HINT_MOST, best.score), why=f"your skill “{best.title}” fits: {best.reason}")
    wanted = draft.wanted if READ in draft.wanted else (*draft.wanted, READ)
    return replace(draft, skills=found, pins={READ: pin, **draft.pins}, wanted=wanted)
