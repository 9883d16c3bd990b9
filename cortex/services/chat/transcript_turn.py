"""What one event does to one turn's view: a pure function for each kind. Called by `transcript.py` alone."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal

from msgspec.structs import replace

from cortex.base.events import Event
from cortex.base.record import field_names
from cortex.services.chat.transcript_views import (
    AgentCard,
    ApprovalCard,
    CallCard,
    FailurePart,
    LiveStatus,
    NoticePart,
    Part,
    TextPart,
    ThinkingPart,
    TurnEndView,
    TurnView,
    ViewChange,
)

Phase = Literal["choosing", "asking", "thinking", "writing", "calling", "waiting"]
Folded = tuple[TurnView, list[ViewChange]]


def part_of(turn: TurnView, part_id: str) -> Part | None:
    """One part by its id."""
    return next((part for part in turn.parts if part.id == part_id), None)


# --- the turn -------------------------------------------------------------------------------------------------------


def started(turn: TurnView, event: Event) -> Folded:
    """The engine took it up; a queued one gets its place."""
    data = event.payload
    running = replace(
        turn,
        state="running",
        role=data.get("role") or "",
        model=data.get("model") or "",
        place=data.get("place") or "",
        was_out=data.get("place") == "out",
        max_rounds=data.get("max_rounds") or 0,
        max_rounds_from=data.get("max_rounds_from") or "",
        is_blind=bool(data.get("is_blind")),
        is_slow=bool(data.get("is_slow")),
        ending=None,
    )
    changes = [ViewChange(kind="turn.start" if turn.state != "running" else "status", turn=turn.id)]
    return running, changes + _seen(turn, running)


def _seen(before: TurnView, after: TurnView) -> list[ViewChange]:
    """The change of what is said of the message's pictures, if there is one."""
    return [ViewChange(kind="question", turn=after.id)] if before.is_blind != after.is_blind else []


def ended(turn: TurnView, event: Event) -> Folded:
    """It is over: open questions go, calls that never came back are of unknown outcome.

    One that was set aside keeps its questions: they can still be answered.
    """
    data = event.payload
    ending = TurnEndView(**_known(data, TurnEndView))
    waiting = (
        {part.call for part in turn.parts if isinstance(part, ApprovalCard)} if data.get("is_set_aside") else set()
    )
    parts = tuple(
        part if part.id in waiting else _settled(part)
        for part in turn.parts
        if not (isinstance(part, ApprovalCard) and part.call not in waiting)
        and not (isinstance(part, TextPart | ThinkingPart) and part.is_open and not part.text)
    )
    changes = [ViewChange(kind="body", turn=turn.id)] if parts != turn.parts else []
    if turn.state == "queued":  # it ended without an answer: now its place is shown, and says so
        changes = [ViewChange(kind="turn.start", turn=turn.id)]
    return replace(turn, state="ended", ending=ending, parts=parts), [
        *changes,
        ViewChange(kind="turn.end", turn=turn.id),
    ]


def selected(turn: TurnView, event: Event) -> Folded:
    """The tools of a round are chosen. Logs from before hold the whole receipt."""
    data = event.payload
    total = data["total"] if "total" in data else (data.get("receipt") or {}).get("total", 0)
    return _phase(replace(turn, tools_total=total), "asking", data.get("round"))


def paid(turn: TurnView, event: Event) -> Folded:
    """Return what a round cost, when that is known, and which model answered."""
    cost, model = event.payload.get("cost_usd"), event.payload.get("model") or turn.model
    is_blind = turn.is_blind and not event.payload.get("sees")
    total = turn.cost_usd if cost is None else (turn.cost_usd or 0.0) + cost
    place = event.payload.get("place") or turn.place
    was_out = turn.was_out or place == "out"
    after = replace(turn, model=model, place=place, was_out=was_out, cost_usd=total, is_blind=is_blind)
    return after, _seen(turn, after)


# --- text -----------------------------------------------------------------------------------------------------------


