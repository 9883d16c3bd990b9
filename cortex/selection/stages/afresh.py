"""Closes a recipe that keeps no epoch: what its stages chose goes out in their order, anew with each request.

The user's mode stands above every recipe. A round that changes the block is reported as a boundary, because it rewrites
the provider's prefix.
"""

from dataclasses import replace

from cortex.selection import talk, text
from cortex.selection.draft import BY_YOU, PlanDraft, Vote, marked
from cortex.selection.index import Index
from cortex.selection.types import PlanInput, SentTool

CHANGED = "this way chooses anew for each request"
RESCUED = Vote(stage="context", p=0.0, why="found or used in this turn")
ALWAYS = Vote(stage="pins", p=0.0, why="always sent on this server")
CHOSEN = Vote(stage="all", p=0.0, why="chosen by this way")


def afresh(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with the whole set of this round; tools found or used in this turn stand at its end."""
    memory = given.memory
    is_closed = draft.is_shut or (given.is_last and given.round == 1)
    fresh = () if is_closed else _everything(draft) if draft.is_all else _chosen(given, draft)
    fresh = tuple(replace(item, form=draft.forms.get(item.name, item.form)) for item in fresh)
    is_same = (
        memory.number > 0
        and not memory.is_open
        and [(item.name, item.form) for item in memory.sent] == [(item.name, item.form) for item in fresh]
        and (memory.recipe, memory.role) == (given.recipe, given.role.name)
        and (memory.version, memory.permitted) == (given.snapshot.version, draft.rights.digest)
    )
    return marked(
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


def _everything(draft: PlanDraft) -> tuple[SentTool, ...]:
    """Every permitted tool; nothing is left to discover."""
    why = "All: everything that the role permits"
    return tuple(
        SentTool(name=each.name, form="full", stage="all", reason=why) for each in draft.permitted if not each.is_meta
    )


def _chosen(given: PlanInput, draft: PlanDraft) -> tuple[SentTool, ...]:
    """What the recipe's stages want, then what this turn found or used; permitted tools only.

    What this server always or never sends holds under every recipe: a name or a search still brings the latter.
    """
    allowed = {entry.name: entry for entry in draft.permitted}
    business = {name for name, entry in allowed.items() if not entry.is_meta}
    asked = {*given.found, *text.named(given.message, frozenset(business))}
    wanted = [name for name in draft.wanted if name in allowed and (name in asked or not allowed[name].is_shy)]
    always = () if talk.is_small_talk(given.message) else [name for name in business if allowed[name].is_core]
    standing = [name for name in allowed if name in always and name not in wanted]
    standing += [name for name in given.always if name in business and name not in (*wanted, *standing)]
    rescued = [name for name in given.found if name in business and name not in (*wanted, *standing)]
    sent = []
    for name in dict.fromkeys((*wanted, *standing, *rescued)):
        vote = draft.pins.get(name) or draft.chances.get(name) or CHOSEN
        vote = RESCUED if name in rescued else ALWAYS if name in standing else vote
        vote = BY_YOU if name in given.always else vote
        sent.append(SentTool(name=name, form="full", stage=vote.stage, reason=vote.why))
    return tuple(sent)
