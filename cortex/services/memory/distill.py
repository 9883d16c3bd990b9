"""Reads conversations that went quiet for new facts about their people: one model call at most for what is new.

Only what a person typed is read, never an answer, a result or what was recalled. What has no word about them costs
nothing. All that a call brings is written in one transaction with its price and the mark up to which was read.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, suppress
from datetime import timedelta

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.errors import Conflict, CortexError, UserError
from cortex.base.fact import KnownFact
from cortex.base.ids import derived_id
from cortex.base.messages import Usage, user
from cortex.base.model import ModelEntry
from cortex.base.tokens import count
from cortex.base.turn import Reply
from cortex.base.user import User
from cortex.base.zone import midnight
from cortex.ports.loop import Request
from cortex.selection.index.recall import fitting
from cortex.services.accounts.accounts import Accounts
from cortex.services.budgets.budgets import Budgets
from cortex.services.memory.answers import PROMPT, AnswerUnreadable, FoundFact, has_evidence, proved, script
from cortex.services.memory.recall import FACTS_MAX, MemoryPreferences
from cortex.services.models.asking import ask
from cortex.services.models.models import Models
from cortex.services.roles.roles import Roles
from cortex.services.runtime import Runtime
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Opener
from cortex.storage.distill_marks import AllDistillMarksRepository, DistillMarksRepository, QuietRow
from cortex.storage.facts import FactRow, FactsRepository, FactValues
from cortex.storage.halts import HaltsRepository
from cortex.storage.rounds import RoundsRepository
from cortex.storage.turns import TurnRow, TurnsRepository

ROLE, BY = "distill", "distill"
ROUND = -1  # of the last turn that is read: its own are counted from 1, the summary ahead of them is 0
TRIES_MAX = 2
CLAIM = timedelta(minutes=15)
USED_UP = timedelta(hours=1)  # till the next look where a budget or the day's share let no model be asked
CALL_S, HALT_LOOK_S = 60.0, 0.5
ANSWER_TOKENS = 700
KNOWN_MAX = 20
SAID = "you, in a conversation"
GIVEN_UP = "No model answered, so new messages were skipped."

log = logging.getLogger(__name__)


class _Reading(Struct, frozen=True, kw_only=True):
    """A question about one conversation. `known`: the facts that the model is told, in the order of their numbers."""

    person: User
    row: QuietRow
    turns: Sequence[TurnRow]
    is_from_outside: Sequence[bool]
    known: Sequence[FactRow]
    entries: Sequence[ModelEntry]
    prompt: str

    @property
    def chain(self) -> Sequence[str]:
        """The models that may be asked, by name."""
        return [entry.name for entry in self.entries]

    @property
    def payer(self) -> TurnRow:
        """The turn that the call is counted under."""
        return replace(self.turns[-1], role=ROLE)


class Distiller(Struct, frozen=True, kw_only=True):
    """Looks at one conversation at a time."""

    runtime: Runtime
    accounts: Accounts
    roles: Roles
    models: Models
    budgets: Budgets
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def look(self, row: QuietRow) -> str:
        """Read what is new in it; what came of it in words, "" where no model was asked."""
        marks = self.runtime.db.repository(DistillMarksRepository, row.owner_id)
        if await self._is_halted(row.owner_id):
            return ""
        mark = await marks.get(row.conversation_id)
        if mark.tries >= TRIES_MAX:
            await marks.move(row.conversation_id, row.upto_ordinal, GIVEN_UP)
            return GIVEN_UP
        reading = await self._reading(row, mark.upto_ordinal)
        if reading is None:
            await marks.move(row.conversation_id, row.upto_ordinal, "")
            return ""
        if not await marks.claim(row.conversation_id, self.runtime.clock() + CLAIM):
            return ""
        asked = await self._asked(reading) if await self._may_ask(reading) else None
        if asked is None:
            await self.runtime.db.repository(RoundsRepository, row.owner_id).release(reading.payer.id)
            until = None if await self._is_halted(row.owner_id) else self.runtime.clock() + USED_UP
            await marks.let_go(row.conversation_id, until)
            return ""
        reply, paid_by = asked
        if reply.message is None:  # tried once more when the claim is over
            rounds = self.runtime.db.repository(RoundsRepository, row.owner_id)
            await rounds.failed(reading.payer.id, ROUND, reply.model, 0)
            return reply.failure
        return await self._written(reading, reply, paid_by)

    async def _reading(self, row: QuietRow, upto: int) -> _Reading | None:
        """Gather what there is to ask; None where nothing new is worth a call, or the person or server wants none."""
        if not self.runtime.settings.memory_learns:
            return None
        person = await self.accounts.user(row.owner_id)
        if not (await MemoryPreferences(db=self.runtime.db).of(person.id)).learns:
            return None
        async with self.runtime.db.read_transaction(person.id) as repository:
            if not await _uses_memory(repository, row):
                return None
            turns = repository(TurnsRepository)
            new = [
                turn
                for turn in await turns.list(row.conversation_id)
                if upto < turn.ordinal <= row.upto_ordinal and turn.channel == "chat" and not turn.job_id
            ]
            if not any(has_evidence(turn.text) for turn in new):
                return None
            is_from_outside = [turn.is_tainted or (await turns.reads(turn)).outside for turn in new]
            facts = await repository(FactsRepository).list("kept", limit=FACTS_MAX)
        role = await self.roles.role(person, ROLE)
        real = (await self.models.registry(person)).real_chain(role)
        if not real:
            return None
        said = [turn.text for turn in new]
        known = await self._near(said, [fact for fact in facts if not fact.is_tainted])
        return _Reading(
            person=person,
            row=row,
            turns=new,
            is_from_outside=is_from_outside,
            known=known,
            entries=real,
            prompt=script(said, [fact.text for fact in known]),
        )

    async def _near(self, said: Sequence[str], facts: Sequence[FactRow]) -> Sequence[FactRow]:
        """The known facts that the messages may renew or contradict."""
        known = [KnownFact(id=fact.id, text=fact.text, is_tainted=False) for fact in facts]
        found = await asyncio.to_thread(fitting, "\n".join(said), known)
        by_id = {fact.id: fact for fact in facts}
        return [by_id[fact.id] for fact, _, _ in found[:KNOWN_MAX]]

    async def _may_ask(self, reading: _Reading) -> bool:
        """Tell whether the person's share of this day leaves room for the call."""
        since = midnight(self.runtime.clock(), reading.person.time_zone)
        spent = await self.runtime.db.repository(RoundsRepository, reading.person.id).spent(since, role=ROLE)
        return spent.tokens + _most(reading) <= self.runtime.settings.memory_daily_tokens

    async def _asked(self, reading: _Reading) -> tuple[Reply, str] | None:
        """The model's answer, and whose key paid for it ("" = the person's own).

        None where a budget or a stop did not let it be asked, or broke it off.
        """
        payer, person, budgets = reading.payer, reading.person, self.budgets
        role = await self.roles.role(person, ROLE)
        limits = await budgets.limits(person, payer, role)
        names, _ = await budgets.open_models(person, limits, reading.chain)
        if not names:
            return None
        entry = await self.models.entry(person, names[0])
        admission = await budgets.admit(person, payer, limits, ROUND, entry, _most(reading))
        if admission.action == "stop":
            return None
        if admission.model:
            names, _ = await budgets.open_models(person, limits, (admission.model,))
            if not names:
                return None
        request = Request(
            system=PROMPT, messages=(user(reading.prompt),), max_output_tokens=ANSWER_TOKENS, purpose="summary"
        )
        chain = await self.models.open_chain(person, names)
        try:
            async with asyncio.timeout(CALL_S), asyncio.TaskGroup() as group:
                watching = group.create_task(self._until_halted(person.id))
                calling = group.create_task(ask(chain, request))
                calling.add_done_callback(lambda _: watching.cancel())
                watching.add_done_callback(lambda _: calling.cancel())
        except TimeoutError:
            return Reply(model=entry.name, failure="The model took too long.", failure_kind="connection"), ""
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None  # whoever looks again has words for it, and none for a group
        if calling.cancelled():
            return None
        reply = calling.result()
        return reply, next((link.entry.owner_id for link in chain if link.entry.name == reply.model), "")

    async def _written(self, reading: _Reading, reply: Reply, paid_by: str) -> str:
        """One transaction: the price, the facts, the mark."""
        said = [turn.text for turn in reading.turns]
        text = reply.message.text if reply.message else ""
        try:
            found, outcome = proved(text, said, len(reading.known)), ""
        except AnswerUnreadable as error:
            found, outcome = [], str(error)
        usage = reply.usage if reply.message else Usage()
        cost = await self.models.cost(reading.person, reply.model, usage)

        async def stored() -> str:
            async with self.runtime.db.transaction(reading.person.id) as repository:
                await repository(RoundsRepository).answered(
                    reading.payer.id, ROUND, reply.model, usage, cost, role=ROLE, paid_by=paid_by
                )
                wanted = found if await _uses_memory(repository, reading.row) else []  # switched off meanwhile
                kept = [await _keep(repository, reading, one) for one in wanted]
                told = outcome or f"{sum(kept)} of {len(found)} facts were new."
                await repository(DistillMarksRepository).move(
                    reading.row.conversation_id, reading.row.upto_ordinal, told
                )
            return told

        told = await self.runtime.outages.wait_out(stored)
        log.info("memory: a conversation of %s was read: %s", reading.person.name, told)
        return told

    async def _until_halted(self, user_id: str) -> None:
        while not await self._is_halted(user_id):
            await self.sleep(HALT_LOOK_S)

    async def _is_halted(self, user_id: str) -> bool:
        return await self.runtime.db.repository(HaltsRepository).of(user_id) is not None


