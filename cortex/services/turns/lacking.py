"""Whether an answer did without what its message wants and cannot have here; what the person reads where it did not.

The model was told behind the message (`services/tools/plans.py`). The line is written with the turn's end, once a
conversation: whoever asks the same again, or has it answered anew, reads it again.
"""

from typing import Any

from cortex.agent.arguments import behind_bridge
from cortex.base.lacking import is_named
from cortex.base.turn import Outcome
from cortex.selection.lacks_tool import does_not_answer
from cortex.services.turns.answer_writer import Row
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Opener
from cortex.storage.plans import PlansRepository
from cortex.storage.turns import TurnRow, TurnsRepository


def is_named_in(answer: str, receipt: dict[str, Any]) -> bool:
    """Whether the answer names what the model was told of with this plan."""
    title = receipt.get("setup", {}).get("title", "")  # a plan from before has told the person already
    return bool(title) and is_named(title, answer)


async def lacking_rows(repository: Opener, row: TurnRow, outcome: Outcome) -> list[Row]:
    """The line for the person behind the turn's answer; [] where it needs none."""
    plans = await repository(PlansRepository).of_turn(row.id)
    told = [plan.receipt["setup"] for plan in plans if "title" in plan.receipt.get("setup", {})]
    needed = next((one for one in reversed(told) if _is_needed(one, outcome)), None)
    if needed is None or await _knows(repository, row, needed["text"]):
        return []
    return [("notice", {"turn": row.id, "level": "info", "text": needed["text"], "page": needed["page"]}, row.id)]


def _is_needed(told: dict[str, Any], outcome: Outcome) -> bool:
    """Whether the answer names it, says that something is lacking, or the model tried to call it all the same."""
    called = {behind_bridge(call)[0] for message in outcome.messages for call in message.calls}
    return (
        is_named(told["title"], outcome.text) or does_not_answer(outcome.text) or not called.isdisjoint(told["tools"])
    )


async def _knows(repository: Opener, row: TurnRow, text: str) -> bool:
    """Whether another message in view has brought the line; the same words again ask for it again."""
    for turn_id in await repository(ConversationsRepository).turns_told(row.conversation_id, text):
        turn = await repository(TurnsRepository).get(turn_id)
        if not turn.is_dropped and turn.text.strip() != row.text.strip():
            return True
    return False
