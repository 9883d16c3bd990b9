"""What Cortex is made of. The only place that wires services; each part is made where it is first asked for, once.

`files.py`, `foundation.py`, `turns.py`, then what the pages and commands ask for, here: each class adds to the one
below. A new service is one property, where all it needs is at hand. Needs that would form a circle are cut by a part of
their own: `turn_queue` starts turns and knows nothing of what they do, so agents and jobs can.
"""

from functools import cached_property

from cortex.compose.messengers import MessengerServices
from cortex.integrations.web import Web
from cortex.providers import embed
from cortex.services.accounts.device_links import DeviceLinks
from cortex.services.api.bare_calls import BareCalls
from cortex.services.api.chats import ProgramChats
from cortex.services.api.embeddings import ProgramEmbeddings
from cortex.services.api.model_names import ModelNames
from cortex.services.api.pictures import ProgramPictures
from cortex.services.api.tokens import ApiTokens
from cortex.services.api.tool_calls import ProgramTools
from cortex.services.chat.composer import ComposerService
from cortex.services.chat.fresh_starts import FreshStarts
from cortex.services.chat.imports import ChatImports
from cortex.services.chat.sharing import ChatSharing
from cortex.services.chat.temporary import TemporaryChats
from cortex.services.chat.titles import ModelTitles
from cortex.services.health.everything import Belongings
from cortex.services.health.first_steps import FirstStepsService
from cortex.services.health.opening import OpeningService
from cortex.services.memory.distill import Distiller, QuietConversations
from cortex.services.memory.facts import MemoryService
from cortex.services.roles.settings import RoleDefaults
from cortex.services.search.search import ChatHits, FileHits, JobHits, NoteHits, SearchService, TaskHits
from cortex.services.today.today import TodayService
from cortex.services.today.weather import Weather
from cortex.services.tools.listing import ToolListing
from cortex.services.tools.replays import Replays
from cortex.services.tools.skills import SkillsService
from cortex.services.usage.budget_admin import BudgetAdmin
from cortex.services.usage.runs import RunsService
from cortex.services.usage.traces import Traces
from cortex.services.usage.usage import UsageService
from cortex.services.workshop.assumptions import Assumptions
from cortex.services.workshop.call_trials import CallTrials
from cortex.services.workshop.learning import LearningService
from cortex.services.workshop.refits import RefitsService
from cortex.services.workshop.reports import Reports
from cortex.services.workshop.role_editing import RoleEditing
from cortex.services.workshop.role_library import RoleLibrary
from cortex.services.workshop.tool_effects import ToolEffects
from cortex.services.workshop.tool_trials import ToolTrials


