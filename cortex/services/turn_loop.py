"""Composes the loop that runs turns out of its services. `app.py` alone calls it, and says what is durable."""

from cortex.agent.execute import Executor
from cortex.services.accounts import Accounts
from cortex.services.approvals import ApprovalsService
from cortex.services.calls import Book
from cortex.services.endings import Endings
from cortex.services.house import House
from cortex.services.models import Models
from cortex.services.openings import Openings
from cortex.services.planning import Planning
from cortex.services.roles import Roles
from cortex.services.story import Telling
from cortex.services.thinking import Thinking
from cortex.services.tools import ToolsService
from cortex.services.turns import Durable, TurnRuns
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
    durable: Durable,
) -> TurnRuns:
    """The loop's world over durable ports."""
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
        durable=durable,
    )
