"""The values of selection: the registry as it is seen here, a plan's input, and the plan.

All frozen and portable (`base/portable.py`); nothing here reads a clock, a disk or a network.
"""

import json
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.fact import FactFit
from cortex.base.messages import ToolSchema
from cortex.base.model import Profile
from cortex.base.role import Channel, ToolMode
from cortex.base.role import RoleView as RoleView
from cortex.base.skill import Skill, SkillFit

Form = Literal["full", "stub", "compact"]
META = "meta"
PLAIN = Profile()
SNAPSHOTS_KEPT = 4  # of which what is worked out is kept


class Trigger(Struct, frozen=True, kw_only=True):
    """A phrase that was added on this server to a category. `tools` = () speaks for all of them."""

    text: str
    tools: tuple[str, ...] = ()


class Example(Struct, frozen=True, kw_only=True):
    """An utterance as people speak, and the tools that it wants. `is_own`: added on this server."""

    text: str
    tools: tuple[str, ...]
    is_own: bool = False


class Domain(Struct, frozen=True, kw_only=True):
    """A category with what is known about how people ask for it. `tokens`: its line in a catalog."""

    name: str
    summary: str
    triggers: tuple[Trigger, ...] = ()
    examples: Sequence[Example] = ()
    tokens: int = 0
    tokens_name: int = 0


class ToolEntry(Struct, frozen=True, kw_only=True):
    """One tool with what each of its forms costs, counted beforehand: the planner never tokenizes.

    `is_shy`: sent only when named, found or called, never by its chance. `is_grave`: it ends, sends, runs or spends.
    """

    name: str
    category: str
    summary: str
    line: str
    full: ToolSchema
    stub: ToolSchema
    tokens_full: int
    tokens_stub: int
    tokens_line: int
    tokens_name: int
    is_admin: bool = False
    is_core: bool = False
    is_ambient: bool = False
    is_meta: bool = False
    is_shy: bool = False
    is_grave: bool = False
    tokens_compact: int = 0
    tokens_signature: int = 0

    @property
    def tokens_noted(self) -> int:
        """Tokens of its signature behind a message; one that nobody counted costs at most what the stub does."""
        return self.tokens_signature or self.tokens_stub

    def cost(self, form: Form) -> int:
        """Tokens of this form in the `tools` array; a compact one that nobody counted costs as much as the stub."""
        short = self.tokens_compact if form == "compact" else 0
        return self.tokens_full if form == "full" else short or self.tokens_stub

    @property
    def signature(self) -> str:
        """`name(argument: type, optional?: type): summary`, with the allowed values where they are few."""
        properties: dict[str, Any] = self.full.parameters.get("properties", {})
        required = self.full.parameters.get("required", [])
        names = [*required, *(name for name in properties if name not in required)]
        told = (
            f"{name}{'' if name in required else '?'}: {_kind(properties[name])}"
            for name in names
            if name in properties
        )
        return f"{self.name}({', '.join(told)}): {self.summary}"

    def schema(self, form: Form) -> ToolSchema:
        """Return what a model is sent in this form; compact is the stub without its line of words."""
        short = replace(self.stub, description="") if form == "compact" else self.stub
        return self.full if form == "full" else short


def _kind(node: dict[str, Any]) -> str:
    """The type of an argument in a signature."""
    if "enum" in node:
        return "|".join(json.dumps(value, ensure_ascii=False) for value in node["enum"])
    kind = node.get("type", "any")
    words = "|".join(kind) if isinstance(kind, list) else str(kind)
    return f"{words} ({node['format']})" if "format" in node else words


class Snapshot(Struct, frozen=True, kw_only=True, eq=False):
    """All tools in registry order. Equal content has an equal `version`, so snapshots are compared and hashed by that.

    several: utterances with needs of more than one domain. none: such as need no tool, their kind (chat, llm, open)
    in place of the tools. weights: key of the server's own fitted model, "" for the shipped one. encoder: key of the
    sentence model, "" for none.
    """

    version: str
    entries: tuple[ToolEntry, ...]
    domains: tuple[Domain, ...]
    several: Sequence[Example] = ()
    none: Sequence[Example] = ()
    weights: str = ""
    encoder: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and other.version == self.version

    def __ne__(self, other: object) -> bool:
        return not self == other  # a record's own would compare them by identity

    def __hash__(self) -> int:
        return hash(self.version)


