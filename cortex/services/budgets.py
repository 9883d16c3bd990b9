"""What a turn may still spend, looked up before each model call (SECURITY section 3, "money, time")."""

from dataclasses import dataclass

from cortex.base.turn import Turn
from cortex.base.user import User
from cortex.services.house import House
from cortex.services.roles import Roles
from cortex.storage.plans import Plans


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """Checks the role's token and money budget of one turn."""

    house: House
    roles: Roles

    async def exceeded(self, user: User, turn: Turn) -> str:
        """A sentence for the person when the turn's budget is used up, else ""."""
        role = await self.roles.role(user, turn.role)
        if role.budget_tokens is None and role.budget_usd is None:
            return ""
        spent = await self.house.db.open(Plans, user.id).spent_in_turn(turn.id)
        if role.budget_tokens is not None and spent.tokens >= role.budget_tokens:
            return f"I stopped: this message used {spent.tokens:,} tokens; the role allows {role.budget_tokens:,}."
        if role.budget_usd is not None and spent.usd >= role.budget_usd:
            return f"I stopped: this message cost ${spent.usd:.4f}; the role allows ${role.budget_usd:.4f}."
        return ""
