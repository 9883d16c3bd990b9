"""What could be recalled with a person's message: their kept facts and the budget; and their choices for memory.

Which of them fit is `selection/index/recall.py`'s matter; plans ask for this only where a message could need any.
"""

from collections.abc import Sequence

from msgspec import Struct

from cortex.base.errors import UserError
from cortex.base.fact import RECALL_TOKENS, KnownFact
from cortex.base.messages import Message, Text
from cortex.base.numbers import whole_number
from cortex.base.record import as_dict
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database
from cortex.storage.facts import FactsRepository
from cortex.storage.preferences import PreferencesRepository

KEY = "memory"
BUDGET_TOKENS_MAX = 2_000


class MemoryChoices(Struct, frozen=True, kw_only=True):
    """recalls: what fits goes with a message, within `budget_tokens`. learns: conversations are read for new ones."""

    recalls: bool = True
    learns: bool = True
    budget_tokens: int = RECALL_TOKENS


def choices_of(stored: object) -> MemoryChoices:
    """Return what was stored, with the defaults for the rest."""
    known = stored if isinstance(stored, dict) else {}
    return MemoryChoices(**{name: known[name] for name in MemoryChoices.__struct_fields__ if name in known})


class MemoryPreferences(Struct, frozen=True, kw_only=True):
    """Reads and writes them."""

    db: Database

    async def of(self, user_id: str) -> MemoryChoices:
        """Return what is in force for this person."""
        return choices_of(await self.db.repository(PreferencesRepository, user_id).get(KEY))

    async def change(self, user_id: str, *, recalls: bool, learns: bool, budget: str) -> MemoryChoices:
        """Put these in force; UserError for a budget that is none."""
        budget_tokens = whole_number(budget)
        if budget_tokens is None or not 0 <= budget_tokens <= BUDGET_TOKENS_MAX:
            raise UserError(f"Write a number of tokens from 0 to {BUDGET_TOKENS_MAX:,}.", field="budget")
        made = MemoryChoices(recalls=recalls, learns=learns, budget_tokens=budget_tokens)
        await self.db.repository(PreferencesRepository, user_id).set(KEY, as_dict(made))
        return made


FACTS_MAX = 1_000  # what one person may have remembered


class Recallable(Struct, frozen=True, kw_only=True):
    """Facts that may go along with a message, within so many tokens."""

    facts: tuple[KnownFact, ...] = ()
    budget_tokens: int = 0


NOTHING = Recallable()


class RecallReader(Struct, frozen=True, kw_only=True):
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
