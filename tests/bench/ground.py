"""What every measure stands on: the registry as selection sees it, who asks, behind which backend.

Counts tokens of what is really sent, each text once.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from cortex.agent.prompt import system_prompt
from cortex.app import shipped_registry
from cortex.base import tokens
from cortex.base.errors import UserError
from cortex.base.messages import Message, to_json
from cortex.base.model import PROFILES, Profile, ProfileName
from cortex.base.role import Channel, Role
from cortex.selection.pipeline import plan
from cortex.selection.registry.snapshot import snapshot_of
from cortex.selection.stage import StageFunction
from cortex.selection.types import PlanInput, RoleView, Snapshot, ToolPlan
from cortex.services.roles.roles import PERSONA, Roles
from cortex.services.tools.plans import role_view
from cortex.services.workshop.assumptions import SOMEBODY, Assumed, profile_named, unnamed

CACHED, LOCAL = PROFILES["anthropic"], PROFILES["local"]
DEFAULT_PROFILE: ProfileName = "anthropic"
DEFAULT_ROLE = "admin"
START = datetime.fromisoformat("2026-11-20T10:00:00+00:00")
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchGround:
    """The registry, the role that asks, the backend, the words around. Every tool counts as set up.

    `persona`, `prompt`: what the system prompt says of the person and the role. `window_tokens`: what the model can
    take, 0 where none is meant. `stages`: run in place of the recipe's own; () = those of the recipe.
    """

    snapshot: Snapshot
    role: RoleView
    is_admin: bool
    profile: Profile
    persona: str
    prompt: str
    window_tokens: int = 0
    channel: Channel = "chat"
    ready: tuple[str, ...] = ()
    metas: frozenset[str] = frozenset()
    stages: tuple[StageFunction, ...] = ()
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
        return self.message_tokens("system", system_prompt(self.persona, self.prompt, catalog))

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


def ground(role_name: str = DEFAULT_ROLE, profile: str = DEFAULT_PROFILE) -> BenchGround:
    """The shipped registry and the shipped role, whatever is set up here; UserError for an unknown name."""
    return assumed_ground(asyncio.run(shipped_role(role_name)), PERSONA, anybody(role_name, profile))


def anybody(role_name: str, profile: str) -> Assumed:
    """Any admin in this role, with a model of this profile."""
    return Assumed(user=SOMEBODY, is_person=False, role=role_name, mode="auto", entry=unnamed(profile_named(profile)))


def assumed_ground(role: Role, persona: str, assumed: Assumed) -> BenchGround:
    """The shipped registry behind this role, person and model."""
    snapshot = snapshot_of(shipped_registry())
    bare = BenchGround(
        snapshot=snapshot,
        role=role_view(role),
        is_admin=assumed.user.is_admin,
        profile=assumed.entry.profile,
        persona=persona,
        prompt=role.prompt,
        window_tokens=assumed.entry.context_tokens,
    )
    return bare.over(snapshot)


async def shipped_role(name: str) -> Role:
    """The role as it ships; UserError for a name that nobody wrote."""
    roles = Roles(shipped_registry())
    names = await roles.names(SOMEBODY)
    if name not in names:
        raise UserError(f"There is no role {name!r}; known: {', '.join(names)}.")
    return await roles.role(SOMEBODY, name)
