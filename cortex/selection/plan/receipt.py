"""The receipt of a plan: what is stored each round and shown under "Why these tools?".

Why each permitted tool is in or out is worked out when somebody asks: of ten thousand hardly one is looked at. Of so
many those are listed of which there is something to say; the others all are out for the same reason.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from cortex.base.portable import plain
from cortex.selection.plan.cache_economics import price
from cortex.selection.plan.draft import PlanDraft, Vote
from cortex.selection.types import META, PlanInput, SentTool, ToolDecision, ToolEntry, ToolPlan

LATE = "described after the message, called through tool_call"
NOT_HERE = "you chose “never” for this chat"
LISTED = 1_000  # permitted tools: of more only those are listed of which there is something to say
NOT_USED = f"{NOT_HERE}: not called any more, and left out as soon as that costs nothing"


class Decisions(Sequence[ToolDecision]):
    """A decision for every permitted tool but the meta tools, in registry order. Equal to a tuple of the same."""

    def __init__(self, given: PlanInput, draft: PlanDraft, business: tuple[ToolEntry, ...]) -> None:
        """Keep what the decisions follow from. `business`: what is permitted, with what the person does not want."""
        self._given, self._draft, self._business = given, draft, business

    def __len__(self) -> int:
        return len(self._business)

    def __getitem__(self, at: Any) -> Any:  # a decision, or a tuple of them for a slice
        return self._all[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._all == tuple(other)

    def __hash__(self) -> int:
        return hash(self._all)

    @cached_property
    def telling(self) -> Sequence[ToolDecision]:
        """All of up to LISTED tools; of more those of which the message, the chat or the recipe says anything."""
        if len(self._business) <= LISTED:
            return self._all
        draft = self._draft
        told = {item.name for item in (*draft.kept, *draft.fresh)}.union(
            draft.chances, draft.pins, draft.resting, draft.dropped, draft.noted, draft.wanted, self._given.never
        )
        return self._decided([entry for entry in self._business if entry.name in told])

    def left_out(self, permitted_tokens: int) -> Counter[str]:
        """Tokens that do not go out, by the stage that removed them; `form`: what shorter forms spare.

        permitted_tokens: of all that is permitted, in full.
        """
        found: Counter[str] = Counter()
        for decided in self.telling:
            found[decided.stage] += 0 if decided.is_in else decided.tokens
        names = {decided.name for decided in self.telling}
        whole = sum(entry.tokens_full for entry in self._business if entry.name in names)
        found["form"] += whole - sum(decided.tokens for decided in self.telling)
        if len(names) < len(self._business):
            other = next(entry for entry in self._business if entry.name not in names)
            found[self._decided([other])[0].stage] += permitted_tokens - whole
        return found

    @cached_property
    def _all(self) -> tuple[ToolDecision, ...]:
        return self._decided(self._business)

    def _decided(self, entries: Sequence[ToolEntry]) -> tuple[ToolDecision, ...]:
        sent = {item.name: item for item in (*self._draft.kept, *self._draft.fresh)}
        return tuple(_decided(self._given, self._draft, entry, sent.get(entry.name)) for entry in entries)


def receipt(plan: ToolPlan) -> dict[str, Any]:
    """The plan as portable JSON for the log; services add what system, message and history cost.

    TypeError for one that was read from JSON: it no longer knows what its decisions follow from.
    """
    decisions, memory, costs = plan.decisions, plan.memory, plan.costs
    if not isinstance(decisions, Decisions):
        raise TypeError("a receipt is written of a plan as it was made")
    entries = {decided.name: decided for decided in decisions.telling}
    unlisted = len(decisions) - len(entries)
    left_out = decisions.left_out(costs.permitted)
    left_out["gate"] += costs.total - costs.permitted
    return {
        "mode": plan.mode,
        "role": plan.role,
        "recipe": plan.recipe,
        "total": plan.total,
        "total_tokens": costs.total,
        "permitted": len(decisions),
        "permitted_tokens": costs.permitted,
        "sent": [
            {**plain(item), "category": entries[item.name].category if item.name in entries else META, "tokens": tokens}
            for item, tokens in zip(plan.sent, plan.sent_tokens, strict=True)
        ],
        "noted": [
            {"name": one.name, "category": one.category, "stage": one.stage, "reason": one.reason}
            for one in map(entries.__getitem__, plan.noted)
        ],
        "catalog_tokens": costs.catalog,
        "notes_tokens": costs.notes,
        "skills": [plain(fit) for fit in plan.skills],
        "skills_tokens": costs.skills,
        "tokens": costs.tools + costs.catalog,
        "saved": max(0, costs.total - costs.tools - costs.catalog),
        "left_out": {stage: tokens for stage, tokens in sorted(left_out.items()) if tokens},
        "decisions": [plain(decided) for decided in entries.values()],
        **({"unlisted": unlisted} if unlisted else {}),
        "epoch": {
            "number": plan.epoch_number,
            "is_open": bool(plan.sent),
            "boundary": plan.boundary,
            "opening": memory.opening,
            "facts": {key: value for key, value in plain(memory).items() if key not in ("sent", "opening")},
        },
        "late": plan.late,
        "added": list(plan.added),
        "labels": dict(plan.labels),
        "reachable": list(plan.reachable[:LISTED]),
    }


def _decided(given: PlanInput, draft: PlanDraft, entry: ToolEntry, item: SentTool | None) -> ToolDecision:
    """Why this permitted tool is in or out. `item`: as it is sent, None when it is not."""
    bar = price(given.profile, entry) if draft.threshold is None else draft.threshold
    pin, chance = draft.pins.get(entry.name), draft.chances.get(entry.name)
    if entry.name in given.never:
        stage, why = "gate", NOT_USED if item else NOT_HERE
    elif item is not None:
        stage, why = item.stage, item.reason
    elif entry.name in draft.noted:
        vote = pin or chance
        stage, why = (vote.stage, f"{vote.why}; {LATE}") if vote else ("epoch", LATE)
    else:
        stage, why = _left_out(given, draft, entry, chance, bar)
    is_pinned = pin is not None or (item is not None and item.stage in ("pins", "all"))
    return ToolDecision(
        name=entry.name,
        category=entry.category,
        is_in=item is not None or entry.name in draft.noted,
        stage=stage,
        score=1.0 if is_pinned else (chance.p if chance else 0.0),
        threshold=round(bar, 4),
        tokens=entry.cost(item.form if item else "full"),
        reason=why,
    )


def _left_out(given: PlanInput, draft: PlanDraft, entry: ToolEntry, chance: Vote | None, bar: float) -> tuple[str, str]:
    """Why a permitted tool is not sent."""
    dropped, resting = draft.dropped.get(entry.name), draft.resting.get(entry.name)
    if draft.is_shut:
        return "mode", "Chat only: no tool leaves"
    if dropped:
        return dropped.stage, dropped.why
    if given.is_last:
        return "epoch", "the last round is answered without tools"
    if resting:
        return "pins", f"rests until you ask for something ({resting.why})"
    if entry.name in draft.wanted:
        return "epoch", "found earlier in this conversation: called through tool_call"
    if chance is None:
        return "fuse", "nothing in the message speaks for it"
    if entry.is_shy:
        return "fuse", f"{chance.why}, but it is set to be sent only when it is named or found"
    if not chance.p:
        return chance.stage, chance.why
    return "fuse", f"{chance.why}, but too weakly ({chance.p:.2f} of {bar:.2f})"
