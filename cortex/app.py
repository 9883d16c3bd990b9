"""The daemon and its halves: opens what the services stand on, has the background work go on, closes all of it again.

`Cortex.open(settings)` is the running daemon; `web` and `worker` are its two halves, several of each on PostgreSQL;
`Cortex.at_rest(settings)` is the same without engine and timers, for the commands. What it is made of is in
`compose/`.
"""

import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from cortex import tools as tool_files
from cortex.base import private
from cortex.base.background import background_tasks
from cortex.base.clock import Clock, now, ticks_s
from cortex.base.crypto import Vault, audit_key
from cortex.base.database_needs import refuse_unfit
from cortex.base.errors import ConfigError, DatabaseUnavailable, ToolFailed
from cortex.base.faults import in_words
from cortex.base.log import LineFormatter, LogBook, SecretFilter, also_blot
from cortex.base.outages import Outages
from cortex.base.settings import Settings
from cortex.base.start import shared_database
from cortex.compose.services import Services
from cortex.engine import dbos_patches
from cortex.engine.dbos import Engine
from cortex.engine.hub import LocalHub
from cortex.engine.null_engine import NullEngine
from cortex.engine.relay import LISTENING, RelayHub, relayed
from cortex.engine.remote import CANCELLED, STARTED, Remote
from cortex.integrations.process import run
from cortex.integrations.quota import MB, Quota
from cortex.integrations.sandbox import Sandbox
from cortex.ports.engine import Runner, SharedHub, Signals
from cortex.services.backup import restore, restored
from cortex.services.backup.nightly import NightlyBackup
from cortex.services.health.housekeeping import Housekeeping
from cortex.services.health.sealed import SealedValues
from cortex.services.runtime import Runtime
from cortex.services.turns.queue import WORKFLOW
from cortex.services.upkeep.server_settings import ServerSettings
from cortex.storage import calm_readers, revisions
from cortex.storage.audit_head import AuditHead
from cortex.storage.commits import WROTE
from cortex.storage.conversations import AllConversationsRepository
from cortex.storage.db import BUSY_TIMEOUT_S, Database
from cortex.storage.outage_lines import OutageLines
from cortex.toolkit.registry import Registry

ACCESS_ENDED = "access.ended"
SETTINGS = "settings"  # the topic under which another process is told that some were changed
MIGRATION_S = 3_600.0
WRITE_WAIT_S = 300.0  # a turn waits for whoever holds the database, rather than end because of it

Listener = Callable[[str], Awaitable[None]]
C = TypeVar("C", bound="Cortex")


