"""The conversation around a turn: the past fitted into the window, messages sent meanwhile, Cortex's own words.

Serves the loop as its `History`. `summarise` is called when a turn opens; `past` then is the same for ever.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from cortex.agent.history import FULL_AT, SUMMARY_AT, TurnMessages, cut, fitted, newest, view
from cortex.base.errors import UserError
from cortex.base.messages import Message, Picture, ToolCall, ToolResult, user
from cortex.base.role import Role
from cortex.base.tokens import count, count_message, message_bytes
from cortex.base.turn import Past, Reply, Turn
from cortex.base.user import User
from cortex.ports.loop import Request
from cortex.ports.steps import is_first_life, step
from cortex.ports.stored_names import StepName
from cortex.services.models.asking import Link, ask
from cortex.services.models.learned import ModelFact
from cortex.services.runtime import Runtime
from cortex.services.turns.answer_writer import Row
from cortex.services.turns.turn_context import TurnContext, TurnContexts
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.messages import by_turn
from cortex.storage.rounds import RoundsRepository
from cortex.storage.summaries import SummariesRepository, SummaryRow
from cortex.storage.turns import TurnRow, TurnsRepository

SUMMARY_ROUND = 0
LEFT_OUT = "(The beginning is left out here: it is longer than you can read at once.)"


class ConversationHistory(Struct, frozen=True, kw_only=True):
    """Implements the `History` port over the stored transcript."""

    runtime: Runtime
    contexts: TurnContexts

    async def past(self, turn: Turn) -> Past:
        """Return what was said before: whole, or with a summary in place of its beginning. Depends on the turn alone.

        It is no step: a replay works it out again, and gets the same. A job's run knows nothing of the runs before it:
        its prompt is complete, and a year of runs would cost tokens.
        """
        if turn.job_id:
            return Past()
        context = await self.contexts.context_of(turn)
        stored, summary = context.stored, context.summary
        turns = by_turn(stored)
        if summary is None:
            limit = round(turn.window_tokens * FULL_AT)
            kept = turns if size_bytes(turns) <= limit else newest(turns, limit, count_message)
            messages = view(kept, summary="", upto=0)
        else:
            messages = view(turns, summary=summary.text, upto=summary.upto_ordinal)
        is_tainted = any(row.is_tainted for row in stored) or (summary is not None and summary.is_tainted)
        return Past(messages=messages, summary=summary.text if summary else "", is_tainted=is_tainted)

    @step(StepName.STEER)
    async def steer(self, turn: Turn, after_round: int) -> tuple[str, ...]:
        """The messages that were queued while the turn ran, taken into it now."""
        turns = self.runtime.db.repository(TurnsRepository, turn.user_id)
        if not await turns.queued(turn.conversation_id):
            # After a kill none is queued any more although this round took some: those are given again.
            return () if is_first_life.get() else tuple(row.text for row in await turns.taken_at(turn.id, after_round))
        async with self.runtime.transaction_then_notify(turn.user_id, turn.conversation_id) as repository:
            taken = await repository(TurnsRepository).take_queued(turn.conversation_id, turn.id, after_round)
            if taken:
                rows: list[Row] = [
                    ("steer", {"turn": row.id, "into": turn.id, "round": after_round}, row.id) for row in taken
                ]
                await repository(ConversationsRepository).append(turn.conversation_id, rows)
        return tuple(row.text for row in taken)

    @step(StepName.SAY)
    async def say(self, turn: Turn, round_number: int, text: str, kind: str, note: str = "") -> None:
        """Cortex's own words in the log: `answer` as a part of the answer, else a notice. `note`: one behind it.

        A notice that this turn wrote before a kill is not written again.
        """
        conversations = self.runtime.db.repository(ConversationsRepository, turn.user_id)
        if (
            kind == "notice"
            and not is_first_life.get()
            and turn.id in await conversations.turns_told(turn.conversation_id, text)
        ):
            return
        if kind == "answer":
            part = f"{turn.id.removeprefix('turn:')}-{round_number}-said"
            rows: list[Row] = [
                (
                    "part.end",
                    {
                        "turn": turn.id,
                        "round": round_number,
                        "part": part,
                        "kind": "text",
                        "text": text,
                        "attempt": 1,
                    },
                    turn.id,
                )
            ]
        else:
            rows = [("notice", {"turn": turn.id, "level": "info", "text": text}, turn.id)]
        if note:
            rows.append(("notice", {"turn": turn.id, "level": "info", "text": note}, turn.id))
        async with self.runtime.transaction_then_notify(turn.user_id, turn.conversation_id) as repository:
            await repository(ConversationsRepository).append(turn.conversation_id, rows)

    async def summarise(self, context: TurnContext, row: TurnRow) -> SummaryRow | None:
        """The summary that this turn's view uses; written now when the past outgrew the window.

        A failing model leaves a notice in the log and costs the oldest turns their place in the view, nothing else.
        """
        known, window = context.summary, context.entry.request_tokens
        turns = by_turn(context.stored)
        live = turns if known is None else [item for item in turns if item[0] > known.upto_ordinal]
        # Bytes are never fewer than tokens: while they fit, nothing has to be counted.
        upto = None if size_bytes(live) <= window * SUMMARY_AT else cut(live, window, count_message)
        if upto is None:
            return known
        old = [item for item in turns if item[0] <= upto]
        told = view(old, summary=known.text if known else "", upto=known.upto_ordinal if known else 0)
        text = await self._distil(context, row, told)
        if not text:
            return known
        is_tainted = any(stored.is_tainted for stored in context.stored if stored.ordinal <= upto)
        async with self.runtime.transaction_then_notify(row.owner_id, row.conversation_id) as repository:
            made = await repository(SummariesRepository).add(row.conversation_id, upto, text, is_tainted)
            payload = {"summary": made.id, "upto_turn": upto, "text": text, "state": "made", "is_tainted": is_tainted}
            await repository(ConversationsRepository).append(row.conversation_id, [("summary", payload, row.id)])
        return made

    async def _distil(self, context: TurnContext, row: TurnRow, told: Sequence[Message]) -> str:
        """The summary in the words of the role `distill`'s model; "" when it could not be had."""
        person, budgets = context.user, self.contexts.budgets
        try:
            role: Role = await self.contexts.roles.role(person, "distill")
        except UserError as error:  # a slip in its file; a turn that can do without a summary goes on
            return await self._not_distilled(row, error.message)
        chain = context.models.chain(role)
        room = round(context.model(chain[0]).request_tokens * SUMMARY_AT) - count(role.prompt)
        script = await asyncio.to_thread(script_of, told, room)
        payer, most = replace(row, role=role.name), count(role.prompt) + count(script)
        limits = await budgets.limits(person, payer, role)
        names, why = await budgets.open_models(person, limits, chain)
        if not names:
            return await self._not_distilled(row, why)
        admission = await budgets.admit(person, payer, limits, SUMMARY_ROUND, context.model(names[0]), most)
        failure = admission.text
        if admission.model:
            names, failure = await budgets.open_models(person, limits, (admission.model,))
        if admission.action != "stop" and names:
            links = await self.contexts.models.open_chain(person, names)
            request = Request(system=role.prompt, messages=(user(script),), purpose="summary")
            reply = await ask(links, request, turn_from=0, on_learned=partial(self._learn, row))
            await self._book(person, payer, reply, links)
            if reply.message is not None and reply.message.text:
                return reply.message.text
            failure = reply.failure
        return await self._not_distilled(row, failure)

    async def _learn(self, row: TurnRow, model: str, facts: Sequence[ModelFact]) -> None:
        """Keep what a summary's model was seen not to take, and say it: the turn's own request is fitted to it."""
        await self.contexts.models.learned.learn(row.owner_id, model, facts)
        await self._notice(row, f"{model} takes less at once than was thought: less of the chat is sent to it.")

    async def _not_distilled(self, row: TurnRow, failure: str) -> str:
        await self._notice(
            row, f"The older part of this conversation could not be summarised ({failure}); it is left out."
        )
        return ""

    async def _notice(self, row: TurnRow, text: str) -> None:
        async with self.runtime.transaction_then_notify(row.owner_id, row.conversation_id) as repository:
            await repository(ConversationsRepository).append(
                row.conversation_id, [("notice", {"turn": row.id, "level": "warn", "text": text}, row.id)]
            )

    async def _book(self, person: User, payer: TurnRow, reply: Reply, links: Sequence[Link]) -> None:
        """A summary is a model call like any other: it stands in the ledger as round 0 of the turn that needed it."""
        rounds = self.runtime.db.repository(RoundsRepository, person.id)
        if reply.message is None:
            await rounds.failed(payer.id, SUMMARY_ROUND, reply.model, 0)
            return
        cost = await self.contexts.models.cost(person, reply.model, reply.usage)
        paid_by = next((link.entry.owner_id for link in links if link.entry.name == reply.model), "")
        await rounds.answered(payer.id, SUMMARY_ROUND, reply.model, reply.usage, cost, role=payer.role, paid_by=paid_by)


