"""What every measure stands on: the registry as selection sees it, who asks, behind which backend.

Made by the command, since only `app.py` knows the tools. Counts tokens of what is really sent, each text once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from cortex.base import tokens
from cortex.base.messages import Message, to_json
from cortex.base.model import Profile
from cortex.base.role import Channel
from cortex.selection.cache_profiles import PROFILES, ProfileName
from cortex.selection.pipeline import plan
from cortex.selection.recipes import Stage
from cortex.selection.types import PastTurn, PlanInput, RoleView, Snapshot, ToolPlan

CACHED, LOCAL = PROFILES["anthropic"], PROFILES["local"]
DEFAULT_PROFILE: ProfileName = "anthropic"
START = datetime.fromisoformat("2026-11-20T10:00:00+00:00")
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchWords:
    """The server's own words around a conversation, as every real turn has them (`agent/prompt.py`, `agent/react.py`).

    `system`: the system prompt with this catalog. `tail`: moment, round, notes -> the moving text of a round;
    `with_tail` puts it behind the messages of the turn. `as_text`: past calls told in words. `past_turns`: finished
    turns as the planner gets them.
    """

    system: Callable[[str], str]
    tail: Callable[[datetime, int, str], str]
    with_tail: Callable[[list[Message], str], list[Message]]
    as_text: Callable[[tuple[Message, ...]], tuple[Message, ...]]
    past_turns: Callable[[Sequence[Sequence[Message]]], tuple[PastTurn, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchGround:
    """The registry, the role that asks, the backend, the words around. Every tool counts as set up.

    `window_tokens`: what the model can take, 0 where none is meant. `stages`: run in place of the recipe's own; () =
    those of the recipe.
    """

    snapshot: Snapshot
    role: RoleView
    is_admin: bool
    profile: Profile
    window_tokens: int = 0
    words: BenchWords
    channel: Channel = "chat"
    ready: tuple[str, ...] = ()
    metas: frozenset[str] = frozenset()
    stages: tuple[Stage, ...] = ()
    _counted: dict[str, int] = field(default_factory=dict, repr=False)

    def over(self, snapshot: Snapshot, *, profile: Profile | None = None, channel: Channel = "chat") -> "BenchGround":
        """The same over this registry, all of its tools ready, with the counts made so far."""
        return replace(
            self,
            snapshot=snapshot,
            ready=tuple(entry.name for entry in snapshot.entries),
            metas=frozenset(entry.name for entry in snapshot.entries if entry.is_meta),
            profile=profile or self.profile,
            channel=channel,
        )

    def count(self, text: str) -> int:
        """The tokens of a text, counted once."""
        if text not in self._counted:
            self._counted[text] = tokens.count(text)
        return self._counted[text]

    def system_tokens(self, catalog: str = "") -> int:
        """The system message with this catalog."""
        return self.message_tokens("system", self.words.system(catalog))

    def catalog_tokens(self, catalog: str) -> int:
        """What the catalog adds to the system message."""
        return self.system_tokens(catalog) - self.system_tokens() if catalog else 0

    def message_tokens(self, speaker: str, text: str) -> int:
        """One message of plain text."""
        return self.count(tokens.minified({"role": speaker, "content": text}))

    def transcript_tokens(self, message: Message) -> int:
        """One message of a transcript, its calls and results included."""
        key = tokens.minified(to_json(message))
        if key not in self._counted:
            self._counted[key] = tokens.count_message(message)
        return self._counted[key]

    def tool_tokens(self, plan: ToolPlan) -> int:
        """What the plan's tools cost in this request: schemas, catalog and notes, counted on the texts themselves."""
        return plan.costs.tools + self.catalog_tokens(plan.catalog) + self.count(plan.notes)

    def carried(self, plan: ToolPlan) -> frozenset[str]:
        """The tools that a request carries: declared, or with their schema behind a message; meta tools are none."""
        return frozenset((*(item.name for item in plan.sent), *plan.memory.noted)) - self.metas

    def planned(self, given: PlanInput) -> ToolPlan:
        """The plan of this input."""
        return plan(given, self.stages)

    def asked(self, message: str, recipe: str) -> PlanInput:
        """The input of a new conversation's first round."""
        return PlanInput(
            snapshot=self.snapshot,
            ready=self.ready,
            role=self.role,
            is_admin=self.is_admin,
            message=message,
            channel=self.channel,
            recipe=recipe,
            profile=self.profile,
            window_tokens=self.window_tokens,
            model="bench",
            now=START.isoformat(),
            turn="t0",
            fixed_tokens=self.system_tokens() + self.message_tokens("user", message),
        )
