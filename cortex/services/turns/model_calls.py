"""Asks the chain of models for one round: keeps the transcript, streams parts into the log, counts the cost.

Serves the loop as its `ModelCalls`. The retry and fallback rule is `services/models/asking.py`.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from itertools import chain as joined
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cortex.agent.history import FULL_AT, fitted
from cortex.agent.toolless import as_text
from cortex.base.ids import derived_id
from cortex.base.messages import Message, ToolCall, assistant
from cortex.base.model import OFFLINE, ModelEntry, Profile
from cortex.base.tokens import count, count_message, message_bytes, minified, wire_schema
from cortex.base.turn import Reply, RoundPlan, Turn
from cortex.ports.loop import Request
from cortex.ports.steps import is_first_life, step
from cortex.ports.stored_names import StepName
from cortex.services.content.pictures import PicturesService
from cortex.services.models.asking import ask
from cortex.services.models.cache_misses import Sight, verdict
from cortex.services.models.prices import cost_usd
from cortex.services.models.profiles import endpoint_of
from cortex.services.models.registry import place_of
from cortex.services.runtime import Runtime
from cortex.services.turns.answer_writer import AnswerWriter, Row
from cortex.services.turns.turn_context import TurnContext, TurnContexts
from cortex.services.turns.written_calls import NOT_TAKEN, AskedRound, HeldBack, MixesCalls, is_untaken, with_calls
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Opener
from cortex.storage.messages import MessagesRepository, is_from_outside
from cortex.storage.round_rows import RoundBefore, Spent
from cortex.storage.rounds import RoundsRepository
from cortex.storage.turns import Reads, TurnsRepository

BACKGROUND = ("cron", "maker", "agent")  # channels of turns that nobody waits for at the page
BYTES_A_TOKEN = 4
TOO_LONG = "The answer reached the model's output limit and was cut there."
REPEATS = (
    "The model began to repeat itself without end, so it was stopped there. Ask it to go on, ask again, or choose "
    "another model."
)
_NOTES = {"length": TOO_LONG, "repeats": REPEATS}


class ModelCaller(Struct, frozen=True, kw_only=True):
    """Implements the `ModelCalls` port. mixes_calls: whether a model's server passes on calls as text beside others."""

    runtime: Runtime
    contexts: TurnContexts
    pictures: PicturesService
    mixes_calls: MixesCalls

    @step(StepName.ANSWER)
    async def answer(self, turn: Turn, plan: RoundPlan, past: Sequence[Message], added: Sequence[Message]) -> Reply:
        """The finished answer, or a failure in words; a cut or failed attempt never joins the transcript.

        An answer that stands in the transcript already is given back: the process died before the engine noted it,
        and a second one would have other call ids than the one that is kept.
        """
        known = None if is_first_life.get() else await self._known(turn, added)
        if known is not None:
            return Reply(message=known, model=turn.models[0], finish="calls" if known.calls else "stop")
        if plan.refusal:
            return Reply(failure=plan.refusal, failure_kind="budget")
        context = await self.contexts.context_of(turn)
        window = min(turn.window_tokens, _first(context, turn, plan).request_tokens)  # it may have shrunk meanwhile
        kept = await _fitted(window, plan, past, added)
        request = await self._request(context, turn, plan, (*kept, *added))
        writer = AnswerWriter(
            runtime=self.runtime, turn=turn, round_number=plan.round, beside=partial(_keep, turn, added)
        )
        if not is_first_life.get():  # else there is no earlier try to take back
            await writer.begin()
        chain = await self.contexts.models.open_chain(context.user, plan.models or turn.models, context.models)
        began_s = self.runtime.ticks_s()
        held_back = HeldBack(writer.delta, plan.tools)
        try:
            reply = await ask(
                chain,
                request,
                on_delta=held_back.delta,
                on_notice=writer.notice,
                crowd=self.contexts.models.crowd,
                is_background=turn.channel in BACKGROUND,
                turn_from=len(kept),
                on_learned=partial(self.contexts.models.learned.learn, turn.user_id),
                window_of=partial(self.contexts.models.looks.window, context.user),
            )
        except asyncio.CancelledError:
            writer.end_part()  # whoever stopped it has what was said, or its next try says it again
            raise
        ms = round((self.runtime.ticks_s() - began_s) * 1000)
        self._heard(context, reply, request)
        asked = AskedRound(context=context, turn=turn, plan=plan, added=added)
        reply = await with_calls(self.runtime.db, asked, reply, self.mixes_calls)
        if reply.message is None or not any(call.is_written for call in reply.message.calls):
            await held_back.release()
        if reply.message is None:
            await writer.abandon()
            await self.runtime.db.repository(RoundsRepository, turn.user_id).failed(
                turn.id, plan.round, reply.model, ms
            )
            return reply
        reply = replace(reply, message=_with_ids(turn, plan.round, reply.message))
        less = len(past) - len(kept)  # a past that was cut is another prefix: the cache's verdict must see that
        facts = {"ms": ms, "history": f"{turn.summary_id} less {less}" if less else turn.summary_id}
        await self._finish(asked, reply, writer, facts)
        return reply

    async def _request(
        self, context: TurnContext, turn: Turn, plan: RoundPlan, messages: tuple[Message, ...]
    ) -> Request:
        pictures = [*joined.from_iterable(one.pictures for one in messages)]
        return Request(
            system=plan.system,
            messages=as_text(messages) if plan.calls_as_text else messages,
            tools=plan.tools,
            tool_choice=plan.tool_choice,
            late_from=plan.late_from,
            parallel_calls=turn.parallel_calls,
            hints=plan.hints,
            max_output_tokens=context.most_tokens,
            parameters=context.parameters,
            pictures=await self.pictures.data(turn.user_id, pictures) if pictures else {},
        )

    def _heard(self, context: TurnContext, reply: Reply, request: Request) -> None:
        """Have the model's own server looked at again where its answer or failure contradicts what is known of it."""
        entry = context.models.get(reply.model)
        if entry is not None:
            self.contexts.models.looks.heard(context.user, entry, reply, _bytes(request) // BYTES_A_TOKEN)

    async def _known(self, turn: Turn, added: Sequence[Message]) -> Message | None:
        """The answer to these messages, if that stands in the transcript already."""
        stored = await self.runtime.db.repository(MessagesRepository, turn.user_id).of_turn(turn.id)
        answers = (row.message for row in stored if row.round == len(added) and row.message.speaker == "assistant")
        return next(answers, None)

    async def _finish(self, asked: AskedRound, reply: Reply, writer: AnswerWriter, known: dict[str, Any]) -> None:
        """One transaction: the finished part, the message, the usage, what became of the cache.

        It waits for a database that is away: the answer is paid for.
        """
        context, turn, plan = asked.context, asked.turn, asked.plan
        usage, message = reply.usage, reply.message or assistant("")
        entry = context.models.get(reply.model)
        cost = None if entry is None else await cost_usd(entry, usage)
        place = "" if entry is None else place_of(entry)
        entry = entry or OFFLINE
        payload = {
            "turn": turn.id,
            "round": plan.round,
            "model": reply.model,
            "place": place,
            "input": usage.input_tokens,
            "output": usage.output_tokens,
            "cached": usage.cached_tokens,
            "written": usage.written_tokens,
            "cost_usd": cost,
            **({"sees": True} if entry.takes_pictures and turn.pictures else {}),
        }
        rows: list[Row] = [*await writer.whole(message.text), ("usage", payload, turn.id)]
        notes = [_NOTES[reply.finish]] if reply.finish in _NOTES else [NOT_TAKEN] if is_untaken(reply, plan) else []
        rows += [("notice", {"turn": turn.id, "level": "warn", "text": note}, turn.id) for note in notes]
        is_first = entry.name == context.entry.name
        profile = (
            context.profile if is_first else (await self.contexts.profiles.profile_of(context.user, entry)).profile
        )

        async def stored() -> None:
            async with self.runtime.transaction_then_notify(turn.user_id, turn.conversation_id) as repository:
                if any(call.is_written for call in message.calls):  # anybody's words may stand in it
                    await repository(TurnsRepository).add_reads(turn.id, Reads(outside=True))
                await _keep(turn, (*asked.added, message), repository)
                cache = await self._cache(repository, asked, reply, entry, profile, known["history"])
                await repository(RoundsRepository).answered(
                    turn.id, plan.round, reply.model, usage, cost, paid_by=entry.owner_id, **{**known, **cache}
                )
                used = Spent(tokens=usage.input_tokens + usage.output_tokens, usd=cost or 0.0)
                warnings = await self.contexts.budgets.warnings(repository, turn, context.limits, used, reply.model)
                notices: list[Row] = [
                    ("notice", {"turn": turn.id, "level": "warn", "text": text}, turn.id) for text in warnings
                ]
                await repository(ConversationsRepository).append(turn.conversation_id, [*rows, *notices])

        await self.runtime.outages.wait_out(stored)
        writer.end_part()

    async def _cache(
        self,
        repository: Opener,
        asked: AskedRound,
        reply: Reply,
        entry: ModelEntry,
        profile: Profile,
        history: str,
    ) -> dict[str, Any]:
        """Return what became of the provider's cache: for the ledger, and for learning what this provider does."""
        turn, plan, rounds = asked.turn, asked.plan, repository(RoundsRepository)
        now = await rounds.at(turn.id, plan.round)
        if now is None:  # a step of an older build planned it
            return {"endpoint": endpoint_of(entry)}
        before = await rounds.before(turn.conversation_id, turn.id, plan.round)
        idle_s = (now.created_at - before.created_at).total_seconds() if before else None
        this = Sight(model=reply.model, tools=now.tools_digest, system=now.system_digest, history=history)
        found = verdict(this, _sight(before), idle_s or 0.0, reply.usage, profile)
        return {
            "cache": found.outcome,
            "kept_tokens": found.kept_tokens,
            "idle_s": idle_s,
            "endpoint": endpoint_of(entry),
        }


async def _keep(turn: Turn, messages: Sequence[Message], repository: Opener) -> None:
    """The turn's messages in the transcript, each once."""
    row = await repository(TurnsRepository).get(turn.id)
    reads = await repository(TurnsRepository).reads(row)
    each = [(message, is_from_outside(message, turn.is_tainted, reads)) for message in messages]
    await repository(MessagesRepository).add_all(row, each)


def _sight(before: RoundBefore | None) -> Sight | None:
    """An earlier request as a cache sees it."""
    if before is None:
        return None
    return Sight(
        model=before.model,
        tools=before.tools_digest,
        system=before.system_digest,
        history=before.history,
        input_tokens=before.input_tokens,
        is_replaced=before.is_replaced,
    )


def _bytes(request: Request) -> int:
    """Return how long the words of a request are."""
    return len(request.system.encode()) + sum(map(message_bytes, request.messages))


def _first(context: TurnContext, turn: Turn, plan: RoundPlan) -> ModelEntry:
    """The model that is asked first."""
    names = plan.models or turn.models
    return next((entry for entry in map(context.models.get, names) if entry is not None), context.entry)


async def _fitted(window: int, plan: RoundPlan, past: Sequence[Message], added: Sequence[Message]) -> Sequence[Message]:
    """The past as it fits beside this round's tools, which may have grown since the turn began."""
    limit = round(window * FULL_AT)
    tools = minified([wire_schema(tool) for tool in plan.tools])
    texts = (plan.system, tools)
    if sum(len(text.encode()) for text in texts) + sum(map(message_bytes, (*past, *added))) <= limit:
        return past  # bytes are never fewer than tokens: nothing to count

    def newest() -> Sequence[Message]:
        beside = sum(map(count, texts)) + sum(map(count_message, added))
        return fitted(past, limit - beside, count_message)

    return await asyncio.to_thread(newest)


def _with_ids(turn: Turn, round_number: int, message: Message) -> Message:
    """Every call under an id of its own: an endpoint that sends none, or the same twice, still works."""
    seen: set[str] = set()
    parts = []
    for index, part in enumerate(message.parts):
        if isinstance(part, ToolCall):
            if not part.id or part.id in seen:
                part = replace(part, id=f"call_{derived_id(turn.id, str(round_number), str(index))[:20]}")
            seen.add(part.id)
        parts.append(part)
    return replace(message, parts=tuple(parts))
