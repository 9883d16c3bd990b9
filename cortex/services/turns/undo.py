"""Takes a call back: the button on a card, through the same gate as the call, within 24 hours, once."""

from collections.abc import Sequence
from datetime import timedelta

from msgspec import Struct

from cortex.base.errors import Conflict, CortexError, NotAllowed
from cortex.base.user import User
from cortex.ports.loop import Scope, UndoOffer
from cortex.services.runtime import Runtime
from cortex.services.tools.tools import ToolsService
from cortex.services.turns.calls import UNDO_HOURS
from cortex.storage.calls import CallsRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.turns import TurnRow, TurnsRepository
from cortex.storage.undo import UndoRow, UndosRepository
from cortex.toolkit.context import REDO, Ctx, UndoNote


class UndoService(Struct, frozen=True, kw_only=True):
    """Runs the inverse of calls."""

    runtime: Runtime
    scope: Scope
    tools: ToolsService

    async def undo(self, user: User, undo_id: str) -> str:
        """Return what was taken back, in a sentence.

        Conflict when the thing changed since, the time is up, or it was taken back before; nothing is changed then.
        """
        offer = await self.runtime.db.repository(UndosRepository, user.id).get(undo_id)
        call = await self.runtime.db.repository(CallsRepository, user.id).get(offer.call_id)
        turn = await self.runtime.db.repository(TurnsRepository, user.id).get(call.turn_id)
        permitted = await self.tools.permitted(user, turn.role, channel=turn.channel, mode="auto", job_id=turn.job_id)
        category = self.runtime.registry.category(offer.category)
        if call.name not in permitted or category is None or category.undo is None:
            raise NotAllowed("You can no longer use this tool, so this cannot be undone here.")
        # Used up before it acts: of two presses one acts. A failure gives it back.
        await self.runtime.db.repository(UndosRepository, user.id).use(undo_id)
        ctx = self._ctx(user, turn, offer)
        try:
            text = await category.undo(ctx, offer.target, offer.before, offer.expected)
        except CortexError as error:
            await self.runtime.db.repository(UndosRepository, user.id).give_back(undo_id)
            await self._record(user, turn, offer, "refused", error.message)
            raise Conflict(error.message) from error
        await self._record(user, turn, offer, "redone" if offer.label == REDO else "undone", text, ctx.undo_notes)
        return text

    def _ctx(self, user: User, turn: TurnRow, offer: UndoRow) -> Ctx:
        """The context of the inverse call, under an id of its own."""
        return Ctx(
            user=user,
            conversation_id=turn.conversation_id,
            turn_id=turn.id,
            call_id=f"{offer.id}:undo",
            role=turn.role,
            now=self.runtime.clock(),
            scope=self.scope,
        )

    async def _record(
        self, user: User, turn: TurnRow, offer: UndoRow, state: str, text: str, notes: Sequence[UndoNote] = ()
    ) -> None:
        """The card says what became of it, and offers the way back from there: `notes` has it, where there is one."""
        payload = {"turn": turn.id, "call": offer.call_id, "undo": offer.id, "state": state, "text": text}
        async with self.runtime.transaction_then_notify(user.id, turn.conversation_id) as repository:
            for note in notes[-1:]:
                made = UndoOffer(
                    category=offer.category,
                    target=note.target,
                    before=note.before,
                    expected=note.expected,
                    label="Undo" if offer.label == REDO else REDO,
                )
                until = self.runtime.clock() + timedelta(hours=UNDO_HOURS)
                row = await repository(UndosRepository).add(offer.call_id, made, until, after=offer.id)
                payload["next"] = row.id
            await repository(ConversationsRepository).append(turn.conversation_id, [("undo", payload, turn.id)])
