"""Durable runs on an embedded DBOS: start once, survive a kill, cancel, signal.

DBOS is one per process, so is an open Engine; close it before another is opened. Called by `app.py` alone.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from contextvars import Context
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import sqlalchemy as sa
from dbos import DBOS, DBOSClient, SetEnqueueOptions, SetWorkflowAttributes, SetWorkflowID, WorkflowStatus
from dbos import error as dbos_error

from cortex.base.background import background_tasks
from cortex.base.calm_pool import CalmPool
from cortex.base.errors import Conflict, NotFound
from cortex.base.ids import new_id
from cortex.base.outages import Outages
from cortex.engine import dbos_patches, pruning, queues, runs
from cortex.engine.config import (
    AT_ONCE,
    CANCEL_POLL_S,
    EAGER_S,
    OPEN_STATES,
    PER_USER,
    QUEUE_POLL_S,
    RECOVERY_POLL_S,
    SIGNALLED_POLL_S,
    STATES,
    SWEEP_S,
    THREADS,
    VERSION,
    config,
)
from cortex.engine.database import give_back, is_postgres, open_database, wait_for_room, wait_no_longer
from cortex.engine.durable import DurableSteps
from cortex.engine.leases import LocalRecovery
from cortex.engine.lives import CALM_S, FIRST, Lives
from cortex.engine.looks import LostRuns, repeat
from cortex.engine.queues import QueueSlots
from cortex.engine.recover import Recovery
from cortex.engine.remote import STARTED, Tell, client_of, hand_over, make_tables
from cortex.ports.steps import begins_at_once, is_first_life

log = logging.getLogger(__name__)

Body = Callable[[str, dict[str, Any]], Coroutine[Any, Any, None]]
Workflow = Callable[[str, dict[str, Any], str, str], Coroutine[Any, Any, None]]


class Engine:
    """Implements `Runner` and `Signals` of `ports/engine.py`. Open, register, launch, use, close."""

    _launched: ClassVar["Engine | None"] = None  # DBOS keeps its state in its module: one at a time

    def __init__(
        self,
        url: str,
        *,
        executor_id: str = "",
        is_worker: bool = False,
        version: str = VERSION,
        outages: Outages | None = None,
        calm_s: float = CALM_S,
        tell: Tell | None = None,
    ) -> None:
        """It is not launched yet.

        Args:
            url: `sqlite:///path/engine.db`, or the PostgreSQL URL (its schema is `dbos`).
            executor_id: This process among others. On SQLite by default the first that no living process has leased
                (`leases.py`); on PostgreSQL a new name for each life, for `recover.py` brings the runs of the dead.
            is_worker: Take chat turns from the queue, not only those started here.
            version: Runs of another one are not resumed here: see `stranded`.
            outages: Waits, inside steps, for a database that is away.
            calm_s: See `lives.py`.
            tell: How the others hear at once of what is put in line, `(topic, run id)`, and we of theirs.
        """
        self._is_shared = is_postgres(url)
        self._calm_s, self._tell = calm_s, tell
        self.version = version
        self.executor_id = executor_id
        if self._is_shared and not executor_id:
            self.executor_id = f"{os.uname().nodename}-{os.getpid()}-{new_id()}"
        self.is_worker = is_worker
        self._poll_s = dbos_patches.IDLE_POLL_S if not self._is_shared else SIGNALLED_POLL_S if tell else QUEUE_POLL_S
        self._database = open_database(url)
        self._bodies: dict[str, Body] = {}
        self._workflows: dict[str, Workflow] = {}
        self._runs = runs.Runs()
        self._slots = QueueSlots()
        self._steps = DurableSteps(self, outages or Outages())
        self._client: DBOSClient | None = None
        self._lives: Lives
        self._starting: set[asyncio.Task[None]] = set()
        self._looks = AsyncExitStack()
        self._recovery: Recovery | LocalRecovery | None = None
        self._calming: asyncio.TimerHandle | None = None
        self._lost = LostRuns(self._runs)
        self._stirred = asyncio.Event()

    # --- life ---------------------------------------------------------------------------------------------------

    def register(self, name: str, body: Body) -> None:
        """Name an async function as a kind of run. Before `launch`; the name stays with the runs."""
        if Engine._launched is self:
            raise RuntimeError("register before launch")
        self._bodies[name] = body

    async def launch(self) -> None:
        """Create or upgrade the tables, resume what was left unfinished, listen. `close` also after a failure."""
        if Engine._launched is not None:
            raise RuntimeError("Another engine is open in this process: close it first")
        Engine._launched = self
        dbos_patches.quiet_log()
        if not self._is_shared:  # ahead of all that knows our name
            self._recovery = local = LocalRecovery(Path(self._database.url.database or ""), self.executor_id)
            self.executor_id = await asyncio.to_thread(local.claim)
            await asyncio.to_thread(give_back, self._database)
        instance = DBOS(config=config(self._database, self.executor_id, self.version))
        dbos_patches.quiet_threads()
        dbos_patches.poll_rarely(instance, self._poll_s)
        sleeping = dbos_patches.sleep_briefly()
        for name, body in self._bodies.items():
            self._workflows[name] = DBOS.workflow(name=name, max_recovery_attempts=None)(self._guarded(body))
        DBOS.listen_queues(list(AT_ONCE) if self.is_worker else [])
        if self._is_shared:
            self._recovery = Recovery(self._database, self.executor_id, self.version, self._runs, self._stirred)
            # Ahead of the launch, which gives runs our name: a name whose lock is free counts as dead.
            await self._recovery.claim()
            await asyncio.to_thread(make_tables, self._database)  # over connections of its own: an index takes its time
        DBOS.launch()
        self._client = client_of(self._database)
        self._lives = Lives(self._client, self._calm_s)  # ahead of the first run, which this loop begins later
        wait_for_room(self._database)
        dbos_patches.wake_at_end(instance, sleeping)
        dbos_patches.look_up_resumed_runs_only(instance, is_first_life.get)
        dbos_patches.keep_the_clocks_expression(instance)
        if self.is_worker:
            dbos_patches.share_queues(instance, self._runs.is_parked)
            await queues.register(SIGNALLED_POLL_S if self._tell else QUEUE_POLL_S)
            dbos_patches.wake()
        else:
            await queues.adopt(self.version)
        if await self.unfinished():
            dbos_patches.poll_often(instance)
            later = asyncio.get_running_loop().call_later
            self._calming = later(EAGER_S, dbos_patches.poll_rarely, instance, self._poll_s)
        sweep = pruning.StepSweep(self._database)
        looks = [
            partial(repeat, "cancelled runs", self._stop_cancelled, CANCEL_POLL_S),
            partial(repeat, "runs that ended", sweep.look, SWEEP_S),
        ]
        if self._recovery is not None:
            looks.append(partial(repeat, "the runs of dead processes", self._recovery.look, RECOVERY_POLL_S))
        await self._looks.enter_async_context(background_tasks(*looks))

    async def close(self, grace_s: float = 5.0) -> None:
        """Let running steps end for so long, then leave the rest to the next start (or to another worker)."""
        if Engine._launched is self:
            await self._shut_down(grace_s)
            Engine._launched = None
        if self._recovery is not None:
            await self._recovery.release()  # last: from here on the others take over what is left
        self._database.dispose()

    async def _shut_down(self, grace_s: float) -> None:
        wait_no_longer(self._database)
        left = await self._runs.wind_down(grace_s)
        if self._client is not None:
            dbos_patches.retry_no_longer(self._client)
        await self._looks.aclose()
        if self._calming is not None:
            self._calming.cancel()
        # DBOS made its own pool the loop's default one, and now shuts it down.
        asyncio.get_running_loop().set_default_executor(CalmPool(THREADS))
        await asyncio.to_thread(DBOS.destroy, destroy_registry=True)
        dbos_patches.sleep_briefly()  # clients of this process go on
        left += await self._runs.wind_down(0)  # taken from a queue meanwhile
        try:
            await asyncio.to_thread(hand_over, self._database, left)
            self._wake(left[0] if left else "")
        except (sa.exc.SQLAlchemyError, dbos_error.DBOSException) as error:
            log.warning("engine: %d runs stay as they are, for the next start to take up: %s", len(left), error)

    def _guarded(self, body: Body) -> Workflow:
        async def run(run_id: str, argument: dict[str, Any], queue: str, key: str) -> None:
            # Ahead of its slot: a run that waits for one can be cancelled too.
            with self._runs.executing(run_id) as current:
                async with self._slots.slot(queue, key):
                    await self._lives.begin(current)
                    with self._steps.in_force():
                        await body(run_id, argument)

        return run

    @property
    def is_closing(self) -> bool:
        """Tell whether a run that is being cancelled right now will be resumed later, rather than was stopped."""
        return self._runs.is_closing

    # --- Runner -------------------------------------------------------------------------------------------------

    async def start(
        self, run_id: str, workflow: str, argument: dict[str, Any], *, queue: str = "", key: str = ""
    ) -> None:
        """Start it, durably, once per id.

        Args:
            run_id: Two starts of one id are one run.
            workflow: A registered name.
            argument: JSON data.
            queue: "" = at once; `chat` = three at once for each `key` (the user), `agents` = 4 in all.
            key: The queue's partition.
        """
        if self.is_closing and runs.current() is not None:
            await asyncio.get_running_loop().create_future()  # a run is taken down here and comes again after the start
        if self.is_closing:
            raise Conflict("Cortex is stopping: try again in a moment")
        # An empty context: a run started inside another one's step is nobody's child. Shielded: a caller who goes
        # away between the row and the task would leave a run that stands still until the next start.
        starting = asyncio.create_task(self._start(run_id, workflow, argument, queue, key), context=Context())
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)
        await asyncio.shield(starting)

    async def _start(self, run_id: str, workflow: str, argument: dict[str, Any], queue: str, key: str) -> None:
        body = self._workflows[workflow]
        is_first_life.set(True)  # for the run's task, which begins here; a run that is resumed begins elsewhere
        with SetWorkflowID(run_id):
            if not queue or not self.is_worker:
                begins_at_once.set(self._slots.is_free(queue, key))
                with SetWorkflowAttributes(FIRST if begins_at_once.get() else None):
                    await DBOS.start_workflow_async(body, run_id, argument, queue, key)
            else:
                with SetEnqueueOptions(queue_partition_key=key if queue in PER_USER else None):
                    await DBOS.enqueue_workflow_async(queue, body, run_id, argument, "", "")
                self._wake(run_id)

    def _wake(self, run_id: str) -> None:
        """Something stands in line: look, here and elsewhere."""
        dbos_patches.wake()
        if self._tell and run_id:
            self._tell(STARTED, run_id)

    def stir(self) -> None:
        """Something goes on elsewhere: look after those who may die of it."""
        self._stirred.set()

    async def cancel(self, run_id: str) -> None:
        """Stop it for good: what it awaits is cancelled at once here, within a second in another process."""
        task = self._runs.interrupt(run_id)
        await DBOS.cancel_workflow_async(run_id)
        task = self._runs.interrupt(run_id) or task  # a queue may have begun it here in between
        if task is not None and task is not asyncio.current_task():
            await asyncio.wait({task}, timeout=2)

    def stop_here(self, run_id: str) -> None:
        """It was cancelled by another process, which says so: do not wait for the next look."""
        self._runs.interrupt(run_id)

    async def status(self, run_id: str) -> str:
        """One of unknown, queued, running, done, failed, cancelled."""
        state = await DBOS.get_workflow_status_async(run_id)
        return "unknown" if state is None else STATES[state.status]

    async def unfinished(self) -> list[str]:
        """Ids of the runs that have not ended, oldest first."""
        return [state.workflow_id for state in await self._open_runs()]

    async def stranded(self) -> list[str]:
        """Unfinished runs of another application version: nobody will resume them; mark them interrupted."""
        return [state.workflow_id for state in await self._open_runs() if state.app_version != self.version]

    async def take_up_lost(self) -> int:
        """Resume the runs that count as ours and that no task here executes; how many were seen so."""
        return await self._lost.take_up(self.executor_id, self.version)

    async def hold(self) -> None:
        """Inside a run: it may not go on yet, and a process that ends meanwhile is no fault of its own."""
        run = runs.current()
        if run is None:
            raise RuntimeError("only a run is held")
        run.let_others_begin()
        run.is_parked = True
        dbos_patches.wake()
        await self._lives.forgive(run.run_id)

    async def has_moved(self) -> None:
        """Inside a step: something of it is shown, so that a process that ends meanwhile was no life in vain."""
        run = runs.current()
        if run is not None:
            await self._lives.has_moved(run)

    async def prune(self, before: datetime) -> int:
        """Forget the runs, with their steps and streams, that ended before this moment; how many."""
        return await pruning.prune(before)

    async def forget(self, run_ids: Sequence[str]) -> None:
        """Forget these runs whatever became of them: of a person who is gone nothing stays."""
        await pruning.forget(DBOS.delete_workflows_async, run_ids)

    async def _open_runs(self) -> list[WorkflowStatus]:
        return await DBOS.list_workflows_async(status=OPEN_STATES, load_input=False, load_output=False)

    # --- Signals ------------------------------------------------------------------------------------------------

    async def signal(self, run_id: str, topic: str, value: str) -> None:
        """Deliver a topic's one value, from anywhere; it is kept until the run waits. NotFound for an unknown run."""
        try:
            # The key: a signal is sent again after a look at turns that stand still, and must be heard once.
            await DBOS.send_async(run_id, value, topic, idempotency_key=topic)
        except dbos_error.DBOSNonExistentWorkflowError as error:
            raise NotFound(f"No run {run_id!r}") from error

    async def wait_for_signal(self, topic: str, timeout_s: float) -> str | None:
        """Inside a run, outside any step: the value of the topic, or None when the time is up. Durable."""
        run = runs.current()
        if run is None:
            raise RuntimeError("wait belongs into a run")
        run.draw("wait")
        if run.waits_over:
            run.waits_over -= 1
        elif not is_first_life.get():  # a first one came here by steps that it completed
            await self.hold()
        run.is_parked = True
        dbos_patches.wake()  # its place is free
        try:
            value = await DBOS.recv_async(topic, timeout_seconds=timeout_s)
        finally:
            run.is_parked = False
        return None if value is None else str(value)

    # --- steps --------------------------------------------------------------------------------------------------

    async def step(self, name: str, action: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Do the action once and keep its JSON result; on replay, the kept one. Inside a run only."""
        run = runs.current()
        if run is None:
            raise RuntimeError("A step belongs into a run")
        run.draw(name)
        is_kept = True

        async def anew() -> Any:
            nonlocal is_kept
            is_kept = False
            return await action()

        async with self._runs.step():
            result = await DBOS.run_step_async({"name": name}, anew)
        if not is_kept:
            run.let_others_begin()
        return result

    async def _stop_cancelled(self) -> None:
        """Stop runs that execute here and were cancelled by another process, where there is one."""
        here = self._runs.ids()
        if here and (self.is_worker or (self._recovery is not None and self._recovery.has_others)):
            gone = await DBOS.list_workflows_async(
                workflow_ids=here, status="CANCELLED", load_input=False, load_output=False
            )
            for state in gone:
                self._runs.interrupt(state.workflow_id)
