"""The values that pass between the loop (`agent/react.py`) and its ports. All are portable through `to_dict` JSON.

A turn is a user message until its answer; a round is one model call; a call is one tool use.
"""

from typing import Literal

from msgspec import Struct, field

from cortex.base.messages import Message, Picture, ToolCall, ToolResult, ToolSchema, Usage
from cortex.base.role import Channel, ToolMode

TurnState = Literal["queued", "running", "waiting", "done", "stopped", "failed", "interrupted", "out_of_rounds"]
SUB = ":sub:"
GIVEN, GIVEN_ROUND = "given", 0  # the id of the call that a turn begins with, ahead of the first round
LIVING: tuple[TurnState, ...] = ("queued", "running", "waiting")
LOOP_ENDS: tuple[TurnState, ...] = ("done", "stopped", "failed", "interrupted", "out_of_rounds")


def agent_turn(parent_turn: str, run_id: str) -> str:
    """The id of the turn of a background agent that this turn started."""
    return f"{parent_turn}{SUB}{run_id}"


def parent_of(turn_id: str) -> str:
    """The turn that started this one as a background agent's; "" when none did."""
    parent, sub, _ = turn_id.partition(SUB)
    return parent if sub else ""


class Turn(Struct, frozen=True, kw_only=True):
    """A turn as it was opened: everything the loop may depend on, read once inside a step and then fixed.

    `job_id`: the job that it runs for, "" for none. `is_order`: its message may be an order that needs no model; a turn
    that an earlier version opened says nothing of it, and has no such step. `done_before`: what the tries that were set
    aside for it did, in words for the model. `pictures`: those that came with its message; `documents`: what a model
    reads of the other files that did. `given`: the call that it begins with, ahead of any model, None for none;
    `is_given_alone`: no model goes on with its result.
    """

    id: str
    conversation_id: str
    user_id: str
    role: str
    channel: Channel
    text: str
    mode: ToolMode
    max_rounds: int
    max_rounds_from: str
    models: tuple[str, ...]
    window_tokens: int
    now: str
    is_tainted: bool = False
    parallel_calls: bool = True
    ordinal: int = 0
    summary_id: str = ""
    job_id: str = ""
    is_order: bool = False
    done_before: str = ""
    pictures: tuple[Picture, ...] = ()
    documents: tuple[str, ...] = ()
    given: ToolCall | None = None
    is_given_alone: bool = False


class Need(Struct, frozen=True, kw_only=True):
    """The loop's request to the planner before a round.

    `round` counts every model call from 1; `is_last`: answer without tools; `found`: names that discovery or a
    rescued call brought in; `missing`: the text of an answer that said a tool is missing, else "". `heard`: what the
    person sent last while the turn ran, () for nothing; the round `heard_at` is the first that reads it.
    """

    round: int
    is_last: bool = False
    found: tuple[str, ...] = ()
    missing: str = ""
    heard: tuple[str, ...] = ()
    heard_at: int = 0


class RoundPlan(Struct, frozen=True, kw_only=True):
    """The content of one model call. `system` holds prompt and catalog of the epoch, byte-stable within it.

    `added`: names that the round before did not declare; in a rescue first the likelier one that it did.
    `tail` (date, usage notes) is appended to the last user message, never to the prefix. `hints`: tool ->
    probability, read by the offline model only. `calls_as_text`: render past calls as text (no tool is declared).
    `models`: the chain to ask in place of the turn's. `refusal`: why no model may be asked; then nothing goes out.
    `late_from`: the place in `tools` from which they came after the prefix was cached, None = no wire need know;
    `revealed`: those that come with this round.
    """

    round: int
    system: str
    tools: tuple[ToolSchema, ...] = ()
    tail: str = ""
    tool_choice: Literal["auto", "required", "none"] = "auto"
    calls_as_text: bool = False
    added: tuple[str, ...] = ()
    hints: tuple[tuple[str, float], ...] = ()
    models: tuple[str, ...] = ()
    refusal: str = ""
    late_from: int | None = None
    revealed: tuple[str, ...] = ()


class Reply(Struct, frozen=True, kw_only=True):
    """The answer of the chain of models. `failure` is a sentence for the person; then there is no message.

    `rejected`: what of the request the last model did not take, as `Rejection.what` says it; "" for nothing.
    """

    message: Message | None = None
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    finish: Literal["stop", "calls", "length", "repeats"] = "stop"
    failure: str = ""
    failure_kind: str = ""
    rejected: str = ""


class Decision(Struct, frozen=True, kw_only=True):
    """The gate's word on one call, bound to the exact arguments by `arguments_hash`.

    `call_id` is Cortex's own id of the call (its row); `tool` the real tool, also behind the bridge; `result` is
    there when nothing will run. `is_free`: a meta tool, not counted as a round. `readers`: keys of who else will read
    what it writes, as the person was asked.
    """

    call_id: str
    verdict: Literal["run", "ask", "refuse"]
    tool: str = ""
    is_read: bool = False
    is_free: bool = False
    approval_id: str = ""
    arguments_hash: str = ""
    result: ToolResult | None = None
    readers: tuple[str, ...] = ()


Answer = Literal["allowed", "changed", "denied", "expired"]  # changed: allowed, with arguments of the person's own


class PlainCommand(Struct, frozen=True, kw_only=True):
    """The certain order of a message, so that no model need be asked. `done`: what to say when all of it is."""

    calls: tuple[ToolCall, ...]
    done: str


class Performed(Struct, frozen=True, kw_only=True):
    """A call's result with what the loop needs to go on. `found`: tools that a discovery or a rescue revealed.

    words: how it ended, for the person; "" where there are none.
    """

    result: ToolResult
    found: tuple[str, ...] = ()
    words: str = ""


class Outcome(Struct, frozen=True, kw_only=True):
    """The end of a turn. `messages` are what it added to the transcript, in order."""

    state: TurnState
    rounds: int
    messages: tuple[Message, ...] = ()
    text: str = ""


class Past(Struct, frozen=True, kw_only=True):
    """The conversation before this turn, as the model sees it. `summary` stands for what was left out, if anything."""

    messages: tuple[Message, ...] = ()
    summary: str = ""
    is_tainted: bool = False