class Cortex(Services):
    """The services with what they stand on opened."""

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings, *, clock: Clock = now) -> AsyncIterator[Self]:
        """The running daemon: migrated, engine launched, unfinished turns taken up again; closed behind the block."""
        outages = Outages()
        engine = Engine(settings.engine_database, outages=outages)
        async with _running(cls, settings, clock, engine, LocalHub(), outages) as cortex:
            yield cortex

    @staticmethod
    async def catch_up(settings: Settings) -> None:
        """Have tables that are behind brought up to date by a process that ends; `open` does it where that cannot.

        What migrates stays in the memory of whoever did it: 27 MB of a first life.
        """
        with in_words(settings.database):
            await private.settle(settings.home)
            await refuse_unfit((settings.database, settings.engine_database))
            db = Database(settings.database)
            try:
                if await db.revision() >= revisions.newest():
                    return
            finally:
                await db.close()
        with suppress(ToolFailed):  # it did not start
            migrate = [sys.executable, "-m", "web", "migrate"]
            await run(migrate, cwd=Path.cwd(), timeout_s=MIGRATION_S, env=os.environ)

    @classmethod
    @asynccontextmanager
    async def worker(cls, settings: Settings, *, clock: Clock = now) -> AsyncIterator[Self]:
        """One of several processes that run turns and serve no page. ConfigError where the database is not shared."""
        async with relayed(shared_database(settings)) as relay:
            outages = Outages()
            engine = Engine(settings.engine_database, is_worker=True, outages=outages, tell=relay.broadcast)
            for topic in (STARTED, LISTENING):
                relay.on(topic, lambda _: dbos_patches.wake())
            for topic in (STARTED, WROTE, LISTENING):
                relay.on(topic, lambda _: engine.stir())
            relay.on(CANCELLED, engine.stop_here)
            async with _running(cls, settings, clock, engine, relay, outages) as cortex:
                _heed_settings(cortex, relay)
                yield cortex

    @classmethod
    @asynccontextmanager
    async def web(cls, settings: Settings, *, clock: Clock = now) -> AsyncIterator[Self]:
        """One of several processes that serve the page and run no turn. ConfigError like `worker`."""
        async with relayed(shared_database(settings)) as relay:
            remote = await Remote.connect(settings.engine_database, broadcast=relay.broadcast)

            async def tell_others(user_id: str) -> None:
                relay.broadcast(ACCESS_ENDED, user_id)

            try:
                async with _opened(cls, settings, clock, remote, remote, relay, tell_others) as cortex:
                    seqs = cortex.runtime.db.repository(AllConversationsRepository).seqs
                    # Nothing else asks the database all the time here: by this look pages learn that it is away.
                    relay.newest = lambda ids: cortex.runtime.outages.wait_out(lambda: seqs(ids))
                    relay.on(ACCESS_ENDED, cortex.streams.end_streams)
                    _heed_settings(cortex, relay)
                    await cortex.plugins.categories()  # pages list their channels
                    async with background_tasks(
                        cortex.accounts.keep_logins,
                        cortex.stop_all.watch,
                        cortex.integration_clients.sweep,
                        cortex.tool_readiness.keep,
                        cortex.server_settings.watch,
                    ):
                        yield cortex
            finally:
                await remote.close()

    @classmethod
    @asynccontextmanager
    async def at_rest(cls, settings: Settings, *, is_migrating: bool = True, clock: Clock = now) -> AsyncIterator[Self]:
        """The same without engine and timers, for the commands: it looks and explains, and starts no turn.

        is_migrating: bring the tables up to date and look at the secret key first; the doctor would rather see both as
            they are.
        """
        resting = NullEngine()
        async with _opened(cls, settings, clock, resting, resting, LocalHub(), is_migrating=is_migrating) as cortex:
            yield cortex


def shipped_registry() -> Registry:
    """The tools that ship, for commands that open no services."""
    return tool_files.load()


@asynccontextmanager
async def _running(
    kind: type[C], settings: Settings, clock: Clock, engine: Engine, hub: SharedHub, outages: Outages
) -> AsyncIterator[C]:
    """The services with their engine launched; beside it the daily round, and a look after turns that nobody runs."""
    async with _opened(kind, settings, clock, engine, engine, hub, outages=outages) as cortex:
        engine.register(WORKFLOW, cortex.turn_body)
        try:
            await cortex.stop_all.heed()  # ahead of the launch, which takes up what was left
            # Ahead of the outbox, which may have something due by a channel of theirs.
            await cortex.plugins.categories()
            with in_words(settings.engine_database):
                await engine.launch()
            await cortex.turn_queue.recover(await engine.stranded())
            housekeeping = Housekeeping(
                runtime=cortex.runtime, accounts=cortex.accounts, audit_log=cortex.audit_log, prune=engine.prune
            )
            nightly = NightlyBackup(
                settings=cortex.settings, backups=cortex.backups, has_users=cortex.accounts.has_users, clock=clock
            )
            async with background_tasks(
                housekeeping.clean_daily,
                cortex.deletions.finish_left,
                cortex.document_reading.read_waiting,
                cortex.document_reading.look_around,
                cortex.accounts.keep_logins,
                nightly.keep,
                partial(cortex.turn_queue.look_after, engine.take_up_lost),
                cortex.approval_timer.keep,
                cortex.push_keys.prepare,
                cortex.outbox.send_due,
                cortex.digests.send_digests,
                cortex.scheduler.keep_time,
                cortex.calendar_watch.run,
                cortex.mail_watch.run,
                cortex.messenger_watch.run,
                cortex.agent_results.deliver_results,
                cortex.stop_all.watch,
                cortex.server_settings.watch,
                cortex.quiet_conversations.read_quiet,
                cortex.model_titles.name_chats,
                cortex.temporary_chats.erase_idle,
                cortex.update_orders.work,
                cortex.tool_readiness.keep,
                partial(calm_readers.keep_few, cortex.runtime.db.read),
            ):
                yield cortex
        finally:
            await engine.close(cortex.settings.shutdown_grace_s)