def script_of(told: Sequence[Message], room_tokens: int) -> str:
    """Return what is to be summarised, as lines; of what is longer than the model takes, the newest exchanges."""
    kept = told
    if sum(map(message_bytes, told)) > room_tokens:
        kept = fitted(told, room_tokens, count_message) or told[-1:]
    lines = [f"{message.speaker}: {spoken(message, is_whole=False)}" for message in kept]
    return "\n".join([LEFT_OUT, *lines] if len(kept) < len(told) else lines)


def spoken(message: Message, *, is_whole: bool = True) -> str:
    """A message as one line of a script: words, calls, results. Not whole: without what Cortex put behind the words."""
    said = message.text if is_whole else message.said
    words = [said] if said else []
    for part in message.parts:
        if isinstance(part, ToolCall):
            words.append(f"[calls {part.name} {part.arguments}]")
        elif isinstance(part, ToolResult):
            words.append(f"[{part.name}: {part.text[:2000]}]")
        elif isinstance(part, Picture):
            words.append(f"[picture {part.name}]")
    return " ".join(words)


def size_bytes(turns: Sequence[TurnMessages]) -> int:
    """The past in bytes: never less than its tokens, and had without a tokenizer."""
    return sum(message_bytes(message) for _, messages in turns for message in messages)
