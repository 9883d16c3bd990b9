"""Begins a slot: a turn in the job's conversation, or, for a plain message, the notice itself. Each is one commit.

A call or a message asks no model. What a killed process left between commit and start is started by `turns/queue.py`.
"""

import json
from collections.abc import Sequence

from msgspec import Struct

from cortex.base.errors import NotFound
from cortex.base.hidden import show_hidden
from cortex.base.ids import derived_id
from cortex.ports.channels import Urgency
from cortex.services.jobs.hooks import NOTICE_CHARACTERS, with_delivery
from cortex.services.jobs.tools import JobTools, channel_of
from cortex.services.notifier import Notifier, PendingNotice
from cortex.services.roles.preferences import DEFAULT_ROLE
from cortex.services.runtime import Runtime
from cortex.services.turns.answer_writer import message_row
from cortex.services.turns.queue import TurnQueue
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.hooks import HookDelivery, HooksRepository
from cortex.storage.job_rows import JobRow
from cortex.storage.jobs import JobsRepository
from cortex.storage.notices import NoticeValues
from cortex.storage.slots import SlotRow, SlotsRepository
from cortex.storage.turns import NewTurn, Reads, TurnRow, TurnsRepository


class JobStarts(Struct, frozen=True, kw_only=True):
    """Begins slots."""

    runtime: Runtime
    turns: TurnQueue
    tools: JobTools
    notifier: Notifier

    async def begin(self, job: JobRow, slot: SlotRow) -> str:
        """Begin the slot of a job that takes a turn; its id, "" when another process began it."""
        async with self.runtime.db.one_view():
            place = await self._place(job)
            # A call reads nothing of what came: its arguments are the person's.
            came = await self._came(slot) if job.kind == "prompt" else None
        row, is_queued = await self._turn(job, slot, place, came)
        if row is None:
            return ""
        if not is_queued:
            await self.turns.start_job(row, job)
        return row.id

    async def say(self, owner_id: str, messages: Sequence[tuple[JobRow, SlotRow]]) -> None:
        """Begin the slots of one person's message jobs, write their notices and end them.

        All in one commit: a message goes out once or not at all.
        """
        async with self.runtime.db.one_view():
            drafts = [await self._draft(job, slot) for job, slot in messages]
        async with self.runtime.db.transaction(owner_id) as repository:
            for (job, slot), draft in zip(messages, drafts, strict=True):
                if await repository(SlotsRepository).start(slot.id):
                    await draft.write(repository)
                    await repository(SlotsRepository).end(slot.id, "done", result=job.prompt)
        self.notifier.wake(owner_id)

    async def _draft(self, job: JobRow, slot: SlotRow) -> PendingNotice:
        came = await self._came(slot)
        values = NoticeValues(
            kind="message",
            title=job.name,
            text=job.prompt if came is None else f"{job.prompt}\n{show_hidden(came.text[:NOTICE_CHARACTERS])}",
            path=path_of(job),
            urgency=urgency_of(job),
            subject_id=slot.id,
            is_tainted=job.is_tainted or came is not None,
        )
        return await self.notifier.draft(job.owner_id, f"slot:{slot.id}", values, job.deliver_to or None)

    async def _turn(
        self, job: JobRow, slot: SlotRow, conversation_id: str, came: HookDelivery | None
    ) -> tuple[TurnRow | None, bool]:
        """The slot's turn, and whether it waits behind another; None when the slot was begun elsewhere."""
        mode = await self.tools.mode(await self.tools.settle(job))
        is_tainted = job.is_tainted or came is not None
        prompt = job.prompt if came is None else with_delivery(job.prompt, came.text)
        turn_id = slot.id if slot.attempt == 0 else f"{slot.id}:{slot.attempt + 1}"
        async with self.runtime.transaction_then_notify(job.owner_id, conversation_id) as repository:
            if not await repository(SlotsRepository).start(slot.id, turn_id):
                return None, False
            row = await repository(TurnsRepository).create(
                NewTurn(
                    turn_id,
                    conversation_id,
                    prompt if job.kind == "prompt" else call_text(job),
                    mode=mode,
                    role=job.role or DEFAULT_ROLE,
                    channel=channel_of(job),
                    job_id=job.id,
                    max_rounds=job.max_rounds,
                    is_tainted=is_tainted,
                    reads=Reads(outside=is_tainted, private=job.is_private),
                )
            )
            is_queued = await repository(TurnsRepository).is_behind(row)
            await repository(ConversationsRepository).append(conversation_id, [message_row(row, is_queued)])
        return row, is_queued

    async def _came(self, slot: SlotRow) -> HookDelivery | None:
        """Return what came by the job's web address and began this slot, if anything did."""
        return await self.runtime.db.repository(HooksRepository, slot.owner_id).of_slot(slot.id)

    async def _place(self, job: JobRow) -> str:
        """The conversation that it posts into: the one it has, or a new one of its own when that is gone."""
        if job.conversation_id is not None:
            try:
                return (
                    await self.runtime.db.repository(ConversationsRepository, job.owner_id).get(job.conversation_id)
                ).id
            except NotFound:
                pass  # deleted: the job does not go on into what nobody sees
        role, before = job.role or DEFAULT_ROLE, job.conversation_id
        async with self.runtime.db.transaction(job.owner_id) as repository:
            id = derived_id("job", job.id, before or "")  # the same for each process that finds none
            made = await repository(ConversationsRepository).create(
                role, job.mode or "auto", job.name, id=id, source="job", is_title_tainted=job.is_tainted
            )
            return await repository(JobsRepository).settle_in(job.id, made.id, in_place_of=before)


def call_text(job: JobRow) -> str:
    """A call as its turn says it."""
    return f"Call {job.tool} with {json.dumps(job.arguments or {}, ensure_ascii=False)}"


def path_of(job: JobRow) -> str:
    """The job's page."""
    return f"/jobs/{job.id}"


def urgency_of(job: JobRow) -> Urgency:
    """Return how loud its notices are: those of a job that heeds no quiet hours come through them."""
    return "normal" if job.keeps_quiet_hours else "important"
