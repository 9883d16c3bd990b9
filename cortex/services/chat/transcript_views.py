"""A conversation as it is shown: turns, their parts, receipts and endings. Plain values without markup.

Made by the fold in `services/chat/transcript.py`; the browser's macros and the export read them.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base.attachments import Attachment
from cortex.base.model import ModelPlace
from cortex.base.turn import SUB, TurnState
from cortex.ports.agents import RunState
from cortex.services.turns.approval_weight import Weight

JOB_TURN = "cron:"
CallState = Literal["run", "wait", "ok", "err", "unknown", "refused"]
ChangeKind = Literal[
    "turn.new",  # a message came in; its answer's place too, unless it is queued
    "turn.start",  # a queued turn got its place
    "turn.drop",
    "turn.end",
    "question",  # what is said below the message: whether its pictures were seen
    "part.new",
    "part.again",  # a new attempt: what was shown of the part is void
    "part",
    "body",  # parts went away or were joined: show the body anew
    "status",
    "undo",
    "marker.new",
    "marker.drop",
    "title",
]


class ViewChange(Struct, frozen=True, kw_only=True):
    """A change that an event made in the view: a turn (id) and, for parts and calls, which one; markers by their id."""

    kind: ChangeKind
    turn: str = ""
    part: str = ""


class TextPart(Struct, frozen=True, kw_only=True):
    """A piece of the answer. `is_open`: being written, its text not in the log yet; `is_partial`: it broke off."""

    id: str
    text: str = ""
    attempt: int = 1
    is_open: bool = False
    is_partial: bool = False


class ThinkingPart(Struct, frozen=True, kw_only=True):
    """A model's reasoning, shown folded; `seconds` it took once it has ended."""

    id: str
    text: str = ""
    attempt: int = 1
    is_open: bool = False
    started_at: datetime
    seconds: float | None = None


class CallCard(Struct, frozen=True, kw_only=True):
    """One use of a tool. `decision`: how its approval went, "" when none was asked.

    title: what it does, in words. shown: the whole of it, such as a diff, "" for none beside the arguments. text: the
    result as the model read it; words: for the person. again_id: the question that can be asked again, "" for none.
    undo_id: what takes it back or, where it was taken back, makes it anew.
    """

    id: str
    name: str
    arguments: str
    title: str
    shown: str = ""
    risk: str
    round: int
    state: CallState = "run"
    text: str = ""
    words: str = ""
    ms: int | None = None
    spill: str = ""
    is_tainted: bool = False
    undo_id: str = ""
    undo_state: Literal["", "undone", "refused"] = ""
    undo_text: str = ""
    decision: Literal["", "allowed", "changed", "denied", "expired"] = ""
    again_id: str = ""


class ApprovalCard(Struct, frozen=True, kw_only=True):
    """A question that waits for the person; it goes away when it is answered, anywhere.

    `weight`, `is_lasting`, `leaves`: as in `approval_weight.py`; one that was asked before they were kept is middling.
    """

    id: str
    call: str
    tool: str
    verb: str = ""
    destination: str = ""
    detail: str = ""
    why: str = ""
    risk: str = ""
    expires_at: datetime | None = None
    can_be_granted: bool = False
    can_be_changed: bool = False
    is_for_job: bool = False
    weight: Weight = "middle"
    is_lasting: bool = False
    leaves: bool = False
    spends: bool = False


class SteerPart(Struct, frozen=True, kw_only=True):
    """A message that the person sent while the answer was being made, and that was taken into it."""

    id: str
    text: str


class NoticePart(Struct, frozen=True, kw_only=True):
    """A word of Cortex itself: a retry, a limit met. `page`: where its reader can change that, "" = nowhere."""

    id: str
    level: Literal["info", "warn"] = "info"
    text: str
    page: str = ""


class FailurePart(Struct, frozen=True, kw_only=True):
    """Why the answer stopped, and whether it can be asked again. `page`: what "Models page" in the text leads to."""

    id: str
    text: str
    kind: str = ""
    can_retry: bool = False
    page: str = ""


class AgentCard(Struct, frozen=True, kw_only=True):
    """A background run that the turn started. `id` is the run's, and that of its own conversation."""

    id: str
    task: str
    role: str = ""
    state: RunState
    error: str = ""

    @property
    def is_open(self) -> bool:
        """Tell whether it has not ended."""
        return self.state in ("queued", "running", "waiting")


Part = TextPart | ThinkingPart | CallCard | ApprovalCard | SteerPart | NoticePart | FailurePart | AgentCard


class CallGroup(Struct, frozen=True, kw_only=True):
    """Consecutive calls, shown together; more than three fold into one line."""

    id: str
    calls: tuple[CallCard, ...]

    @property
    def is_folded(self) -> bool:
        """Tell whether the calls hide behind "Used n tools"."""
        return len(self.calls) > 3

    @property
    def is_running(self) -> bool:
        """Tell whether one of them has not ended."""
        return any(call.state in ("run", "wait") for call in self.calls)


