"""Reads what needs no model from the message of a turn: "turn off the kitchen lights", "is the garage door open?".

Serves the loop as its `PlainCommands`. Only what a person typed into a chat is read so, and only where the role has
the tool; what is not certain is left to the model.
"""

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from cortex.agent.plain import DONE_NOTE, ROUND, WITHOUT_MODEL
from cortex.base.errors import CortexError, DatabaseUnavailable
from cortex.base.ids import derived_id
from cortex.base.messages import ToolCall, assistant, user
from cortex.base.turn import PlainCommand, Turn, parent_of
from cortex.integrations.home_assistant.commands.readings import may_be_command
from cortex.ports.home_assistant import HouseCommand, HouseCommands, HouseOrder
from cortex.ports.loop import Scope
from cortex.ports.steps import is_first_life, step
from cortex.ports.stored_names import StepName
from cortex.services.runtime import Runtime
from cortex.services.turns.turn_context import TurnContext, TurnContexts
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.messages import MessagesRepository, is_from_outside
from cortex.storage.plans import PlansRepository
from cortex.storage.turns import TurnRow, TurnsRepository

log = logging.getLogger(__name__)

TOOL = "ha_call_service"
LOOK = "ha_get_state"
TARGET_CHARACTERS = 4_000  # of the tool's target
CALLS_MAX = 4
HOUSE_S = 5.0  # a house that takes longer to say how it stands is the model's
SAID = "answer"  # of the receipt: what to say once all is done


def may_be_order(row: TurnRow, context: TurnContext) -> bool:
    """Tell whether what was said in a chat may be an order for the house: worth asking the house."""
    is_typed = not row.job_id and not parent_of(row.id) and not row.is_tainted
    may_use = not context.permitted.isdisjoint((TOOL, LOOK))
    return is_typed and row.mode != "chat" and may_use and may_be_command(row.text)


class PlainCommandReader(Struct, frozen=True, kw_only=True):
    """Implements the `PlainCommands` port over Home Assistant's."""

    runtime: Runtime
    contexts: TurnContexts
    scope: Scope

    @step(StepName.COMMAND)
    async def command(self, turn: Turn) -> PlainCommand | None:
        """Read the message's certain order, and keep its calls in the transcript ahead of their effect.

        What was kept first stays.
        """
        kept = None if is_first_life.get() else await self._kept(turn)
        if kept is not None:
            return kept
        context = await self.contexts.context_of(turn)
        try:
            async with asyncio.timeout(HOUSE_S):
                found = await self.scope.provide(HouseCommands, turn.user_id).understand(turn.text)
        except DatabaseUnavailable:  # the same step may be tried again
            raise
        except (CortexError, TimeoutError) as error:  # not set up, or it does not answer: the model says so
            log.info("no order is read from turn %s: %s", turn.id, str(error) or "the house took too long")
            return None
        calls = _calls(turn, found) if found else ()
        if found is None or len(calls) > CALLS_MAX or any(call.name not in context.permitted for call in calls):
            return None
        if found.looks and LOOK in context.ground.settings.asks_first:
            return None  # what is told was read now, and the yes may come hours later
        command = PlainCommand(calls=calls, done=found.done)
        await self._keep(turn, context, command)
        return command

    async def _kept(self, turn: Turn) -> PlainCommand | None:
        """Return what an earlier try of this step read, and did not live to hand on."""
        async with self.runtime.db.read_transaction(turn.user_id) as repository:
            plans = await repository(PlansRepository).of_turn(turn.id)
            rows = await repository(MessagesRepository).of_turn(turn.id)
        if not plans or WITHOUT_MODEL not in plans[0].receipt["labels"] or len(rows) < 2:
            return None
        return PlainCommand(calls=rows[1].message.calls, done=plans[0].receipt[SAID])

    async def _keep(self, turn: Turn, context: TurnContext, command: PlainCommand) -> None:
        """One transaction: the message with its calls, and a receipt that says that nothing was sent."""
        receipt = _receipt(turn, context, command, len(self.runtime.registry.tools))
        async with self.runtime.transaction_then_notify(turn.user_id, turn.conversation_id) as repository:
            row = await repository(TurnsRepository).get(turn.id)
            reads = await repository(TurnsRepository).reads(row)
            said = user(turn.text)
            # The calls name entities by their ids, which are the house's words and not the person's.
            each = [(said, is_from_outside(said, turn.is_tainted, reads)), (assistant("", *command.calls), True)]
            await repository(MessagesRepository).add_all(row, each)
            await repository(PlansRepository).add(turn.id, ROUND, receipt)
            payload = {"turn": turn.id, "round": ROUND, "total": receipt["total"]}
            await repository(ConversationsRepository).append(turn.conversation_id, [("selection", payload, turn.id)])


def _calls(turn: Turn, found: HouseCommand) -> tuple[ToolCall, ...]:
    arguments = [(TOOL, each) for order in found.orders for each in _arguments(order)]
    arguments += [(LOOK, {"entity": ", ".join(found.looks)})] if found.looks else []
    return tuple(
        ToolCall(id=f"call_{derived_id(turn.id, name, str(at))[:20]}", name=name, arguments=json.dumps(each))
        for at, (name, each) in enumerate(arguments)
    )


def _arguments(order: HouseOrder) -> Iterator[dict[str, Any]]:
    """The tool's arguments: as many calls as it takes for each target to be read whole."""
    data = {"data": dict(order.data)} if order.data else {}
    target = ""
    for id in order.ids:
        if target and len(target) + len(id) + 2 > TARGET_CHARACTERS:
            yield {"service": order.service, "target": target, **data}
            target = ""
        target = f"{target}, {id}" if target else id
    yield {"service": order.service, "target": target, **data}


def _receipt(turn: Turn, context: TurnContext, command: PlainCommand, total: int) -> dict[str, Any]:
    """A receipt as `selection/plan/receipt.py` writes it, of a request that was never made."""
    return {
        "mode": turn.mode,
        "role": turn.role,
        "recipe": "",
        "total": total,
        "total_tokens": 0,
        "permitted": len(context.permitted),
        "permitted_tokens": 0,
        "sent": [],
        "tokens": 0,
        "saved": 0,
        "decisions": [],
        "added": [],
        "labels": {WITHOUT_MODEL: DONE_NOTE},
        SAID: command.done,
    }