async def _uses_memory(repository: Opener, row: QuietRow) -> bool:
    """Tell whether the conversation is still there and its person lets it be read."""
    conversations = repository(ConversationsRepository)
    found = await conversations.get(row.conversation_id, with_deleted=True)
    return found.uses_memory and found.deleted_at is None


async def _keep(repository: Opener, reading: _Reading, one: FoundFact) -> bool:
    """Write one fact: kept where the person's own words say it, else proposed. False where it is known already."""
    facts, turn = repository(FactsRepository), reading.turns[one.message]
    is_outside = reading.is_from_outside[one.message]
    old = reading.known[one.replaces] if one.replaces is not None else None
    same = await facts.same(one.text)
    if same is not None:
        return False
    if old is not None and not is_outside:
        with suppress(Conflict, UserError):
            await facts.change(
                old.id,
                BY,
                old.version,
                text=one.text,
                certainty=one.certainty,
                quote=one.quote,
                turn_id=turn.id,
                source=SAID,
                is_seen=False,
            )
            return True
    if await facts.count() >= FACTS_MAX:
        return False
    values = FactValues(
        text=one.text,
        source=SAID,
        is_tainted=is_outside,
        certainty=one.certainty,
        state="proposed" if is_outside else "kept",
        quote=one.quote,
        turn_id=turn.id,
        replaces=old.id if old is not None else "",
        changed_by=BY,
        is_seen=False,
    )
    await facts.add(derived_id("distilled", turn.id, one.text), values, turn.created_at)
    return True


