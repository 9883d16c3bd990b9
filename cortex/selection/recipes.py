"""A recipe is an ordered list of stages. Adding a stage is its file and its place here; roles choose by name."""

from cortex.base.errors import UserError
from cortex.selection.stage import Stage
from cortex.selection.stages.afresh import afresh
from cortex.selection.stages.basics import (
    compact,
    everything,
    form,
    gate,
    learned,
    mode,
    phrases,
    pins,
    vectors,
)
from cortex.selection.stages.budget import budget
from cortex.selection.stages.context import context
from cortex.selection.stages.epoch import epoch
from cortex.selection.stages.fuse import fuse
from cortex.selection.stages.missing import missing
from cortex.selection.stages.skills import skills
from cortex.selection.ways.inara import keywords
from cortex.selection.ways.ora import deferred
from cortex.selection.ways.punch import groups
from cortex.selection.ways.vector import centroids

_HINTS: tuple[Stage, ...] = (phrases, learned, context, fuse)
RECIPES: dict[str, tuple[Stage, ...]] = {
    "cortex": (gate, mode, pins, skills, phrases, vectors, learned, context, missing, fuse, epoch, form, budget),
    "all": (gate, mode, everything, skills, *_HINTS, epoch),
    "inara": (gate, mode, keywords, afresh),
    "ora": (gate, mode, *_HINTS, deferred, afresh),
    "punch": (gate, mode, *_HINTS, groups, afresh),
    "vector": (gate, mode, centroids, skills, afresh),
    "repi": (gate, mode, everything, *_HINTS, compact, afresh),
}

# The names that reasons stand under, and those of the stages that guess what the message needs.
GUESSES = frozenset(name for stages in RECIPES.values() for stage in stages if stage.is_guess for name in stage.names)


def recipe(name: str) -> tuple[Stage, ...]:
    """The stages of this recipe in order; UserError naming the known ones for another name."""
    stages = RECIPES.get(name)
    if stages is None:
        raise UserError(f"There is no recipe {name!r}; known: {', '.join(sorted(RECIPES))}.")
    return stages