def part_started(turn: TurnView, event: Event) -> Folded:
    """A part begins, or begins again with a higher attempt."""
    data = event.payload
    attempt, thinks = data.get("attempt") or 1, data["kind"] == "thinking"
    part: Part = (
        ThinkingPart(id=data["part"], attempt=attempt, is_open=True, started_at=event.at)
        if thinks
        else TextPart(id=data["part"], attempt=attempt, is_open=True)
    )
    is_new = part_of(turn, part.id) is None
    turn = turn.with_part(part) if is_new else _swap(turn, part)
    turn, changes = _phase(turn, "thinking" if thinks else "writing", data.get("round"))
    return turn, [ViewChange(kind="part.new" if is_new else "part.again", turn=turn.id, part=part.id), *changes]


def part_ended(turn: TurnView, event: Event) -> Folded:
    """The finished text; "" takes the part away."""
    data = event.payload
    part = part_of(turn, data["part"])
    if not data["text"]:
        kept = tuple(other for other in turn.parts if other.id != data["part"])
        return replace(turn, parts=kept), [ViewChange(kind="body", turn=turn.id)] if part else []
    whole = _whole(data, event.at, part)
    if part is None:
        return turn.with_part(whole), [ViewChange(kind="part.new", turn=turn.id, part=whole.id)]
    return _swap(turn, whole), [ViewChange(kind="part", turn=turn.id, part=part.id)]


def noticed(turn: TurnView, event: Event) -> Folded:
    """A word of Cortex itself."""
    return _add(turn, NoticePart(id=f"note-{event.seq}", **_known(event.payload, NoticePart)))


def failed(turn: TurnView, event: Event) -> Folded:
    """Why the answer stopped."""
    return _add(turn, FailurePart(id=f"fail-{event.seq}", **_known(event.payload, FailurePart)))


# --- calls ----------------------------------------------------------------------------------------------------------


def called(turn: TurnView, event: Event) -> Folded:
    """A call was decided; after a crash the same row may come again."""
    data = event.payload
    if part_of(turn, data["call"]):
        return turn, []
    card = CallCard(
        id=data["call"],
        name=data["name"],
        arguments=data.get("arguments") or "",
        title=data.get("title") or f"{data['name'].replace('_', ' ').capitalize()} {data.get('brief') or ''}".strip(),
        shown=data.get("shown") or "",
        risk=data.get("risk") or "",
        round=data.get("round") or 0,
    )
    replaced = part_of(turn, data.get("instead_of") or "")
    if replaced is None:
        turn, changes = _add(turn, card)
    else:  # the person changed its arguments: the card of what runs stands where the one that asked stood
        card = replace(card, decision="changed")
        turn = replace(turn, parts=tuple(card if part is replaced else part for part in turn.parts))
        changes = [ViewChange(kind="body", turn=turn.id)]
    turn, more = _phase(turn, "calling", card.round)
    return turn, [*changes, *more]


def returned(turn: TurnView, event: Event) -> Folded:
    """A call came back."""
    data = event.payload
    turn, changes = _card(
        turn,
        data["call"],
        state=data["state"],
        text=data.get("text") or "",
        words=data.get("words") or "",
        ms=data.get("ms"),
        undo_id=data.get("undo") or "",
        spill=data.get("spill") or "",
        is_tainted=bool(data.get("is_tainted")),
    )
    turn, more = _phase(turn, "calling", None)
    return turn, [*changes, *more]


def approved(turn: TurnView, event: Event) -> Folded:
    """A question was asked, or answered, here or anywhere else."""
    data, state = event.payload, event.payload["state"]
    if state == "asked":
        turn, changes = _card(turn, data["call"], state="wait")
        turn, added = _add(turn, _question(data)) if part_of(turn, data["approval"]) is None else (turn, [])
        turn, more = _phase(turn, "waiting", None)
        return turn, [*changes, *added, *more]
    turn = replace(turn, parts=tuple(part for part in turn.parts if part.id != data["approval"]))
    if state == "again":
        turn, _ = _card(turn, data["call"], again_id="")
        return turn, [ViewChange(kind="body", turn=turn.id)]
    again_id = data["approval"] if state == "expired" else ""
    turn, _ = _card(
        turn, data["call"], decision=state, state="run" if state == "allowed" else "wait", again_id=again_id
    )
    turn, more = _phase(turn, "calling", None)
    return turn, [ViewChange(kind="body", turn=turn.id), *more]


