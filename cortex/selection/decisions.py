"""Why each permitted tool is in or out, worked out when somebody asks: of ten thousand hardly one is looked at.

A receipt of so many lists those of which there is something to say; the others all are out for the same reason.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import overload

from cortex.selection.cache_economics import price
from cortex.selection.draft import PlanDraft, Vote
from cortex.selection.types import PlanInput, SentTool, StageName, ToolDecision, ToolEntry

LATE = "described after the message, called through tool_call"
NOT_HERE = "you chose “never” for this chat"
LISTED = 1_000  # permitted tools: of more only those are listed of which there is something to say
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

    def telling(self) -> Sequence[ToolDecision]:
        """All of up to LISTED tools; of more those of which the message, the chat or the recipe says anything."""
        if len(self._business) <= LISTED:
            return self._all()
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
        listed = self.telling()
        for decided in listed:
            if not decided.is_in:
                found[decided.stage] += decided.tokens
        names = {decided.name for decided in listed}
        whole = sum(entry.tokens_full for entry in self._business if entry.name in names)
        found["form"] += whole - sum(decided.tokens for decided in listed)
        if len(listed) < len(self._business):
            other = next(entry for entry in self._business if entry.name not in names)
            found[self._decided([other])[0].stage] += permitted_tokens - whole
        return found

    def _all(self) -> tuple[ToolDecision, ...]:
        if self._made is None:
            self._made = self._decided(self._business)
        return self._made

    def _decided(self, entries: Sequence[ToolEntry]) -> tuple[ToolDecision, ...]:
        draft, profile = self._draft, self._given.profile
        sent = {item.name: item for item in (*draft.kept, *draft.fresh)}
        found = []
        for entry in entries:
            item = sent.get(entry.name)
            bar = price(profile, entry) if draft.threshold is None else draft.threshold
            found.append(_decided(self._given, draft, entry, item, bar, entry.cost(item.form if item else "full")))
        return tuple(found)


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
