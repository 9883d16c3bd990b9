"""The tools, the run of a turn, and what starts turns: agents and jobs. Over `foundation.py`."""

from collections.abc import Callable, Coroutine, Mapping
from functools import cached_property, partial
from typing import Any

from msgspec.structs import replace

from cortex import providers
from cortex.agent.execute import Executor
from cortex.agent.react import LoopPorts
from cortex.base import scan
from cortex.base.errors import ConfigError
from cortex.base.model import ModelEntry
from cortex.compose.mail import MailServices
from cortex.engine.null_engine import NullEngine
from cortex.ports.aether import AetherDatabase, Board, JournalPlace, Journals
from cortex.ports.agents import Agents, AllowedFolders, CodingAgent
from cortex.ports.foreign import FrontMatters
from cortex.ports.loop import Targets
from cortex.ports.mcp import McpServers
from cortex.ports.memory import Memory
from cortex.ports.outgoing import Housemates, ListSignal, Mail, Push
from cortex.ports.schedule import Jobs, Reminders, Timings
from cortex.ports.system import Discovery, Restarting, Status, Upkeep
from cortex.providers.servers import server_of
from cortex.services.agents.agents import AgentsService, UserAgents
from cortex.services.agents.coding import KIND as CODING
from cortex.services.agents.coding import CodingRuns, UserCoding
from cortex.services.agents.coding_model import CodingModel
from cortex.services.budgets.budgets import Budgets
from cortex.services.chat.conversations import ConversationsService
from cortex.services.chat.several import SeveralChats
from cortex.services.clients import clients
from cortex.services.content.board import TaskBoard
from cortex.services.content.tasks import UserListSignal
from cortex.services.health.doctor import StatusService
from cortex.services.health.restarts import Restarts, UserRestarts
from cortex.services.integrations.clients import UserPort
from cortex.services.integrations.journals import UserJournalPlace
from cortex.services.integrations.mcp import McpTools, UserMcp
from cortex.services.integrations.mcp_logins import McpLogins
from cortex.services.integrations.mcp_needs import McpNeeds
from cortex.services.jobs.hooks import Hooks
from cortex.services.jobs.jobs import JobsService
from cortex.services.jobs.runs import JobRuns
from cortex.services.jobs.scheduler import Scheduler
from cortex.services.jobs.tools import JobTools
from cortex.services.jobs.user_jobs import UserJobs
from cortex.services.memory.recall import RecallReader
from cortex.services.memory.user_memory import UserMemory
from cortex.services.notices.outward import UserMail, UserPush
from cortex.services.reminders.due import DueReminders
from cortex.services.scope import Opening, ToolScope, names_of
from cortex.services.timings import LazyReader
from cortex.services.tools.encoders import Encoders
from cortex.services.tools.own_ports import OWN
from cortex.services.tools.readiness import ToolReadiness
from cortex.services.tools.settings import ToolSettingsService
from cortex.services.tools.skill_files import SkillFiles
from cortex.services.tools.tools import ToolsService
from cortex.services.turns.attached import AttachedFiles
from cortex.services.turns.call_changes import CallChanges
from cortex.services.turns.calls import CallLog
from cortex.services.turns.history import ConversationHistory
from cortex.services.turns.lone_calls import LoneCalls
from cortex.services.turns.model_calls import ModelCaller
from cortex.services.turns.plain_commands import PlainCommandReader
from cortex.services.turns.planning import Finder, Planning
from cortex.services.turns.start import TurnStart
from cortex.services.turns.turn_context import TurnContexts
from cortex.services.turns.turns import ToolRuns, TurnRuns
from cortex.services.turns.undo import UndoService
from cortex.services.upkeep.server_settings import ServerSettings
from cortex.services.upkeep.upkeep import UpdateOrders, UserUpkeep
from cortex.storage.calls import CallsRepository
from cortex.toolkit.spec import Category


