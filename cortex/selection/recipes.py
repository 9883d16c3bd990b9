"""A recipe is an ordered list of stages. Adding a stage is its file and one line here; roles choose by name."""

from collections.abc import Callable

from cortex.base.errors import UserError
from cortex.selection.draft import PlanDraft
from cortex.selection.index import Index
from cortex.selection.stages.afresh import afresh
from cortex.selection.stages.budget import budget
from cortex.selection.stages.centroids import centroids
from cortex.selection.stages.compact import compact
from cortex.selection.stages.context import context
from cortex.selection.stages.deferred import deferred
from cortex.selection.stages.epoch import epoch
from cortex.selection.stages.everything import everything
from cortex.selection.stages.form import form
from cortex.selection.stages.fuse import fuse
from cortex.selection.stages.gate import gate
from cortex.selection.stages.groups import groups
from cortex.selection.stages.keywords import keywords
from cortex.selection.stages.learned import learned
from cortex.selection.stages.missing import missing
from cortex.selection.stages.mode import mode
from cortex.selection.stages.phrases import phrases
from cortex.selection.stages.pins import pins
from cortex.selection.stages.skills import skills
from cortex.selection.stages.vectors import vectors
from cortex.selection.types import PlanInput

Stage = Callable[[PlanInput, Index, PlanDraft], PlanDraft]

RECIPES: dict[str, tuple[Stage, ...]] = {
    "cortex": (
        gate,
        mode,
        pins,
        skills,
        phrases,
        vectors,
        learned,
        context,
        missing,
        fuse,
        epoch,
        form,
        budget,
    ),
    "all": (gate, mode, everything, skills, phrases, learned, context, fuse, epoch),
    "inara": (gate, mode, keywords, afresh),
    "ora": (gate, mode, phrases, learned, context, fuse, deferred, afresh),
    "punch": (gate, mode, phrases, learned, context, fuse, groups, afresh),
    "vector": (gate, mode, centroids, skills, afresh),
    "repi": (gate, mode, everything, phrases, learned, context, fuse, compact, afresh),
}


def recipe(name: str) -> tuple[Stage, ...]:
    """The stages of this recipe in order; UserError naming the known ones for another name."""
    stages = RECIPES.get(name)
    if stages is None:
        raise UserError(f"There is no recipe {name!r}; known: {', '.join(sorted(RECIPES))}.")
    return stages