def undone(turn: TurnView, event: Event) -> Folded:
    """A call's effect was taken back, or could not be, or was made anew."""
    data = event.payload
    state = "" if data["state"] == "redone" else data["state"]
    turn, _ = _card(
        turn, data["call"], undo_state=state, undo_text=data.get("text") or "", undo_id=data.get("next") or ""
    )
    return turn, [ViewChange(kind="undo", turn=turn.id, part=data["call"])]


def agent_moved(turn: TurnView, event: Event) -> Folded:
    """A background run began, went on or ended; the turn that started it may be over long since."""
    data = event.payload
    card = AgentCard(id=data["agent"], **_known(data, AgentCard))
    if part_of(turn, card.id) is None:
        return _add(turn, card)
    return _swap(turn, card), [ViewChange(kind="part", turn=turn.id, part=card.id)]


FOLDS: Mapping[str, Callable[[TurnView, Event], Folded]] = {
    "turn.start": started,
    "turn.end": ended,
    "selection": selected,
    "usage": paid,
    "part.start": part_started,
    "part.end": part_ended,
    "notice": noticed,
    "error": failed,
    "tool.call": called,
    "tool.result": returned,
    "approval": approved,
    "undo": undone,
    "agent": agent_moved,
}


def _add(turn: TurnView, part: Part) -> Folded:
    return turn.with_part(part), [ViewChange(kind="part.new", turn=turn.id, part=part.id)]


def _swap(turn: TurnView, part: Part) -> TurnView:
    return replace(turn, parts=tuple(part if old.id == part.id else old for old in turn.parts))


def _card(turn: TurnView, call_id: str, **new: Any) -> Folded:
    card = part_of(turn, call_id)
    if not isinstance(card, CallCard):
        return turn, []
    return _swap(turn, replace(card, **new)), [ViewChange(kind="part", turn=turn.id, part=card.id)]


def _phase(turn: TurnView, phase: Phase, round_number: int | None) -> Folded:
    """The status line after an event; a waiting question outranks everything, and no call running means asking."""
    if turn.state == "ended":
        return turn, []
    busy = tuple(part.title for part in turn.parts if isinstance(part, CallCard) and part.state == "run")
    if any(isinstance(part, ApprovalCard) for part in turn.parts):
        phase = "waiting"
    elif phase == "calling" and not busy:
        phase = "asking"
    status = LiveStatus(phase=phase, round=turn.status.round if round_number is None else round_number, tools=busy)
    return replace(turn, status=status), [] if status == turn.status else [ViewChange(kind="status", turn=turn.id)]


def _settled(part: Part) -> Part:
    if isinstance(part, CallCard) and part.state in ("run", "wait"):
        return replace(part, state="unknown")
    return replace(part, is_open=False) if isinstance(part, TextPart | ThinkingPart) else part


def _whole(data: dict[str, Any], at: datetime, begun: Part | None) -> Part:
    attempt = data.get("attempt") or 1
    if isinstance(begun, ThinkingPart):
        seconds = (at - begun.started_at).total_seconds()
        return replace(begun, text=data["text"], attempt=attempt, is_open=False, seconds=seconds)
    if begun is None and data.get("kind") == "thinking":
        return ThinkingPart(id=data["part"], text=data["text"], attempt=attempt, started_at=at)
    return TextPart(id=data["part"], text=data["text"], attempt=attempt, is_partial=bool(data.get("is_partial")))


def _question(data: dict[str, Any]) -> ApprovalCard:
    until = data.get("expires_at")
    known = _known(data, ApprovalCard) | {"expires_at": datetime.fromisoformat(until) if until else None}
    return ApprovalCard(id=data["approval"], **known)


def _known(data: Mapping[str, Any], kind: type[Part | TurnEndView]) -> dict[str, Any]:
    """Return what an event says of a card under the card's own names; what it does not say is as the card has it."""
    return {name: data[name] for name in field_names(kind) if name != "id" and data.get(name) is not None}
