"""Ends slots when their turns have ended: result, cost, another try, the pause after failures, the notice.

Reads the turn as it stands, so that a slot whose turn ended while nobody listened ends all the same.
"""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from cortex.agent.refusals import for_person
from cortex.base.errors import NotFound
from cortex.base.job import JobKind, SlotState
from cortex.schedule.policies import deadline, pauses, retry_at
from cortex.services.jobs.firing import policy_of
from cortex.services.jobs.starts import path_of, urgency_of
from cortex.services.notifier import Notifier, PendingNotice, plain
from cortex.services.runtime import Runtime
from cortex.services.turns.approvals import APPROVAL_HOURS
from cortex.services.turns.queue import TurnQueue
from cortex.storage.approvals import ApprovalRow, ApprovalsRepository
from cortex.storage.calls import CallRow, CallsRepository
from cortex.storage.job_rows import JobRow
from cortex.storage.jobs import JobsRepository
from cortex.storage.messages import MessagesRepository
from cortex.storage.notices import NoticeValues
from cortex.storage.round_rows import RoundRow
from cortex.storage.rounds import RoundsRepository
from cortex.storage.slots import RunningSlot, SlotEnd, SlotRow, SlotsRepository
from cortex.storage.turns import TurnRow, TurnsRepository

NO_TURN = "its conversation was deleted"
NO_BUDGET = "its budget was used up"
NO_ROUNDS = "it ran out of rounds"
TITLES: dict[SlotState, str] = {"failed": "{} failed", "denied": "{} was not allowed to go on"}


class Facts(Struct, frozen=True, kw_only=True):
    """A turn of a job with all that was done in it. `kind`: of the job."""

    kind: JobKind
    turn: TurnRow
    rounds: Sequence[RoundRow]
    calls: Sequence[CallRow]
    approvals: Sequence[ApprovalRow]
    text: str
    timeout_s: int
    timeout_at: datetime

    @property
    def tokens(self) -> int:
        """In and out, of all rounds."""
        return sum(one.input_tokens + one.output_tokens for one in self.rounds)

    @property
    def cost_usd(self) -> float | None:
        """Of the rounds whose price is known; None where there is none."""
        priced = [one.cost_usd for one in self.rounds if one.cost_usd is not None]
        return sum(priced) if priced else None

    def verdict(self) -> tuple[SlotState, str]:
        """Return how its slot ends, and why in a few words."""
        match self.turn.state:
            case "done":
                return self._done()
            case "stopped":
                return ("failed", _too_long(self.timeout_s)) if self._is_over_time else ("stopped", "")
            case "out_of_rounds":
                return "failed", NO_ROUNDS
            case _:
                return "failed", self.turn.error

    def _done(self) -> tuple[SlotState, str]:
        waiting = next((one for one in self.approvals if one.state == "asked"), None)
        if waiting is not None:  # its person wrote in its chat, and it was set aside
            return "stopped", f"set aside for a message of yours; it still waits for your approval: {waiting.verb}"
        unheard = next((one for one in self.approvals if one.state == "expired"), None)
        refused = next((one for one in self.approvals if one.state == "denied"), None)
        if unheard is not None:
            return "denied", f"nobody approved it within {APPROVAL_HOURS} hours: {unheard.verb}"
        if refused is not None:
            return "denied", f"you denied it: {refused.verb}"
        if self.kind == "call" and not (self.calls and self.calls[-1].state == "done"):
            return "failed", "the tool failed"
        if self.rounds and self.rounds[-1].state == "refused":
            return "failed", NO_BUDGET
        return "done", ""

    @property
    def _is_over_time(self) -> bool:
        return self.turn.ended_at is not None and self.turn.ended_at >= self.timeout_at


