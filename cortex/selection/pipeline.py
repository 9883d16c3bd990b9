"""Runs a recipe over one input and writes down the plan: what goes out, what it costs, why, what to remember.

The only door to the stages. Same input, same plan, to the byte (`portable.dumps`).
"""

from collections.abc import Sequence
from dataclasses import replace

from cortex.selection.catalog import CatalogText, catalog
from cortex.selection.decisions import Decisions
from cortex.selection.draft import PlanDraft
from cortex.selection.index import Index, index_of
from cortex.selection.recipes import Stage, recipe
from cortex.selection.rights import rights_of
from cortex.selection.signatures import signature
from cortex.selection.types import Costs, PlanInput, PlannerMemory, SentTool, ToolEntry, ToolPlan

NOTES_HEAD = "Also callable now, through tool_call:"
NOTES_HEAD_TOKENS = 8
HINT_LEAST = 0.05


def plan(given: PlanInput, stages: Sequence[Stage] = ()) -> ToolPlan:
    """The plan of one model call; UserError for an unknown recipe. `stages`: run in place of the recipe's own."""
    index = index_of(given.snapshot)
    draft = PlanDraft()
    for stage in stages or recipe(given.recipe):
        draft = stage(given, index, draft)
    return _written(given, index, draft)


def _written(given: PlanInput, index: Index, draft: PlanDraft) -> ToolPlan:
    """The plan that a finished draft stands for."""
    sent = (*draft.kept, *draft.fresh)
    opening = given.memory.opening if draft.kept else len(sent)
    listing = _listing(given, index, draft, sent[:opening])
    old = given.memory.noted if draft.kept else ()
    noted = tuple(name for name in draft.noted if name not in old)
    known = {item.name for item in given.memory.sent} if draft.kept or draft.is_afresh else set()
    ready = draft.rights.ready
    whole = rights_of(given, ready=ready)
    costs = Costs(
        tools=sum(index.entries[item.name].cost(item.form) for item in sent),
        catalog=listing.tokens,
        notes=sum(index.entries[name].tokens_noted for name in noted) + NOTES_HEAD_TOKENS * bool(noted),
        total=ready.tokens,
        permitted=whole.tokens,
    )
    fresh = [item.name for item in sent if item.name not in known and not index.entries[item.name].is_meta]
    return ToolPlan(
        mode=given.mode,
        role=given.role.name,
        recipe=given.recipe,
        sent=sent,
        schemas=tuple(index.entries[item.name].schema(item.form) for item in sent),
        sent_tokens=tuple(index.entries[item.name].cost(item.form) for item in sent),
        catalog=listing.text,
        notes=_notes([index.entries[name] for name in noted]),
        noted=noted,
        tool_choice="none" if given.is_last and sent else draft.tool_choice,
        calls_as_text=not sent,
        hints=_hints(draft),
        added=(*fresh, *noted),
        decisions=Decisions(given, draft, whole.business),
        reachable=() if draft.is_shut else draft.rights.listed,
        costs=costs,
        total=ready.count,
        boundary=draft.boundary,
        late=draft.late,
        labels=tuple(draft.labels.items()),
        memory=_remembered(given, draft, sent, opening, costs),
        skills=draft.skills,
    )


def _listing(given: PlanInput, index: Index, draft: PlanDraft, opening: tuple[SentTool, ...]) -> CatalogText:
    """The frozen catalog of an open epoch: permitted, and not declared when it opened; or a stage's own."""
    if draft.listing is not None:
        return draft.listing
    if draft.is_afresh or not draft.is_open or draft.is_all:
        return CatalogText()
    frozen = rights_of(given, _frozen_never(given, draft), draft.rights.ready)
    return catalog(frozen, [index.entries[item.name] for item in opening])


def _frozen_never(given: PlanInput, draft: PlanDraft) -> tuple[str, ...]:
    """What the catalog leaves out of what the person does not want: as it was when the epoch opened."""
    return given.memory.never if draft.kept else given.never


def _notes(entries: list[ToolEntry]) -> str:
    """Late tools behind the user's message, a line each; "" for none. A call that goes wrong is shown the schema."""
    return "\n".join((NOTES_HEAD, *(f"- {signature(entry)}" for entry in entries))) if entries else ""


def _hints(draft: PlanDraft) -> tuple[tuple[str, float], ...]:
    """What the message says about each permitted tool, best first; the offline model reads it in every mode."""
    found = {name: vote.p for name, vote in draft.chances.items() if vote.p >= HINT_LEAST}
    for name, vote in draft.pins.items():
        if vote.p >= max(found.get(name, 0.0), HINT_LEAST):
            found[name] = vote.p
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return tuple((name, round(p, 3)) for name, p in ranked)


def _remembered(
    given: PlanInput, draft: PlanDraft, sent: tuple[SentTool, ...], opening: int, costs: Costs
) -> PlannerMemory:
    """What the next plan must know. A chat-only round leaves an open epoch as it was."""
    if draft.is_shut and given.memory.is_open:
        return replace(given.memory, highest=draft.number, turn=given.turn, last_at=given.now)
    return PlannerMemory(
        number=draft.number,
        highest=max(draft.number, given.memory.highest),
        is_open=draft.is_open,
        sent=sent,
        opening=opening if draft.is_open else 0,
        mode="all" if draft.is_all else "auto",
        role=given.role.name,
        model=given.model,
        version=given.snapshot.version,
        permitted=draft.rights.digest,
        summary=given.summary,
        turn=given.turn,
        last_at=given.now,
        request_tokens=given.fixed_tokens + costs.tools + costs.catalog + costs.notes,
        history_tokens=given.history_tokens,
        noted=draft.noted,
        recipe=given.recipe,
        grown=draft.grown,
        never=_frozen_never(given, draft),
    )
