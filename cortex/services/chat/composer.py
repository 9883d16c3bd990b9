"""What a person may set before sending, and what holds if they set nothing: role, tool mode, rounds, model, examples.

Read by the chat page for each conversation and for a new one.
"""

from collections.abc import Mapping
from statistics import median
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base.errors import UserError
from cortex.base.model import OFFLINE, Price, no_tools, page_of
from cortex.base.role import ToolMode
from cortex.base.user import User
from cortex.selection.recipes import RECIPES
from cortex.selection.types import META
from cortex.services.models import prices
from cortex.services.models.models import Models
from cortex.services.models.registry import ModelRegistry, place_of
from cortex.services.roles.preferences import PreferencesService
from cortex.services.roles.roles import Roles, max_rounds
from cortex.services.runtime import Runtime
from cortex.services.tools.tools import ToolsService
from cortex.storage.accounts import AccountsRepository
from cortex.storage.conversations import ConversationRow, ConversationsRepository
from cortex.storage.rounds import RoundsRepository
from cortex.toolkit.registry import Registry

EXAMPLES_SHOWN = 3
FOR_WORK = frozenset({"coder", "distill"})  # a member who is asked for a purpose has no use for these
LATELY, LATELY_LEAST = 30, 5  # messages that say what is usual
USES = ("always", "never", "")


class ModelChoice(Struct, frozen=True, kw_only=True):
    """A model to choose. `price`: dollars for a million tokens; `owner`: who shares it and pays, "" = the user.

    `is_home`: it runs in this house, by its address and name.
    """

    name: str
    price: Price
    owner: str
    is_home: bool = False


class ModeFigures(Struct, frozen=True, kw_only=True):
    """The tools that each mode sends to this person's model in this role, in figures.

    `all_tools`, `all_tokens`: in each round of All. `messages`: the latest ones in Auto that `auto_tools` and
    `auto_tokens` are the median of, catalog and what came after the message included; too few tell nothing, and there
    are none then. `takes_tools`: as the model is set; `drops_tools`: its template takes none, by its server.
    """

    role: str
    model: str
    all_tools: int = 0
    all_tokens: int = 0
    messages: int = 0
    auto_tools: int = 0
    auto_tokens: int = 0
    takes_tools: bool = True
    drops_tools: bool = False


class Composer(Struct, frozen=True, kw_only=True):
    """The composer as it stands. `max_rounds_from` says which level set the rounds; `roles` are offered to the user.

    `sees`: whether pictures are sent to the model. `page`: where the model is changed.
    `no_tools`: as in a receipt, where the model takes none whatever the mode.
    `asks`: the model that is asked first, as `prices.of_draft` has it for a message of no length. `helper`: the admin
    who can connect a model where there is none, "" = the user. `price`: of that model, for a million tokens.
    `is_role_missing`: nobody wrote `role`, or it was deleted: a turn in it is refused.

    `chosen`: the model that was chosen for the conversation, "" for what the role says (`role_model`); it may be gone.
    `models`: those to choose from, none where there is no choice.

    `recipe`: the conversation's own way of choosing tools, "" for the role's (`role_recipe`). `engine`: whether the
    person looks at the figures under answers.
    """

    role: str
    roles: tuple[str, ...]
    mode: ToolMode
    max_rounds: int
    max_rounds_from: str
    asks: Mapping[str, Any]
    price: Price
    sees: bool
    helper: str = ""
    page: str
    window_tokens: int
    examples: tuple[str, ...] = ()
    recipe: str = ""
    role_recipe: str = "cortex"
    recipes: tuple[str, ...] = ()
    chosen: str = ""
    role_model: str = ""
    models: tuple[ModelChoice, ...] = ()
    is_role_missing: bool = False
    no_tools: Mapping[str, str] = field(default_factory=dict)
    takes_tools: bool = True
    drops_tools: bool = False
    engine: bool = False


