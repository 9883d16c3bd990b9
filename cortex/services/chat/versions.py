"""The versions of a message and its answer: what each is, and going from one to another.

A new one is made by `services/chat/chat.py` (`again`, `edit`). The versions chosen last are the transcript.
"""

from collections.abc import Sequence

from msgspec import Struct

from cortex.base.errors import Conflict
from cortex.base.user import User
from cortex.services.chat.transcript_views import key_of
from cortex.services.runtime import Runtime
from cortex.services.turns.approval_log import close_of_turns
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Opener
from cortex.storage.plans import PlansRepository
from cortex.storage.rounds import RoundsRepository
from cortex.storage.turns import TurnRow, TurnsRepository
from cortex.storage.versions import VersionsRepository


class AnswerVersion(Struct, frozen=True, kw_only=True):
    """A version as it is listed. `models`: those that answered; `recipe`: "" where no tools were chosen.

    `cost_usd` None: it asked no model, or the price of one is unknown.
    """

    turn: TurnRow
    models: tuple[str, ...]
    recipe: str
    cost_usd: float | None

    @property
    def key(self) -> str:
        """The turn as addresses have it."""
        return key_of(self.turn.id)


class Versions(Struct, frozen=True, kw_only=True):
    """The versions of answers in a conversation, and going from one to another."""

    runtime: Runtime

    async def of(self, user: User, turn_id: str) -> Sequence[AnswerVersion]:
        """All versions of this turn's place, oldest first; NotFound for a foreign turn."""
        async with self.runtime.db.read_transaction(user.id) as repository:
            turn = await repository(TurnsRepository).get(turn_id)
            return [await _version(repository, row) for row in await repository(VersionsRepository).of(turn)]

    async def show(self, user: User, turn_id: str) -> TurnRow:
        """Bring this version into view, with what followed it; Conflict while something is answered or waits."""
        row = await self.runtime.db.repository(TurnsRepository, user.id).get(turn_id)
        async with self.runtime.transaction_then_notify(user.id, row.conversation_id) as repository:
            await hold_still(repository, row.conversation_id)
            hidden, shown = await repository(VersionsRepository).choose(row)
            await close_of_turns(repository, row.conversation_id, hidden)
            if hidden or shown:
                payload = {"hidden": hidden, "shown": shown}
                await repository(ConversationsRepository).append(row.conversation_id, [("turn.show", payload, None)])
            return await repository(TurnsRepository).get(turn_id)


async def hold_still(repository: Opener, conversation_id: str) -> None:
    """From here to the commit nothing is added to the conversation; Conflict while an answer is written or waited for.

    What is written goes on in the branch in view.
    """
    await repository(VersionsRepository).hold(conversation_id)
    if await repository(TurnsRepository).running(conversation_id) is not None:
        raise Conflict("An answer is being written, or waits for your approval. Stop it first.")
    if await repository(TurnsRepository).queued(conversation_id):
        raise Conflict("A message is waiting to be answered. Try again after that.")


async def _version(repository: Opener, row: TurnRow) -> AnswerVersion:
    rounds = [one for one in await repository(RoundsRepository).of_turn(row.id) if one.state == "answered"]
    plans = await repository(PlansRepository).of_turn(row.id)
    costs = [one.cost_usd for one in rounds]
    known = [cost for cost in costs if cost is not None]
    return AnswerVersion(
        turn=row,
        models=tuple(dict.fromkeys(one.model for one in rounds if one.round > 0)),
        recipe=str(plans[0].receipt.get("recipe", "")) if plans else "",
        cost_usd=sum(known) if known and len(known) == len(costs) else None,
    )
