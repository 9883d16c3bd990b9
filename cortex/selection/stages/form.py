"""Full or stub, tool by tool. Behind a cache the form is fixed at first sight; short forms later only without one."""

from dataclasses import replace

from cortex.selection.draft import PlanDraft, marked
from cortex.selection.index import Index
from cortex.selection.types import Form, PlanInput, SentTool

SURE_P = 0.5


def form(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
    """The draft with each fresh tool's form: full for pins and the likely, a stub for the rest."""
    if draft.is_all:
        return draft
    fresh = tuple(item if index.entries[item.name].is_meta else _formed(item, draft) for item in draft.fresh)
    kept = draft.kept
    if not given.profile.caches and given.profile.strength == "strong" and given.round > 1:
        kept = tuple(item if index.entries[item.name].is_meta else replace(item, form="stub") for item in kept)
    return marked(draft, fresh=fresh, kept=kept)


def _formed(item: SentTool, draft: PlanDraft) -> SentTool:
    chance = draft.chances.get(item.name)
    short: Form = "full" if item.name in draft.pins or (chance and chance.p >= SURE_P) else "stub"
    return item if item.form in ("stub", short) else replace(item, form=short)
