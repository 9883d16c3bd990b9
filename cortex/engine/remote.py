"""The engine seen from a process that runs nothing (`cortex web`): put in line, signal, cancel, look.

No threads, no polling: every call is one statement.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Self

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, DBOSPortableJSONSerializer, EnqueueOptions
from dbos import error as dbos_error

from cortex.base.errors import ConfigError, NotFound
from cortex.engine import dbos_patches, pruning
from cortex.engine.config import APP, AT_ONCE, OPEN_STATES, PER_USER, STATES, VERSION
from cortex.engine.database import is_postgres, open_database

# A broadcast that is lost costs time alone: polls find the start after 2 s, the cancel after 0.5 s.
STARTED = "engine.start"
CANCELLED = "engine.cancel"

Tell = Callable[[str, str], None]


class Remote:
    """Implements `Runner` and the sending half of `Signals`."""

    def __init__(self, database: sa.Engine, client: DBOSClient, broadcast: Tell | None) -> None:
        """Use `open`."""
        self._database = database
        self._client = client
        self._broadcast = broadcast or _nobody

    @classmethod
    async def connect(cls, url: str, *, broadcast: Tell | None = None) -> Self:
        """Connect; the URL as for `Engine.open`. Makes the tables when no worker did so before.

        broadcast: How workers hear at once of a start or a cancel, `(topic, run id)`; without it they poll.
        """
        dbos_patches.quiet_log()
        database = open_database(url)
        try:
            if is_postgres(url):
                await asyncio.to_thread(make_tables, database)
            return cls(database, await asyncio.to_thread(client_of, database), broadcast)
        except sa.exc.OperationalError as error:
            database.dispose()
            reason = str(error.orig).partition("\n")[0]
            raise ConfigError(f"CORTEX_DATABASE_URL: the database does not answer: {reason}") from error

    async def close(self) -> None:
        """Let go of the connections."""
        await asyncio.to_thread(self._client.destroy)
        self._database.dispose()

    async def start(
        self, run_id: str, workflow: str, argument: dict[str, Any], *, queue: str = "", key: str = ""
    ) -> None:
        """Put it in line for a worker; a second start of the same id is a no-op. Without a queue: `agents`."""
        name = queue or "agents"
        if name not in AT_ONCE:
            raise NotFound(f"No queue {name!r}")
        options: EnqueueOptions = {
            "workflow_name": workflow,
            "queue_name": name,
            "workflow_id": run_id,
            "app_version": VERSION,
        }
        if name in PER_USER:
            options["queue_partition_key"] = key
        await self._client.enqueue_async(options, run_id, argument, "", "")
        self._broadcast(STARTED, run_id)

    async def cancel(self, run_id: str) -> None:
        """Stop it for good; the worker sees it within a second."""
        await self._client.cancel_workflow_async(run_id)
        self._broadcast(CANCELLED, run_id)

    async def status(self, run_id: str) -> str:
        """One of unknown, queued, running, done, failed, cancelled."""
        states = await self._client.list_workflows_async(workflow_ids=[run_id], load_input=False, load_output=False)
        return STATES[states[0].status] if states else "unknown"

    async def unfinished(self) -> list[str]:
        """Ids of the runs that have not ended, oldest first."""
        states = await self._client.list_workflows_async(status=OPEN_STATES, load_input=False, load_output=False)
        return [state.workflow_id for state in states]

    async def forget(self, run_ids: Sequence[str]) -> None:
        """Forget these runs whatever became of them."""
        await pruning.forget(self._client.delete_workflows_async, run_ids)

    async def hold(self) -> None:
        """Never called here: a run is held, and runs are the workers'."""
        raise RuntimeError("only a run is held, and none runs in this process")

    async def has_moved(self) -> None:
        """Never called here: runs are the workers'."""
        raise RuntimeError("no run moves in this process")

    async def signal(self, run_id: str, topic: str, value: str) -> None:
        """Deliver a topic's one value to a run, wherever it runs. NotFound for an unknown one."""
        try:
            await self._client.send_async(run_id, value, topic, idempotency_key=topic)
        except dbos_error.DBOSNonExistentWorkflowError as error:
            raise NotFound(f"No run {run_id!r}") from error

    async def wait_for_signal(self, topic: str, timeout_s: float) -> str | None:
        """Never called here: a run waits, and runs are the workers'."""
        raise RuntimeError("only a run waits, and none runs in this process")


def _nobody(_topic: str, _run_id: str) -> None:
    """No other process listens."""


def make_tables(database: sa.Engine) -> None:
    """Create or upgrade the engine's tables, one process after the other; costs next to nothing when they stand."""
    DBOS.migrate(database.url.render_as_string(hide_password=False))


def client_of(database: sa.Engine, *, is_patient: bool = True) -> DBOSClient:
    """A DBOS client on our database; DBOSInitializationError and the like when it cannot be reached.

    is_patient: it waits for a PostgreSQL that goes away later, without end.
    """
    return DBOSClient(
        system_database_engine=database,
        serializer=DBOSPortableJSONSerializer(),
        application_name=APP,
        retry_connection_errors=is_patient,
    )


def hand_over(database: sa.Engine, left: list[str]) -> None:
    """An orderly end is no life in vain: put what is left back in line, its count of lives at zero."""
    if not left:
        return
    client = client_of(database, is_patient=False)
    try:
        # Only those still pending: one may have ended since.
        for state in client.list_workflows(workflow_ids=left, status="PENDING", load_input=False):
            client.update_workflow_attributes(state.workflow_id, None)
            client.resume_workflow(state.workflow_id, queue_name=state.queue_name)
    finally:
        client.destroy()
