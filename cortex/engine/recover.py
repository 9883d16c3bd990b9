"""Several workers on one PostgreSQL: who is alive, and who takes over the runs of one that is not.

Each process holds a session advisory lock on its executor id. A lock that another can take means a dead owner; its
runs go back into the queue, each from its last completed step. Used by `engine/dbos.py` on PostgreSQL only.
"""

import asyncio
import hashlib
import logging
from contextlib import suppress

import sqlalchemy as sa
from dbos import DBOS

from cortex.base.clock import ticks_s
from cortex.base.errors import ConfigError
from cortex.engine import dbos_patches
from cortex.engine.config import STIRRED_S
from cortex.engine.runs import Runs

QUIET_LOOKS = 30
OWN_LOCK_WITHIN_S = 15.0  # a killed owner of the same name: its session ends when the server sees the connection gone

log = logging.getLogger(__name__)


def lock_key(executor_id: str) -> int:
    """The advisory lock of an executor: 64 bits, signed, from its name."""
    digest = hashlib.sha256(f"cortex-engine:{executor_id}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


class Recovery:
    """This executor's lock, and a watch over the others'."""

    has_others = True  # pages, at least

    def __init__(self, database: sa.Engine, executor_id: str, version: str, runs: Runs, stirred: asyncio.Event) -> None:
        """`stirred`: set when something was written or begun, in whatever process."""
        self._database = database
        self._executor_id = executor_id
        self._version = version
        self._runs = runs
        self._connection: sa.Connection | None = None
        self._stirred, self._stirred_s = stirred, ticks_s()
        self._is_quiet = False  # whether others had nothing to lose at the last look
        self._passed = 0

    async def claim(self) -> None:
        """Take this executor's own lock; ConfigError when a living process has it."""
        for _ in range(round(OWN_LOCK_WITHIN_S)):
            if await asyncio.to_thread(self._hold):
                return
            await asyncio.sleep(1)
        raise ConfigError(f"Another running process is named {self._executor_id!r}: give each its own name")

    async def look(self) -> None:
        """Take over the runs of the dead; what another worker took while our lock was lost ends here.

        Where others have nothing and nothing stirs, every thirtieth look is taken.
        """
        if self._stirred.is_set():  # who begins something now may die of it
            self._stirred.clear()
            self._stirred_s = ticks_s()
        self._passed += 1
        if self._is_quiet and ticks_s() - self._stirred_s > STIRRED_S and self._passed < QUIET_LOOKS:
            return
        self._passed = 0
        for run_id in await asyncio.to_thread(self._look):
            self._runs.interrupt(run_id)

    async def release(self) -> None:
        """Let go of the lock: what this process had left is the others' from now on."""
        await asyncio.to_thread(self._let_go)

    def _look(self) -> list[str]:
        """One look around; the runs here that are another worker's by now, which took this process for dead."""
        before = self._connection
        if not self._hold():
            return self._runs.ids()
        if self._connection is not before:
            # While the line was down another may have held our lock, taken our runs over, and let go of it again. It
            # was down for the others too, perhaps: they have until the next look to take theirs.
            return self._taken()
        owners = self._owners()
        self._is_quiet = not set(owners) - {self._executor_id} and not self._runs.ids()
        for executor_id in owners:
            if executor_id != self._executor_id and self._try(executor_id):
                try:
                    # The internal call, not resume_workflow: it leaves runs alone that another worker has taken
                    # meanwhile; the run's lives (`lives.py`) end one that kills its process.
                    taken = DBOS._recover_pending_workflows([executor_id])
                    log.info("engine: worker %s is gone, took over %d runs", executor_id, len(taken))
                    dbos_patches.wake()
                finally:
                    self._execute("SELECT pg_advisory_unlock(:key)", executor_id)
        return []

    def _taken(self) -> list[str]:
        """The runs that execute here and that the database does not count as ours."""
        here = self._runs.ids()
        states = DBOS.list_workflows(
            workflow_ids=here, status="PENDING", executor_id=self._executor_id, load_input=False, load_output=False
        )
        ours = {state.workflow_id for state in states}
        return [run_id for run_id in here if run_id not in ours]

    def _owners(self) -> list[str]:
        states = DBOS.list_workflows(status="PENDING", app_version=self._version, load_input=False, load_output=False)
        return sorted({state.executor_id for state in states if state.executor_id})

    def _hold(self) -> bool:
        """Tell whether our own lock is held, on a connection that lives."""
        if self._connection is not None:
            try:
                self._connection.execute(sa.text("SELECT 1"))
            except sa.exc.SQLAlchemyError:
                self._let_go()
            else:
                return True
        connection = self._database.connect().execution_options(isolation_level="AUTOCOMMIT")
        connection.detach()  # out of the pool: the lock lives exactly as long as this connection's session
        # A worker whose machine vanished must not hold its lock for hours.
        for setting in ("tcp_keepalives_idle = 10", "tcp_keepalives_interval = 5", "tcp_keepalives_count = 3"):
            connection.execute(sa.text(f"SET {setting}"))
        self._connection = connection
        if self._try(self._executor_id):
            return True
        self._let_go()
        return False

    def _try(self, executor_id: str) -> bool:
        return bool(self._execute("SELECT pg_try_advisory_lock(:key)", executor_id))

    def _execute(self, statement: str, executor_id: str) -> object:
        if self._connection is None:
            raise RuntimeError("no connection")
        return self._connection.execute(sa.text(statement), {"key": lock_key(executor_id)}).scalar()

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sa.exc.SQLAlchemyError):  # it may be broken, which is why it goes; its lock went with it
                connection.close()
