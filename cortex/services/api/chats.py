"""What a program asks Cortex itself: a turn of a conversation, with the tools of its token's scope, and its answer.

What it sends is text from outside, all of it, unless its token says that its person typed it: whoever wrote to a mail
program speaks by its mouth. A program sends all that was said each time. Where that is what a conversation here came
to, it goes on there; else its history is laid down in a new one, marked as words from outside whatever the token says.
"""

import asyncio
from dataclasses import dataclass

from cortex.agent.titles import title
from cortex.base.errors import NotFound, UserError
from cortex.base.events import Event
from cortex.base.ids import new_id
from cortex.base.messages import Usage
from cortex.services.api.answers import Failure, Finished, Said, Tell, Voice, Working
from cortex.services.api.following import follow, waiting
from cortex.services.api.requests import MODEL, ChatRequest, Dialogue, dialogue_of, thread_of
from cortex.services.api.tokens import ApiTokens, Caller
from cortex.services.chat.laid_down import lay_down
from cortex.services.chat.sending import MESSAGE_CHARS_MAX
from cortex.services.models.models import Models
from cortex.services.roles.roles import Roles
from cortex.services.runtime import Runtime
from cortex.services.turns.answer_writer import message_row
from cortex.services.turns.queue import TurnQueue
from cortex.storage.api_tokens import ApiTokensRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Opener
from cortex.storage.rounds import RoundsRepository
from cortex.storage.turns import NOTHING_READ, TurnRow, TurnsRepository

