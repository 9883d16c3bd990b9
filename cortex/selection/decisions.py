"""Why each permitted tool is in or out, worked out when somebody asks: of ten thousand hardly one is looked at."""

from collections.abc import Iterator, Sequence
from typing import overload

from cortex.selection.cache_economics import threshold
from cortex.selection.draft import PlanDraft, Vote
from cortex.selection.types import PlanInput, SentTool, StageName, ToolDecision, ToolEntry

LATE = "described after the message, called through tool_call"
NOT_HERE = "you chose “never” for this chat"
NOT_USED = f"{NOT_HERE}: not called any more, and left out as soon as that costs nothing"


class Decisions(Sequence[ToolDecision]):
    """A decision for every permitted tool but the meta tools, in registry order. Equal to a tuple of the same."""

    def __init__(self, given: PlanInput, draft: PlanDraft, business: tuple[ToolEntry, ...]) -> None:
        """Keep what the decisions follow from. `business`: what is permitted, with what the person does not want."""
        self._given, self._draft = given, draft
        self._business = business
        self._made: tuple[ToolDecision, ...] | None = None

    def __len__(self) -> int:
        return len(self._business)

    @overload
    def __getitem__(self, at: int) -> ToolDecision: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[ToolDecision]: ...
    def __getitem__(self, at: int | slice) -> ToolDecision | Sequence[ToolDecision]:
        return self._all()[at]

    def __iter__(self) -> Iterator[ToolDecision]:
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._all() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._all())

    def _all(self) -> tuple[ToolDecision, ...]:
        if self._made is None:
            sent = {item.name: item for item in (*self._draft.kept, *self._draft.fresh)}
            business = self._business
            forms = [sent[entry.name].form if entry.name in sent else "full" for entry in business]
            costs = [entry.cost(form) for entry, form in zip(business, forms, strict=True)]
            bars = [threshold(self._given.profile, entry.tokens_stub) for entry in business]
            if self._draft.threshold is not None:
                bars = [self._draft.threshold] * len(business)
            self._made = tuple(
                _decided(self._given, self._draft, entry, sent.get(entry.name), bar, cost)
                for entry, bar, cost in zip(business, bars, costs, strict=True)
            )
        return self._made


def _decided(
    given: PlanInput, draft: PlanDraft, entry: ToolEntry, item: SentTool | None, bar: float, tokens: int
) -> ToolDecision:
    """Why this permitted tool is in or out. `item`: as it is sent, None when it is not; `tokens`: what it costs."""
    chance = draft.chances.get(entry.name)
    stage: StageName
    if entry.name in given.never:
        stage, why = "gate", NOT_USED if item else NOT_HERE
    elif item is not None:
        stage, why = item.stage, item.reason
    elif entry.name in draft.noted:
        vote = draft.pins.get(entry.name) or chance
        stage, why = (vote.stage, f"{vote.why}; {LATE}") if vote else ("epoch", LATE)
    else:
        stage, why = _left_out(given, draft, entry, chance, bar)
    is_pinned = entry.name in draft.pins or (item is not None and item.stage in ("pins", "all"))
    return ToolDecision(
        name=entry.name,
        category=entry.category,
        is_in=item is not None or entry.name in draft.noted,
        stage=stage,
        score=1.0 if is_pinned else (chance.p if chance else 0.0),
        threshold=round(bar, 4),
        tokens=tokens,
        reason=why,
    )


def _left_out(
    given: PlanInput, draft: PlanDraft, entry: ToolEntry, chance: Vote | None, bar: float
) -> tuple[StageName, str]:
    """Why a permitted tool is not sent."""
    name = entry.name
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
    if entry.is_shy:
        return "fuse", f"{chance.why}, but it is set to be sent only when it is named or found"
    if not chance.p:
        return chance.stage, chance.why
    return "fuse", f"{chance.why}, but too weakly ({chance.p:.2f} of {bar:.2f})"
