"""A turn round by round: plan, request as it went out, calls, what it took. For its owner, or an admin who is audited.

System and tools are the very texts that were sent; messages come from the transcript, as the model saw them. Known
secrets are blotted out of all of it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.agent.arguments import title_of
from cortex.agent.history import view
from cortex.agent.toolless import as_text
from cortex.base.errors import NotFound
from cortex.base.log import SecretFilter
from cortex.base.messages import Message
from cortex.base.numbers import whole_number
from cortex.base.user import User
from cortex.services.models.cache_misses import WORDS
from cortex.services.models.models import Models
from cortex.services.runtime import Runtime
from cortex.services.turns.history import spoken
from cortex.storage.accounts import AccountsRepository
from cortex.storage.approvals import ApprovalRow, ApprovalsRepository
from cortex.storage.audit import AuditRepository
from cortex.storage.calls import CallRow, CallsRepository
from cortex.storage.db import Opener
from cortex.storage.messages import MessagesRepository, by_turn
from cortex.storage.plans import PlanRow, PlansRepository, TextsRepository
from cortex.storage.round_rows import RoundRow
from cortex.storage.rounds import RoundsRepository
from cortex.storage.summaries import SummariesRepository
from cortex.storage.turns import AllTurnsRepository, TurnRow, TurnsRepository


class TracedMessage(Struct, frozen=True, kw_only=True):
    """A message of a request, in words."""

    speaker: str
    text: str


class CallTrace(Struct, frozen=True, kw_only=True):
    """A call, in words, with how its question was answered; `approval` "" = nobody was asked."""

    call: CallRow
    title: str
    approval: str


class RoundTrace(Struct, frozen=True, kw_only=True):
    """One model call. `receipt` None = it was never planned (a refusal, a summary)."""

    number: int
    round: RoundRow
    receipt: dict[str, Any] | None
    system: str
    tools: tuple[dict[str, Any], ...]
    messages: tuple[TracedMessage, ...]
    answer: TracedMessage | None
    calls: tuple[CallTrace, ...]
    cache_words: str
    can_replay: bool

    @property
    def fresh_tokens(self) -> int:
        """Input that was neither read from the cache nor written to it."""
        return max(0, self.round.input_tokens - self.round.cached_tokens - self.round.written_tokens)


class Trace(Struct, frozen=True, kw_only=True):
    """A turn. `past`: what was said before it, as the first request carried it. `beside`: calls of no round.

    `payers`: the names of those whose shared models were asked, by account id.
    """

    turn: TurnRow
    text: str
    past: tuple[TracedMessage, ...]
    rounds: tuple[RoundTrace, ...]
    beside: tuple[CallTrace, ...] = ()
    payers: Mapping[str, str] = field(default_factory=dict)

    @property
    def cost_usd(self) -> float | None:
        """Of the rounds whose price is known; None when no price is."""
        known = [one.round.cost_usd for one in self.rounds if one.round.cost_usd is not None]
        return sum(known) if known else None

    def to_json(self) -> str:
        """All of it, for a file."""
        return json.dumps(_plain(self), indent=2, ensure_ascii=False, default=str)


class Traces(Struct, frozen=True, kw_only=True):
    """Reads what was kept of a turn."""

    runtime: Runtime
    models: Models

    async def owner_of(self, user: User, turn_id: str) -> str:
        """Whose turn it is, if this user may see it: their own, or anybody's for an admin. NotFound otherwise."""
        owner = await self.runtime.db.repository(AllTurnsRepository).owner(turn_id)
        if not owner or (owner != user.id and not user.is_admin):
            raise NotFound("This turn does not exist.")
        return owner

    async def trace(self, user: User, turn_id: str) -> Trace:
        """The turn. A look at somebody else's stands in the audit log before it is given."""
        owner = await self.owner_of(user, turn_id)
        blotter = await self.models.blotter(owner)
        blotter.add(*self.runtime.settings.known_secrets)
        async with self.runtime.db.transaction(owner) as repository:
            if owner != user.id:
                await repository(AuditRepository).add(user.id, "trace.read", owner, {"turn": turn_id})
            turn = await repository(TurnsRepository).get(turn_id)
            plans = {plan.round: plan for plan in await repository(PlansRepository).of_turn(turn_id)}
            rounds = await repository(RoundsRepository).of_turn(turn_id)
            payers = {
                paid_by: (await repository(AccountsRepository).get(paid_by)).name
                for paid_by in {row.paid_by for row in rounds if row.paid_by}
            }
            past = await self._past(repository, turn, rounds)
            said = [row.message for row in await repository(MessagesRepository).of_turn(turn_id)]
            calls = [
                await self._call(repository, call, blotter)
                for call in await repository(CallsRepository).of_turn(turn_id)
            ]
            texts = await repository(TextsRepository).get(
                {plan.given[name] for plan in plans.values() for name in ("system", "tools") if name in plan.given}
            )
        blotted = {digest: blotter.blot(text) for digest, text in texts.items()}
        made = _Made(plans=plans, texts=blotted, calls=calls, past=past, said=said, blotter=blotter)
        return Trace(
            turn=replace(turn, text=blotter.blot(turn.text)),
            text=blotter.blot(turn.text),
            past=_spoken(past, blotter),
            rounds=tuple(made.round(row, _asked(rounds, row, said)) for row in rounds),
            beside=tuple(call for call in calls if call.call.round not in {row.round for row in rounds}),
            payers=payers,
        )

    async def _past(self, repository: Opener, turn: TurnRow, rounds: Sequence[RoundRow]) -> tuple[Message, ...]:
        """Return what was ahead of it in the first request: whole, after a summary, or without what did not fit."""
        turns = by_turn(await repository(MessagesRepository).of_conversation(turn.conversation_id, turn.ordinal))
        history = next((row.history for row in rounds if row.round > 0), "")
        summary_id, _, less = history.partition("less ")
        if not summary_id.strip():
            whole = view(turns, summary="", upto=0)
        else:
            summary = await repository(SummariesRepository).get(summary_id.strip())
            whole = view(turns, summary=summary.text, upto=summary.upto_ordinal)
        return whole[whole_number(less) or 0 :]

    async def _call(self, repository: Opener, call: CallRow, blotter: SecretFilter) -> CallTrace:
        asked: ApprovalRow | None = await repository(ApprovalsRepository).of_call(call.id)
        told = replace(call, arguments=blotter.blot(call.arguments), text=blotter.blot(call.text))
        title = title_of(self.runtime.registry, told.name, told.arguments)
        return CallTrace(call=told, title=title, approval=asked.state if asked else "")


