"""The clock of requests for approval: who is notified because nobody looks, and which end with nobody waiting for them.

When that is stands in the rows, so that it outlives any process. Each process that runs turns keeps this; of two that
see the same row one writes.
"""

import logging
from datetime import timedelta

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.errors import CortexError
from cortex.services.notifier import Notifier
from cortex.services.runtime import Runtime
from cortex.services.turns.approval_log import TIMER, close_alone, notice_values
from cortex.services.turns.approval_weight import weigh
from cortex.storage.approvals import AllApprovalsRepository, ApprovalsRepository, OwnedApproval

LOOK_S = 30.0  # should a signal be lost
LEAST_S = 0.5

log = logging.getLogger(__name__)


class ApprovalTimer(Struct, frozen=True, kw_only=True):
    """Notifies of requests that nobody looks at, and closes those that ran out after their turn."""

    runtime: Runtime
    notifier: Notifier

    async def keep(self) -> None:
        """Until cancelled."""
        heard = -1
        while True:
            left_s = LOOK_S
            try:
                left_s = await self.look()
            except (CortexError, SQLAlchemyError) as error:
                log.warning("approvals: database error, retrying: %s", error)
            heard = await self.runtime.hub.changed(TIMER, heard, left_s)

    async def look(self) -> float:
        """Do what is due; in how many seconds the next may be."""
        now = self.runtime.clock()
        approvals, soon = self.runtime.db.repository(AllApprovalsRepository), now + timedelta(seconds=LOOK_S)
        unseen, run_out = await approvals.to_notify(soon), await approvals.run_out(soon)
        for row in unseen:
            if row.notify_at is not None and row.notify_at <= now:
                await self._notify(row)
        for row in run_out:
            if row.expires_at <= now:
                async with self.runtime.transaction_then_notify(row.owner_id, row.conversation_id) as repository:
                    await close_alone(repository, row)
                self.notifier.wake(row.owner_id)
        ahead = [one.notify_at for one in unseen if one.notify_at] + [one.expires_at for one in run_out]
        return min((max((at - now).total_seconds(), LEAST_S) for at in ahead), default=LOOK_S)

    async def _notify(self, row: OwnedApproval) -> None:
        """Notify in one commit with the note that it is done: once, whatever is killed."""
        weight = weigh(self.runtime.registry, row).weight
        values = notice_values(row, weight, row.conversation_id, row.expires_at)
        draft = await self.notifier.draft(row.owner_id, f"approval:{row.call_id}", replace(values, subject_id=row.id))
        async with self.runtime.db.transaction(row.owner_id) as repository:
            if not await repository(ApprovalsRepository).notified(row.id):
                return  # looked at, answered, or told by another process
            await draft.write(repository)
        self.notifier.wake(row.owner_id)
