"""What every measure stands on: the registry as selection sees it, who asks, behind which backend.

Made by the command, since only `app.py` knows the tools. Counts tokens of what is really sent, each text once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from cortex.base import tokens
from cortex.base.model import Profile
from cortex.selection.types import PlanInput, RoleView, Snapshot, ToolPlan

CACHED = Profile(caches=True, read_factor=0.1, write_factor=1.25, minimum_tokens=1024, life_s=300, late_tools="bridge")
# What a backend caches, by a short name. `anthropic`: a strong model of the kind most people use; the bench's default.
PROFILES: Mapping[str, Profile] = MappingProxyType(
    {
        "anthropic": CACHED,
        "openai": Profile(caches=True, read_factor=0.1, write_factor=1.0, late_tools="bridge"),
        "local": Profile(
            caches=True,
            read_factor=0.0,
            write_factor=1.0,
            minimum_tokens=1,
            life_s=600,
            late_tools="stubs",
            strength="weak",
        ),
        "none": Profile(),
    }
)
DEFAULT_PROFILE = "anthropic"
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The registry, the role that asks, the backend. `system`: the system prompt with a catalog in it."""

    snapshot: Snapshot
    role: RoleView
    is_admin: bool
    profile: Profile
    system: Callable[[str], str]
    _counted: dict[str, int] = field(default_factory=dict, repr=False)

    @property
    def ready(self) -> tuple[str, ...]:
        """Every tool: the whole registry is judged, as if each service were set up."""
        return tuple(entry.name for entry in self.snapshot.entries)

    def count(self, text: str) -> int:
        """The tokens of a text, counted once."""
        if text not in self._counted:
            self._counted[text] = tokens.count(text)
        return self._counted[text]

    def system_tokens(self, catalog: str = "") -> int:
        """The system message with this catalog."""
        return self.count(tokens.minified({"role": "system", "content": self.system(catalog)}))

    def message_tokens(self, speaker: str, text: str) -> int:
        """One message of plain text."""
        return self.count(tokens.minified({"role": speaker, "content": text}))

    def tool_tokens(self, plan: ToolPlan) -> int:
        """What the plan's tools cost in this request: schemas, catalog and notes, counted on the texts themselves."""
        catalog = self.system_tokens(plan.catalog) - self.system_tokens() if plan.catalog else 0
        return plan.costs.tools + catalog + self.count(plan.notes)

    def asked(self, message: str, recipe: str) -> PlanInput:
        """The input of a new conversation's first round."""
        return PlanInput(
            snapshot=self.snapshot,
            ready=self.ready,
            role=self.role,
            is_admin=self.is_admin,
            message=message,
            recipe=recipe,
            profile=self.profile,
            model="bench",
            now="2026-11-20T10:00:00+00:00",
            turn="t0",
            fixed_tokens=self.system_tokens() + self.message_tokens("user", message),
        )


def carried(plan: ToolPlan) -> frozenset[str]:
    """The tools that a request carries: declared, or with their schema behind a message; meta tools are none."""
    business = {decided.name for decided in plan.decisions}
    return frozenset(item.name for item in plan.sent if item.name in business) | frozenset(plan.memory.noted)
