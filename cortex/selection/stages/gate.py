"""Permitted: the role's tools that user and channel may use and that are ready. Later stages only narrow it."""

from dataclasses import replace

from cortex.selection.draft import Draft
from cortex.selection.gate import granted, permits
from cortex.selection.index import Index
from cortex.selection.types import Entry, PlanInput


def gate(given: PlanInput, index: Index, draft: Draft) -> Draft:
    """The draft with the permitted tools in registry order; meta tools only where there is something to find."""
    return replace(draft, permitted=permitted(given))


def permitted(given: PlanInput) -> tuple[Entry, ...]:
    """The permitted tools in registry order, meta tools last."""
    words = granted(given.role, is_admin=given.is_admin)
    ready = frozenset(given.ready)
    open_to = [
        entry
        for entry in given.snapshot.entries
        if not entry.is_meta
        and entry.name in ready
        and permits(
            words,
            name=entry.name,
            category=entry.category,
            is_admin_tool=entry.is_admin,
            is_admin=given.is_admin,
            channel=given.channel,
        )
    ]
    metas = [entry for entry in given.snapshot.entries if entry.is_meta and entry.name in ready and open_to]
    return (*open_to, *metas)
