"""Closes a recipe that keeps no epoch: what its stages chose goes out in their order, anew with each request.

The user's mode stands above every recipe. A round that changes the block is reported as a boundary, because it rewrites
the provider's prefix.
"""

from msgspec.structs import replace

from cortex.selection.index.index import Index
from cortex.selection.plan.draft import BY_YOU, PlanDraft, Vote, everything
from cortex.selection.stage import stage
from cortex.selection.types import PlanInput, SentTool
from cortex.selection.words import quoted, talk, text

CHANGED = "this way chooses anew for each request"
RESCUED = Vote(stage="context", p=0.0, why="found or used in this turn")
ALWAYS = Vote(stage="pins", p=0.0, why="always sent on this server")
CHOSEN = Vote(stage="all", p=0.0, why="chosen by this way")


@stage("the set of this request, chosen anew", speaks_as=("all",))
def afresh(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with the whole set of this round; tools found or used in this turn stand at its end."""
    memory = given.memory
    is_closed = draft.is_shut or (given.is_last and given.round == 1)
    fresh = () if is_closed else everything(draft) if draft.is_all else _chosen(given, draft)
    fresh = tuple(replace(item, form=draft.forms.get(item.name, item.form)) for item in fresh)
    is_same = (
        memory.number > 0
        and not memory.is_open
        and [(item.name, item.form) for item in memory.sent] == [(item.name, item.form) for item in fresh]
        and (memory.recipe, memory.role) == (given.recipe, given.role.name)
        and (memory.version, memory.permitted) == (given.snapshot.version, draft.rights.digest)
    )
    return replace(
        draft,
        is_afresh=True,
        kept=(),
        fresh=fresh,
        listing=None if is_closed or draft.is_all else draft.listing,
        tool_choice=draft.tool_choice if fresh and not draft.is_all else "auto",
        grown=memory.grown_by(given.recipe) if draft.is_shut else draft.grown,
        number=memory.number if is_same else memory.highest + 1,
        boundary="" if is_same else CHANGED if memory.number else "a new conversation",
    )


def _chosen(given: PlanInput, draft: PlanDraft) -> tuple[SentTool, ...]:
    """Return what the recipe's stages want, then what this turn found or used; permitted tools only.

    What this server always or never sends holds under every recipe: a name or a search still brings the latter.
    """
    entries, names = {entry.name: entry for entry in draft.rights.permitted}, draft.rights.names
    asked = {*given.found, *text.named(quoted.wish_of(given.message), names)}
    votes: dict[str, Vote] = {}
    for name in draft.wanted:
        if name in entries and (name in asked or not entries[name].is_shy):
            votes[name] = draft.pins.get(name) or draft.chances.get(name) or CHOSEN
    for entry in () if talk.is_small_talk(given.message) else draft.rights.business:
        if entry.is_core:
            votes.setdefault(entry.name, ALWAYS)
    votes.update({name: BY_YOU for name in given.always if name in names})
    for name in given.found:
        if name in names:
            votes.setdefault(name, RESCUED)
    return tuple(SentTool(name=name, form="full", stage=vote.stage, reason=vote.why) for name, vote in votes.items())
