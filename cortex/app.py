"""Wires the services once. The only module that knows tools, providers and the engine together; read it top to bottom.

`Cortex.open(settings)` is the running daemon; `web` and `worker` are its two halves, several of each on PostgreSQL;
`Cortex.at_rest(settings)` is the same services without engine and timers, for the commands.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from cortex import tools as tool_files
from cortex.base import private
from cortex.base.background import background_tasks
from cortex.base.clock import Clock, now, ticks_s
from cortex.base.crypto import Vault
from cortex.base.log import LineFormatter, SecretFilter
from cortex.base.logbook import LogBook
from cortex.base.settings import Settings
from cortex.base.start import shared_database
from cortex.engine import dbos_patches
from cortex.engine.dbos import Engine
from cortex.engine.hub import LocalHub
from cortex.engine.null_engine import NullEngine
from cortex.engine.relay import RelayHub, relayed
from cortex.engine.remote import CANCELLED, STARTED, Remote
from cortex.integrations.sandbox import Sandbox
from cortex.ports.aether import Board
from cortex.ports.agents import Agents
from cortex.ports.engine import Runner, SharedHub, Signals
from cortex.ports.loop import Targets
from cortex.ports.system import Discovery, Status
from cortex.providers import ProviderContext, connect
from cortex.services.accounts.accounts import Accounts
from cortex.services.agents.agents import AgentsService
from cortex.services.agents.results import AgentResults
from cortex.services.budgets.budgets import Budgets
from cortex.services.chat.chat import Chat
from cortex.services.chat.composer import ComposerService
from cortex.services.chat.conversations import ConversationsService
from cortex.services.clients import clients
from cortex.services.content.board import TaskBoard
from cortex.services.content.notes import NotesService
from cortex.services.content.tasks import TasksService
from cortex.services.health.doctor import Doctor
from cortex.services.health.home_files import HomeFiles
from cortex.services.health.housekeeping import Housekeeping
from cortex.services.health.status import StatusService
from cortex.services.jobs.scheduler import LazyReader, Scheduler, open_ports
from cortex.services.models.models import Connect, Models
from cortex.services.models.profiles import Profiles
from cortex.services.notices.stack import NotificationStack
from cortex.services.reminders.reminders import RemindersService
from cortex.services.roles.preferences import PreferencesService
from cortex.services.roles.roles import Roles
from cortex.services.runtime import Runtime
from cortex.services.scope import ToolScope
from cortex.services.tools.encoders import Encoders
from cortex.services.tools.settings import ToolSettingsService
from cortex.services.tools.skill_files import SkillFiles
from cortex.services.tools.tools import ToolsService
from cortex.services.turns.approvals import ApprovalsService
from cortex.services.turns.planning import Finder, Planning
from cortex.services.turns.turn_context import TurnContexts
from cortex.services.turns.turn_loop import turn_runs
from cortex.services.turns.turns import WORKFLOW, TurnRuns
from cortex.services.turns.undo import UndoService
from cortex.services.usage.records import Records
from cortex.storage.calls import CallsRepository
from cortex.storage.conversations import AllConversationsRepository
from cortex.storage.db import Database
from cortex.storage.home import Homes
from cortex.toolkit.registry import Registry

ACCESS_ENDED = "access.ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cortex:
    """The opened services: what the browser and the command line may call."""

    settings: Settings
    runtime: Runtime
    accounts: Accounts
    conversations: ConversationsService
    chat: Chat
    approvals: ApprovalsService
    notifications: NotificationStack
    scheduler: Scheduler
    reminders: RemindersService
    agents: AgentsService
    undo: UndoService
    models: Models
    roles: Roles
    tools: ToolsService
    tool_settings: ToolSettingsService
    encoders: Encoders
    planning: Planning
    records: Records
    composer: ComposerService
    tasks: TasksService
    notes: NotesService
    preferences: PreferencesService
    doctor: Doctor
    hub: SharedHub

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings, *, clock: Clock = now) -> AsyncIterator["Cortex"]:
        """The running daemon: migrated, engine launched, unfinished turns taken up again; closed behind the block."""
        async with _running(settings, clock, Engine.create(settings.engine_database), LocalHub()) as cortex:
            yield cortex

    @classmethod
    @asynccontextmanager
    async def worker(cls, settings: Settings, *, clock: Clock = now) -> AsyncIterator["Cortex"]:
        """One of several processes that run turns and serve no page. ConfigError where the database is not shared."""
        async with relayed(shared_database(settings)) as relay:
            engine = Engine.create(settings.engine_database, is_worker=True)
            relay.on(STARTED, lambda _: dbos_patches.wake())
            relay.on(CANCELLED, engine.stop_here)
            async with _running(settings, clock, engine, relay) as cortex:
                yield cortex

    @classmethod
    @asynccontextmanager
    async def web(cls, settings: Settings, *, clock: Clock = now) -> AsyncIterator["Cortex"]:
        """One of several processes that serve the page and run no turn. ConfigError like `worker`."""
        async with relayed(shared_database(settings)) as relay:
            remote = await Remote.connect(settings.engine_database, broadcast=relay.broadcast)
            try:
                async with _opened(settings, clock, remote, remote, relay) as (cortex, _):
                    await cortex.runtime.db.migrate()
                    relay.newest = cortex.runtime.db.repository(AllConversationsRepository).seqs
                    relay.on(ACCESS_ENDED, cortex.chat.end_streams)
                    cortex.accounts.on_access_ended(partial(_tell_access_ended, relay))
                    yield cortex
            finally:
                await remote.close()

    @classmethod
    @asynccontextmanager
    async def at_rest(
        cls, settings: Settings, *, is_migrating: bool = True, clock: Clock = now
    ) -> AsyncIterator["Cortex"]:
        """The same services without engine and timers, for the commands: it looks and explains, and starts no turn.

        is_migrating: bring the tables up to date first; the doctor would rather see them as they are.
        """
        resting = NullEngine()
        async with _opened(settings, clock, resting, resting, LocalHub()) as (cortex, _):
            if is_migrating:
                await cortex.runtime.db.migrate()
            yield cortex


def shipped_registry() -> Registry:
    """The tools that ship, for commands that open no services."""
    return tool_files.load()


@asynccontextmanager
async def _running(settings: Settings, clock: Clock, engine: Engine, hub: SharedHub) -> AsyncIterator[Cortex]:
    """The services with their engine launched; beside it the daily round, and a look after turns that nobody runs."""
    async with _opened(settings, clock, engine, engine, hub) as (cortex, runs):
        await cortex.runtime.db.migrate()
        engine.register(WORKFLOW, runs.run_turn)
        try:
            await engine.launch()
            await runs.recover(await engine.stranded())
            keeping = Housekeeping(
                accounts=cortex.accounts,
                prune=engine.prune,
                clock=clock,
                also=(cortex.notifications.sweep, cortex.scheduler.sweep, cortex.records.sweep),
            )
            work = (
                cortex.notifications.deliver_notices(),
                cortex.scheduler.keep_time(),
                cortex.agents.results.deliver_results(),
            )
            async with background_tasks(keeping.clean_daily(), runs.look_after(), *work):
                yield cortex
        finally:
            await engine.close(settings.shutdown_grace_s)


async def _tell_access_ended(relay: RelayHub, user_id: str) -> None:
    relay.broadcast(ACCESS_ENDED, user_id)


@asynccontextmanager
async def _opened(
    settings: Settings, clock: Clock, runner: Runner, signals: Signals, hub: SharedHub
) -> AsyncIterator[tuple[Cortex, TurnRuns]]:
    """Everything but the engine, wired and closed again."""
    if not isinstance(runner, NullEngine):
        await private.settle(settings.home)
    db = Database(settings.database, clock=clock)
    homes, sandbox, registry = Homes(settings.home), Sandbox(home=settings.home), tool_files.load()
    accounts = Accounts(db, settings, clock)
    models = Models(db, homes, Vault(settings.secret_key), _connector(settings), hosts=settings.model_places)
    book = LogBook()
    book.setFormatter(LineFormatter(SecretFilter(*settings.known_secrets)))
    scope = ToolScope(db, await clients(settings, accounts, homes, sandbox, book))
    runtime = Runtime(
        settings=settings,
        db=db,
        hub=hub,
        runner=runner,
        signals=signals,
        registry=registry,
        scope=scope,
        clock=clock,
        ticks_s=ticks_s,
    )
    files = HomeFiles(roles=Roles(homes, db), models=models)
    cortex, runs = _services(runtime, scope, homes, accounts, files, Doctor(settings, db, sandbox, accounts, files))
    accounts.on_access_ended(cortex.chat.access_ended)
    logging.getLogger().addHandler(book)
    try:
        yield cortex, runs
    finally:
        logging.getLogger().removeHandler(book)
        cortex.encoders.close()
        await models.close()
        await db.close()


def _services(
    runtime: Runtime, scope: ToolScope, homes: Homes, accounts: Accounts, files: HomeFiles, doctor: Doctor
) -> tuple[Cortex, TurnRuns]:
    """The services over their shared ground."""
    roles, models, skills = files.roles, files.models, SkillFiles(homes, runtime.db)
    status = StatusService(runtime=runtime, doctor=doctor, started_at=runtime.clock())
    scope.add(Targets, partial(runtime.db.repository, CallsRepository))
    scope.add(Status, lambda _: status)
    scope.add(Board, lambda user_id: TaskBoard(db=runtime.db, user_id=user_id, clock=runtime.clock))
    notifications = NotificationStack.over(runtime, scope)
    reminders = open_ports(runtime, scope, notifications.notices)
    settings = ToolSettingsService(runtime.db, runtime.registry)
    encoders = Encoders(runtime.settings, is_hasty=not isinstance(runtime.runner, NullEngine))
    tools = _tools(runtime, scope, roles, settings, skills, encoders)
    scope.add(Discovery, lambda user_id: Finder(runtime=runtime, accounts=accounts, tools=tools, user_id=user_id))
    preferences = PreferencesService(runtime.db, homes)
    profiles, budgets = Profiles(db=runtime.db, models=models), Budgets(runtime=runtime, roles=roles, models=models)
    contexts = TurnContexts(
        runtime=runtime, accounts=accounts, roles=roles, models=models, tools=tools, profiles=profiles, budgets=budgets
    )
    planning = Planning(runtime=runtime, contexts=contexts, tools=tools)
    runs = turn_runs(runtime, homes, contexts, planning, notifications.approvals)
    results = AgentResults(
        runtime=runtime, runs=runs, notifier=notifications.notices, is_watched=notifications.approvals.is_watched
    )
    agents = AgentsService(runtime=runtime, accounts=accounts, roles=roles, budgets=budgets, runs=runs, results=results)
    scope.add(Agents, agents.for_user)
    conversations = ConversationsService(runtime.db, runtime.hub, runtime.clock)
    conversations.on_deleted(agents.cancel_all_of)
    cortex = Cortex(
        settings=runtime.settings,
        runtime=runtime,
        accounts=accounts,
        conversations=conversations,
        chat=Chat(runtime=runtime, runs=runs, watched=notifications.watched),
        approvals=notifications.approvals,
        notifications=notifications,
        scheduler=Scheduler.over(runtime, notifications.notices, accounts, roles, models, tools, runs),
        reminders=reminders,
        agents=agents,
        undo=UndoService(runtime=runtime, tools=tools),
        models=models,
        roles=roles,
        tools=tools,
        tool_settings=settings,
        encoders=encoders,
        planning=planning,
        records=Records.over(runtime, accounts, models, tools, profiles),
        composer=ComposerService(runtime=runtime, preferences=preferences, roles=roles, models=models, tools=tools),
        tasks=TasksService(runtime.db),
        notes=NotesService(homes, runtime.db),
        preferences=preferences,
        doctor=doctor,
        hub=runtime.hub,
    )
    return cortex, runs


def _tools(
    runtime: Runtime,
    scope: ToolScope,
    roles: Roles,
    settings: ToolSettingsService,
    skills: SkillFiles,
    encoders: Encoders,
) -> ToolsService:
    """The tools as they can be used: what is opened last counts as there."""
    return ToolsService(
        registry=runtime.registry,
        wired=scope.wired | {Discovery.__name__, Agents.__name__},
        roles=roles,
        clock=runtime.clock,
        settings=settings,
        skills=skills,
        encoders=encoders,
    )


def _connector(settings: Settings) -> Connect:
    """How models are reached: the egress policy is the registry's word on each, the offline model's pace a setting."""
    delay_s = settings.offline_delay_ms / 1000
    given = ProviderContext(chunk_delay_s=delay_s, timings=LazyReader())
    return lambda entry, secret, policy: connect(entry, secret, replace(given, policy=policy))