class TurnServices(MailServices):
    """From a message to its answer."""

    @cached_property
    def tool_settings(self) -> ToolSettingsService:
        return ToolSettingsService(self.runtime.db, self.runtime.registry, self.integrations, self._added_categories)

    async def _added_categories(self) -> list[Category]:
        """Return the tools that do not ship: of plug-ins and of MCP servers."""
        return [*await self.plugins.categories(), *await self.mcp_tools.categories()]

    @cached_property
    def mcp_tools(self) -> McpTools:
        return McpTools(
            db=self.runtime.db,
            registry=self.runtime.registry,
            integrations=self.integrations,
            clients=self.integration_clients,
        )

    @cached_property
    def mcp_needs(self) -> McpNeeds:
        return McpNeeds(tools=self.mcp_tools)

    @cached_property
    def mcp_logins(self) -> McpLogins:
        return McpLogins(tools=self.mcp_tools)

    @cached_property
    def encoders(self) -> Encoders:
        return Encoders(self.settings, is_hasty=not isinstance(self.runtime.runner, NullEngine))

    @property
    def wired(self) -> frozenset[str]:
        """Names of all that tools may open here, but for what an admin sets up on a page, or people for themselves."""
        return names_of([*self.tool_clients, Discovery, Agents]) - self.integrations.ports - OWN.keys()

    @cached_property
    def tool_clients(self) -> Mapping[type[Any], Opening]:
        """Return what tools may open for a user, less what itself needs the tools."""
        found = clients(
            self.settings, self.accounts, self.document_reading, self._sandbox, self._log_book, is_boxed=self._is_boxed
        )
        clock, timings = self.runtime.clock, LazyReader()
        status = StatusService(runtime=self.runtime, doctor=self.doctor, started_at=self.started_at)
        found[Targets] = partial(self.runtime.db.repository, CallsRepository)
        found[Status] = lambda _: status
        found[Restarting] = lambda user_id: UserRestarts(
            restarts=self.restarts, accounts=self.accounts, user_id=user_id
        )
        if not self.updates.lacks():
            found[Upkeep] = lambda user_id: UserUpkeep(orders=self.update_orders, user_id=user_id)
        found[Board] = lambda user_id: TaskBoard(db=self.runtime.db, user_id=user_id, clock=clock)
        found[Journals] = self.journals.for_tools
        found[JournalPlace] = lambda user_id: UserJournalPlace(clients=self.integration_clients, user_id=user_id)
        found[AetherDatabase] = self.databases
        found[Memory] = lambda user_id: UserMemory(db=self.runtime.db, user_id=user_id)
        found[ListSignal] = lambda user_id: UserListSignal(db=self.runtime.db, hub=self.hub, user_id=user_id)
        found[Timings] = lambda _: timings
        found[FrontMatters] = self.skill_files.heads
        found[Reminders] = self.reminders.for_user
        found[Housemates] = self.reminders.for_user
        found |= self.own_ports
        found[Jobs] = lambda user_id: UserJobs(
            runtime=self.runtime, timings=timings, user_id=user_id, appointments_of=self.job_appointments
        )
        found[CodingAgent] = found[AllowedFolders] = self._coding_of
        found[McpServers] = lambda user_id: UserMcp(tools=self.mcp_tools, homes=self.homes, user_id=user_id)
        for kind in self.integrations.kinds:
            found |= {port: partial(UserPort, self.integration_clients, kind, port) for port in kind.opens}
        found[Push] = lambda user_id: UserPush(notices=self.notices, clock=clock, user_id=user_id)
        if not self.channels.lacks("email"):
            found[Mail] = lambda user_id: UserMail(addresses=self.addresses, user_id=user_id)
        return found

    @cached_property
    def server_settings(self) -> ServerSettings:
        return ServerSettings(
            settings=self.settings,
            db=self.runtime.db,
            vault=self.vault,
            clock=self.runtime.clock,
            outages=self.runtime.outages,
            restart=self.restarts.order_here,
        )

    @cached_property
    def restarts(self) -> Restarts:
        return Restarts(runtime=self.runtime)

    @cached_property
    def update_orders(self) -> UpdateOrders:
        return UpdateOrders(
            db=self.runtime.db,
            accounts=self.accounts,
            notifier=self.notices,
            restarts=self.restarts,
            updates=self.updates,
            clock=self.runtime.clock,
        )

    @cached_property
    def skill_files(self) -> SkillFiles:
        return SkillFiles(self.homes, self.runtime.db, self.foreign)

    @cached_property
    def tools(self) -> ToolsService:
        return ToolsService(
            registry=self.runtime.registry,
            wired=self.wired,
            roles=self.roles,
            clock=self.runtime.clock,
            settings=self.tool_settings,
            skills=self.skill_files,
            encoders=self.encoders,
        )

    @cached_property
    def tool_readiness(self) -> ToolReadiness:
        return ToolReadiness(
            runtime=self.runtime, accounts=self.accounts, tools=self.tools, load_ahead=providers.load_ahead
        )

    @cached_property
    def scope(self) -> ToolScope:
        finder = partial(Finder, runtime=self.runtime, accounts=self.accounts, tools=self.tools, roles=self.roles)
        above = {
            Discovery: lambda user_id: finder(user_id=user_id),
            Agents: self._agents_of,
        }
        return ToolScope(self.runtime.db, {**self.tool_clients, **above})

    def _agents_of(self, user_id: str) -> UserAgents:
        return UserAgents(service=self.agents, coding=self.coding, user_id=user_id)

    def _coding_of(self, user_id: str) -> UserCoding:
        return UserCoding(service=self.coding, user_id=user_id)

    @cached_property
    def budgets(self) -> Budgets:
        return Budgets(runtime=self.runtime, roles=self.roles, models=self.models)

    @cached_property
    def lone_calls(self) -> LoneCalls:
        return LoneCalls(runtime=self.runtime, roles=self.roles, models=self.models, budgets=self.budgets)

    @cached_property
    def turn_contexts(self) -> TurnContexts:
        return TurnContexts(
            runtime=self.runtime,
            accounts=self.accounts,
            roles=self.roles,
            models=self.models,
            tools=self.tools,
            profiles=self.profiles,
            budgets=self.budgets,
        )

    @cached_property
    def planning(self) -> Planning:
        recall = RecallReader(db=self.runtime.db)
        return Planning(
            runtime=self.runtime,
            contexts=self.turn_contexts,
            tools=self.tools,
            recall=recall,
            files=self.attached_files,
        )

    @cached_property
    def attached_files(self) -> AttachedFiles:
        return AttachedFiles(runtime=self.runtime, pictures=self.pictures)

    @cached_property
    def executor(self) -> Executor:
        return Executor(
            registry=self.runtime.registry,
            call_log=CallLog(runtime=self.runtime, contexts=self.turn_contexts, homes=self.homes),
            approvals=self.approvals,
            scope=self.scope,
            ticks_s=self.runtime.ticks_s,
        )

    @cached_property
    def turn_runs(self) -> TurnRuns:
        contexts = self.turn_contexts
        history = ConversationHistory(runtime=self.runtime, contexts=contexts)
        files = self.attached_files
        return TurnRuns(
            contexts=contexts,
            queue=self.turn_queue,
            turn_start=TurnStart(runtime=self.runtime, contexts=contexts, history=history, files=files),
            ports=self._traced(
                LoopPorts(
                    history=history,
                    planner=self.planning,
                    model_caller=ModelCaller(
                        runtime=self.runtime, contexts=contexts, pictures=self.pictures, mixes_calls=_mixes_calls
                    ),
                    tool_runner=ToolRuns(executor=self.executor, approvals=self.approvals, contexts=contexts),
                    commands=PlainCommandReader(runtime=self.runtime, contexts=contexts, scope=self.scope),
                )
            ),
        )

    @cached_property
    def traces_sent(self) -> Any:  # Any: a class of an extra, read where it is asked for
        """Return what sends OpenTelemetry traces; None where no place for them is set."""
        endpoint = self.settings.otel_endpoint
        if not endpoint:
            return None
        if not scan.is_installed("opentelemetry.sdk"):
            raise ConfigError("CORTEX_OTEL_ENDPOINT needs its packages: install Cortex with the extra 'otel'.")
        return scan.load("cortex.integrations.otel").TraceExport(endpoint)

    def _traced(self, ports: LoopPorts) -> LoopPorts:
        traces = self.traces_sent
        if traces is None:
            return ports
        return replace(
            ports,
            model_caller=traces.model_caller(ports.model_caller),
            tool_runner=traces.tool_runner(ports.tool_runner),
        )

    @cached_property
    def turn_body(self) -> Callable[[str, dict[str, Any]], Coroutine[Any, Any, None]]:
        """Return what the engine runs for a turn."""
        body = self.turn_runs.run_turn
        return body if self.traces_sent is None else self.traces_sent.turn(body)

    @cached_property
    def call_changes(self) -> CallChanges:
        return CallChanges(
            runtime=self.runtime, contexts=self.turn_contexts, executor=self.executor, approvals=self.approvals
        )

    @cached_property
    def undo(self) -> UndoService:
        return UndoService(runtime=self.runtime, scope=self.scope, tools=self.tools)

    @cached_property
    def agents(self) -> AgentsService:
        return AgentsService(
            runtime=self.runtime,
            accounts=self.accounts,
            roles=self.roles,
            budgets=self.budgets,
            turns=self.turn_queue,
        )

    @cached_property
    def coding(self) -> CodingRuns:
        return CodingRuns(
            runtime=self.runtime,
            accounts=self.accounts,
            clients=self.integration_clients,
            model=CodingModel(calls=self.lone_calls),
            notifier=self.notices,
            folder=self.settings.home / CODING,
            closed=self.closed_folders,
        )

    @cached_property
    def conversations(self) -> ConversationsService:
        deleted = (self.agents.cancel_all_of, self.approvals.close_all_of)
        return ConversationsService(self.runtime.db, self.hub, self.runtime.clock, listeners=deleted)

    @cached_property
    def several_chats(self) -> SeveralChats:
        return SeveralChats(
            db=self.runtime.db,
            hub=self.hub,
            conversations=self.conversations,
            clock=self.runtime.clock,
            deleted=(self.agents.cancel_all_of, self.approvals.close_all_of),
        )

    @cached_property
    def job_tools(self) -> JobTools:
        return JobTools(runtime=self.runtime, accounts=self.accounts, roles=self.roles, tools=self.tools)

    @cached_property
    def job_runs(self) -> JobRuns:
        return JobRuns(
            runtime=self.runtime,
            turns=self.turn_queue,
            tools=self.job_tools,
            notifier=self.notices,
            signal=self.slot_signal,
            appointments_of=self.job_appointments,
        )

    @cached_property
    def scheduler(self) -> Scheduler:
        due = DueReminders(runtime=self.runtime, timings=LazyReader(), notifier=self.notices)
        return Scheduler(runtime=self.runtime, runs=self.job_runs, due=due)

    @cached_property
    def jobs(self) -> JobsService:
        return JobsService(
            runtime=self.runtime,
            timings=LazyReader(),
            roles=self.roles,
            models=self.models,
            tools=self.job_tools,
            channels=self.channels,
            changed=self.scheduler.wake,
            foreign=self.foreign,
            appointments_of=self.job_appointments,
        )

    @cached_property
    def hooks(self) -> Hooks:
        return Hooks(runtime=self.runtime, vault=self.vault, changed=self.scheduler.wake)


def _mixes_calls(entry: ModelEntry) -> bool:
    return server_of(entry.base_url, engine=entry.engine).mixes_calls
