"""Tools that are in whatever the score: named by the user, in use in this turn, the role's core, ambient, few in all.

A conversation begins bare: a greeting must cost nothing. So core, ambient and the tools of a
small role *rest* on small talk and are pinned by the first message that is more; a name, a use and the person's own
"always" pin at once.
"""

from cortex.selection import talk, text
from cortex.selection.draft import BY_YOU, PlanDraft, Vote, marked
from cortex.selection.index import Index
from cortex.selection.types import PlanInput, ToolEntry

SMALL_ROLE_TOKENS = 600
NAMED_P = 0.95


def pins(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with its pins. Names count in the user's own words only.

    A pin's p is what the message itself says about it: a standing pin is sent, but is no hint that it be called.
    """
    standing = {name: Vote(stage="pins", p=0.0, why=why) for name, why in _standing(given, draft)}
    sure = {name: BY_YOU for name in given.always if name in draft.rights.names}
    for name in given.found:
        if name in draft.rights.names:
            sure[name] = Vote(stage="context", p=0.0, why="found or used in this turn")
    for name in _back(given, index):
        if name in draft.rights.names:
            sure[name] = Vote(stage="pins", p=0.0, why="you allowed it in this chat again")
    for name in text.named(given.message, draft.rights.names):
        sure[name] = Vote(stage="pins", p=NAMED_P, why="you named it")
    if talk.is_small_talk(given.message):
        return marked(draft, pins=sure, resting=standing)
    return marked(draft, pins={**standing, **sure})


def _back(given: PlanInput, index: Index) -> tuple[str, ...]:
    """What the person takes back into the chat while an open epoch has no search that could find it."""
    memory = given.memory
    if not memory.is_open or any(entry.is_meta for item in memory.sent if (entry := index.entries.get(item.name))):
        return ()
    return tuple(name for name in memory.never if name not in given.never)


def _standing(given: PlanInput, draft: PlanDraft) -> list[tuple[str, str]]:
    """The pins that do not depend on the message, with their reasons."""
    if draft.rights.tokens < SMALL_ROLE_TOKENS:
        return [(entry.name, "this role has few tools: nothing to choose") for entry in draft.rights.business]
    core = frozenset(given.role.core)
    return [
        (entry.name, f"core of the role {given.role.name}" if _is_core(entry, core) else "in every conversation")
        for entry in draft.rights.standing
    ]


def _is_core(entry: ToolEntry, core: frozenset[str]) -> bool:
    return entry.is_core or not core.isdisjoint({entry.name, entry.category})