class ComposerService(Struct, frozen=True, kw_only=True):
    """Gathers a `Composer` from the services that own its parts."""

    runtime: Runtime
    preferences: PreferencesService
    roles: Roles
    models: Models
    tools: ToolsService

    async def composer(self, user: User, conversation: ConversationRow | None = None, role: str = "") -> Composer:
        """For this conversation, or for a new one in `role` (else the user's preferred role)."""
        chosen = await self.preferences.get(user)
        name = conversation.role if conversation else role or chosen.role
        current = (await self.roles.in_force(user, name, is_shown=True)).role
        registry = await self.models.shown(user)
        model = conversation.model if conversation else ""
        entry = registry.first(current, model)
        own = conversation.max_rounds if conversation else chosen.max_rounds
        names = await self.roles.names(user)
        offered = tuple(one for one in names if user.is_admin or one not in FOR_WORK or one == name)
        rounds, origin = max_rounds(self.runtime.settings.max_rounds, entry, current, own)
        mode = conversation.mode if conversation else chosen.mode or current.mode
        return Composer(
            role=current.name,
            roles=offered,
            is_role_missing=current.name not in names,
            mode=mode,
            no_tools=no_tools(entry) if mode != "chat" else {},
            takes_tools=entry.tools,
            drops_tools=entry.drops_tools,
            max_rounds=rounds,
            max_rounds_from=origin,
            asks=await prices.of_draft(entry, 0),
            price=await prices.price(entry),
            sees=entry.takes_pictures,
            helper=await self._helper(user) if entry.provider == OFFLINE.provider else "",
            page=page_of(entry.name),
            window_tokens=entry.context_tokens,
            examples=await self._examples(user, current.name),
            recipe=conversation.recipe if conversation else "",
            role_recipe=current.recipe,
            recipes=tuple(RECIPES),
            chosen=model,
            role_model=registry.first(current).name,
            models=await self.choices(registry, model),
            engine=chosen.engine,
        )

    async def figures(self, user: User, composer: Composer, conversation: ConversationRow | None = None) -> ModeFigures:
        """Return what the composer's modes send; nothing where the role's file has a slip, which the frame tells."""
        never = conversation.never if conversation else frozenset[str]()
        found = ModeFigures(
            role=composer.role,
            model=composer.asks["model"],
            takes_tools=composer.takes_tools,
            drops_tools=composer.drops_tools,
        )
        try:
            count, tokens = await self.tools.whole(user, composer.role, never=never)
        except UserError:
            return found
        found = replace(found, all_tools=count, all_tokens=tokens)
        rounds = self.runtime.db.repository(RoundsRepository, user.id)
        lately = await rounds.first_sent(composer.role, composer.asks["model"], LATELY)
        if len(lately) < LATELY_LEAST:
            return found
        metas = {name for name, tool in self.runtime.registry.tools.items() if tool.category == META}
        return replace(
            found,
            messages=len(lately),
            auto_tools=round(median(len(sent.keys() - metas) for sent, _ in lately)),
            auto_tokens=round(median(tokens for _, tokens in lately)),
        )

    async def choices(self, registry: ModelRegistry, chosen: str = "") -> tuple[ModelChoice, ...]:
        """The models of this registry with their prices; none where there is nothing to choose."""
        if len(registry.entries) < 2 and not chosen:
            return ()
        return tuple(
            [
                ModelChoice(
                    name=entry.name,
                    price=await prices.price(entry),
                    owner=entry.owner,
                    is_home=place_of(entry) == "home",
                )
                for entry in registry.entries
            ]
        )

    def checked_choices(self, choices: Mapping[str, str]) -> dict[str, str]:
        """The person's choices of tools for a conversation, "" of those left to the planner; UserError for others."""
        for name, use in choices.items():
            tool = self.runtime.registry.get(name)
            if tool is None or tool.category == META:
                raise UserError(f"There is no tool {name!r} to choose.")
            if use not in USES:
                raise UserError(f"Choose always, never or neither for {name}, not {use!r}.")
        return dict(choices)

    async def choose_tools(self, user: User, conversation_id: str, choices: Mapping[str, str]) -> None:
        """Always or never use these tools in the conversation, from its next message on. It permits nothing."""
        kept = self.checked_choices(choices)
        async with self.runtime.db.transaction(user.id) as repository:
            await repository(ConversationsRepository).choose_tools(conversation_id, kept)

    async def _helper(self, user: User) -> str:
        """The admin whom this user can ask for a model, "" for themselves; of several the first who came."""
        if user.is_admin:
            return ""
        accounts = await self.runtime.db.repository(AccountsRepository).list()
        admins = [one for one in accounts if one.rank == "admin" and one.is_active]
        return min(admins, key=lambda one: one.created_at).name if admins else ""

    async def _examples(self, user: User, role: str) -> tuple[str, ...]:
        try:
            permitted = set(await self.tools.permitted(user, role, channel="chat", mode="auto"))
        except UserError:  # a slip in the role's file: the page opens and the frame tells it
            return ()
        return examples(self.runtime.registry, permitted)


def examples(registry: Registry, permitted: set[str]) -> tuple[str, ...]:
    """Three things to say that work on an empty account too: what adds something comes first, one a category."""
    offers: list[str] = []
    for is_wanted in (_adds, lambda name: True):
        for category in reversed([*registry.categories.values()]):
            fit = (
                words for words, names in category.examples if names and permitted >= {*names} and is_wanted(names[0])
            )
            offers += [words for words in [next(fit, "")] if words and words not in offers]
    return tuple(words[:1].upper() + words[1:] for words in offers[:EXAMPLES_SHOWN])


def _adds(name: str) -> bool:
    """Tell whether the tool's verb makes something new, which no empty account can lack."""
    return name.rpartition("_")[2] in ("create", "append", "add")