@asynccontextmanager
async def _opened(
    kind: type[C],
    settings: Settings,
    clock: Clock,
    runner: Runner,
    signals: Signals,
    hub: SharedHub,
    *access_ended: Listener,
    is_migrating: bool = True,
    outages: Outages | None = None,
) -> AsyncIterator[C]:
    """The services over an open database, and closed again. What a disk or a database refuses is a ConfigError."""
    if restore.is_pending(settings.home):
        raise ConfigError("A restore is not finished: run `cortex restore` again, or start `cortex serve`.")
    with in_words(settings.database):
        is_daemon = not isinstance(runner, NullEngine)
        if is_daemon:
            await private.settle(settings.home)
        if is_migrating:
            await refuse_unfit((settings.database, settings.engine_database))
            settings = await _with_key(settings, clock)
        wait_s = WRITE_WAIT_S if is_daemon else BUSY_TIMEOUT_S
        audit_head = AuditHead(settings.home, audit_key(settings.secret_key))
        outages = outages or Outages()
        db = Database(settings.database, clock=clock, write_wait_s=wait_s, audit_head=audit_head, outages=outages)
        lay_line(db, hub)
        stored = ServerSettings(settings=settings, db=db, vault=Vault(settings.secret_key), clock=clock)
        try:
            if is_migrating:
                await db.migrate()
                await restored.note(settings.home, db, audit_head)
            with (
                nullcontext() if is_migrating else suppress(DatabaseUnavailable, SQLAlchemyError)
            ):  # the doctor says so
                await stored.begin(is_daemon=is_daemon)
            async with _services(kind, settings, clock, db, runner, signals, hub, access_ended, outages) as cortex:
                cortex.server_settings.go_on(stored)
                yield cortex
        finally:
            await db.close()


def _heed_settings(cortex: Cortex, relay: RelayHub) -> None:
    """Let the server's other processes hear what is set in this one, and this one of theirs."""
    cortex.server_settings.listeners.append(lambda: relay.broadcast_soon(SETTINGS))
    relay.on(SETTINGS, lambda _: cortex.server_settings.stir())


def lay_line(db: Database, hub: SharedHub) -> None:
    """On PostgreSQL let processes hear of each other's commits, so that none has to read tables to learn of them."""
    written = db.commits.written
    if written is not None and isinstance(hub, RelayHub):
        for topic in (WROTE, LISTENING):
            hub.on(topic, lambda _: written.heard())
        written.listen(lambda: hub.broadcast_soon(WROTE))
    elif written is not None:
        written.tell_within()


async def _with_key(settings: Settings, clock: Clock) -> Settings:
    """With the secret key, made where there is none yet and none is missed: before anything is sealed or audited."""
    db = Database(settings.database, clock=clock)
    try:
        key = await SealedValues(settings=settings, db=db).key()
    finally:
        await db.close()
    also_blot(key)
    return settings.model_copy(update={"secret_key": key})


@asynccontextmanager
async def _services(
    kind: type[C],
    settings: Settings,
    clock: Clock,
    db: Database,
    runner: Runner,
    signals: Signals,
    hub: SharedHub,
    access_ended: Sequence[Listener],
    outages: Outages,
) -> AsyncIterator[C]:
    runtime = Runtime(
        settings=settings,
        db=db,
        hub=hub,
        runner=runner,
        signals=signals,
        registry=tool_files.load(),
        clock=clock,
        ticks_s=ticks_s,
        outages=outages,
    )
    book = LogBook()
    book.setFormatter(LineFormatter(SecretFilter(*settings.known_secrets)))
    total = Quota(most_bytes=settings.workspace_mb * MB, most_files=settings.workspace_files)
    sandbox = Sandbox(home=settings.home, total=total)
    is_boxed = (await sandbox.probe()).level != "none"
    cortex = kind(runtime, sandbox=sandbox, is_boxed=is_boxed, log_book=book, access_ended=access_ended)
    logging.getLogger().addHandler(book)
    try:
        with OutageLines(outages).on_every_handler():
            yield cortex
    finally:
        logging.getLogger().removeHandler(book)
        cortex.encoders.close()
        traces = vars(cortex).get("traces_sent")  # made where turns run: who runs none loads nothing of it to close it
        if traces is not None:
            await traces.close()
        await cortex.coding.close()
        await cortex.integration_clients.close()
        await cortex.models.close()
