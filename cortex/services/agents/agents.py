"""Background agents: a turn of its own, in a conversation of its own, started by another turn, which it outlives.

Ids derive from the call that started it, so that a repeated step starts nothing twice. What comes of a run is
`results.py`.
"""

from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct

from cortex.agent.titles import title
from cortex.base.errors import NotFound, ToolFailed
from cortex.base.turn import LOOP_ENDS, agent_turn, parent_of
from cortex.ports.agents import AgentRun
from cortex.services.accounts.accounts import Accounts
from cortex.services.agents.coding import CodingRuns, coding_run
from cortex.services.agents.runs import AgentView, card_row, reading, run_of, view_of
from cortex.services.budgets.budgets import Budgets
from cortex.services.roles.roles import Roles
from cortex.services.runtime import Runtime
from cortex.services.turns.answer_writer import message_row
from cortex.services.turns.queue import TurnQueue
from cortex.storage.coding import CodingRow
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.turns import NewTurn, TurnRow, TurnsRepository

AT_ONCE = 4


class AgentsService(Struct, frozen=True, kw_only=True):
    """Every method takes whose; another person's runs are unknown (NotFound). `turns` starts and stops them."""

    runtime: Runtime
    accounts: Accounts
    roles: Roles
    budgets: Budgets
    turns: TurnQueue

    async def start(self, user_id: str, id: str, parent_turn: str, task: str, role: str, is_tainted: bool) -> AgentRun:
        """Start one, once per id. ToolFailed for an unknown role, an agent of an agent, too many, a spent budget."""
        with suppress(NotFound):
            _, begun = await run_of(reading(self.runtime.db, user_id), id)
            if begun.state not in LOOP_ENDS:
                await self.turns.start(begun)  # a kill may have come between the row and its run
            return (await self.view(user_id, id)).run
        parent = await self.runtime.db.repository(TurnsRepository, user_id).get(parent_turn)
        await self._must_be_possible(user_id, parent, role)
        async with self.runtime.transaction_then_notify(user_id, parent.conversation_id) as repository:
            reads = await repository(TurnsRepository).reads(parent)
            await repository(ConversationsRepository).create(
                role,
                "auto",
                title(task),
                id=id,
                source="agent",
                parent_id=parent.conversation_id,
                is_title_tainted=is_tainted or reads.outside,
            )
            row = await repository(TurnsRepository).create(
                NewTurn(
                    agent_turn(parent.id, id),
                    id,
                    task,
                    mode="auto",
                    role=role,
                    channel="agent",
                    job_id=parent.job_id,
                    is_tainted=is_tainted or parent.is_tainted,
                    reads=reads,
                )
            )
            await repository(ConversationsRepository).append(id, [message_row(row, False)])
            await repository(ConversationsRepository).append(parent.conversation_id, [card_row(row, id)])
        await self.turns.start(row)  # where this is cut off and not repeated, the queue starts the turn
        return (await self.view(user_id, id)).run

    async def must_be_possible(self, user_id: str, parent_turn: str, role: str) -> None:
        """ToolFailed where `start` would refuse one of this role now."""
        parent = await self.runtime.db.repository(TurnsRepository, user_id).get(parent_turn)
        await self._must_be_possible(user_id, parent, role)

    async def list(self, user_id: str, most: int) -> Sequence[AgentRun]:
        """The newest runs."""
        rows = await self.runtime.db.repository(ConversationsRepository, user_id).list(limit=most, source="agent")
        return [(await self.view(user_id, row.id)).run for row in rows]

    async def view(self, user_id: str, run_id: str) -> AgentView:
        """One run; NotFound."""
        return await view_of(reading(self.runtime.db, user_id), run_id)

    async def cancel(self, user_id: str, run_id: str) -> AgentRun:
        """Stop it; one that has ended stays as it is."""
        _, row = await run_of(reading(self.runtime.db, user_id), run_id)
        if row.state not in LOOP_ENDS:
            await self.turns.stop(row)
        return (await self.view(user_id, run_id)).run

    async def cancel_all_of(self, user_id: str, conversation_id: str) -> None:
        """Stop those that were started in this conversation: nobody waits for them any more."""
        for one in await self.runtime.db.repository(ConversationsRepository, user_id).agents_of(conversation_id):
            await self.cancel(user_id, one.id)

    async def _must_be_possible(self, user_id: str, parent: TurnRow, role: str) -> None:
        user = await self.accounts.user(user_id)
        if parent.channel == "agent":
            raise ToolFailed("A background agent can't start another one; do the work here.")
        names = await self.roles.names(user)
        found = await self.roles.role(user, role) if role in names else None
        if found is None or (found.is_admin_only and not user.is_admin):
            raise ToolFailed(f"There is no role {role!r}. Roles: {', '.join(names)}.")
        active = [
            row for row in await self.runtime.db.repository(TurnsRepository, user_id).active() if parent_of(row.id)
        ]
        if len(active) >= AT_ONCE:
            raise ToolFailed(f"{AT_ONCE} background agents are already running. Wait for one or stop one.")
        spent = await self.budgets.spent_up(user, parent)
        if spent:
            raise ToolFailed(f"No budget is left for an agent. {spent}")


class UserAgents(Struct, frozen=True, kw_only=True):
    """Implements the port `Agents` for one person: background turns, and what the coding agent does for them."""

    service: AgentsService
    coding: CodingRuns
    user_id: str

    async def start(self, id: str, parent_turn: str, task: str, role: str, is_tainted: bool) -> AgentRun:
        """Start one, once per id."""
        return await self.service.start(self.user_id, id, parent_turn, task, role, is_tainted)

    async def must_be_possible(self, parent_turn: str, role: str) -> None:
        """Refuse what `start` would refuse."""
        await self.service.must_be_possible(self.user_id, parent_turn, role)

    async def list(self, most: int) -> Sequence[AgentRun]:
        """The newest runs."""
        coded = [_agent_run(row) for row in await self.coding.newest(self.user_id, most)]
        runs = [*await self.service.list(self.user_id, most), *coded]
        return sorted(runs, key=lambda run: run.started_at, reverse=True)[:most]

    async def get(self, id: str) -> AgentRun:
        """One run; NotFound."""
        with suppress(NotFound):
            return _agent_run(await self.coding.get(self.user_id, id))
        return (await self.service.view(self.user_id, id)).run

    async def cancel(self, id: str) -> AgentRun:
        """Stop it."""
        with suppress(NotFound):
            return _agent_run(await self.coding.stop(self.user_id, id))
        return await self.service.cancel(self.user_id, id)


def _agent_run(row: CodingRow) -> AgentRun:
    """A run of the coding agent as `agent_status` has it."""
    run = coding_run(row)
    return AgentRun(
        id=run.id,
        task=run.message,
        kind="coding",
        role=f"aider in {run.repository}",
        state=run.state,
        started_at=run.started_at,
        is_tainted=True,
        ended_at=run.ended_at,
        result="\n".join(filter(None, (run.commit[:12], run.diff_stat, run.said[-1_500:]))),
    )
