"""Core tools and what was discovered in full, the rest as a line each; found tools last until the conversation ends.

Scores nothing: the model looks for what it needs. What other stages scored stays as hints.
"""

from cortex.selection.baselines import ora
from cortex.selection.draft import BY_YOU, PlanDraft, Vote, marked
from cortex.selection.index import Index
from cortex.selection.types import PlanInput

CORE = Vote(stage="core", p=0.0, why="core: used on nearly every turn")
FOUND = Vote(stage="deferred", p=0.0, why="found in this conversation")
DISCOVERY = Vote(stage="deferred", p=0.0, why="the way to the deferred tools")
DEFERRED = Vote(stage="deferred", p=0.0, why="deferred: a line in the list until tools_discover finds it")


def deferred(given: PlanInput, index: Index, draft: PlanDraft, *, core: tuple[str, ...] = ()) -> PlanDraft:
    """The draft with discovery, core, wished and found tools in full, in the order in which they came, and the list.

    `core`: in place of what the role has as its core.
    """
    business = [entry for entry in draft.permitted if not entry.is_meta]
    open_to = {entry.name for entry in business}
    discovery = [entry for entry in draft.permitted if entry.name == ora.DISCOVERY]
    own = ora.core(given.role, business, sum(entry.tokens_full for entry in discovery))
    core = tuple(name for name in core if name in open_to) or own
    known = dict.fromkeys((*given.memory.grown_by(given.recipe), *given.found))
    wished = tuple(name for name in given.always if name in open_to and name not in core)
    found = tuple(name for name in known if name in open_to and name not in core)
    declared = {*core, *wished, *found}
    rest = [entry for entry in business if entry.name not in declared]
    has_deferred = len(business) > len(core)
    ways = tuple(entry.name for entry in discovery) if has_deferred else ()
    return marked(
        draft,
        pins={
            **dict.fromkeys(ways, DISCOVERY),
            **dict.fromkeys(core, CORE),
            **dict.fromkeys(found, FOUND),
            **dict.fromkeys(wished, BY_YOU),
        },
        wanted=tuple(dict.fromkeys((*ways, *core, *wished, *found))),
        dropped={entry.name: DEFERRED for entry in rest},
        threshold=0.0,
        listing=ora.listing(rest, given.snapshot.domains),
        grown=found,
    )
