"""Reads once what a turn may depend on: who asks, the role in force, models, tools, limits, what was said before.

It is read when the turn opens and handed along from step to step. A run that is taken up again reads it anew, and so
does a call that waited for a person's answer; nothing of it is kept with the run. What must be fresh is no part of
it and is asked for where it is needed: approvals, what was spent, a stop, what the turn has read so far.
"""

from collections.abc import Sequence
from typing import Any, Protocol, Self

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base.errors import NotFound
from cortex.base.model import ModelEntry, Profile
from cortex.base.role import Channel, Role, ToolMode
from cortex.base.skill import Skill
from cortex.base.turn import Turn
from cortex.base.user import User
from cortex.services.accounts.accounts import Accounts
from cortex.services.budgets.budgets import Budgets, Limit
from cortex.services.models.models import Models
from cortex.services.models.profiles import Profiles
from cortex.services.models.registry import ModelRegistry
from cortex.services.roles.roles import Roles, RoleTaker
from cortex.services.runtime import Runtime
from cortex.services.tools.tools import PlanGround, ToolsService
from cortex.storage.api_tokens import INSTRUCTED, INSTRUCTIONS, MOST_TOKENS, ApiTokensRepository
from cortex.storage.conversations import ConversationRow, ConversationsRepository
from cortex.storage.messages import MessageRow, MessagesRepository
from cortex.storage.rounds import RoundsRepository
from cortex.storage.summaries import SummariesRepository, SummaryRow


class TurnContext(Struct, frozen=True, kw_only=True):
    """The facts of one turn, or of a draft that may become one.

    chain: names of the models to ask, the first one first; `entry` is that one, `profile` its cache as it is planned
    with. `permitted`: names of the tools that may run. `stored`: the transcript ahead of the turn; `summary`: what
    stands for its beginning. `conversation`: as it was when this was read, None for a draft of a new one.
    `borrowed`: the shared model that answered last in it, "" where the person's own did. `parameters`, `most_tokens`,
    `instructions`: what a program's request says of its answers, and tells the model beside the words.
    """

    user: User
    role: Role
    models: ModelRegistry
    models_revision: int
    chain: tuple[str, ...]
    entry: ModelEntry
    profile: Profile
    ground: PlanGround
    persona: str
    skills: tuple[Skill, ...] = ()
    permitted: frozenset[str] = frozenset()
    limits: Sequence[Limit] = ()
    conversation: ConversationRow | None = None
    borrowed: str = ""
    stored: Sequence[MessageRow] = ()
    summary: SummaryRow | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    most_tokens: int | None = None
    instructions: str = ""

    def remembering(self, memory: dict[str, Any]) -> Self:
        """With what the planner keeps for the next round of this conversation, which is stored already."""
        if self.conversation is None:
            return self
        return replace(self, conversation=replace(self.conversation, selection_state=memory))

    def model(self, name: str) -> ModelEntry:
        """The entry of this name; NotFound when there is none."""
        found = self.models.get(name)
        if found is None:
            raise NotFound(f"There is no model {name!r}.")
        return found


class Begun(RoleTaker, Protocol):
    """A turn, opened or as it is kept."""

    @property
    def conversation_id(self) -> str:
        """Where it stands."""
        ...

    @property
    def ordinal(self) -> int:
        """Its place there."""
        ...

    @property
    def mode(self) -> ToolMode:
        """Its tool mode."""
        ...

    @property
    def channel(self) -> Channel:
        """Return how it came."""
        ...


class _Asker(Struct, frozen=True, kw_only=True):
    """A person in a role, and the tools that there are."""

    user: User
    role: Role
    ground: PlanGround


