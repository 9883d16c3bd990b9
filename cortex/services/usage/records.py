"""What is on record about model calls, as the pages ask for it: sums, budgets, one turn's trace, its replay."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Self

from cortex.services.accounts.accounts import Accounts
from cortex.services.models.models import Models
from cortex.services.models.profiles import Profiles
from cortex.services.runtime import Runtime
from cortex.services.tools.replays import Replays
from cortex.services.tools.tools import ToolsService
from cortex.services.usage.budget_admin import BudgetDesk
from cortex.services.usage.runs import RunsService
from cortex.services.usage.traces import Traces
from cortex.services.usage.usage import UsageService
from cortex.storage.plans import AllPlansRepository


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Five doors over the same ledger, and what is learned from it about caches."""

    runtime: Runtime
    usage: UsageService
    budgets: BudgetDesk
    traces: Traces
    replays: Replays
    runs: RunsService
    profiles: Profiles

    @classmethod
    def over(
        cls, runtime: Runtime, accounts: Accounts, models: Models, tools: ToolsService, profiles: Profiles
    ) -> Self:
        """All of them over the runtime."""
        return cls(
            runtime=runtime,
            usage=UsageService(runtime=runtime, accounts=accounts),
            budgets=BudgetDesk(runtime=runtime, accounts=accounts),
            traces=Traces(runtime=runtime, models=models),
            replays=Replays(runtime=runtime, tools=tools),
            runs=RunsService(runtime=runtime, accounts=accounts, models=models),
            profiles=profiles,
        )

    async def sweep(self) -> None:
        """Throw away how tools were chosen longer ago than the setting keeps it."""
        days = self.runtime.settings.plans_kept_days
        if days:
            await self.runtime.db.repository(AllPlansRepository).forget(self.runtime.clock() - timedelta(days=days))
