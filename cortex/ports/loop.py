"""The sockets of the server: every protocol that the pure floors (agent, selection, toolkit) reach the world through.

Five methods at most each. Implementations stand on the floors above or beside; `compose/` plugs them in.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol, TypeVar

from msgspec import Struct, field

from cortex.base.messages import Message, ToolCall, ToolSchema, Usage
from cortex.base.turn import Answer, Decision, Need, Past, Performed, PlainCommand, Reply, RoundPlan, Turn
from cortex.base.user import User

T = TypeVar("T")


# --- models -----------------------------------------------------------------------------------------------------


class Request(Struct, frozen=True, kw_only=True):
    """One model call, provider-neutral. Wire providers drop `hints` and `purpose`.

    `late_from`: the place in `tools` from which they came after the prefix was cached. A wire that can declare late
    does so where the messages reveal them; any other takes `tools` as they are. `pictures`: the bytes of those in the
    messages, by hash; of one that is gone there are none. `without`: parameters of the wire that are left out, such as
    `temperature`; `thinking` leaves the reasoning of earlier answers out. `parameters`: what tunes this answer, under
    the names of chat completions with their JSON; they go ahead of the model's own, each wire sends those it has.
    """

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    tool_choice: Literal["auto", "required", "none"] = "auto"
    late_from: int | None = None
    parallel_calls: bool = True
    max_output_tokens: int | None = None
    hints: tuple[tuple[str, float], ...] = ()
    purpose: Literal["talk", "summary"] = "talk"
    pictures: Mapping[str, bytes] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    parameters: tuple[tuple[str, str], ...] = ()


class Delta(Struct, frozen=True, kw_only=True):
    """A piece of the answer as it arrives; `kind` text or thinking; `void` takes back all before it."""

    kind: Literal["text", "thinking", "void"]
    text: str


class StreamEnd(Struct, frozen=True, kw_only=True):
    """The last item of a stream that came to its proper end: the whole message, checked, and the true usage.

    finish: `repeats`: it said the same again and again and was stopped; the message is what it said before.
    """

    message: Message
    usage: Usage
    finish: Literal["stop", "calls", "length", "repeats"]


class Provider(Protocol):
    """One configured model. `stream` ends with exactly one `StreamEnd`, or raises ProviderError: never half."""

    def stream(self, request: Request) -> AsyncIterator[Delta | StreamEnd]:
        """Send the request; deltas as they arrive, then `StreamEnd`. Closing the iterator closes the connection."""
        ...

    async def close(self) -> None:
        """Let go of its connections."""
        ...


# --- the loop's world (agent/react.py); most of its calls are durable steps ----------------------------------------


class History(Protocol):
    """The conversation around a turn."""

    async def past(self, turn: Turn) -> Past:
        """Return what was said before, fitted into the window; the same for the same turn, always."""
        ...

    async def steer(self, turn: Turn, after_round: int) -> tuple[str, ...]:
        """Messages the user sent meanwhile, taken into this turn."""
        ...

    async def say(self, turn: Turn, round_number: int, text: str, kind: str, note: str = "") -> None:
        """Put a notice of Cortex itself (limits met, loop broken) into the log; `note`: one behind it."""
        ...


class PlainCommands(Protocol):
    """Reads orders that need no model."""

    async def command(self, turn: Turn) -> PlainCommand | None:
        """Return what the turn's message orders for certain; None: a model has to read it."""
        ...


class Planner(Protocol):
    """Chooses what goes out with a round and stores the receipt."""

    async def plan(self, turn: Turn, need: Need) -> RoundPlan:
        """The plan of this round."""
        ...


class ModelCalls(Protocol):
    """Asks the chain of models, streams parts into the log, checks the budget first."""

    async def answer(self, turn: Turn, plan: RoundPlan, past: Sequence[Message], added: Sequence[Message]) -> Reply:
        """The finished answer to `past` and what this turn `added`, or a failure in words; never half."""
        ...


class ToolRunner(Protocol):
    """The executor as the loop uses it: decide (gate), wait (approval), perform (gate again, effect)."""

    async def decide(self, turn: Turn, round_number: int, call: ToolCall) -> Decision:
        """Tell whether this call may run now, must be asked for, or is refused."""
        ...

    async def wait_for_answer(self, turn: Turn, decision: Decision) -> Answer:
        """The person's answer, or expired."""
        ...

    async def perform(
        self, turn: Turn, round_number: int, call: ToolCall, decision: Decision, answer: Answer | None
    ) -> Performed:
        """Do it, once."""
        ...


# --- the executor's world (agent/execute.py) ----------------------------------------------------------------------


class CallFacts(Struct, frozen=True, kw_only=True):
    """The facts about a turn that the gate needs, read fresh at each decision.

    `permitted` depends on user, role and policy alone. `taint_title`: the call that brought text from outside, in words
    for the person. `typed_hosts`: hosts and addresses typed. `same_calls`: earlier
    calls by name and arguments. `calls_left`: None = no limit. `asks_first`: an admin has these ask before each call.
    `never`: what the person switched off in this conversation. `halt`: why nothing runs at all, "" where work is not
    stopped. `is_written`: the model wrote this call as text.
    """

    user: User
    role: str
    permitted: frozenset[str]
    is_tainted: bool
    taint_source: str
    has_read_private: bool
    typed_hosts: frozenset[str]
    discoveries: int
    same_calls: dict[str, int]
    now: datetime
    calls_left: int | None = None
    asks_first: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    halt: str = ""
    taint_title: str = ""
    is_written: bool = False


