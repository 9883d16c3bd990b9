"""Edit before allowing: a call that waits for its person is looked at by the gate anew, with arguments of theirs.

What is allowed is another call, with its own row and an approval bound to its own arguments (`approvals.py: change`);
the gate looks again when it runs (`agent/execute.py: perform`).
"""

from msgspec import Struct

from cortex.agent.execute import Executor
from cortex.agent.refusals import Refusal
from cortex.base.errors import NotFound, UserError
from cortex.base.ids import changed_id
from cortex.base.messages import ToolCall
from cortex.base.turn import Turn
from cortex.base.user import User
from cortex.services.runtime import Runtime
from cortex.services.turns.approvals import ApprovalsService
from cortex.services.turns.turn_context import TurnContexts
from cortex.storage.approvals import ApprovalRow, ApprovalsRepository
from cortex.storage.calls import CallsRepository
from cortex.storage.turns import TurnRow, TurnsRepository
from cortex.toolkit.spec import Tool


class Editable(Struct, frozen=True, kw_only=True):
    """A request as it can be edited. `arguments`: those of the call, as JSON; `is_open`: it can still be answered."""

    request: ApprovalRow
    tool: Tool
    arguments: str
    is_open: bool


class CallChanges(Struct, frozen=True, kw_only=True):
    """Shows and changes the calls that wait for one user."""

    runtime: Runtime
    contexts: TurnContexts
    executor: Executor
    approvals: ApprovalsService

    async def editable(self, user: User, approval_id: str) -> Editable:
        """The request with its arguments; NotFound where it is another user's, or its tool is gone."""
        async with self.runtime.db.read_transaction(user.id) as repository:
            row = await repository(ApprovalsRepository).get(approval_id)
            call = await repository(CallsRepository).get(row.call_id)
        tool = self.runtime.registry.get(row.tool)
        if tool is None:
            raise NotFound("This tool no longer exists.")
        is_open = row.state == "asked" and row.expires_at > self.runtime.clock()
        return Editable(request=row, tool=tool, arguments=call.arguments, is_open=is_open)

    async def allow(self, user: User, approval_id: str, arguments: str) -> None:
        """Allow the call with these arguments, once. UserError says why it could not run with them; nothing changes.

        Unchanged arguments are a plain yes. Conflict when the request was answered before or came too late.
        """
        found = await self.editable(user, approval_id)
        row = found.request
        turn = _turn(await self.runtime.db.repository(TurnsRepository, user.id).get(row.turn_id))
        call = ToolCall(id="", name=row.tool, arguments=arguments)
        try:
            reviewed = await self.executor.review(turn, changed_id(row.call_id), call)
        finally:
            self.contexts.let_go(turn.id)  # the run reads its rights anew after an answer
        if isinstance(reviewed, Refusal):
            raise UserError(reviewed.words)
        record, request = reviewed
        if record.hash == row.arguments_hash:
            await self.approvals.answer(user, approval_id, "once")
            return
        await self.approvals.change(user, approval_id, record, request)


def _turn(row: TurnRow) -> Turn:
    """The turn as far as the gate asks for it."""
    return Turn(
        id=row.id,
        conversation_id=row.conversation_id,
        user_id=row.owner_id,
        role=row.role,
        channel=row.channel,
        text=row.text,
        mode=row.mode,
        max_rounds=0,
        max_rounds_from="",
        models=tuple(row.models or ()),
        window_tokens=0,
        now="",
        ordinal=row.ordinal,
        job_id=row.job_id,
    )