class LiveStatus(Struct, frozen=True, kw_only=True):
    """A running turn's state just now; `tools` are the calls under way."""

    phase: Literal["choosing", "asking", "thinking", "writing", "calling", "waiting"]
    round: int = 0
    tools: tuple[str, ...] = ()


class TurnEndView(Struct, frozen=True, kw_only=True):
    """The end of a turn, and the cost of its tools."""

    state: TurnState
    rounds: int = 0
    seconds: float = 0.0
    tools_sent: int = 0
    tokens_sent: int = 0
    tokens_saved: int = 0
    can_continue: bool = False


class TurnView(Struct, frozen=True, kw_only=True):
    """A message and its answer. `ending` is None while it runs or waits in the queue.

    `agent`: the background run whose result the text is, "" for a person's words. `model`: that answered last, or is
    asked first; `place`: where that is, "" in logs from before it was kept; `was_out`: a provider may have been asked.
    `is_blind`: of pictures it got only the names. `is_slow`: its first words may take minutes. `lost`: the attachments
    that were deleted -> whether they can be restored; `unread`: those of which something was not read -> what.
    `versions`: all turns of its place, oldest first, where there are several.
    """

    id: str
    ordinal: int = 0
    text: str
    at: datetime
    mode: str
    state: Literal["queued", "running", "ended"]
    role: str = ""
    model: str = ""
    place: ModelPlace | Literal[""] = ""
    was_out: bool = False
    max_rounds: int = 0
    max_rounds_from: str = ""
    status: LiveStatus = LiveStatus(phase="choosing")
    parts: tuple[Part, ...] = ()
    tools_total: int | None = None
    cost_usd: float | None = None
    ending: TurnEndView | None = None
    agent: str = ""
    resumed: str = ""
    attachments: tuple[Attachment, ...] = ()
    is_blind: bool = False
    is_slow: bool = False
    lost: Mapping[str, bool] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    versions: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The id as it stands in addresses and element ids: without its "turn:"."""
        return key_of(self.id)

    @property
    def is_job(self) -> bool:
        """Tell whether a job asked, at one of its times."""
        return self.id.startswith(JOB_TURN)

    @property
    def version(self) -> int:
        """Return which of the versions of its place it is, counted from 1."""
        return self.versions.index(self.id) + 1 if self.versions else 1

    def beside(self, way: int) -> str:
        """The key of the version before (-1) or after (1) it; "" where there is none."""
        at = self.version - 1 + way
        return key_of(self.versions[at]) if 0 <= at < len(self.versions) else ""

    @property
    def is_live(self) -> bool:
        """Tell whether it is being answered."""
        return self.state == "running"

    def with_part(self, part: Part) -> "TurnView":
        """The same turn with one part more."""
        return replace(self, parts=(*self.parts, part))

    @property
    def blocks(self) -> tuple[Part | CallGroup, ...]:
        """The parts in order, consecutive calls gathered."""
        return gather(self.parts)


class Marker(Struct, frozen=True, kw_only=True):
    """Where the model reads a summary instead of what was said before.

    `source`: the chat that it sums up, where this one begins with it, with its `source_title`. `why`: no model made it.
    """

    id: str
    upto_ordinal: int
    text: str
    is_tainted: bool
    source: str = ""
    source_title: str = ""
    why: str = ""


def key_of(turn_id: str) -> str:
    """A turn's id as addresses and element ids have it: without its "turn:", with hyphens for a job's or an agent's."""
    if turn_id.startswith(JOB_TURN) or SUB in turn_id:
        return turn_id.removeprefix("turn:").replace(":", "-")
    return turn_id.rpartition(":")[2]


def turn_of(key: str) -> str:
    """The turn id that an address names."""
    if key.startswith(JOB_TURN.replace(":", "-")):
        return key.replace("-", ":")
    return f"turn:{key.replace(SUB.replace(':', '-'), SUB)}"


def dom_id(prefix: str, turn_id: str, part: str) -> str:
    """An element id for a part of a turn, the same on the page and in the stream."""
    return f"{prefix}{key_of(turn_id)}-{re.sub(r'[^A-Za-z0-9_-]', '-', part)}"


def gather(parts: tuple[Part, ...]) -> tuple[Part | CallGroup, ...]:
    """Consecutive calls become one group, named after its first call."""
    blocks: list[Part | CallGroup] = []
    for part in parts:
        last = blocks[-1] if blocks else None
        if not isinstance(part, CallCard):
            blocks.append(part)
        elif isinstance(last, CallGroup):
            blocks[-1] = CallGroup(id=last.id, calls=(*last.calls, part))
        else:
            blocks.append(CallGroup(id=part.id, calls=(part,)))
    return tuple(blocks)
