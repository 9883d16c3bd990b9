"""Opens a turn: reads once, inside a step, everything the loop may depend on, and fixes it in a `Turn`."""

from dataclasses import dataclass

from cortex.base.model import ModelEntry
from cortex.base.role import Role
from cortex.base.turn import LOOP_ENDS, Turn
from cortex.base.user import User
from cortex.ports.steps import step
from cortex.ports.stored_names import StepName
from cortex.services.accounts.accounts import Accounts
from cortex.services.context import House
from cortex.services.models.models import Models
from cortex.services.roles.roles import Roles
from cortex.services.roles.rounds import max_rounds
from cortex.services.turns.history import Telling
from cortex.storage.conversations import Conversations
from cortex.storage.turns import TurnRow, Turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Openings:
    """Makes `Turn` values from stored rows."""

    house: House
    accounts: Accounts
    roles: Roles
    models: Models
    story: Telling

    @step(StepName.OPEN)
    async def open(self, user_id: str, turn_id: str) -> Turn | None:
        """The turn as the loop needs it, marked as running and told in the log; None when it has ended already."""
        user = await self.accounts.user(user_id)
        row = await self.house.db.open(Turns, user_id).get(turn_id)
        if row.state in LOOP_ENDS or row.is_dropped:
            return None
        role = await self.roles.role(user, row.role, row.job_id)
        names = await self.models.names(user, role)
        entry = await self.models.entry(user, names[0])
        rounds, origin = max_rounds(self.house.settings.max_rounds, entry, role, row.max_rounds, row.job_id)
        await self._tell(user, row, role, entry, rounds, origin)
        summary_id = ""
        if not row.job_id:
            window = entry.context_tokens
            summary_id = await self.story.summarise(user, row.conversation_id, turn_id, row.ordinal, window)
        return Turn(
            id=row.id,
            conversation_id=row.conversation_id,
            user_id=user_id,
            role=role.name,
            channel=row.channel,
            text=row.text,
            mode=row.mode,
            max_rounds=rounds,
            max_rounds_from=origin,
            models=names,
            window_tokens=entry.context_tokens,
            now=self.house.clock().isoformat(),
            is_tainted=row.is_tainted,
            parallel_calls=entry.parallel_calls,
            ordinal=row.ordinal,
            summary_id=summary_id,
            job_id=row.job_id,
        )

    async def _tell(self, user: User, row: TurnRow, role: Role, entry: ModelEntry, rounds: int, origin: str) -> None:
        """The state and its log row, once: a re-run of the step finds the turn running and says nothing twice."""
        async with self.house.telling(user.id, row.conversation_id) as opened:
            if row.state != "queued":
                return
            await opened(Turns).set_state(row.id, "running", models=(entry.name,), only_from=("queued",))
            payload = {
                "turn": row.id,
                "role": role.name,
                "model": entry.name,
                "max_rounds": rounds,
                "max_rounds_from": origin,
            }
            await opened(Conversations).append(row.conversation_id, [("turn.start", payload, row.id)])