class TurnContexts(Struct, frozen=True, kw_only=True):
    """Reads contexts, and holds those of the turns that run in this process."""

    runtime: Runtime
    accounts: Accounts
    roles: Roles
    models: Models
    tools: ToolsService
    profiles: Profiles
    budgets: Budgets
    held: dict[str, TurnContext] = field(default_factory=dict)

    async def context_of(self, turn: Turn) -> TurnContext:
        """The turn's context; read anew where this process does not hold it, or its models were changed since."""
        held = self.held.get(turn.id)
        if held is None or held.models_revision != self.models.revision:
            return await self.renewed(turn)
        return held

    async def renewed(self, turn: Turn) -> TurnContext:
        """The turn's context as it is by now: time went by, and rights may have changed."""
        async with self.runtime.db.one_view():
            context = await self.read(await self.accounts.user(turn.user_id), turn, turn.models)
            summaries = self.runtime.db.repository(SummariesRepository, turn.user_id)
            summary = await summaries.get(turn.summary_id) if turn.summary_id else None
        return self.hold(turn.id, replace(context, summary=summary))

    def hold(self, turn_id: str, context: TurnContext) -> TurnContext:
        """Hand it to the turn's coming steps, until `let_go`."""
        self.held[turn_id] = context
        return context

    def let_go(self, turn_id: str) -> None:
        """The turn's run ended here."""
        self.held.pop(turn_id, None)

    async def read(self, user: User, turn: Begun, chain: Sequence[str] = (), *, chosen: str = "") -> TurnContext:
        """The context of a turn without its summary.

        chain: the models that it was opened with. chosen: the model that the person chose for it.
        """
        ground = await self.tools.plan_ground()  # ahead of the role, whose tools a plug-in may have added to
        role = await self.roles.of_turn(user, turn)
        parameters: dict[str, str] = {}
        if turn.channel == "api":
            request = await self.runtime.db.repository(ApiTokensRepository, user.id).request(turn.id)
            chain = chain or ((request.model,) if request is not None and request.model else ())
            parameters = dict(request.parameters) if request is not None else {}
        most, instructions = parameters.pop(MOST_TOKENS, None), parameters.pop(INSTRUCTIONS, "")
        parameters.pop(INSTRUCTED, None)
        ahead = 0 if turn.job_id else turn.ordinal  # a job's run knows nothing of the runs before it
        asker = _Asker(user=user, role=role, ground=ground)
        context = await self._facts(asker, turn.conversation_id, ahead, chain, chosen)
        return replace(
            context,
            permitted=self.tools.permitted_on(ground, user, role, channel=turn.channel, mode=turn.mode),
            limits=await self.budgets.limits(user, turn, role),
            parameters=tuple(parameters.items()),
            most_tokens=None if most is None else int(most),
            instructions=instructions,
        )

    async def of_draft(
        self, user: User, conversation_id: str | None, role: str, model: str | None = None
    ) -> TurnContext:
        """Return what a message would be planned from, were it sent now. model: None for the conversation's."""
        async with self.runtime.db.one_view():
            ground = await self.tools.plan_ground()
            asker = _Asker(user=user, role=await self.roles.role(user, role), ground=ground)
            return await self._facts(asker, conversation_id, None, (), model)

    async def _facts(
        self,
        asker: _Asker,
        conversation_id: str | None,
        ordinal: int | None,
        chain: Sequence[str],
        chosen: str | None,
    ) -> TurnContext:
        user, role = asker.user, asker.role
        revision = self.models.revision  # ahead of the registry: a change in between shows at the next step
        models = await self.models.registry(user)
        conversation: ConversationRow | None = None
        borrowed = ""
        stored: Sequence[MessageRow] = ()
        if conversation_id is not None:
            conversation = await self.runtime.db.repository(ConversationsRepository, user.id).get(conversation_id)
            stored = await self.runtime.db.repository(MessagesRepository, user.id).of_conversation(
                conversation_id, ordinal
            )
            borrowed = await self.runtime.db.repository(RoundsRepository, user.id).borrowed(conversation_id)
        if chosen is None:
            chosen = conversation.model if conversation else ""
        names = tuple(name for name in chain if models.get(name)) or models.chain(role, chosen)
        entry = models.get(names[0])
        if entry is None:
            raise NotFound(f"There is no model {names[0]!r}.")
        return TurnContext(
            user=user,
            role=role,
            models=models,
            models_revision=revision,
            chain=names,
            entry=entry,
            profile=(await self.profiles.profile_of(user, entry)).profile,
            ground=asker.ground,
            persona=await self.roles.persona(user),
            skills=await self.tools.skills.skills(user),
            conversation=conversation,
            borrowed=borrowed,
            stored=stored,
        )
