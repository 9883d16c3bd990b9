"""What could be recalled with a person's message: their kept facts and the budget they chose. Changes nothing.

Which of them fit is `selection/index/recall.py`'s matter; plans ask for this only where a message could need any.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from cortex.base.fact import KnownFact
from cortex.base.messages import Message, Text
from cortex.services.memory.choices import KEY, choices_of
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database
from cortex.storage.facts import FactsRepository
from cortex.storage.preferences import PreferencesRepository

FACTS_MAX = 1_000  # what one person may have remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class Recallable:
    """Facts that may go along with a message, within so many tokens."""

    facts: tuple[KnownFact, ...] = ()
    budget_tokens: int = 0


NOTHING = Recallable()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallReader:
    """Reads them."""

    db: Database

    async def recallable(self, user_id: str, conversation_id: str | None) -> Recallable:
        """The person's kept facts; none where they switched recall off, or memory in this conversation."""
        async with self.db.read_transaction(user_id) as repository:
            rows = await repository(FactsRepository).list("kept", limit=FACTS_MAX)
            if not rows:
                return NOTHING
            choices = choices_of(await repository(PreferencesRepository).get(KEY))
            if conversation_id and not (await repository(ConversationsRepository).get(conversation_id)).uses_memory:
                return NOTHING
        if not choices.recalls or not choices.budget_tokens:
            return NOTHING
        facts = tuple(KnownFact(id=row.id, text=row.text, is_tainted=row.is_tainted) for row in rows)
        return Recallable(facts=facts, budget_tokens=choices.budget_tokens)


def carried(messages: Sequence[Message]) -> str:
    """Return what Cortex put behind the user's messages so far: a fact that stands there is not said again."""
    behind = (part for said in messages if said.speaker == "user" for part in said.parts[1:])
    return "\n".join(part.text for part in behind if isinstance(part, Text))
