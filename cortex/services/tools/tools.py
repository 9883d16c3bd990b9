"""Tools as services see them: what a user may use, the plan of a round, a plan explained, the price of a message.

Counting loads the vocabulary, so every way in does its work in a thread, at the first need and not before.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base import tokens
from cortex.base.clock import Clock, now
from cortex.base.model import OFFLINE, ModelEntry, no_tools
from cortex.base.role import Channel, Role, ToolMode
from cortex.base.user import User
from cortex.ports.integrations import Setup
from cortex.ports.system import Discovered
from cortex.selection.discover import discover, rank
from cortex.selection.pipeline import make_ready
from cortex.selection.registry.snapshot import snapshot_of, snapshot_of_set
from cortex.selection.stages.epoch import BRIDGE
from cortex.selection.types import META, Snapshot
from cortex.services.roles.roles import Roles
from cortex.services.tools.absent import ToolSeeker, absent_tools, reasons_of
from cortex.services.tools.edits import edited
from cortex.services.tools.encoders import Encoders
from cortex.services.tools.plans import PlannedRound, PlanRequest, opening, planned
from cortex.services.tools.settings import AS_SHIPPED, ToolSettings, ToolSettingsService
from cortex.services.tools.skill_files import SkillFiles
from cortex.toolkit.grants import ToolGrant, granted, permits
from cortex.toolkit.registry import Registry, ToolSet
from cortex.toolkit.spec import Tool

NOT_SET_UP = Setup(text="Not set up on this server.", page="")
MANY = 100  # as new tools: more of them take a second and longer to be counted and indexed
REQUEST_FRAME = '{"messages":[,],"tools":[]}'


class PlanGround(Struct, frozen=True, kw_only=True):
    """The base of every plan as the server has it now: `snapshot` with the admins' changes laid over `shipped`.

    `tools`: those it was made for. `ready`: tools that somebody may use. `absent`: why one cannot be used, or is not
    open to everybody. `encoder_skipped`: why the sentence model is not at hand, "" where it is or none is wanted.
    """

    tools: ToolSet
    settings: ToolSettings
    shipped: Snapshot
    snapshot: Snapshot
    ready: tuple[str, ...]
    absent: Mapping[str, Setup] = field(default_factory=dict)
    encoder_skipped: str = ""


class ToolsService:
    """The registry of this server. `wired`: names of the ports that tools can open here."""

    def __init__(
        self,
        *,
        registry: Registry,
        wired: frozenset[str],
        roles: Roles,
        clock: Clock = now,
        settings: ToolSettingsService | None = None,
        skills: SkillFiles | None = None,
        encoders: Encoders | None = None,
        assume_configured: bool = False,
        index: Callable[[Snapshot], None] = make_ready,
    ) -> None:
        """Count nothing yet. `settings`: what admins changed, None = as it ships; `skills`: the users' own.

        index: what has a snapshot ready to be searched, off the event loop.
        assume_configured: treat every tool that is on as ready (explain, prompt-size, tools).
        """
        self._registry, self._index = registry, index
        self._roles = roles
        self._now = clock
        self._settings, self._encoders = settings, encoders
        self.skills = skills or SkillFiles()
        self._ports, self._assumes_all = wired, assume_configured
        self._shipped: list[Snapshot] = []
        self._ground: list[PlanGround] = []
        self._prepared: list[PlanGround] = []
        self._meanwhile: list[PlanGround] = []
        self._is_prepared_ahead = False
        self.grown = asyncio.Event()

    @property
    def _wired(self) -> frozenset[str]:
        return self._ports | self._registry.needs if self._assumes_all else self._ports

    async def permitted(
        self,
        user: User,
        role_name: str,
        *,
        channel: Channel = "chat",
        mode: ToolMode = "auto",
        job_id: str = "",
    ) -> frozenset[str]:
        """Names of all that this user may run: a function of user, role, channel, mode and what is ready alone.

        In Chat-only mode nothing. The meta tools are in where there is anything to find. `job_id`: the job's own tools
        take the place of the role's.
        """
        ground = await self.plan_ground()  # ahead of the role, whose tools a plug-in may have added to
        role = await self._roles.role(user, role_name, job_id)
        return self.permitted_on(ground, user, role, channel=channel, mode=mode)

    def permitted_on(
        self, ground: PlanGround, user: User, role: Role, *, channel: Channel, mode: ToolMode
    ) -> frozenset[str]:
        """As `permitted`, from what was read already."""
        if mode == "chat":
            return frozenset()
        ready = self.ready_for(ground, user, role.name)
        found = self._open_to(user, granted(role, is_admin=user.is_admin), channel, ready)
        metas = frozenset(name for name in ready if self._registry.tools[name].category == META)
        return found | metas if found else frozenset()

    async def whole(self, user: User, role_name: str, *, never: frozenset[str] = frozenset()) -> tuple[int, int]:
        """Return how many tools All sends in this role, and their tokens in each round; no meta tool is among them.

        never: what the person does not want in the conversation.
        """
        ground = await self.ground()
        names = await self.permitted(user, role_name) - never
        sent = [each for each in ground.snapshot.entries if each.name in names and not each.is_meta]
        return len(sent), sum(each.tokens_full for each in sent)

    async def grantable(self, user: User, *, channel: Channel = "chat") -> frozenset[str]:
        """Names of all that this user could have in a chat, by some role, less what the channel lacks; no meta tool."""
        ready = self.ready_for(await self.plan_ground(), user)
        return self._open_to(user, ToolGrant(words=await self._roles.reach(user)), channel, ready)

    def _open_to(self, user: User, grant: ToolGrant, channel: Channel, ready: Sequence[str]) -> frozenset[str]:
        tools, is_admin = self._registry.tools, user.is_admin
        return frozenset(
            name
            for name in ready
            if tools[name].category != META
            and permits(grant, name, tools[name].category, channel, is_withheld=tools[name].admin and not is_admin)
        )

    def ready_for(self, ground: PlanGround, user: User, role: str = "") -> tuple[str, ...]:
        """Return what is ready for this account in this role ("": in any): an integration may be open to some alone."""
        access = ground.settings.access
        ports = access.ports(user, role)
        if ports == access.configured:
            return ground.ready
        there = self._wired | ports
        return tuple(name for name in ground.ready if not self._registry.missing(name, there))

    async def plan_turn(self, asked: PlanRequest) -> PlannedRound:
        """The plan of one round. Store `receipt` with the round and `memory` as the conversation's state."""
        persona = await self._roles.persona(asked.user)
        asked = asked.with_given(skills=await self.skills.skills(asked.user))
        return await self.plan_on(await self.plan_ground(), asked, persona)

    async def plan_on(self, ground: PlanGround, asked: PlanRequest, persona: str) -> PlannedRound:
        """As `plan_turn`, from what was read already; `asked` has the skills."""
        asked = asked.with_given(encoder_skipped=ground.encoder_skipped)
        user, role, given = asked.user, asked.role, asked.given
        ready = self.ready_for(ground, user, role.name)
        roles = self._roles.grants(user)
        who = ToolSeeker(user=user, role=role, mode=given.mode, channel=given.channel, roles=roles, never=given.never)
        absent = absent_tools(ground.snapshot, ready, ground.absent, who)
        made = await asyncio.to_thread(planned, asked, ground.snapshot, ready, persona, absent)
        told = made.lacking
        if told.get("role") and told["title"] not in await self.permitted(user, told["role"], channel=given.channel):
            who = replace(who, roles=())  # the person wrote that role anew
            absent = absent_tools(ground.snapshot, ready, ground.absent, who)
            made = await asyncio.to_thread(planned, asked, ground.snapshot, ready, persona, absent)
        return made

    async def discover(
        self,
        user: User,
        role: Role | str,
        query: str,
        *,
        channel: Channel = "chat",
        mode: ToolMode = "auto",
        memory: dict[str, Any] | None = None,
        job_id: str = "",
        never: frozenset[str] = frozenset(),
    ) -> Discovered:
        """Return what `tools_discover` answers; `memory` (the conversation's state) tells bridge and recipe in force.

        never: what the person does not want in the conversation, which is not found either.

        role: as it is in force, or its name.
        """
        ground = await self.plan_ground()
        if isinstance(role, str):
            role = await self._roles.role(user, role, job_id)
        permitted = self.permitted_on(ground, user, role, channel=channel, mode=mode) - never
        state = memory or {}
        is_bridged = any(item["name"] == BRIDGE for item in state.get("sent", ()))
        recipe = state.get("recipe", "")
        found = await asyncio.to_thread(
            discover, query, ground.snapshot, tuple(permitted), is_bridged=is_bridged, recipe=recipe
        )
        ready = self.ready_for(ground, user, role.name)
        who = ToolSeeker(user=user, role=role, mode=mode, channel=channel)
        absent = absent_tools(ground.snapshot, ready, ground.absent, who).reasons
        best = await asyncio.to_thread(rank, query, ground.snapshot, (*permitted, *absent), 1)
        lacking = absent.get(best[0].name) if best and permitted else None
        text = f"{lacking.for_person(is_admin=user.is_admin)['text']} {found.text}" if lacking else found.text
        tools = [self._registry.get(name) for name in found.names]
        is_tainted = any(tool is not None and tool.has_foreign_words for tool in tools)
        return Discovered(text=text, names=found.names, is_tainted=is_tainted)

    async def explain(
        self,
        user: User,
        role_name: str,
        message: str,
        *,
        mode: ToolMode = "auto",
        recipe: str = "",
        entry: ModelEntry = OFFLINE,
    ) -> dict[str, Any]:
        """The receipt of the message as the first of a new conversation with this model, which is not called."""
        role = await self._roles.role(user, role_name)
        asked = self.opening(user, role, message, mode=mode, recipe=recipe, entry=entry)
        return (await self.plan_turn(asked)).receipt

    def opening(
        self,
        user: User,
        role: Role,
        message: str,
        *,
        mode: ToolMode = "auto",
        recipe: str = "",
        entry: ModelEntry = OFFLINE,
    ) -> PlanRequest:
        """Return what is planned for the message as the first of a new conversation with this model; without skills."""
        asked = opening(user, role, message, self._now()).with_given(
            mode=mode if entry.tools else "chat",
            profile=entry.profile,
            window_tokens=entry.context_tokens,
            model=entry.name,
            recipe=recipe or role.recipe,
        )
        return replace(asked, no_tools=no_tools(entry) if mode != "chat" else {})

    async def listing(self) -> list[dict[str, Any]]:
        """Every tool of the registry, for `cortex tools` and the Tools page; `setup`: why it is not configured."""
        ground = await self.ground()
        costs = {entry.name: entry for entry in ground.snapshot.entries}
        setups = self._setups(ground.settings)
        return [
            {
                "name": tool.name,
                "category": tool.category,
                "risk": tool.risk,
                "admin": tool.admin,
                "confirm": tool.confirm,
                "tokens_full": costs[tool.name].tokens_full,
                "tokens_stub": costs[tool.name].tokens_stub,
                "configured": tool.name not in setups,
                **({"setup": setups[tool.name].to_dict()} if tool.name in setups else {}),
            }
            for tool in self._registry.tools.values()
        ]

    async def setups(self) -> Mapping[str, Setup]:
        """The tools that are not configured, each with the reason."""
        return self._setups(await self.in_force())

    def _setups(self, settings: ToolSettings) -> Mapping[str, Setup]:
        access, found = settings.access, dict[str, Setup]()
        there = self._wired | access.configured
        for name in self._registry.tools:
            lacks = self._registry.missing(name, there)
            if lacks:
                found[name] = next((access.setups[port] for port in lacks if port in access.setups), NOT_SET_UP)
        return found

    async def in_force(self) -> ToolSettings:
        """Return what admins changed, read now."""
        return await self._settings.in_force() if self._settings else AS_SHIPPED

    async def snapshot(self) -> Snapshot:
        """The registry as selection sees it, with what admins changed."""
        return (await self.plan_ground()).snapshot

    async def ground(self) -> PlanGround:
        """Return what there is. The registry is counted once; a change of words or settings counts nothing again."""
        return await self._ground_in(await self.in_force())

    async def _ground_in(self, settings: ToolSettings) -> PlanGround:
        while not self._shipped or self._shipped[0].version != self._registry.version:
            self._shipped[:] = [await asyncio.to_thread(snapshot_of, self._registry)]
        shipped, tools = self._shipped[0], self._registry.held
        if not self._ground or self._ground[0].settings is not settings or self._ground[0].shipped is not shipped:
            self._ground[:] = [await self._laid(shipped, tools, settings)]
        return await self._with_encoder(self._ground[0])

    async def plan_ground(self) -> PlanGround:
        """Return what a plan stands on: as `ground`, but nobody's message waits until many new tools are indexed.

        Until `make_ready` has done that, it is the tools that were there before, less what is gone, off or another by
        now: settings hold at once, new tools come a few seconds later. Before the first time it is those that ship.
        Where nobody prepares, it waits.
        """
        settings = await self.in_force()
        before = self._prepared[0].tools if self._prepared else self._registry.shipped
        tools = self._registry.held
        if not self._is_prepared_ahead or _count_new(before, tools) < MANY:
            return await self._ground_in(settings)
        self.grown.set()
        if not self._meanwhile or self._meanwhile[0].settings is not settings or self._meanwhile[0].tools is not tools:
            counted = await asyncio.to_thread(snapshot_of_set, before)
            laid = await self._laid(counted, before, settings)
            same = frozenset(name for name, tool in before.tools.items() if _is_same(tool, tools.tools.get(name)))
            ready = tuple(name for name in laid.ready if name in same)
            absent = {name: why for name, why in laid.absent.items() if name in same}
            self._meanwhile[:] = [replace(laid, tools=tools, ready=ready, absent=absent)]
        return await self._with_encoder(self._meanwhile[0])

    @property
    def is_ready(self) -> bool:
        """Tell whether what is there now was indexed ahead of plans."""
        return bool(self._prepared) and self._prepared[0].tools is self._registry.held

    async def make_ready(self) -> None:
        """Index what is there now, off the event loop; from then on plans wait for no more than a few new tools."""
        self.prepare_ahead()
        ground = await self.ground()
        await asyncio.to_thread(self._index, ground.snapshot)
        self._prepared[:] = [ground]
        self._meanwhile.clear()
        self.grown.clear()

    def prepare_ahead(self) -> None:
        """Somebody will `make_ready` from now on: no plan waits for many new tools."""
        self._is_prepared_ahead = True

    def forget_ready(self) -> None:
        """Nobody prepares any more: each plan makes for itself what it stands on."""
        self._is_prepared_ahead = False
        self._prepared.clear()

    async def _laid(self, shipped: Snapshot, tools: ToolSet, settings: ToolSettings) -> PlanGround:
        """These tools with these settings laid over."""
        snapshot = await asyncio.to_thread(edited, shipped, settings.edits)
        snapshot = await self._settings.judged(snapshot, settings) if self._settings else snapshot
        setups = self._setups(settings)
        on = [name for name in self._registry.tools if name in tools.tools and name not in settings.off]
        return PlanGround(
            settings=settings,
            tools=tools,
            shipped=shipped,
            snapshot=snapshot,
            ready=tuple(name for name in on if name not in setups),
            absent=reasons_of(tools, settings, setups),
        )

    async def _with_encoder(self, ground: PlanGround) -> PlanGround:
        if self._encoders is None or not self._encoders.is_there:
            return ground
        snapshot, skipped = await self._encoders.over(ground.snapshot)
        return replace(ground, snapshot=snapshot, encoder_skipped=skipped)


def _count_new(before: ToolSet, now: ToolSet) -> int:
    """Return how many tools are new or another."""
    if before is now:
        return 0
    return sum(not _is_same(tool, before.tools.get(name)) for name, tool in now.tools.items())


def _is_same(tool: Tool, other: Tool | None) -> bool:
    return other is not None and other.hash == tool.hash


def request_tokens(receipt: dict[str, Any]) -> dict[str, int]:
    """Tokens of the first request of this receipt, each part as minified wire JSON; the parts add up to `total`."""
    parts = {
        "system": receipt["system_tokens"],
        "tools": sum(item["tokens"] for item in receipt["sent"]),
        "catalog": receipt["catalog_tokens"],
        "notes": receipt["notes_tokens"] + receipt["skills_tokens"] + receipt["facts_tokens"],
        "message": receipt["message_tokens"] + tokens.count(REQUEST_FRAME),
    }
    return {**parts, "total": sum(parts.values()), "model_calls": 1}