def _most(reading: _Reading) -> int:
    """Tokens that the call will hardly go beyond."""
    return count(PROMPT) + count(reading.prompt) + ANSWER_TOKENS


EVERY_S = 60.0
IDLE = timedelta(minutes=10)
REACHES_BACK = timedelta(days=2)
AT_ONCE = 50


class QuietConversations(Struct, frozen=True, kw_only=True):
    """Has them read, one after the other. Where nothing was said for a while, the database is asked nothing."""

    runtime: Runtime
    distiller: Distiller
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def read_quiet(self) -> None:
        """Until cancelled: a look a minute while anything was written of late. One that fails is told in the log."""
        last = self.runtime.clock()
        with closing(self.runtime.db.commits.another()) as commits:
            while True:
                await self.sleep(EVERY_S)
                try:
                    now = self.runtime.clock()
                    last = now if await commits.are_new() else last
                    if now - last <= IDLE + timedelta(seconds=2 * EVERY_S):
                        await self.go_round()
                except (CortexError, SQLAlchemyError, OSError) as error:
                    log.warning("memory: a look at what is new failed, retrying: %s", error)

    async def go_round(self) -> None:
        """Read what went quiet by now."""
        now, db = self.runtime.clock(), self.runtime.db
        if not self.runtime.settings.memory_learns:
            return
        for row in await db.repository(AllDistillMarksRepository).quiet(now - REACHES_BACK, now - IDLE, AT_ONCE):
            try:
                await self.distiller.look(row)
            except CortexError as error:  # one person's broken file keeps nobody else's from being read
                log.warning("memory: a conversation was not read: %s", error)
