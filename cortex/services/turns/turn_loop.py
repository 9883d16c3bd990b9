"""Composes the loop that runs turns out of its services. `app.py` alone calls it."""

from cortex.agent.execute import Executor
from cortex.services.runtime import Runtime
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
    runtime: Runtime, homes: Homes, contexts: TurnContexts, planning: Planning, approvals: ApprovalsService
) -> TurnRuns:
    """The loop's world over its services."""
    history = ConversationHistory(runtime=runtime, contexts=contexts)
    return TurnRuns(
        runtime=runtime,
        contexts=contexts,
        turn_start=TurnStart(runtime=runtime, contexts=contexts, history=history),
        turn_end=TurnEnd(runtime=runtime),
        history=history,
        planning=planning,
        model_caller=ModelCaller(runtime=runtime, contexts=contexts),
        executor=Executor(
            registry=runtime.registry,
            call_log=CallLog(runtime=runtime, contexts=contexts, homes=homes),
            approvals=approvals,
            scope=runtime.scope,
            ticks_s=runtime.ticks_s,
        ),
        approvals=approvals,
    )
