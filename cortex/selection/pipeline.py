"""Runs a recipe over one input and writes down the plan: what goes out, what it costs, why, what to remember.

The only door to the stages. Same input, same plan, to the byte (`portable.dumps`).
"""

from collections.abc import Sequence

from msgspec.structs import replace

from cortex.base import scan
from cortex.base.memory import give_back
from cortex.selection.index.index import Index, index_of
from cortex.selection.index.skill_search import rarity
from cortex.selection.plan.draft import PlanDraft
from cortex.selection.plan.receipt import Decisions
from cortex.selection.recipes import recipe
from cortex.selection.registry.catalog import CatalogText, catalog
from cortex.selection.registry.rights import rights_of
from cortex.selection.stage import StageFunction
from cortex.selection.types import Costs, PlanInput, PlannerMemory, SentTool, Snapshot, ToolPlan
from cortex.selection.votes.evidence import learned

NOTES_HEAD = "Also callable now, through tool_call:"
NOTES_HEAD_TOKENS = 8
HINT_LEAST = 0.05
FIRST_ASKED = "what can you do for me"


def plan(given: PlanInput, stages: Sequence[StageFunction] = ()) -> ToolPlan:
    """The plan of one model call; UserError for an unknown recipe. `stages`: run in place of the recipe's own."""
    index = index_of(given.snapshot)
    draft = PlanDraft()
    for run in stages or recipe(given.recipe):
        draft = run(given, index, draft)
    return _written(given, index, draft)


@scan.uncollected()
def make_ready(snapshot: Snapshot) -> None:
    """Have at hand what plans over the snapshot stand on, ahead of the first message: off the event loop.

    What only a search needs is made at the first one, .04 s.
    """
    index = index_of(snapshot)
    index.build()
    learned(index, FIRST_ASKED)
    rarity(FIRST_ASKED)
    give_back()  # what building took, several times what stays


def _written(given: PlanInput, index: Index, draft: PlanDraft) -> ToolPlan:
    """The plan that a finished draft stands for."""
    entries, sent = index.entries, (*draft.kept, *draft.fresh)
    opening = given.memory.opening if draft.kept else len(sent)
    never = given.memory.never if draft.kept else given.never  # as it was when the epoch opened
    listing = _listing(given, index, draft, sent[:opening], never)
    noted = tuple(name for name in draft.noted if not draft.kept or name not in given.memory.noted)
    known = {item.name for item in given.memory.sent} if draft.kept or draft.is_afresh else set()
    whole = rights_of(given)
    sent_tokens = tuple(entries[item.name].cost(item.form) for item in sent)
    costs = Costs(
        tools=sum(sent_tokens),
        catalog=listing.tokens,
        notes=sum(entries[name].tokens_noted for name in noted) + NOTES_HEAD_TOKENS * bool(noted),
        total=whole.ready_tokens,
        permitted=whole.tokens,
    )
    fresh = [item.name for item in sent if item.name not in known and not entries[item.name].is_meta]
    # Late tools behind the user's message, a line each. A call that goes wrong is shown the schema.
    lines = (NOTES_HEAD, *(f"- {entries[name].signature}" for name in noted)) if noted else ()
    return ToolPlan(
        mode=given.mode,
        role=given.role.name,
        recipe=given.recipe,
        sent=sent,
        schemas=tuple(entries[item.name].schema(item.form) for item in sent),
        sent_tokens=sent_tokens,
        catalog=listing.text,
        notes="\n".join(lines),
        noted=noted,
        tool_choice="none" if given.is_last and sent else draft.tool_choice,
        calls_as_text=not sent,
        hints=_hints(draft),
        added=(*fresh, *noted),
        decisions=Decisions(given, draft, whole.business),
        reachable=() if draft.is_shut else draft.rights.listed,
        costs=costs,
        total=whole.ready_count,
        boundary=draft.boundary,
        late=draft.late,
        labels=tuple(draft.labels.items()),
        memory=_remembered(given, draft, sent, opening, never, costs.tools + costs.catalog + costs.notes),
        skills=draft.skills,
    )


def _listing(
    given: PlanInput, index: Index, draft: PlanDraft, opening: tuple[SentTool, ...], never: tuple[str, ...]
) -> CatalogText:
    """The frozen catalog of an open epoch: permitted, and not declared or switched off then; or a stage's own."""
    if draft.listing is not None:
        return draft.listing
    if draft.is_afresh or not draft.is_open or draft.is_all:
        return CatalogText()
    return catalog(rights_of(given, never), [index.entries[item.name] for item in opening])


def _hints(draft: PlanDraft) -> tuple[tuple[str, float], ...]:
    """Return what the message says about each permitted tool, best first; the offline model reads it in every mode."""
    found: dict[str, float] = {}
    for name, vote in (*draft.chances.items(), *draft.pins.items()):
        if vote.p >= HINT_LEAST:
            found[name] = max(vote.p, found.get(name, 0.0))
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return tuple((name, round(p, 3)) for name, p in ranked)


def _remembered(
    given: PlanInput, draft: PlanDraft, sent: tuple[SentTool, ...], opening: int, never: tuple[str, ...], tokens: int
) -> PlannerMemory:
    """Return what the next plan must know. A chat-only round leaves an open epoch as it was."""
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
        request_tokens=given.fixed_tokens + tokens,
        history_tokens=given.history_tokens,
        noted=draft.noted,
        recipe=given.recipe,
        grown=draft.grown,
        never=never,
    )