class NamesKey:
    """Names as a cache key: hashed by how many there are and two of them, since to hash 10,000 takes half a plan."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def __hash__(self) -> int:
        return hash((len(self.names), self.names[:1], self.names[-1:]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamesKey) and (self.names is other.names or self.names == other.names)


NO_TOOLS = Snapshot(version="", entries=(), domains=())


class PastTurn(Struct, frozen=True, kw_only=True):
    """An earlier turn, its voices kept apart. `untrusted` is recorded and never read by a stage.

    `arguments` (strings of the calls) and the beginnings of `results` are read by the recipe `punch` alone, which
    scans what tools saw; what they say can bring in a permitted tool, never permit one.
    """

    user: str
    assistant: str = ""
    called: tuple[str, ...] = ()
    untrusted: str = ""
    arguments: tuple[str, ...] = ()
    results: tuple[str, ...] = ()


class SentTool(Struct, frozen=True, kw_only=True):
    """A tool as it stands in the `tools` array of the epoch."""

    name: str
    form: Form
    stage: str = "epoch"
    reason: str = "sent earlier in this epoch"


class PlannerMemory(Struct, frozen=True, kw_only=True):
    """The planner's knowledge of the conversation so far; can be re-derived from its receipts (`plan/receipt.py`).

    `opening`: how many of `sent` stood there when the epoch opened; the frozen catalog lists what they leave out.
    `request_tokens`: of the turn's last plan, without its own calls and results; `history_tokens`: what it began with.
    `recipe` made it; `grown` is what a recipe without epochs keeps for the whole conversation, in its own words.
    `never`: what the person had switched off when the epoch opened: its frozen catalog lacks that.
    `highest`: the highest epoch number given out; a chat-only round in an open epoch takes one of its own.
    """

    number: int = 0
    highest: int = 0
    is_open: bool = False
    sent: tuple[SentTool, ...] = ()
    opening: int = 0
    mode: str = ""
    role: str = ""
    model: str = ""
    version: str = ""
    permitted: str = ""
    summary: str = ""
    turn: str = ""
    last_at: str = ""
    request_tokens: int = 0
    history_tokens: int = 0
    noted: tuple[str, ...] = ()
    recipe: str = ""
    grown: tuple[str, ...] = ()
    never: tuple[str, ...] = ()

    def grown_by(self, recipe: str) -> tuple[str, ...]:
        """Return what this recipe keeps for the conversation; nothing of another's."""
        return self.grown if self.recipe == recipe else ()


class PlanInput(Struct, frozen=True, kw_only=True):
    """Everything that a plan depends on. What a new stage reads besides is a field here, filled in where it is known.

    It goes to the end, and its default says nothing: so what was stored before is read and verified as it was.

    `ready`: names of the tools whose services are configured and enabled.
    `found`: tools that a discovery, a rescue or a call of this turn brought in; `missing`: an answer that said it
    lacks a tool. `is_heard`: the message was sent while its turn ran, and this round is the first to read it.
    `window_tokens`: what the model can take in all, 0 where that is not known. `fixed_tokens`: system prompt, history
    and message as they will be sent, without tools. `encoder_skipped`: why the sentence model is left out this time; ""
    where there is none to leave out. `always`, `never`: what the person chose for this conversation; neither permits
    anything. `facts`: what is remembered and goes along behind the message; no stage reads it.
    """

    snapshot: Snapshot = NO_TOOLS
    ready: tuple[str, ...] = ()
    role: RoleView
    is_admin: bool
    message: str
    channel: Channel = "chat"
    mode: ToolMode = "auto"
    recipe: str = "cortex"
    past: tuple[PastTurn, ...] = ()
    memory: PlannerMemory = PlannerMemory()
    profile: Profile = PLAIN
    model: str = ""
    now: str = ""
    turn: str = ""
    round: int = 1
    is_last: bool = False
    found: tuple[str, ...] = ()
    missing: str = ""
    is_heard: bool = False
    summary: str = ""
    window_tokens: int = 0
    fixed_tokens: int = 0
    history_tokens: int = 0
    encoder_skipped: str = ""
    skills: tuple[Skill, ...] = ()
    facts: tuple[FactFit, ...] = ()
    always: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


class ToolDecision(Struct, frozen=True, kw_only=True):
    """Why one permitted tool is in or out."""

    name: str
    category: str
    is_in: bool
    stage: str
    score: float
    threshold: float
    tokens: int
    reason: str


class Costs(Struct, frozen=True, kw_only=True):
    """Tokens. `tools`, `catalog` are paid each round, `notes`, `skills` once; `total` is every ready tool in full."""

    tools: int = 0
    catalog: int = 0
    notes: int = 0
    skills: int = 0
    total: int = 0
    permitted: int = 0


class ToolPlan(Struct, frozen=True, kw_only=True):
    """The tools that go out with one model call, and the memory to keep for the next.

    `catalog` belongs into the system text of the epoch, `notes` behind the user's message. `added`: tools that this
    round brings in and the one before lacked. `calls_as_text`: no tool is declared, so past calls must be words.
    `costs.catalog`, `.notes` and `.skills` are sums of parts, or 0, until a service counts the texts themselves.
    """

    mode: ToolMode
    role: str
    recipe: str
    sent: tuple[SentTool, ...]
    schemas: tuple[ToolSchema, ...]
    sent_tokens: tuple[int, ...]
    catalog: str
    notes: str
    noted: tuple[str, ...]
    tool_choice: Literal["auto", "required", "none"]
    calls_as_text: bool
    hints: tuple[tuple[str, float], ...]
    added: tuple[str, ...]
    decisions: Sequence[ToolDecision]
    reachable: tuple[str, ...]
    costs: Costs
    total: int
    boundary: str
    late: str
    labels: tuple[tuple[str, str], ...]
    memory: PlannerMemory
    skills: tuple[SkillFit, ...] = ()

    @property
    def epoch_number(self) -> int:
        """The epoch of this round; a chat-only round in an open epoch has one of its own."""
        return self.memory.number if self.sent or not self.memory.is_open else self.memory.highest
