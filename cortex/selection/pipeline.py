"""Runs a recipe over one input and writes down the plan: what goes out, what it costs, why, what to remember.

The only door to the stages. Same input, same plan, to the byte (`portable.dumps`).
"""

import json
from dataclasses import replace

from cortex.selection.catalog import Listing, catalog
from cortex.selection.draft import Draft, Vote
from cortex.selection.gate import digest
from cortex.selection.index import Index, index_of
from cortex.selection.recipes import recipe
from cortex.selection.types import Costs, Decided, Entry, Memory, PlanInput, Sent, StageName, ToolPlan

NOTES_HEAD = "Also callable now, through tool_call:"
HINT_LEAST = 0.05


def plan(given: PlanInput) -> ToolPlan:
    """The plan of one model call; UserError for an unknown recipe."""
    index = index_of(given.snapshot)
    draft = Draft()
    for stage in recipe(given.recipe):
        draft = stage(given, index, draft)
    return _written(given, index, draft)


def _written(given: PlanInput, index: Index, draft: Draft) -> ToolPlan:
    """The plan that a finished draft stands for."""
    sent = (*draft.kept, *draft.fresh)
    business = [entry for entry in draft.permitted if not entry.is_meta]
    opening = given.memory.opening if draft.kept else len(sent)
    listing = _listing(given, draft, sent[:opening])
    old = given.memory.noted if draft.kept else ()
    noted = tuple(name for name in draft.noted if name not in old)
    known = {item.name for item in given.memory.sent} if draft.kept or draft.is_afresh else set()
    ready = frozenset(given.ready)
    total = [entry for entry in given.snapshot.entries if not entry.is_meta and entry.name in ready]
    costs = Costs(
        tools=sum(index.entries[item.name].cost(item.form) for item in sent),
        catalog=listing.tokens,
        notes=sum(index.entries[name].tokens_full for name in noted),
        total=sum(entry.tokens_full for entry in total),
        permitted=sum(entry.tokens_full for entry in business),
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
        decisions=tuple(_decided(given, index, draft, entry) for entry in draft.permitted if not entry.is_meta),
        reachable=() if draft.is_shut else tuple(entry.name for entry in business),
        costs=costs,
        total=len(total),
        boundary=draft.boundary,
        late=draft.late,
        labels=tuple(draft.labels.items()),
        memory=_remembered(given, draft, sent, opening, costs),
    )


def _listing(given: PlanInput, draft: Draft, opening: tuple[Sent, ...]) -> Listing:
    """The frozen catalog of an open epoch: permitted, and not declared when it opened; or a stage's own."""
    if draft.listing is not None:
        return draft.listing
    if draft.is_afresh or not draft.is_open or draft.is_all:
        return Listing()
    declared = {item.name for item in opening}
    return catalog([entry for entry in draft.permitted if entry.name not in declared], given.snapshot.domains)


def _notes(entries: list[Entry]) -> str:
    """Late tools behind the user's message, each with its whole schema; "" for none."""
    if not entries:
        return ""
    rows = [f"- {entry.name}: {entry.full.description}\n  {_minified(entry.full.parameters)}" for entry in entries]
    return "\n".join((NOTES_HEAD, *rows))


def _minified(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _hints(draft: Draft) -> tuple[tuple[str, float], ...]:
    """What the message says about each permitted tool, best first; the offline model reads it in every mode."""
    found = {name: vote.p for name, vote in draft.chances.items()}
    for name, vote in draft.pins.items():
        found[name] = max(found.get(name, 0.0), vote.p)
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return tuple((name, round(p, 3)) for name, p in ranked if p >= HINT_LEAST)


def _decided(given: PlanInput, index: Index, draft: Draft, entry: Entry) -> Decided:
    """Why this permitted tool is in or out."""
    item = next((item for item in (*draft.kept, *draft.fresh) if item.name == entry.name), None)
    chance = draft.chances.get(entry.name)
    if item is not None:
        stage, why = item.stage, item.reason
    elif entry.name in draft.noted:
        stage, why = "epoch", "came late: its schema stands behind the message, to be called through tool_call"
    else:
        stage, why = _left_out(given, draft, entry.name, chance)
    is_pinned = entry.name in draft.pins or (item is not None and item.stage in ("pins", "all"))
    return Decided(
        name=entry.name,
        category=entry.category,
        is_in=item is not None or entry.name in draft.noted,
        stage=stage,
        score=1.0 if is_pinned else (chance.p if chance else 0.0),
        threshold=draft.threshold,
        tokens=index.entries[entry.name].cost(item.form if item else "full"),
        reason=why,
    )


def _left_out(given: PlanInput, draft: Draft, name: str, chance: Vote | None) -> tuple[StageName, str]:
    """Why a permitted tool is not sent."""
    if draft.is_shut:
        return "mode", "Chat only: no tool leaves"
    if name in draft.dropped:
        return draft.dropped[name].stage, draft.dropped[name].why
    if given.is_last:
        return "epoch", "the last round is answered without tools"
    if name in draft.resting:
        return "pins", f"rests until you ask for something ({draft.resting[name].why})"
    if name in draft.wanted:
        return "epoch", "found earlier in this conversation: called through tool_call"
    if chance is None:
        return "fuse", "nothing in the message speaks for it"
    return "fuse", f"{chance.why}, but too weakly ({chance.p:.2f} of {draft.threshold:.2f})"


def _remembered(given: PlanInput, draft: Draft, sent: tuple[Sent, ...], opening: int, costs: Costs) -> Memory:
    """What the next plan must know. A chat-only round leaves an open epoch as it was."""
    if draft.is_shut and given.memory.is_open:
        return replace(given.memory, highest=draft.number, turn=given.turn, last_at=given.now)
    return Memory(
        number=draft.number,
        highest=max(draft.number, given.memory.highest),
        is_open=draft.is_open,
        sent=sent,
        opening=opening if draft.is_open else 0,
        mode="all" if draft.is_all else "auto",
        role=given.role.name,
        model=given.model,
        version=given.snapshot.version,
        permitted=digest(draft.permitted),
        summary=given.summary,
        turn=given.turn,
        last_at=given.now,
        request_tokens=given.fixed_tokens + costs.tools + costs.catalog + costs.notes,
        noted=draft.noted,
        recipe=given.recipe,
        grown=draft.grown,
    )
