"""Composes the loop that runs turns out of its services. `app.py` alone calls it."""

from cortex.agent.execute import Executor
from cortex.services.accounts.accounts import Accounts
from cortex.services.context import House
from cortex.services.models.models import Models
from cortex.services.roles.roles import Roles
from cortex.services.tools.tools import ToolsService
from cortex.services.turns.approvals import ApprovalsService
from cortex.services.turns.calls import Book
from cortex.services.turns.end import Endings
from cortex.services.turns.history import Telling
from cortex.services.turns.model_calls import Thinking
from cortex.services.turns.planning import Planning
from cortex.services.turns.start import Openings
from cortex.services.turns.turns import TurnRuns
from cortex.storage.home import Homes


def turn_runs(
    house: House,
    homes: Homes,
    accounts: Accounts,
    roles: Roles,
    models: Models,
    tools: ToolsService,
    planning: Planning,
    desk: ApprovalsService,
) -> TurnRuns:
    """The loop's world over its services."""
    story = Telling(house=house, models=models, roles=roles, budgets=planning.budgets)
    return TurnRuns(
        house=house,
        openings=Openings(house=house, accounts=accounts, roles=roles, models=models, story=story),
        endings=Endings(house=house),
        story=story,
        planning=planning,
        thinking=Thinking(
            house=house, accounts=accounts, models=models, budgets=planning.budgets, profiles=planning.profiles
        ),
        executor=Executor(
            registry=house.registry,
            book=Book(house=house, accounts=accounts, tools=tools, homes=homes),
            desk=desk,
            scope=house.scope,
            ticks_s=house.ticks_s,
        ),
        desk=desk,
    )
