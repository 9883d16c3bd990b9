"""The turns of everybody as the engine has them: started, stopped, taken up after a restart, brought on if they stand.

Where a person's work is stopped (`storage/halts.py`) none is started: messages wait, all else ends.

Knows nothing of what a turn does: `services/turns/turns.py` has the body of its run.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from itertools import chain, repeat
from typing import Any
from weakref import WeakValueDictionary

from msgspec import Struct, field
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.errors import Busy, CortexError, DatabaseUnavailable
from cortex.base.messages import ToolCall
from cortex.base.record import as_dict
from cortex.base.turn import parent_of
from cortex.services.runtime import Runtime
from cortex.services.turns.approvals import ApprovalsService
from cortex.services.turns.end import TurnEnd
from cortex.storage.approvals import AllApprovalsRepository
from cortex.storage.halts import HaltRow, HaltsRepository, halt_of
from cortex.storage.job_rows import JobRow
from cortex.storage.jobs import JobsRepository
from cortex.storage.turns import AllTurnsRepository, TurnRow, TurnsRepository
from cortex.storage.write_line import writes_within

log = logging.getLogger(__name__)

WORKFLOW = "turn"
JOB_CALL = "job"
LOOKS_S = (2.0, 5.0)  # after a start: the engine tries for some seconds to take up what was left
LOOK_S = 30.0
HELD_LOOK_S = 1.0
MESSAGES = ("chat", "result")  # what waits for its turn, rather than ends, while work is stopped
STOP_WRITES_S = 4.0
PARKED_CHATS = 2  # of the three chat turns that go on at once for each person: one place stays free to talk
AGAIN_S = 5.0  # after a look that found something left: the second sight
LOST = "This answer was cut off and could not be continued."
OUTDATED = "Cortex was updated during this answer, and the new version cannot continue it."
NO_JOB = "The job was deleted before this started."


class TurnQueue(Struct, frozen=True, kw_only=True):
    """Starts and ends the runs of turns.

    `_left`: turns that the last look found without a living run; `_asked`: those that somebody had stopped and that
    lived. `_stops`: held while a turn is stopped here: who stops it second knows nothing of what it said. `held`: stops
    by scope that are in force in this process and not written down yet, for the disk is full.
    """

    runtime: Runtime
    turn_end: TurnEnd
    approvals: ApprovalsService
    held: dict[str, HaltRow] = field(default_factory=dict)
    _left: set[str] = field(default_factory=set)
    _asked: set[str] = field(default_factory=set)
    _stops: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def start(self, row: TurnRow, *, is_free: bool = False) -> None:
        """Start the turn's run; a second start of the same turn is a no-op.

        `is_free`: the commit that made the turn found that nothing is stopped; what is ordered since ends the run.
        """
        if not is_free and await self.halt_of(row.owner_id):
            return  # it waits; `start_waiting` starts it once that is lifted
        argument: dict[str, Any] = {"turn": row.id, "user": row.owner_id}
        if parent_of(row.id):
            await self.runtime.runner.start(row.id, WORKFLOW, argument, queue="agents", key=row.owner_id)
            return
        if not row.job_id or row.channel == "result":
            await self.runtime.runner.start(row.id, WORKFLOW, argument, queue=_queue(row), key=row.owner_id)
            return
        job = await self.runtime.db.repository(JobsRepository, row.owner_id).lately(row.job_id)
        if job is None:
            await self.turn_end.interrupt(row, NO_JOB)
        else:
            await self.start_job(row, job)

    async def start_job(self, row: TurnRow, job: JobRow) -> None:
        """Start the run of a job's turn; the commit that began its slot found that nothing is stopped.

        It waits in no queue of the engine: whoever begins slots counts them, and one that is parked counts not.
        """
        argument: dict[str, Any] = {"turn": row.id, "user": row.owner_id}
        if job.kind == "call":
            argument["call"] = as_dict(call_of(job))
        await self.runtime.runner.start(row.id, WORKFLOW, argument)

    async def start_call(self, row: TurnRow, call: ToolCall) -> None:
        """Start the run of a turn that is one call by hand. The row runs already: nobody takes it for a message."""
        argument = {"turn": row.id, "user": row.owner_id, "call": as_dict(call)}
        await self.runtime.runner.start(row.id, WORKFLOW, argument, queue=_queue(row), key=row.owner_id)

    async def start_id(self, user_id: str, turn_id: str) -> None:
        """Start a queued turn by its id."""
        await self.start(await self.runtime.db.repository(TurnsRepository, user_id).get(turn_id))

    async def stop(self, row: TurnRow) -> None:
        """End a running turn now, keep what it said so far, and go on with what is queued behind it.

        That it has to end is written down first: what a kill leaves of it undone, the next look or life does.
        """
        try:
            with writes_within(STOP_WRITES_S):  # it is what the person waits for, not that it is written down
                await self.runtime.db.repository(TurnsRepository, row.owner_id).ask_to_stop(row.id)
        except (Busy, DatabaseUnavailable) as error:  # what runs may be what fills the disk: it ends all the same
            log.warning("turn queue: the stop of turn %s cannot be written down: %s", row.id, error)
        async with self._stops.setdefault(row.id, asyncio.Lock()):
            following = await self._end(row)
        if following:
            await self.start_id(row.owner_id, following)

    async def give_way(self, rows: Sequence[TurnRow]) -> None:
        """Set turns aside that wait for this person, who went on talking: each message gets its own answer.

        rows: the person's turns that live. Set aside is the turn which a message stands behind, and the oldest ones
        where they take all places of their chats.
        """
        for row in waiting_in_the_way(rows):
            await self.set_aside(row)

    async def set_aside(self, row: TurnRow) -> bool:
        """End a turn that waits for its person, whose question stays; False for one that has its answer by now."""
        following = await self.turn_end.set_aside(row)
        if following is None:
            return False
        await self.runtime.runner.cancel(row.id)
        if following:
            await self.start_id(row.owner_id, following)
        return True

    async def _end(self, row: TurnRow) -> str:
        await self.runtime.hub.changed(row.conversation_id, -1, 0.3)  # what other processes write must be heard first
        partial = self.runtime.hub.open_parts(row.conversation_id)  # ahead of the cancel, by which the hub forgets them
        await self.runtime.runner.cancel(row.id)
        return await self.turn_end.stop(row, [part for part in partial if part.turn_id == row.id])

    async def halt_of(self, user_id: str) -> HaltRow | None:
        """Return what stops this person's work, None where it may go on."""
        return halt_of([*self.held.values()], user_id) or await self.runtime.db.repository(HaltsRepository).of(user_id)

    async def halts(self) -> Sequence[HaltRow]:
        """All stops in force."""
        written = await self.runtime.db.repository(HaltsRepository).list()
        scopes = {halt.scope for halt in written}
        return [*written, *(halt for scope, halt in self.held.items() if scope not in scopes)]

    async def until_released(self, user_id: str, turn_id: str) -> None:
        """Wait for as long as this person's work is stopped, or until the turn itself is ended by a stop.

        A run that is taken up or begun meanwhile stands here.
        """
        if not await self._is_held(user_id, turn_id):
            return
        await self.runtime.runner.hold()
        for wait_s in repeat(HELD_LOOK_S):
            await asyncio.sleep(wait_s)
            if not await self._is_held(user_id, turn_id):
                return

    async def _is_held(self, user_id: str, turn_id: str) -> bool:
        turns = self.runtime.db.repository(TurnsRepository, user_id)
        try:
            return await self.halt_of(user_id) is not None or await turns.has_to_stop(turn_id)
        except (DatabaseUnavailable, SQLAlchemyError) as error:  # who cannot know waits
            log.warning("turn queue: database error, retrying: %s", error)
            return True

    async def stop_halted(self) -> Sequence[HaltRow]:
        """Stop, side by side, whatever runs for people whose work is stopped, but for messages; the stops in force.

        And each turn that somebody stopped who did not live to do it.
        """
        if not self.held and not self._asked and not await self.runtime.db.repository(HaltsRepository).has_work():
            return []
        async with self.runtime.db.one_view():  # ahead of the group: it would wrap what the database raises
            halts = await self.halts()
            rows = {row.id: row for row in [*await self.to_stop(halts), *await self._stops_left()]}
        async with asyncio.TaskGroup() as group:
            for row in rows.values():
                group.create_task(self._stop_halted(row))
        return halts

    @property
    def looks_again(self) -> bool:
        """Tell whether a turn that somebody stopped was seen once, so that the next look has to be soon."""
        return bool(self._asked)

    async def _stops_left(self) -> Sequence[TurnRow]:
        """The turns that somebody stopped and that live, seen twice: at first sight their own stop may be at it."""
        rows = await self.runtime.db.repository(AllTurnsRepository).unfinished(to_stop=True)
        left = [row for row in rows if row.id in self._asked]
        self._asked.clear()
        self._asked.update(row.id for row in rows)
        return left

    async def to_stop(self, halts: Sequence[HaltRow]) -> Sequence[TurnRow]:
        """The turns that have to end under these stops: all of these people's but messages that are not begun."""
        if not halts:
            return []
        rows = await self.runtime.db.repository(AllTurnsRepository).unfinished()
        begun = [row for row in rows if row.state != "queued" or row.channel not in MESSAGES]
        return [row for row in begun if halt_of(halts, row.owner_id)]

    async def _stop_halted(self, row: TurnRow) -> None:
        try:
            await self.stop(row)
        except (
            CortexError,
            SQLAlchemyError,
        ) as error:  # one that cannot be stopped yet keeps no other going; the next look tries again
            log.warning("turn queue: cannot stop turn %s, retrying: %s", row.id, error)

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
        await self.stop_halted()
        for row in await self.runtime.db.repository(AllTurnsRepository).unfinished():
            try:
                if await self._look_at(row):
                    left.add(row.id)
            except DatabaseUnavailable:
                raise  # the next look sees all of them
            except CortexError as error:  # one that cannot be helped keeps no other waiting
                log.warning("turn queue: cannot recover turn %s, retrying: %s", row.id, error)
        self._left.clear()
        self._left.update(left)
        await self.let_talk()
        await self.start_waiting()

    async def let_talk(self) -> None:
        """Do for everybody what a process that took a message in did not live to do.

        A run whose turn was set aside ends, else it kept its place in the queue until the answer.
        """
        now = self.runtime.clock()
        for row in await self.runtime.db.repository(AllApprovalsRepository).run_out(now + timedelta(days=1)):
            if await self.runtime.runner.status(row.turn_id) in ("queued", "running"):
                await self.runtime.runner.cancel(row.turn_id)
        rows = await self.runtime.db.repository(AllTurnsRepository).unfinished()
        for user_id in {row.owner_id for row in rows}:
            await self.give_way([row for row in rows if row.owner_id == user_id])

    async def _look_at(self, row: TurnRow) -> bool:
        """Tell whether it was left by its run. One that was so in the look before too is ended.

        Not at first sight: whoever stops a turn cancels the run, and then writes down what was said. Nobody else
        cancels runs: one that is cancelled was stopped, by a process that did not live to write it down.
        """
        status = await self.runtime.runner.status(row.id)
        is_left = status in ("cancelled", "done") or (status == "unknown" and row.state != "queued")
        if status == "cancelled" and row.id in self._left:
            await self.turn_end.stop(row, ())
        elif status == "failed" or (is_left and row.id in self._left):
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

    async def look_after(
        self, take_up_lost: Callable[[], Awaitable[int]], sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        """Until cancelled, the supervisor of all turns: what has no living run, seen twice, is taken up or ended.

        What a process committed and did not live to signal or to start is signalled and started.

        take_up_lost: of the engine, resumes runs that nobody executes; how many it saw.
        """
        found = 0
        for wait_s in chain(LOOKS_S, repeat(LOOK_S)):
            await sleep(min(wait_s, AGAIN_S) if found else wait_s)
            try:
                found = await take_up_lost()
                await self.settle_stalled()
                found += len(self._left)
            except (CortexError, SQLAlchemyError) as error:
                log.warning("turn queue: database error, retrying: %s", error)


def waiting_in_the_way(rows: Sequence[TurnRow]) -> Sequence[TurnRow]:
    """Of one person's turns that live, oldest first: those to set aside.

    A program's and a background agent's are none: whoever asked for them waits for their end.
    """
    waiting = [row for row in rows if row.state == "waiting" and row.channel not in ("api", "agent")]
    said = [row for row in rows if row.state == "queued" and row.channel in MESSAGES and not row.is_dropped]
    places = {row.conversation_id for row in said}
    in_front = [row for row in waiting if row.conversation_id in places]
    talks = [row for row in waiting if row.channel in MESSAGES and row not in in_front]
    over = len(talks) - PARKED_CHATS if said else 0
    return [*in_front, *talks[: max(0, over)]]


def _queue(row: TurnRow) -> str:
    """Programs take no place from people who talk."""
    return "api" if row.channel == "api" else "chat"


def call_of(job: JobRow) -> ToolCall:
    """The call that a job makes by itself."""
    return ToolCall(id=JOB_CALL, name=job.tool, arguments=json.dumps(job.arguments or {}, ensure_ascii=False))
