"""What a person chose about being remembered. One small value in their preferences, each part with its default."""

from dataclasses import asdict, dataclass

from cortex.base.errors import UserError
from cortex.base.fact import RECALL_TOKENS
from cortex.base.numbers import whole_number
from cortex.storage.db import Database
from cortex.storage.preferences import PreferencesRepository

KEY = "memory"
BUDGET_TOKENS_MAX = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChoices:
    """recalls: what fits goes with a message, within `budget_tokens`. learns: conversations are read for new ones."""

    recalls: bool = True
    learns: bool = True
    budget_tokens: int = RECALL_TOKENS


def choices_of(stored: object) -> MemoryChoices:
    """Return what was stored, with the defaults for the rest."""
    known = stored if isinstance(stored, dict) else {}
    return MemoryChoices(**{name: known[name] for name in MemoryChoices.__dataclass_fields__ if name in known})


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPreferences:
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
        await self.db.repository(PreferencesRepository, user_id).set(KEY, asdict(made))
        return made
