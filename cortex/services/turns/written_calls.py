"""Calls that a model wrote into its answer as text: when they are taken, and that they do not flash up as the answer.

Called by `model_calls.py`. The forms are `agent/text_calls.py`'s. A call that is taken is marked, and the gate asks
before it changes, sends, runs or spends anything (`agent/records.py: of_call`).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.agent.text_calls import calls_in, is_told, looks_like_calls, may_be_calls
from cortex.base.messages import Message, Text, Thinking, ToolCall, ToolResult, ToolSchema
from cortex.base.model import ModelEntry
from cortex.base.turn import GIVEN, Reply, RoundPlan, Turn
from cortex.services.models.asking import OnDelta
from cortex.services.turns.turn_context import TurnContext
from cortex.storage.db import Database
from cortex.storage.rounds import RoundsRepository

NOT_TAKEN = (
    "The model wrote a tool call as text, and nothing was done. Ask again, choose a model that calls tools, or set the "
    "tools of this chat to Chat only."
)
_LOOKED_AT = 1_000  # characters of an answer's beginning that tell whether it may be a call


MixesCalls = Callable[[ModelEntry], bool]


class HeldBack(Struct):
    """Passes an answer on as it comes, but for one that may turn out to be calls: that is kept until it is known."""

    on_delta: OnDelta
    tools: Sequence[ToolSchema]
    attempt: int = 0
    is_words: bool = False
    begin: str = ""
    held: list[str] = field(default_factory=list)

    async def delta(self, kind: Literal["text", "thinking"], text: str, attempt: int) -> None:
        """A piece of the answer; a higher attempt begins it again."""
        if attempt > self.attempt:
            self.attempt, self.is_words, self.begin = attempt, False, ""
            self.held.clear()
        if kind == "thinking" or self.is_words:
            await self.on_delta(kind, text, attempt)
            return
        self.held.append(text)
        self.begin = (self.begin + text)[:_LOOKED_AT]
        if not may_be_calls(self.begin, self.tools):
            await self.release()

    async def release(self) -> None:
        """Show what was kept: these are words."""
        self.is_words = True
        if text := "".join(self.held):
            self.held.clear()
            await self.on_delta("text", text, self.attempt)


class Given(Struct, frozen=True, kw_only=True):
    """Text that a model was given. `said`: by the person and by tools of this server; `outside`: by anybody else."""

    said: tuple[str, ...]
    outside: tuple[str, ...]


class AskedRound(Struct, frozen=True, kw_only=True):
    """A round as a model is asked for it. `added`: what the turn has brought so far."""

    context: TurnContext
    turn: Turn
    plan: RoundPlan
    added: Sequence[Message]


async def with_calls(db: Database, asked: AskedRound, reply: Reply, mixes_calls: MixesCalls) -> Reply:
    """The reply with the calls that its text consists of in place of the text; as it is where it may not be taken so.

    Taken where the model made no call of its own in this chat (or its server is known to mix them), each fits a tool
    that was sent, the whole answer is nothing else, and no text that the model was given holds it.
    """
    message = reply.message
    if message is None or message.calls or reply.finish != "stop" or asked.plan.tool_choice == "none":
        return reply
    calls = calls_in(message.text, asked.plan.tools)
    if not calls or _is_quoted(calls, _given(asked)):
        return reply
    entry = asked.context.models.get(reply.model)
    is_mixed = entry is not None and mixes_calls(entry)
    if not is_mixed and await _calls_itself(db, asked, reply.model):
        return reply
    thought = tuple(part for part in message.parts if isinstance(part, Thinking))
    return replace(reply, message=replace(message, parts=(*thought, *calls)), finish="calls")


def is_untaken(reply: Reply, plan: RoundPlan) -> bool:
    """Tell whether the answer is shown as words although it holds what a model writes for a call."""
    message = reply.message
    return message is not None and not message.calls and looks_like_calls(message.text, plan.tools)


def _is_quoted(calls: Iterable[ToolCall], given: Given) -> bool:
    return any(is_told(call, given.said, given.outside) for call in calls)


def _given(asked: AskedRound) -> Given:
    said: list[str] = []
    outside: list[str] = []
    each = [(row.message, row.is_tainted) for row in asked.context.stored]
    each += [(message, asked.turn.is_tainted) for message in asked.added]
    for message, is_tainted in each:
        words = [part.text for part in message.parts if isinstance(part, Text)]
        if message.speaker == "user":
            (outside if is_tainted else said).extend(words[:1])
            outside += words[1:]  # files, facts, notes
        for part in message.parts:
            if isinstance(part, ToolResult):
                (outside if part.tainted else said).append(part.text)
    return Given(said=tuple(said), outside=tuple(outside))


async def _calls_itself(db: Database, asked: AskedRound, model: str) -> bool:
    """Tell whether this model made calls of its own in this chat."""
    turns = {row.turn_id for row in asked.context.stored if _has_own(row.message)}
    turns |= {asked.turn.id} if any(map(_has_own, asked.added)) else set()
    rounds = db.repository(RoundsRepository, asked.turn.user_id)
    for turn_id in sorted(turns):
        if any(each.model == model and each.state == "answered" for each in await rounds.of_turn(turn_id)):
            return True
    return False


def _has_own(message: Message) -> bool:
    return any(not call.is_written and call.id != GIVEN for call in message.calls)