ENDED = {
    "stopped": "The answer was stopped on the server.",
    "interrupted": "The answer was interrupted.",
    "failed": "The answer failed.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request that was taken: its turn, and the number of the log's row ahead of it."""

    turn: TurnRow
    dialogue: Dialogue
    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramChats:
    """Takes requests and follows their answers."""

    runtime: Runtime
    tokens: ApiTokens
    roles: Roles
    models: Models
    turns: TurnQueue

    async def models_of(self, caller: Caller) -> list[str]:
        """What a request may name as its model."""
        return [MODEL, *(entry.name for entry in (await self.models.registry(caller.user)).entries)]

    async def must_know(self, caller: Caller, model: str) -> None:
        """NotFound, with what there is, for a model that the person does not have."""
        known = await self.models_of(caller)
        if model and model not in known:
            raise NotFound(f"There is no model {model[:80]!r}. Available: {', '.join(known)}.")

    async def ask(self, caller: Caller, request: ChatRequest) -> Asked:
        """Commit the request as a turn and start it.

        UserError for what cannot be read, NotFound for an unknown model; NotAllowed, Throttled, Busy.
        """
        dialogue = dialogue_of(request.messages)
        if not dialogue.text.strip():
            raise UserError("The last message is empty.", field="messages")
        if len(dialogue.text) > MESSAGE_CHARS_MAX:
            most = f"The last message has {len(dialogue.text):,} characters; {MESSAGE_CHARS_MAX:,} fit."
            raise UserError(most, field="messages")
        await self.must_know(caller, request.asked_model)
        await self.roles.must_be_there(caller.user, caller.token.role)
        async with self.runtime.db.transaction(caller.user.id) as repository:
            await self.tokens.must_be_open(repository, caller)
            place = await self._place(repository, caller, dialogue)
            seq = (await repository(ConversationsRepository).get(place)).seq
            row = await repository(TurnsRepository).create(
                f"turn:{new_id()}",
                place,
                dialogue.text,
                mode="auto",
                role=caller.token.role,
                channel="api",
                is_tainted=not caller.token.is_own_words,
                reads=NOTHING_READ,
            )
            await repository(ApiTokensRepository).take(row.id, caller.token.id, place, request.asked_model)
            await repository(ConversationsRepository).append(place, [message_row(row)])
        self.runtime.hub.announce(place)
        await self.turns.start(row, is_free=True)
        return Asked(turn=row, dialogue=dialogue, seq=seq)

    async def answer(self, asked: Asked, tell: Tell) -> Finished:
        """Tell the answer as it comes, to its end. Cancelled, it ends the turn: nobody listens any more."""
        row, voice, usage, waits = asked.turn, Voice(), Usage(), ""
        try:
            async for news in follow(self.runtime, row, asked.seq):
                for event in news.events:
                    waits, usage = waiting(event, waits), _more(usage, event)
                    if event.kind == "part.end" and event.payload["kind"] == "text":
                        await _say(voice, tell, event.payload["part"], event.payload["text"])
                    elif event.kind == "turn.end":
                        await self._keep_thread(asked, voice)
                        return await self._end(row, event, usage, voice)
                for part in news.parts:
                    if part.kind == "text":
                        await _say(voice, tell, part.part, part.text)
                if not news.events and not news.parts:
                    await tell(Working(waits))
        except asyncio.CancelledError:
            await self.turns.stop(row)
            raise
        raise AssertionError("a turn is followed to its end")

    async def _place(self, repository: Opener, caller: Caller, dialogue: Dialogue) -> str:
        """The conversation that this goes on in."""
        if dialogue.before:
            thread = thread_of(dialogue.before)
            before = await repository(ApiTokensRepository).at_thread(caller.token.id, thread)
            if before is not None and await _is_last(repository, before.turn_id, before.conversation_id):
                return before.conversation_id
        name = title((*(words for words, _ in dialogue.before), dialogue.text)[0])
        is_outside = bool(dialogue.before) or not caller.token.is_own_words
        made = await repository(ConversationsRepository).create(
            caller.token.role, "auto", name, source="api", uses_memory=False, is_title_tainted=is_outside
        )
        said = [(words, answer, None) for words, answer in dialogue.before]
        await lay_down(repository, made.id, said, role=caller.token.role, mode="auto", channel="api")
        return made.id

    async def _keep_thread(self, asked: Asked, voice: Voice) -> None:
        """Remember what was said up to here, as the program will send it back."""
        row = asked.turn
        thread = thread_of((*asked.dialogue.before, (asked.dialogue.text, voice.said)))
        await self.runtime.db.repository(ApiTokensRepository, row.owner_id).keep_thread(row.id, thread)

    async def _end(self, row: TurnRow, event: Event, usage: Usage, voice: Voice) -> Finished:
        state = event.payload["state"]
        rounds = await self.runtime.db.repository(RoundsRepository, row.owner_id).of_turn(row.id)
        # Where something was done before the budget was used up, the answer says so itself.
        if [one.state for one in rounds] == ["refused"]:
            return Finished(failure="quota", text=voice.said)
        if state in ("done", "out_of_rounds"):
            return Finished(finish="length" if state == "out_of_rounds" else "stop", usage=usage)
        turn = await self.runtime.db.repository(TurnsRepository, row.owner_id).get(row.id)
        failure: Failure = "stopped" if state == "stopped" else "model"
        return Finished(usage=usage, failure=failure, text=turn.error or ENDED[state])


async def _is_last(repository: Opener, turn_id: str, conversation_id: str) -> bool:
    """Whether nothing was said in the conversation since this turn, which is at its end."""
    if not await repository(ConversationsRepository).standing([conversation_id]):
        return False
    turns = await repository(TurnsRepository).list(conversation_id, include_dropped=True, limit=1)
    return bool(turns) and turns[0].id == turn_id and turns[0].state in ("done", "out_of_rounds")


async def _say(voice: Voice, tell: Tell, part: str, text: str) -> None:
    if new := voice.heard(part, text):
        await tell(Said(new))


def _more(usage: Usage, event: Event) -> Usage:
    if event.kind != "usage":
        return usage
    return Usage(
        input_tokens=usage.input_tokens + event.payload["input"],
        output_tokens=usage.output_tokens + event.payload["output"],
        cached_tokens=usage.cached_tokens + event.payload["cached"],
        written_tokens=usage.written_tokens + event.payload["written"],
    )