class Services(MessengerServices):
    """The services over one runtime: what the browser and the command line may call."""

    @cached_property
    def role_defaults(self) -> RoleDefaults:
        return RoleDefaults(
            roles=self.roles,
            models=self.models,
            registry=self.runtime.registry,
            names=self.role_names,
            server=self.settings,
        )

    @cached_property
    def role_editing(self) -> RoleEditing:
        return RoleEditing(
            db=self.runtime.db,
            roles=self.roles,
            defaults=self.role_defaults,
            tools=self.tools,
            registry=self.runtime.registry,
        )

    @cached_property
    def role_library(self) -> RoleLibrary:
        return RoleLibrary(db=self.runtime.db, homes=self.homes, roles=self.roles, models=self.models)

    @cached_property
    def skills(self) -> SkillsService:
        return SkillsService(self.runtime.db, self.tools)

    @cached_property
    def memory(self) -> MemoryService:
        return MemoryService(runtime=self.runtime, roles=self.roles, models=self.models)

    @cached_property
    def quiet_conversations(self) -> QuietConversations:
        distiller = Distiller(
            runtime=self.runtime,
            accounts=self.accounts,
            roles=self.roles,
            models=self.models,
            budgets=self.budgets,
        )
        return QuietConversations(runtime=self.runtime, distiller=distiller)

    @cached_property
    def tool_listing(self) -> ToolListing:
        return ToolListing(runtime=self.runtime, tools=self.tools, settings=self.tool_settings)

    @cached_property
    def assumptions(self) -> Assumptions:
        return Assumptions(
            accounts=self.accounts,
            roles=self.roles,
            preferences=self.preferences,
            models=self.models,
            profiles=self.profiles,
        )

    @cached_property
    def tool_trials(self) -> ToolTrials:
        return ToolTrials(runtime=self.runtime, tools=self.tools, roles=self.roles, assumptions=self.assumptions)

    @cached_property
    def tool_effects(self) -> ToolEffects:
        return ToolEffects(trials=self.tool_trials)

    @cached_property
    def call_trials(self) -> CallTrials:
        return CallTrials(runtime=self.runtime, tools=self.tools, chat=self.chat, turns=self.turn_queue)

    @cached_property
    def learning(self) -> LearningService:
        return LearningService(
            db=self.runtime.db, registry=self.runtime.registry, tools=self.tools, settings=self.tool_settings
        )

    @cached_property
    def reports(self) -> Reports:
        return Reports(db=self.runtime.db, secret_key=self.runtime.settings.secret_key)

    @cached_property
    def refits(self) -> RefitsService:
        return RefitsService(db=self.runtime.db, tools=self.tools, clock=self.runtime.clock)

    @cached_property
    def composer(self) -> ComposerService:
        return ComposerService(
            runtime=self.runtime, preferences=self.preferences, roles=self.roles, models=self.models, tools=self.tools
        )

    @cached_property
    def model_titles(self) -> ModelTitles:
        return ModelTitles(
            runtime=self.runtime,
            accounts=self.accounts,
            roles=self.roles,
            calls=self.lone_calls,
            opened=self.chats_to_name,
        )

    @cached_property
    def fresh_starts(self) -> FreshStarts:
        return FreshStarts(runtime=self.runtime, roles=self.roles, calls=self.lone_calls)

    @cached_property
    def chat_sharing(self) -> ChatSharing:
        return ChatSharing(db=self.runtime.db, notifier=self.notices)

    @cached_property
    def temporary_chats(self) -> TemporaryChats:
        return TemporaryChats(runtime=self.runtime, listeners=self.conversations.listeners)

    @cached_property
    def search(self) -> SearchService:
        chats, notes = ChatHits(self.runtime.db), NoteHits(self.notes)
        return SearchService(
            {
                "titles": chats.titles,
                "messages": chats.messages,
                "tasks": TaskHits(self.tasks).find,
                "jobs": JobHits(self.runtime.db).find,
                "notes": notes.find,
                "files": self.file_hits.find,
            }
        )

    @cached_property
    def file_hits(self) -> FileHits:
        return FileHits(self.runtime.db)

    @cached_property
    def first_steps(self) -> FirstStepsService:
        return FirstStepsService(
            db=self.runtime.db,
            accounts=self.accounts,
            models=self.models,
            addresses=self.addresses,
            devices=self.devices,
            opening=self.opening,
        )

    @cached_property
    def today(self) -> TodayService:
        return TodayService(
            runtime=self.runtime,
            approvals=self.approvals,
            weather=Weather(scope=self.scope, clock=self.runtime.clock),
            agenda=self.agenda,
        )

    @cached_property
    def opening(self) -> OpeningService:
        return OpeningService(db=self.runtime.db, settings=self.settings, clock=self.runtime.clock)

    @cached_property
    def device_links(self) -> DeviceLinks:
        return DeviceLinks(db=self.runtime.db, clock=self.runtime.clock)

    @cached_property
    def usage(self) -> UsageService:
        return UsageService(runtime=self.runtime, accounts=self.accounts)

    @cached_property
    def budget_admin(self) -> BudgetAdmin:
        return BudgetAdmin(runtime=self.runtime, accounts=self.accounts)

    @cached_property
    def traces(self) -> Traces:
        return Traces(runtime=self.runtime, models=self.models)

    @cached_property
    def replays(self) -> Replays:
        return Replays(runtime=self.runtime, tools=self.tools)

    @cached_property
    def runs(self) -> RunsService:
        return RunsService(runtime=self.runtime, accounts=self.accounts, models=self.models)

    @cached_property
    def api_tokens(self) -> ApiTokens:
        return ApiTokens(
            runtime=self.runtime,
            accounts=self.accounts,
            roles=self.roles,
            tools=self.tools,
            stop=self.turn_queue.stop,
        )

    @cached_property
    def program_chats(self) -> ProgramChats:
        return ProgramChats(
            runtime=self.runtime,
            tokens=self.api_tokens,
            roles=self.roles,
            models=self.models,
            turns=self.turn_queue,
            documents=self.documents,
            pictures=self.program_pictures,
        )

    @cached_property
    def bare_calls(self) -> BareCalls:
        return BareCalls(
            runtime=self.runtime,
            tokens=self.api_tokens,
            calls=self.lone_calls,
            pictures=self.program_pictures,
        )

    @cached_property
    def program_pictures(self) -> ProgramPictures:
        return ProgramPictures(web=Web(), maker=self.pictures.maker)

    @cached_property
    def model_names(self) -> ModelNames:
        return ModelNames(models=self.models)

    @cached_property
    def program_embeddings(self) -> ProgramEmbeddings:
        return ProgramEmbeddings(
            runtime=self.runtime,
            tokens=self.api_tokens,
            models=self.models,
            names=self.model_names,
            calls=self.lone_calls,
            ask=embed,
        )

    @cached_property
    def program_tools(self) -> ProgramTools:
        return ProgramTools(
            runtime=self.runtime,
            tokens=self.api_tokens,
            roles=self.roles,
            tools=self.tools,
            turns=self.turn_queue,
        )

    @cached_property
    def chat_imports(self) -> ChatImports:
        return ChatImports(runtime=self.runtime, homes=self.homes, preferences=self.preferences, foreign=self.foreign)

    @cached_property
    def belongings(self) -> Belongings:
        return Belongings(runtime=self.runtime, homes=self.homes, conversations=self.conversations)
