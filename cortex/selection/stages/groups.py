"""A core set, and contextual groups that come in by phrases and tool context and stay for the whole conversation.

Permission is per tool: a group brings those of its tools that are permitted. A fixed list of tools is sent as it is.
"""

from cortex.selection.baselines import punch
from cortex.selection.draft import PlanDraft, Vote, marked
from cortex.selection.index import Index
from cortex.selection.types import PlanInput, ToolEntry

CORE = Vote(stage="core", p=0.0, why="core of this way")
FIXED = Vote(stage="groups", p=0.0, why="the role is a fixed list of tools")
EARLIER = "active since earlier in this conversation"
GRANTED = "granted, and none of its tools is core"


def groups(given: PlanInput, index: Index, draft: PlanDraft, *, core: tuple[str, ...] = punch.CORE) -> PlanDraft:
    """The draft with the core in its order, then each group in the order in which it was activated."""
    business = [entry for entry in draft.permitted if not entry.is_meta]
    if punch.is_fixed(given.role, index.names):
        return _with(given, draft, {entry.name: FIXED for entry in business}, (), business)
    active = _active(given, business)
    open_to = {entry.name for entry in business}
    pins = {name: CORE for name in core if name in open_to}
    for group, why in active.items():
        vote = Vote(stage="groups", p=0.0, why=f"group {group}: {why}")
        pins |= {entry.name: vote for entry in business if entry.category == group and entry.name not in pins}
    return _with(given, draft, pins, tuple(active), business)


def _active(given: PlanInput, business: list[ToolEntry]) -> dict[str, str]:
    """Group -> why, those of earlier messages first: nothing that grew goes away or moves."""
    active = dict.fromkeys(given.memory.grown_by(given.recipe), EARLIER)
    if punch.is_restricted(given.role, is_admin=given.is_admin):
        for name in punch.without_core(business):
            active.setdefault(name, GRANTED)
    homes = {entry.name: entry.category for entry in business}
    scanned = punch.scan(given.message, given.past, given.found)
    for name, why in punch.activated(scanned, given.snapshot, homes).items():
        active.setdefault(name, why)
    return active


def _with(
    given: PlanInput, draft: PlanDraft, pins: dict[str, Vote], grown: tuple[str, ...], business: list[ToolEntry]
) -> PlanDraft:
    sent = {entry.name: entry for entry in business if entry.name in pins}
    out = {entry.name: entry.category for entry in business if entry.name not in pins}
    return marked(
        draft,
        pins=pins,
        wanted=tuple(pins),
        grown=grown,
        threshold=0.0,
        dropped={
            name: Vote(stage="groups", p=0.0, why=f"its group {home} is not active") for name, home in out.items()
        },
        labels={"hash": punch.fingerprint(given.snapshot, [sent[name] for name in pins])},
    )
