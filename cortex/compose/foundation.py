"""The lower half of what Cortex is made of: files and people, models, notifications, the turns that wait.

Each part is made where it is first asked for, once: `services.py` says how the four files go together.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from functools import cached_property, partial
from pathlib import Path

from msgspec.structs import replace

from cortex.base.settings import Settings
from cortex.compose.files import FileServices
from cortex.compose.presets import presets
from cortex.engine.database import examine
from cortex.integrations.aider.system import AiderHost
from cortex.integrations.cards import IntegrationHost, kinds
from cortex.integrations.mcp.host import Machine
from cortex.integrations.mcp.system import McpHost
from cortex.ports.mcp import FAMILY
from cortex.ports.mcp import PAGE as MCP_PAGE
from cortex.providers import ProviderContext, connect, list_models, look_at_model
from cortex.services.accounts.accounts import Accounts
from cortex.services.accounts.deletions import Deletions
from cortex.services.agents.results import AgentResults
from cortex.services.chat.chat import Chat
from cortex.services.chat.streams import OpenStreams
from cortex.services.chat.titles import OpenedChats
from cortex.services.chat.versions import Versions
from cortex.services.content.journals import JournalsService
from cortex.services.content.shared_lists import SharedLists
from cortex.services.health.audit_log import AuditLog
from cortex.services.health.doctor import Doctor
from cortex.services.health.live import LiveHealth
from cortex.services.health.metrics import MetricsService
from cortex.services.health.sealed import SealedValues
from cortex.services.integrations.browsed_databases import BrowsedDatabases
from cortex.services.integrations.clients import IntegrationClients
from cortex.services.integrations.databases import UserDatabases
from cortex.services.integrations.integrations import Integrations
from cortex.services.integrations.journals import ServerJournals
from cortex.services.integrations.mcp import PROGRAMS as MCP_PROGRAMS
from cortex.services.integrations.mcp_logins import SealedLogin
from cortex.services.jobs.runs import SlotSignal
from cortex.services.models.connecting import ModelConnecting
from cortex.services.models.models import Connect, Models
from cortex.services.models.profiles import Profiles
from cortex.services.models.sharing import ModelSharing
from cortex.services.notices.action_links import ActionLinks
from cortex.services.notices.addresses import Addresses
from cortex.services.notices.channels import Channels, TalkNotices
from cortex.services.notices.delivery import Delivery
from cortex.services.notices.devices import DevicesService
from cortex.services.notices.digests import Digests
from cortex.services.notices.linked_chats import LinkedNotices
from cortex.services.notices.notices import Notices
from cortex.services.notices.outbox import Outbox
from cortex.services.notices.preferences import NotificationPreferences
from cortex.services.notices.push_keys import PushKeys
from cortex.services.reminders.reminders import RemindersService
from cortex.services.roles.preferences import PreferencesService
from cortex.services.roles.role_names import HomeFiles, RoleNames
from cortex.services.roles.roles import Roles
from cortex.services.timings import LazyReader
from cortex.services.tools.plugins import Plugins
from cortex.services.turns.approval_admin import ApprovalAdmin
from cortex.services.turns.approval_timer import ApprovalTimer
from cortex.services.turns.approvals import ApprovalsService
from cortex.services.turns.end import TurnEnd
from cortex.services.turns.queue import TurnQueue
from cortex.services.turns.stop_all import StopAll
from cortex.services.upkeep.updates import Updates
from cortex.storage.turns import TurnRow
from cortex.storage.write_line import people_first, writes_within


class Foundation(FileServices):
    """Files, people, models, notifications, and the queue in which turns wait."""

    def page_view(self) -> AbstractAsyncContextManager[None]:
        """Let all that a page reads inside the block share one transaction (`Database.one_view`)."""
        return self.runtime.db.one_view(of_page=True)

    async def end_view(self) -> None:
        """All is read: hold no connection while something else takes its time."""
        await self.runtime.db.end_view()

    @contextmanager
    def writes_within(self, seconds: float, *, is_person: bool) -> Iterator[None]:
        """Let what is called inside the block wait no longer than this to write; what a person waits for goes first."""
        with writes_within(seconds), people_first() if is_person else nullcontext():
            yield

    @cached_property
    def roles(self) -> Roles:
        return Roles(self.runtime.registry, self.homes, self.runtime.db)

    @cached_property
    def models(self) -> Models:
        return Models(
            self.runtime.db,
            self.homes,
            self.vault,
            _connector(self.settings),
            presets=presets(),
            look=look_at_model,
            hosts=self.settings.model_places,
            local_requests=self.settings.local_requests_at_once,
        )

    @cached_property
    def model_connecting(self) -> ModelConnecting:
        return ModelConnecting(self.models, list_models)

    @cached_property
    def model_sharing(self) -> ModelSharing:
        return ModelSharing(db=self.runtime.db, models=self.models, clock=self.runtime.clock)

    @cached_property
    def profiles(self) -> Profiles:
        return Profiles(db=self.runtime.db, models=self.models)

    @cached_property
    def preferences(self) -> PreferencesService:
        return PreferencesService(self.runtime.db, self.homes)

    @cached_property
    def journals(self) -> JournalsService:
        return JournalsService(
            self.runtime.db, self.runtime.clock, ServerJournals(clients=self.integration_clients).open
        )

    @cached_property
    def shared_lists(self) -> SharedLists:
        return SharedLists(db=self.runtime.db, hub=self.hub, notifier=self.notices)

    @cached_property
    def reminders(self) -> RemindersService:
        return RemindersService(runtime=self.runtime, timings=LazyReader())

    @cached_property
    def streams(self) -> OpenStreams:
        return OpenStreams(hub=self.hub, settings=self.settings)

    @cached_property
    def push_keys(self) -> PushKeys:
        return PushKeys(self.runtime.db, self.vault)

    @cached_property
    def channels(self) -> Channels:
        talk = TalkNotices(clients=lambda: self.integration_clients)  # they stand above: asked for when it is used
        chats = LinkedNotices(db=self.runtime.db, clients=lambda: self.integration_clients)
        return Channels(
            settings=self.settings, keys=self.push_keys, clock=self.runtime.clock, talk=talk, messengers=chats
        )

    @cached_property
    def closed_folders(self) -> Sequence[Path]:
        """Return what no program of others is given, whatever a card says."""
        system = map(Path, ("/proc", "/sys", "/dev", "/run", "/var/run"))
        return (self.settings.home, Path(".env").absolute(), *system)

    @cached_property
    def mcp_host(self) -> McpHost:
        """Return what this machine gives to MCP servers."""
        settings = self.settings
        return McpHost(
            sandbox=self._sandbox,
            folder=settings.home / FAMILY,
            closed=self.closed_folders,
            programs=settings.home / MCP_PROGRAMS,
            machine=Machine(home=Path.home(), path=os.environ.get("PATH", ""), closed=self.closed_folders),
            logins=lambda name: SealedLogin(db=self.runtime.db, vault=self.vault, name=name),
            redirect=lambda: (
                (settings.public_url or f"http://{settings.host}:{settings.port}") + MCP_PAGE + "/callback"
            ),
            clock=self.runtime.clock,
        )

    @cached_property
    def updates(self) -> Updates:
        return Updates(settings=self.settings, backups=self.backups)

    @cached_property
    def integrations(self) -> Integrations:
        host = IntegrationHost(
            settings=self.settings,
            lacks_channel=self.channels.lacks,
            is_boxed=lambda: self._is_boxed,
            no_updates=self.updates.lacks,
            logins=lambda kind: SealedLogin(db=self.runtime.db, vault=self.vault, kind=kind),
            mcp=self.mcp_host,
            aider=AiderHost(sandbox=self._sandbox, home=self.settings.home),
        )
        return Integrations(
            db=self.runtime.db,
            vault=self.vault,
            clock=self.runtime.clock,
            kinds=kinds(host),
            member_roles=self.roles.for_members,
            all_roles=lambda: self.role_names.of_admins(),
        )

    @cached_property
    def plugins(self) -> Plugins:
        return Plugins(self.runtime.db, self.runtime.registry, self.channels.register.put)

    @cached_property
    def integration_clients(self) -> IntegrationClients:
        return IntegrationClients(integrations=self.integrations)

    def browsed_databases(self, user_id: str) -> BrowsedDatabases:
        """The same as this user's page reads them."""
        return BrowsedDatabases(databases=self.databases(user_id), db=self.runtime.db)

    def databases(self, user_id: str) -> UserDatabases:
        """The databases that this user may read."""
        return UserDatabases(clients=self.integration_clients, home=self.homes.home_of(user_id), user_id=user_id)

    @cached_property
    def addresses(self) -> Addresses:
        return Addresses(db=self.runtime.db, vault=self.vault, channels=self.channels)

    @cached_property
    def notification_preferences(self) -> NotificationPreferences:
        return NotificationPreferences(self.runtime.db, self.hub, self.channels)

    @cached_property
    def devices(self) -> DevicesService:
        return DevicesService(db=self.runtime.db, channels=self.channels, clock=self.runtime.clock)

    @cached_property
    def notices(self) -> Notices:
        return Notices(
            db=self.runtime.db,
            hub=self.hub,
            preferences=self.notification_preferences,
            addresses=self.addresses,
            clock=self.runtime.clock,
            answered={"reminder": self.reminders.answered},
        )

    @cached_property
    def approvals(self) -> ApprovalsService:
        async def begin(row: TurnRow) -> None:
            await self.turn_queue.start(row)

        return ApprovalsService(
            runtime=self.runtime, notifier=self.notices, is_watched=self.streams.is_watched, begin=begin
        )

    @cached_property
    def approval_timer(self) -> ApprovalTimer:
        return ApprovalTimer(runtime=self.runtime, notifier=self.notices)

    @cached_property
    def action_links(self) -> ActionLinks:
        return ActionLinks(
            db=self.runtime.db,
            notices=self.notices,
            answering=self.approvals.answer,
            weighing=self.approvals.weigh,
            clock=self.runtime.clock,
            secret_key=self.settings.secret_key,
        )

    @cached_property
    def outbox(self) -> Outbox:
        delivery = Delivery(
            db=self.runtime.db,
            notices=self.notices,
            channels=self.channels,
            action_links=self.action_links,
            clock=self.runtime.clock,
        )
        return Outbox(
            db=self.runtime.db,
            hub=self.hub,
            delivery=delivery,
            clock=self.runtime.clock,
            refresh=self.plugins.refresh,
        )

    @cached_property
    def digests(self) -> Digests:
        return Digests(db=self.runtime.db, notices=self.notices, clock=self.runtime.clock)

    @cached_property
    def slot_signal(self) -> SlotSignal:
        return SlotSignal()

    @cached_property
    def chats_to_name(self) -> OpenedChats:
        return OpenedChats()

    @cached_property
    def agent_results(self) -> AgentResults:
        return AgentResults(runtime=self.runtime, notifier=self.notices, is_watched=self.streams.is_watched)

    @cached_property
    def turn_end(self) -> TurnEnd:
        return TurnEnd(
            runtime=self.runtime,
            of_agent=self.agent_results.write_result,
            after_commit=(self.agent_results.committed, self.slot_signal.turn_ended),
            after_done=(self.chats_to_name.add,),
        )

    @cached_property
    def turn_queue(self) -> TurnQueue:
        return TurnQueue(runtime=self.runtime, turn_end=self.turn_end, approvals=self.approvals)

    @cached_property
    def stop_all(self) -> StopAll:
        return StopAll(runtime=self.runtime, turns=self.turn_queue, lifted=self.slot_signal.event.set)

    @cached_property
    def chat(self) -> Chat:
        return Chat(runtime=self.runtime, turns=self.turn_queue, streams=self.streams, models=self.models)

    @cached_property
    def versions(self) -> Versions:
        return Versions(runtime=self.runtime)

    @cached_property
    def accounts(self) -> Accounts:
        return Accounts(
            self.runtime.db,
            self.settings,
            self.runtime.clock,
            access_ended=(self.chat.access_ended, *self._access_ended),
            logged_out=(self.chat.logged_out, *self._access_ended),
        )

    @cached_property
    def deletions(self) -> Deletions:
        return Deletions(
            db=self.runtime.db,
            homes=self.homes,
            runs=self.runtime.runner,
            access_ended=self.accounts.end_access,
        )

    @cached_property
    def approval_admin(self) -> ApprovalAdmin:
        return ApprovalAdmin(runtime=self.runtime, accounts=self.accounts)

    @cached_property
    def audit_log(self) -> AuditLog:
        return AuditLog(db=self.runtime.db, accounts=self.accounts, notifier=self.notices, clock=self.runtime.clock)

    @cached_property
    def role_names(self) -> RoleNames:
        return RoleNames(db=self.runtime.db, roles=self.roles, models=self.models, registry=self.runtime.registry)

    @cached_property
    def doctor(self) -> Doctor:
        files = HomeFiles(roles=self.roles, models=self.models, names=self.role_names)
        return Doctor(
            self.settings,
            self.runtime.db,
            self._sandbox,
            self.accounts,
            files,
            self.stop_all,
            self.audit_log,
            self.sealed_values,
            partial(examine, self.settings.engine_database),
            self.backups,
            self.integrations,
            self.plugins,
        )

    @cached_property
    def live_health(self) -> LiveHealth:
        return LiveHealth(
            runtime=self.runtime, channels=self.channels, push_keys=self.push_keys, log_book=self._log_book
        )

    @cached_property
    def metrics(self) -> MetricsService:
        return MetricsService(runtime=self.runtime, streams=self.streams, started_at=self.started_at)

    @cached_property
    def sealed_values(self) -> SealedValues:
        return SealedValues(settings=self.settings, db=self.runtime.db)


def _connector(settings: Settings) -> Connect:
    """Say how models are reached: the egress policy is the registry's word on each, the offline pace a setting."""
    given = ProviderContext(chunk_delay_s=settings.offline_delay_ms / 1000, timings=LazyReader())
    return lambda entry, secret, policy: connect(entry, secret, replace(given, policy=policy))
