"""Composes the loop that runs turns out of its services. `app.py` alone calls it."""

from cortex.agent.execute import Executor
from cortex.services.context import House
from cortex.services.turns.approvals import ApprovalsService
from cortex.services.turns.calls import CallLog
from cortex.services.turns.end import TurnEnd
from cortex.services.turns.history import ConversationHistory
from cortex.services.turns.model_calls import ModelCaller
from cortex.services.turns.planning import Planning
from cortex.services.turns.start import TurnStart
from cortex.services.turns.turn_context import TurnContexts
from cortex.services.turns.turns import TurnRuns
from cortex.storage.home import Homes


def turn_runs(
    house: House, homes: Homes, contexts: TurnContexts, planning: Planning, desk: ApprovalsService
) -> TurnRuns:
    """The loop's world over its services."""
    story = ConversationHistory(house=house, contexts=contexts)
    return TurnRuns(
        house=house,
        contexts=contexts,
        openings=TurnStart(house=house, contexts=contexts, story=story),
        endings=TurnEnd(house=house),
        story=story,
        planning=planning,
        thinking=ModelCaller(house=house, contexts=contexts),
        executor=Executor(
            registry=house.registry,
            book=CallLog(house=house, contexts=contexts, homes=homes),
            desk=desk,
            scope=house.scope,
            ticks_s=house.ticks_s,
        ),
        desk=desk,
    )
