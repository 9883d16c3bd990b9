"""Finds out whether an answer lacked what its message wants and cannot have here, and what the person then reads.

The model was told behind the message (`services/tools/plans.py`), where that was likely meant. The line is written with
the turn's end, once a conversation: whoever asks the same again, or has it answered anew, reads it again.
"""

from collections.abc import Sequence
from typing import Any

from cortex.agent.arguments import behind_bridge
from cortex.base.lacking import PERHAPS, is_named
from cortex.base.turn import Outcome
from cortex.selection.model.lacks_tool import does_not_answer
from cortex.services.turns.answer_writer import Row
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Opener
from cortex.storage.plans import PlanRow
from cortex.storage.turns import TurnRow, TurnsRepository


def is_named_in(answer: str, receipt: dict[str, Any]) -> bool:
    """Tell whether the answer names what the model was told of with this plan."""
    title = receipt.get("setup", {}).get("title", "")  # a plan from before has told the person already
    return bool(title) and is_named(title, answer)


async def lacking_rows(repository: Opener, row: TurnRow, outcome: Outcome, plans: Sequence[PlanRow]) -> list[Row]:
    """The line for the person behind the turn's answer, planned so; [] where it needs none."""
    told = [
        (plan.receipt[key], key) for plan in plans for key in ("setup", PERHAPS) if "title" in plan.receipt.get(key, {})
    ]
    needed = next((one for one, key in reversed(told) if _is_needed(one, outcome, is_told=key != PERHAPS)), None)
    if needed is None or await _knows(repository, row, needed["text"]):
        return []
    return [("notice", {"turn": row.id, "level": "info", "text": needed["text"], "page": needed["page"]}, row.id)]


def _is_needed(told: dict[str, Any], outcome: Outcome, *, is_told: bool) -> bool:
    """Tell whether the answer says that something is lacking, the model tried to call it, or, told of it, names it.

    Where the model was not told, an answer that used other tools may lack something else.
    """
    called = {behind_bridge(call)[0] for message in outcome.messages for call in message.calls}
    is_missed = does_not_answer(outcome.text) and (is_told or not called)
    return is_missed or not called.isdisjoint(told["tools"]) or (is_told and is_named(told["title"], outcome.text))


async def _knows(repository: Opener, row: TurnRow, text: str) -> bool:
    """Tell whether another message in view has brought the line; the same words again ask for it again."""
    for turn_id in await repository(ConversationsRepository).turns_told(row.conversation_id, text):
        turn = await repository(TurnsRepository).get(turn_id)
        if not turn.is_dropped and turn.text.strip() != row.text.strip():
            return True
    return False