class _Made(Struct, frozen=True, kw_only=True):
    """The parts from which the rounds of one turn are put together."""

    plans: dict[int, PlanRow]
    texts: dict[str, str]
    calls: Sequence[CallTrace]
    past: tuple[Message, ...]
    said: Sequence[Message]
    blotter: SecretFilter

    def round(self, row: RoundRow, upto: int) -> RoundTrace:
        """One model call, whose request ended ahead of the message at `upto`."""
        plan = self.plans.get(row.round)
        given = plan.given if plan else {}
        messages = tuple(self.said[:upto])
        is_text = plan is not None and not plan.receipt["sent"]
        answer = self.said[upto] if row.state == "answered" and upto < len(self.said) else None
        return RoundTrace(
            number=row.round,
            round=row,
            receipt=plan.receipt if plan else None,
            system=self.texts.get(given.get("system", ""), ""),
            tools=tuple(json.loads(self.texts.get(given.get("tools", ""), "[]"))),
            messages=_spoken(as_text(messages) if is_text else messages, self.blotter),
            answer=_spoken((answer,), self.blotter)[0] if answer else None,
            calls=tuple(call for call in self.calls if call.call.round == row.round),
            cache_words=next((words for outcome, words in WORDS.items() if outcome == row.cache), ""),
            can_replay=bool(given),
        )


def _asked(rounds: Sequence[RoundRow], row: RoundRow, said: Sequence[Message]) -> int:
    """Return how many of the turn's messages this round's request carried: all ahead of its own answer."""
    answered = [one.round for one in rounds if one.state == "answered" and one.round > 0]
    answers = [place for place, message in enumerate(said) if message.speaker == "assistant"]
    earlier = sum(number < row.round for number in answered)
    if row.state == "answered" and earlier < len(answers):
        return answers[earlier]
    return len(said) if earlier >= len(answers) else answers[earlier]


def _spoken(messages: Sequence[Message], blotter: SecretFilter) -> tuple[TracedMessage, ...]:
    return tuple(TracedMessage(speaker=one.speaker, text=blotter.blot(spoken(one))) for one in messages)


def _plain(trace: Trace) -> dict[str, Any]:
    """The trace as plain values: the ledger row of each round, its receipt, its request, its calls."""
    return {
        "turn": trace.turn.id,
        "text": trace.text,
        "state": trace.turn.state,
        "role": trace.turn.role,
        "past": [[one.speaker, one.text] for one in trace.past],
        "rounds": [
            {
                "took": {name: getattr(one.round, name) for name in RoundRow.__struct_fields__ if name != "sent"},
                "paid_by": trace.payers.get(one.round.paid_by, ""),
                "cache": one.cache_words,
                "receipt": one.receipt,
                "system": one.system,
                "tools": one.tools,
                "messages": [[message.speaker, message.text] for message in one.messages],
                "answer": one.answer.text if one.answer else None,
                "calls": _plain_calls(one.calls),
            }
            for one in trace.rounds
        ],
        "calls": _plain_calls(trace.beside),
    }


def _plain_calls(calls: Sequence[CallTrace]) -> list[dict[str, Any]]:
    return [
        {name: getattr(each.call, name) for name in CallRow.__struct_fields__} | {"approval": each.approval}
        for each in calls
    ]
