"""What a tool is: the value that `@tool` makes from a function, and the category it stands in. No behaviour here."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from msgspec import Struct, field
from pydantic import BaseModel

from cortex.base.messages import ToolSchema
from cortex.ports.loop import Readers
from cortex.toolkit.words import Words

Risk = Literal["low", "medium", "high"]
Policy = Literal["core", "deferred"]
Effect = Literal["read", "write"]
OUTSIDE = frozenset(
    {"CodingAgent", "Mail", "Mailboxes", "Talk", "Web", "WebSearch"}
)  # ports that lead out of this server
RiskOf = Callable[[Mapping[str, Any]], Risk]  # Any: arguments, as pydantic has checked them
SendsTo = Callable[[Mapping[str, Any]], str]
Aim = Callable[..., Awaitable[str]]  # called as the tool's function is
Precheck = Callable[..., Awaitable[None]]  # called as the tool's function is
ReadBy = Callable[..., Awaitable[Sequence[Readers]]]  # called as the tool's function is


class CallPreview(Struct, frozen=True, kw_only=True):
    """A call's effect, for the person who is asked. detail: the whole of it, such as a diff; "": the arguments."""

    title: str
    detail: str = ""


PreviewOf = Callable[..., Awaitable[CallPreview]]  # called as the tool's function is


class Output(Struct, frozen=True, kw_only=True):
    """A tool's result when plain text is not enough. `is_tainted`: it holds words from outside.

    words: the result in a few words for the person ("4 tasks"), where `text` is for the model.
    """

    text: str
    words: str = ""
    is_tainted: bool = False
    found: tuple[str, ...] = ()


Function = Callable[..., Awaitable[str | Output]]  # of `Ctx` and the arguments


class Tool(Struct, frozen=True, kw_only=True):
    """One tool. `arguments` validates a call (extra=forbid); `full` and `stub` are what a model is sent.

    effect: reads of one round run side by side, writes one after the other. idempotent: run again after a kill, it has
    one effect, on what was meant first; of the others the person is told that it may have happened. confirm: always
    ask. ambient: pinned in every conversation that permits it. reads_untrusted: its results are tainted. sends_out: it
    carries data to a place outside. spends: a call costs money, other than by the models that it asks (those are the
    budgets' matter): it asks first, and weighs heavily. is_grave: it ends, sends, runs or spends, so a wish for it has
    to be plain before it is chosen. free: not counted as a business call (meta tools). needs: ports that this tool
    needs beside its category's. risk_of: the risk of one call where its arguments decide (a lock is not a lamp);
    `risk` is the least it can be. sends_to: where one call carries data to where its arguments decide, with commas
    between, "" when all stays here. aim: finds what a call acts on ahead of the question, keeps it (`Ctx.target`) and
    gives its name: what the person is asked about is what is done. check: looks ahead of the question whether the call
    can run as it is; it raises ToolFailed with what to do instead, and nobody is asked. It reads only, what the caller
    may read without being asked, reaches no place that the arguments name, and marks words from outside itself
    (`is_tainted`). read_by: who else will read what exactly this call writes, changes or takes away: other people,
    another server. Once a turn has read private data and words from outside, such a call asks, whatever its arguments,
    or has been permitted for these readers. It reads as `check` does, and what it names is shown to the person alone.
    words: what a call says to the person (`toolkit/words.py`). preview: the same, looked up: the diff of a file, the
    next times of a schedule. It reads as `check` does; what it finds is shown to the person, and no model reads it.
    is_plugin: another package brought it (`toolkit/plugins.py`).
    """

    name: str
    category: str
    summary: str
    function: Function
    arguments: type[BaseModel]
    full: ToolSchema
    stub: ToolSchema
    line: str
    hash: str
    risk: Risk = "low"
    is_grave: bool = False
    effect: Effect = "write"
    confirm: bool = False
    admin: bool = False
    idempotent: bool = False
    policy: Policy = "deferred"
    ambient: bool = False
    needs: tuple[str, ...] = ()
    reads_untrusted: bool = False
    reads_private: bool = False
    sends_out: bool = False
    spends: bool = False
    free: bool = False
    risk_of: RiskOf | None = None
    sends_to: SendsTo | None = None
    aim: Aim | None = None
    check: Precheck | None = None
    read_by: ReadBy | None = None
    words: Words | None = None
    preview: PreviewOf | None = None
    has_foreign_words: bool = False
    is_plugin: bool = False

    @property
    def is_outward(self) -> bool:
        """Tell whether it sends something out or reads from outside: off while an admin has those tools switched off.

        A tool of a plug-in can do so without saying it.
        """
        return self.sends_out or self.is_plugin or not OUTSIDE.isdisjoint(self.needs)


class ToolFacts(TypedDict, total=False):
    """The arguments of `@tool`, each as in `Tool`; what is left out is as there."""

    words: Words | None
    risk: Risk
    effect: Effect
    confirm: bool
    admin: bool
    idempotent: bool
    needs: tuple[str, ...]
    reads_untrusted: bool
    reads_private: bool
    sends_out: bool
    spends: bool
    free: bool
    risk_of: RiskOf | None
    sends_to: SendsTo | None
    aim: Aim | None
    check: Precheck | None
    read_by: ReadBy | None
    preview: PreviewOf | None


Undo = Callable[[Any, str, dict[str, Any] | None, str], Awaitable[str]]


class Category(Struct, frozen=True, kw_only=True):
    """A file of tools with what selection needs to choose them.

    `undo(ctx, target, before, expected)` puts `before` back at `target` if it still stands at version `expected`
    (raises Conflict otherwise). `needs`: ports that must be wired, by name; a category with an unwired one is not
    configured, and the gate keeps it out. `tested`: on what, in words for `docs/tools.md`. `roles`: the roles that come
    with Cortex and have it, each with the words (this category, or names of its tools) that everybody has there;
    `admin_roles`: what admins have there besides. `samples`: arguments of one call, by tool.
    """

    name: str
    summary: str
    tools: tuple[Tool, ...]
    examples: Sequence[tuple[str, tuple[str, ...]]] = ()
    undo: Undo | None = None
    needs: tuple[str, ...] = ()
    tested: str = ""
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    admin_roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    samples: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
