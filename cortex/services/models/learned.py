"""What a model's server was seen to refuse: kept with the model, dated, over what was set, until somebody forgets it.

Each person's own, as cache profiles are (`profiles.py`): who borrows a model learns in their own file, and reads what
its owner's use showed besides. `second_shape.py` says what a refusal teaches.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.base.clock import Clock
from cortex.base.errors import Conflict, CortexError
from cortex.base.model import ModelEntry
from cortex.services.models.files import FACTS_MOST, FactKind, FileFact
from cortex.services.models.store import RegistryStore

TRIES = 3  # where the file is changed meanwhile
ANSWER_SHARE = 4  # of a context that is smaller than was thought, an answer takes at most a quarter
SMALLEST_ANSWER = 256


class ModelFact(Struct, frozen=True, kw_only=True):
    """One thing that a server showed. `value`: tokens, a parameter or a tool; "" where the kind says all."""

    what: FactKind
    value: str = ""


def applied(entry: ModelEntry, facts: Sequence[FileFact]) -> ModelEntry:
    """The model as its server takes it: what was set, less what it refused."""
    for fact in facts:
        entry = replace(_with(entry, fact), learned=(*entry.learned, fact.what))
    return entry


def _with(entry: ModelEntry, fact: FileFact) -> ModelEntry:
    match fact.what:
        case "context_tokens":
            tokens = min(entry.context_tokens, _number(fact, entry.context_tokens))
            answer = max(SMALLEST_ANSWER, tokens // ANSWER_SHARE)
            return replace(entry, context_tokens=tokens, max_output_tokens=min(entry.max_output_tokens, answer))
        case "max_output_tokens":
            return replace(
                entry, max_output_tokens=min(entry.max_output_tokens, _number(fact, entry.max_output_tokens))
            )
        case "tools":
            return replace(entry, tools=False)
        case "sees":
            return replace(entry, sees=False)
        case "streams":
            return replace(entry, streams=False)
        case "parameter":
            return replace(entry, refused=(*entry.refused, fact.value))
        case "tool":
            return replace(entry, left_out=(*entry.left_out, fact.value))


def _number(fact: FileFact, otherwise: int) -> int:
    return int(fact.value) if fact.value.isdecimal() else otherwise


class LearnedFacts(Struct, frozen=True, kw_only=True):
    """Keeps and forgets."""

    store: RegistryStore
    clock: Clock
    _lines: defaultdict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))

    async def learn(self, user_id: str, name: str, facts: Sequence[ModelFact]) -> None:
        """Keep these of the model of this name, whoever's it is.

        A file with a slip, or one that is busy or away, stays as it is: what is not kept is seen again at the next
        refusal, and an answer that is paid for is not lost by it.
        """

        def joined(known: Sequence[FileFact]) -> Sequence[FileFact]:
            new = [FileFact(what=fact.what, value=fact.value, at=self.clock()) for fact in facts]
            keys = {_key(fact) for fact in new}
            return [*(fact for fact in known if _key(fact) not in keys), *new][-FACTS_MOST:]

        with suppress(CortexError, OSError):
            async with self._lines[user_id]:  # several turns of a person meet the same server
                await self._change(user_id, name, joined)

    async def forget(self, user_id: str, name: str, what: str = "", value: str = "") -> None:
        """Let the model be as it is set; `what` "": in every way. UserError, Conflict where the file stays as it is."""

        def rest(known: Sequence[FileFact]) -> Sequence[FileFact]:
            return [fact for fact in known if what and (fact.what, fact.value) != (what, value)]

        await self._change(user_id, name, rest)

    async def _change(
        self, user_id: str, name: str, change: Callable[[Sequence[FileFact]], Sequence[FileFact]]
    ) -> None:
        for tries in range(1, TRIES + 1):
            file, version = await self.store.read(user_id)
            known = file.learned.get(name, ())
            facts = tuple(change(known))
            if facts == known:
                return
            learned = {key: each for key, each in {**file.learned, name: facts}.items() if each}
            try:
                await self.store.write(user_id, file, file.model_copy(update={"learned": learned}), version)
            except Conflict:
                if tries == TRIES:
                    raise
            else:
                return


def _key(fact: FileFact) -> tuple[str, str]:
    """Return what a newer fact stands in place of."""
    return fact.what, fact.value if fact.what in ("parameter", "tool") else ""
