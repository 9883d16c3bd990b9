"""A recipe run stage by stage, with what each stage did to the plan in the making. For the page that explains it."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from cortex.selection.index.index import index_of
from cortex.selection.plan.draft import PlanDraft, Vote
from cortex.selection.recipes import recipe
from cortex.selection.types import PlanInput, SentTool

MOST, LEAST_P = 8, 0.05
Change = tuple[str, Sequence["ToolMark"]]


class ToolMark(Struct, frozen=True, kw_only=True):
    """A stage's finding about a tool: its belief (None where it has none) and its words."""

    name: str
    p: float | None
    why: str


class Step(Struct, frozen=True, kw_only=True):
    """One stage by name and by what it decides. `marks`: the most telling ones, best first; `more`: how many others."""

    stage: str
    label: str
    told: str
    marks: tuple[ToolMark, ...] = ()
    more: int = 0


def steps(given: PlanInput) -> tuple[Step, ...]:
    """Return what each stage of the recipe did, in order; UserError for an unknown recipe."""
    index, draft = index_of(given.snapshot), PlanDraft()
    found = []
    for stage in recipe(given.recipe):
        before, draft = draft, stage(given, index, draft)
        told, marks = _change(before, draft)
        best = sorted(marks, key=lambda mark: (-(mark.p or 0.0), mark.name))
        shown, more = tuple(best[:MOST]), max(0, len(best) - MOST)
        found.append(Step(stage=stage.name, label=stage.label, told=told, marks=shown, more=more))
    return tuple(found)


def _change(before: PlanDraft, after: PlanDraft) -> Change:
    """The first of the things a stage can do that this one did, in words and tools."""
    if dropped := _new(before.dropped, after.dropped):
        return f"{len(dropped)} dropped again", dropped
    if (after.kept, after.fresh) != (before.kept, before.fresh):
        return _going_out(after)
    if after.skills != before.skills:
        return f"{len(after.skills)} of the user's skills fit", _new(before.pins, after.pins)
    if after.wanted != before.wanted or after.chances != before.chances:
        kept = [_mark(name, after.chances.get(name) or after.pins.get(name)) for name in after.wanted]
        return f"{len(kept)} of {len({*after.chances, *after.pins})} tools in question are likely enough", kept
    if after.pins != before.pins or after.resting != before.resting:
        pinned, resting = _new(before.pins, after.pins), _new(before.resting, after.resting)
        rest = f", {len(resting)} rest until something is asked" if resting else ""
        return f"{len(pinned)} in, whatever their chance{rest}", pinned or resting
    if after.votes != before.votes or after.learned != before.learned:
        spoken = _voted(before, after)
        gates = f"; a wish {after.learned.wish:.2f}, work {after.learned.work:.2f}" if after.learned.chances else ""
        return f"{len(spoken)} tools spoken for{gates}", spoken
    return _flags(before, after), ()


def _flags(before: PlanDraft, after: PlanDraft) -> str:
    """Return what was done to no single tool."""
    if after.rights is not before.rights:
        return f"{len(after.rights.business)} tools may be used, {after.rights.tokens:,} tokens in full"
    if after.is_shut and not before.is_shut:
        return "nothing is sent: chat only"
    if after.is_all and not before.is_all:
        return "everything permitted is sent"
    if after.forms != before.forms:
        return f"{len(after.forms)} in a short form"
    if after.grown != before.grown:
        return f"kept for the conversation: {', '.join(after.grown)}"
    return "nothing to do here" if after == before else after.boundary or "noted, no tool moved"


def _going_out(after: PlanDraft) -> Change:
    """The set of this round."""
    items: tuple[SentTool, ...] = (*after.kept, *after.fresh)
    forms = sorted({item.form for item in items})
    why = f", {after.boundary}" if after.boundary else ""
    shapes = f" ({', '.join(forms)})" if forms not in ([], ["full"]) else ""
    return f"{len(items)} go out{why}{shapes}", [ToolMark(name=each.name, p=None, why=each.reason) for each in items]


def _voted(before: PlanDraft, after: PlanDraft) -> Sequence[ToolMark]:
    """The votes that are new, and what the fitted model says of a tool."""
    fresh = {name: votes[len(before.votes.get(name, ())) :] for name, votes in after.votes.items()}
    found = {name: _mark(name, max(votes, key=lambda vote: vote.p)) for name, votes in fresh.items() if votes}
    for name, p in after.learned.chances.items() if after.learned != before.learned else ():
        if p >= LEAST_P and name in after.rights.names:
            found.setdefault(name, ToolMark(name=name, p=p, why="similar to requests that use it"))
    return list(found.values())


def _new(before: Mapping[str, Vote], after: Mapping[str, Vote]) -> Sequence[ToolMark]:
    return [_mark(name, vote) for name, vote in after.items() if before.get(name) != vote]


def _mark(name: str, vote: Vote | None) -> ToolMark:
    return ToolMark(name=name, p=vote.p if vote and vote.p else None, why=vote.why if vote else "")