class CallRecord(Struct, frozen=True, kw_only=True):
    """One call as the log keeps it; `arguments` is canonical JSON, `hash` its SHA-256.

    For the person: `title` says what it does, `shown` the whole of it, such as a diff.
    """

    id: str
    wire_id: str
    tool: str
    arguments: str
    hash: str
    risk: str
    title: str = ""
    shown: str = ""


class UndoOffer(Struct, frozen=True, kw_only=True):
    """The way to take a call back for 24 hours; see `toolkit/context.py`."""

    category: str
    target: str
    before: dict[str, Any] | None
    expected: str
    label: str


class CallEnding(Struct, frozen=True, kw_only=True):
    """The end of a call: what the model reads, what the card shows, what can be undone.

    `words`: for the person, short; "" where the state says it. `has_looked`: refused by the tool's own check, which may
    have read what the tool reads.
    """

    text: str
    words: str = ""
    state: Literal["ok", "err", "unknown", "refused"]
    is_tainted: bool = False
    spill: str = ""
    ms: int = 0
    undo: UndoOffer | None = None
    has_looked: bool = False


class Readers(Struct, frozen=True, kw_only=True):
    """Other people, or another server, who will read what a call writes. `key`: this place with exactly these readers.

    words: where it goes and who they are, for the person who is asked. No blank is in `key`.
    """

    key: str
    words: str


class ApprovalRequest(Struct, frozen=True, kw_only=True):
    """The question of an approval card: our verb, where to, the whole command, because of what.

    readers: who else will read it, where that has to be asked. is_grantable: whether what was allowed before may count.
    """

    tool: str
    verb: str
    destination: str
    detail: str
    why: str
    risk: str
    readers: tuple[Readers, ...] = ()
    is_grantable: bool = True


class ChangedCall(Struct, frozen=True, kw_only=True):
    """The call that a person put in place of one that asked, with its own approval. `hash`: what that is bound to.

    destination: the place that the person allowed. readers: keys of those whom they knew to read it.
    """

    id: str
    approval_id: str
    tool: str
    arguments: str
    hash: str
    destination: str = ""
    readers: tuple[str, ...] = ()


class CallLogPort(Protocol):
    """Rows and log events of calls; each method is one transaction."""

    async def is_begun(self, turn: Turn, call_id: str) -> bool:
        """Tell whether an earlier try noted its intent and never ended."""
        ...

    async def facts(self, turn: Turn, call_id: str) -> CallFacts:
        """The facts the gate decides on a call by, whose own row is not one: a try that was cut may have left it."""
        ...

    async def record(self, turn: Turn, round_number: int, call: CallRecord) -> None:
        """Note the call and show its card; a repeat is a no-op."""
        ...

    async def intend(self, turn: Turn, call_id: str) -> Literal["first", "again", "ended"]:
        """Note that the effect is about to happen; `again` when an earlier try never ended."""
        ...

    async def end(self, turn: Turn, call: CallRecord, ending: CallEnding) -> CallEnding:
        """Store the result once; a repeat gives the stored one back."""
        ...

    async def note_private(self, turn: Turn) -> None:
        """Mark the turn as one that has read private data; a repeat is a no-op."""
        ...

    async def spill(self, turn: Turn, call_id: str, text: str) -> str:
        """Put a long result into a file; its name for file_read."""
        ...


class Approvals(Protocol):
    """Approvals and grants."""

    async def is_asked(self, turn: Turn, call: CallRecord) -> bool:
        """Tell whether the question of this call stands already: an earlier try was cut behind it."""
        ...

    async def is_asked_again(self, turn: Turn, call: CallRecord) -> bool:
        """Tell whether the person wants to be asked for this call, which they did not answer in time."""
        ...

    async def granted(self, turn: Turn, call: CallRecord, request: ApprovalRequest) -> bool:
        """Tell whether the person allowed it before: this very call, or by a live grant for exactly its destination.

        Where others will read it: whether what is written for all of them here, or by this job, was allowed before.
        """
        ...

    async def ask(self, turn: Turn, call: CallRecord, request: ApprovalRequest) -> str:
        """The approval's id; one row per call."""
        ...

    async def consume(self, turn: Turn, approval_id: str, arguments_hash: str) -> bool:
        """Use the approval up: True once, if allowed, unexpired and for exactly these arguments."""
        ...

    async def changed(self, turn: Turn, call_id: str) -> ChangedCall:
        """Return what the person put in place of this call; NotFound where they did not."""
        ...


# --- what tools reach -------------------------------------------------------------------------------------------


class Targets(Protocol):
    """The things that calls act on, by the call's id, kept with their intent."""

    async def target(self, call_id: str) -> dict[str, Any] | None:
        """Return what an earlier try of this call acts on; None when it died before it knew."""
        ...

    async def keep_target(self, call_id: str, target: dict[str, Any]) -> dict[str, Any]:
        """Keep what the call acts on, ahead of its act; what stands: what was kept first stays."""
        ...


class Scope(Protocol):
    """Opens what a tool asks for by type: a repository bound to the user, or a client."""

    def provide(self, kind: type[T], user_id: str) -> T:
        """The thing; each repository call is its own short session. KeyError-free: NotFound when not wired."""
        ...
