"""The turns of everybody as the engine has them: started, stopped, taken up after a restart, brought on if they stand.

Knows nothing of what a turn does: `services/turns/turns.py` has the body of its run.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, repeat
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from cortex.base.errors import CortexError
from cortex.base.messages import ToolCall
from cortex.base.turn import parent_of
from cortex.services.runtime import Runtime
from cortex.services.turns.approvals import ApprovalsService
from cortex.services.turns.end import TurnEnd
from cortex.storage.job_rows import JobRow
from cortex.storage.jobs import JobsRepository
from cortex.storage.turns import AllTurnsRepository, TurnRow, TurnsRepository

log = logging.getLogger(__name__)

WORKFLOW = "turn"
JOB_CALL = "job"
LOOKS_S = (2.0, 5.0)  # after a start: the engine tries for some seconds to take up what was left
LOOK_S = 30.0
LOST = "Cortex stopped in the middle of this answer and could not take it up again. What is shown was done."
OUTDATED = (
    "Cortex was changed in the middle of this answer, and the new version cannot take it up. What is shown was done."
)
NO_JOB = "The job was deleted before this began."


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnQueue:
    """Starts and ends the runs of turns. `_left`: turns that the last look found without a living run."""

    runtime: Runtime
    turn_end: TurnEnd
    approvals: ApprovalsService
    _left: set[str] = field(default_factory=set, init=False)

    async def start(self, row: TurnRow) -> None:
        """Start the turn's run; a second start of the same turn is a no-op.

        A job's waits in no queue of the engine: whoever begins slots counts them, and one that is parked counts not.
        """
        argument: dict[str, Any] = {"turn": row.id, "user": row.owner_id}
        if parent_of(row.id):
            await self.runtime.runner.start(row.id, WORKFLOW, argument, queue="agents", key=row.owner_id)
            return
        if not row.job_id or row.channel == "result":
            await self.runtime.runner.start(row.id, WORKFLOW, argument, queue="chat", key=row.owner_id)
            return
        job = await self.runtime.db.repository(JobsRepository, row.owner_id).lately(row.job_id)
        if job is None:
            await self.turn_end.interrupt(row, NO_JOB)
            return
        if job.kind == "call":
            argument["call"] = asdict(call_of(job))
        await self.runtime.runner.start(row.id, WORKFLOW, argument)

    async def start_call(self, row: TurnRow, call: ToolCall) -> None:
        """Start the run of a turn that is one call by hand. The row runs already: nobody takes it for a message."""
        argument = {"turn": row.id, "user": row.owner_id, "call": asdict(call)}
        await self.runtime.runner.start(row.id, WORKFLOW, argument, queue="chat", key=row.owner_id)

    async def start_id(self, user_id: str, turn_id: str) -> None:
        """Start a queued turn by its id."""
        await self.start(await self.runtime.db.repository(TurnsRepository, user_id).get(turn_id))

    async def stop(self, row: TurnRow) -> None:
        """End a running turn now, keep what it said so far, and go on with what is queued behind it."""
        await self.runtime.hub.changed(row.conversation_id, -1, 0.3)  # what other processes write must be heard first
        partial = self.runtime.hub.open_parts(row.conversation_id)  # ahead of the cancel, by which the hub forgets them
        await self.runtime.runner.cancel(row.id)
        following = await self.turn_end.stop(row, [part for part in partial if part.turn_id == row.id])
        if following:
            await self.start_id(row.owner_id, following)

    async def recover(self, stranded: Sequence[str] = ()) -> None:
        """At the start: end the turns that nobody may go on with, then look after all others.

        stranded: unfinished runs of another version, which nobody here may resume.
        """
        for row in await self.runtime.db.repository(AllTurnsRepository).unfinished():
            if row.id in stranded:
                await self.runtime.runner.cancel(row.id)
                await self.turn_end.interrupt(row, OUTDATED)
        await self.settle_stalled()

    async def settle_stalled(self) -> None:
        """Bring every turn on that stands still: end it, signal it the person's answer, start it."""
        left: set[str] = set()
        for row in await self.runtime.db.repository(AllTurnsRepository).unfinished():
            try:
                if await self._look_at(row):
                    left.add(row.id)
            except CortexError as error:  # one that cannot be helped keeps no other waiting
                log.warning("turn queue: cannot recover turn %s, retrying: %s", row.id, error)
        self._left.clear()
        self._left.update(left)
        await self.start_waiting()

    async def _look_at(self, row: TurnRow) -> bool:
        """Whether it was left by its run. One that was so in the look before too is ended.

        Not at first sight: whoever stops a turn cancels the run, and then writes down what was said.
        """
        status = await self.runtime.runner.status(row.id)
        is_left = status in ("cancelled", "done") or (status == "unknown" and row.state != "queued")
        if status == "failed" or (is_left and row.id in self._left):
            await self.turn_end.interrupt(row, LOST)
        elif not is_left and row.state != "queued":
            await self.approvals.signal_again(row)
        return is_left

    async def start_waiting(self) -> None:
        """Start the queued turns at the head of their line that nobody started."""
        rows = [row for row in await self.runtime.db.repository(AllTurnsRepository).unfinished() if not row.is_dropped]
        busy = {row.conversation_id for row in rows if row.state != "queued"}
        for row in rows:
            if row.conversation_id not in busy:
                busy.add(row.conversation_id)
                if await self.runtime.runner.status(row.id) == "unknown":
                    await self.start(row)

    async def look_after(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Until cancelled: end what no run will end, bring on what a process committed and did not live to start."""
        for wait_s in chain(LOOKS_S, repeat(LOOK_S)):
            await sleep(wait_s)
            try:
                await self.settle_stalled()
            except (CortexError, SQLAlchemyError) as error:
                log.warning("turn queue: database error, retrying: %s", error)


def call_of(job: JobRow) -> ToolCall:
    """The call that a job makes by itself."""
    return ToolCall(id=JOB_CALL, name=job.tool, arguments=json.dumps(job.arguments or {}, ensure_ascii=False))