class JobEndings(Struct, frozen=True, kw_only=True):
    """Ends slots, and the turns of those that take too long."""

    runtime: Runtime
    turns: TurnQueue
    notifier: Notifier

    async def settle(self, slot: RunningSlot) -> None:
        """End the slot by its ended turn, or let it wait for its next try. Who is second does nothing."""
        async with self.runtime.db.one_view():
            job = await self._job(slot)
            facts = await self._facts(job, slot) if slot.turn_state is not None else None
            state, why = facts.verdict() if facts else ("failed", NO_TURN)
            cost_usd, tokens = (facts.cost_usd, facts.tokens) if facts else (None, 0)
            again_at = retry_at(policy_of(job), slot.attempt, self.runtime.clock()) if state == "failed" else None
            if again_at is not None and why != NO_BUDGET and job.removed_at is None:
                slots = self.runtime.db.repository(SlotsRepository, slot.owner_id)
                # Only while this attempt runs: of two processes that see the failed turn one counts its cost.
                await slots.again(slot.id, slot.attempt, again_at, why, cost_usd=cost_usd, tokens=tokens)
                return
            text = facts.text if facts else ""
            notice = await self._notice_draft(job, slot, state, why, text, facts)
            paused = await self._paused(job, slot, why) if state == "failed" else None
        async with self.runtime.db.transaction(slot.owner_id) as repository:
            end = await repository(SlotsRepository).end(
                slot.id, state, why=why, result=text, attempt=slot.attempt, cost_usd=cost_usd, tokens=tokens
            )
            if end is None:  # another process, or an earlier look, ended it and wrote its notice
                return
            if paused is not None and job.is_enabled and pauses(policy_of(job), end.failures):
                because = f"It failed {end.failures} times in a row."
                await repository(JobsRepository).pause(job.id, None, because)
                await paused.write(repository)
            elif notice is not None and _is_wanted(job, end):
                await notice.write(repository)
        self.notifier.wake(slot.owner_id)

    async def watch(self, slot: RunningSlot) -> None:
        """Look after one that has not ended: a question whose time is up is closed, a turn that takes too long too."""
        async with self.runtime.db.one_view():
            job = await self._job(slot)
            facts = await self._facts(job, slot)
        now = self.runtime.clock()
        if slot.turn_state == "waiting":
            for one in facts.approvals:
                if one.state == "asked" and one.expires_at <= now:
                    await self.runtime.signals.signal(one.turn_id, f"approval:{one.id}", "expired")
        elif now >= facts.timeout_at:
            await self.turns.stop(facts.turn)

    async def _job(self, slot: SlotRow) -> JobRow:
        """The slot's job, also when it was removed meanwhile."""
        job = await self.runtime.db.repository(JobsRepository, slot.owner_id).lately(slot.job_id)
        if job is None:
            raise NotFound("its job was deleted")
        return job

    async def _facts(self, job: JobRow, slot: RunningSlot) -> Facts:
        turn_id = slot.turn_id or ""
        async with self.runtime.db.read_transaction(slot.owner_id) as repository:
            turn = await repository(TurnsRepository).get(turn_id)
            approvals = await repository(ApprovalsRepository).of_turn(turn_id)
            rounds = await repository(RoundsRepository).of_turn(turn_id)
            calls = await repository(CallsRepository).of_turn(turn_id)
            messages = await repository(MessagesRepository).of_turn(turn_id)
        asked = [one.answered_at or (one.expires_at if one.state == "expired" else None) for one in approvals]
        # While it waits for a person no time counts: it starts anew with the answer.
        began = max([slot.started_at or turn.created_at, *filter(None, asked)])
        said = [row.message.text for row in messages if row.message.speaker == "assistant" and row.message.text]
        by_call = job.kind == "call" and bool(calls)
        return Facts(
            kind=job.kind,
            turn=turn,
            rounds=rounds,
            calls=calls,
            approvals=approvals,
            text=_words_of(calls[-1]) if by_call else said[-1] if said else turn.error,
            timeout_s=job.timeout_s,
            timeout_at=deadline(policy_of(job), began),
        )

    async def _notice_draft(
        self, job: JobRow, slot: SlotRow, state: SlotState, why: str, text: str, facts: Facts | None
    ) -> PendingNotice | None:
        """The notice of this ending; None where none is wanted whatever came out."""
        if job.notify_on == "never" or state == "stopped":
            return None
        words = text if state == "done" else "\n".join(filter(None, (_sentence(why), text)))
        if facts and facts.kind == "prompt":  # a model wrote it
            words = await plain(words)
        conversation = facts.turn.conversation_id if facts else ""
        values = NoticeValues(
            kind="job",
            title=TITLES.get(state, "{}").format(job.name),
            text=words or "It is done.",
            path=f"/c/{conversation}" if conversation else path_of(job),
            urgency=urgency_of(job),
            subject_id=slot.id,
            is_tainted=_is_tainted(job, facts),
        )
        return await self.notifier.draft(job.owner_id, f"slot:{slot.id}", values, job.deliver_to or None)

    async def _paused(self, job: JobRow, slot: SlotRow, why: str) -> PendingNotice:
        values = NoticeValues(
            kind="job",
            title=f"{job.name} was paused",
            text=f"It failed {job.failures + 1} times in a row. The last time: {_sentence(why)} Resume it "
            "when the problem is fixed.",
            path=path_of(job),
            urgency=urgency_of(job),
            subject_id=slot.id,
            is_tainted=job.is_tainted,
        )
        return await self.notifier.draft(job.owner_id, f"paused:{slot.id}", values, job.deliver_to or None)


def _words_of(call: CallRow) -> str:
    """Return what a call gave; of one that gave nothing why, without what a model would do next."""
    return for_person(call.text, frozenset()) if call.is_error else call.text


def _is_wanted(job: JobRow, end: SlotEnd) -> bool:
    """Tell whether the job's owner wants to hear of it."""
    is_good = end.slot.state == "done"
    return not is_good or job.notify_on == "always" or (job.notify_on == "change" and end.has_changed)


def _is_tainted(job: JobRow, facts: Facts | None) -> bool:
    return job.is_tainted or (
        facts is not None and (facts.turn.is_tainted or any(call.is_tainted for call in facts.calls))
    )


def _sentence(why: str) -> str:
    """A few words as a sentence."""
    return f"{why[:1].upper()}{why[1:].rstrip('.')}." if why else ""


def _too_long(timeout_s: int) -> str:
    took = f"{timeout_s} seconds" if timeout_s < 2 * 60 else f"{timeout_s / 60:.0f} minutes"
    return f"it took longer than {took}"
