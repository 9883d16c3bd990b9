"""What a program asks Cortex itself: a turn of a conversation, with the tools of its token's scope, and its answer.

What it sends is text from outside, all of it, unless its token says that its person typed it: whoever wrote to a mail
program speaks by its mouth. A program sends all that was said each time. Where that is what a conversation here came
to, it goes on there; else its history is laid down in a new one, marked as words from outside whatever the token says.
"""

import asyncio
import hashlib
import io
from collections.abc import Sequence
from itertools import takewhile

from msgspec import Struct

from cortex.agent.history import FULL_AT
from cortex.agent.titles import title
from cortex.base.errors import CortexError, UserError
from cortex.base.events import Event
from cortex.base.ids import new_id
from cortex.base.tokens import count
from cortex.services.api.answers import Failure, Finished, StopText, Tell
from cortex.services.api.hearing import Hearing, follow, left_open
from cortex.services.api.json_answers import JsonWanted, refusal, wanted_by
from cortex.services.api.passing import format_of, tuning_of
from cortex.services.api.pictures import ProgramPictures, must_be_few, unread
from cortex.services.api.requests import MODEL, BadRequest, ChatRequest, Dialogue, dialogue_of, thread_of
from cortex.services.api.tokens import ApiTokens, Caller
from cortex.services.chat.laid_down import lay_down
from cortex.services.chat.sending import attachment_of
from cortex.services.content.documents import DocumentsService
from cortex.services.models.models import Models
from cortex.services.roles.roles import Roles
from cortex.services.runtime import Runtime
from cortex.services.turns.answer_writer import message_row
from cortex.services.turns.queue import TurnQueue
from cortex.storage.api_tokens import INSTRUCTED, INSTRUCTIONS, MOST_TOKENS, ApiRequestRow, ApiTokensRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Opener
from cortex.storage.documents import DocumentRow
from cortex.storage.rounds import RoundsRepository
from cortex.storage.turns import NOTHING_READ, NewTurn, Reads, TurnRow, TurnsRepository

ENDED = {
    "stopped": "The answer was stopped on the server.",
    "interrupted": "The answer was interrupted.",
    "failed": "The answer failed.",
}

ENDS = ("done", "out_of_rounds")
LATE_MOST = 10  # calls of a turn that were allowed when it was over
BEGUN = "Your answer has begun already. Go on right behind its beginning, and do not repeat that:\n{begun}"


class Asked(Struct, frozen=True, kw_only=True):
    """A request that was taken: its turn, and the number of the log's row ahead of it.

    `stops`: what ends its answer; `wanted`: what that has to be, None for words. `waits`: for its person, where a call
    needs their word; else that is left open.
    """

    turn: TurnRow
    dialogue: Dialogue
    seq: int
    stops: tuple[str, ...] = ()
    wanted: JsonWanted | None = None
    waits: bool = True


class ProgramChats(Struct, frozen=True, kw_only=True):
    """Takes requests and follows their answers."""

    runtime: Runtime
    tokens: ApiTokens
    roles: Roles
    models: Models
    turns: TurnQueue
    documents: DocumentsService
    pictures: ProgramPictures

    async def windows_of(self, caller: Caller) -> dict[str, int]:
        """Return how many tokens each model takes in that a request may name."""
        registry = await self.models.registry(caller.user)
        first = registry.first(await self.roles.role(caller.user, caller.token.role))
        return {MODEL: first.context_tokens, **{entry.name: entry.context_tokens for entry in registry.entries}}

    async def ask(self, caller: Caller, request: ChatRequest) -> Asked:
        """Commit the request, which names a model that there is, as a turn, and start it.

        BadRequest for what cannot be read; NotAllowed, Throttled, Busy.
        """
        dialogue = dialogue_of(request.messages)
        if not dialogue.text.strip() and not dialogue.pictures:
            raise BadRequest("The last message is empty.", field="messages")
        await self.roles.must_be_there(caller.user, caller.token.role)
        await self._must_fit(caller, request.asked_model, dialogue)
        wanted = wanted_by(format_of(request))
        files = await self._kept_pictures(caller, dialogue)
        try:
            row, seq = await self._commit(caller, request, dialogue, wanted, files)
        except CortexError:
            for file in files:
                await self.documents.delete(caller.user, file.id)
            raise
        self.runtime.hub.announce(row.conversation_id)
        await self.turns.start(row, is_free=True)
        waits = caller.token.wait_s > 0
        return Asked(turn=row, dialogue=dialogue, seq=seq, stops=request.stops, wanted=wanted, waits=waits)

    async def answer(self, asked: Asked, tell: Tell) -> Finished:
        """Tell the answer as it comes, to its end. Cancelled, it ends the turn: nobody listens any more."""
        row = asked.turn
        hearing = Hearing(tell=tell, stops=StopText(asked.stops), is_held=asked.wanted is not None)
        try:
            async for news in follow(self.runtime, row, asked.seq):
                for event in news.events:
                    await hearing.take(event)
                    words = "" if asked.waits else left_open(event)
                    if words and await self.turns.set_aside(row):
                        return await self._left_open(asked, words, hearing)
                    if event.kind == "turn.end":
                        return await self._end(asked, event, hearing)
                for part in news.parts:
                    if part.kind == "text":
                        await hearing.hear(part.part, part.text)
                if hearing.stops.is_met:
                    await self.turns.stop(row)
                    return Finished(usage=hearing.usage)
                if hearing.is_held or (not news.events and not news.parts):
                    await hearing.work(self.runtime.ticks_s())
        except asyncio.CancelledError:
            await self.turns.stop(row)
            raise
        raise AssertionError("a turn is followed to its end")

    async def _left_open(self, asked: Asked, words: str, hearing: Hearing) -> Finished:
        """The end of an answer whose turn is set aside: its call waits for the person, and the program does not."""
        await hearing.leave(words)
        await self._keep_thread(asked, hearing.told)
        if asked.wanted is not None:
            return Finished(usage=hearing.usage, failure="stopped", text=words)
        return Finished(usage=hearing.usage)

    async def _must_fit(self, caller: Caller, model: str, dialogue: Dialogue) -> None:
        """BadRequest for words that the model cannot take in at once; what was said before them is summarised."""
        registry = await self.models.registry(caller.user)
        entry = registry.get(model) or registry.first(await self.roles.role(caller.user, caller.token.role))
        room = round(entry.context_tokens * FULL_AT)
        for name, text in (("system prompt", dialogue.instructions), ("last message", dialogue.text)):
            tokens = await asyncio.to_thread(count, text)
            if tokens > room:
                most = (
                    f"The {name} has about {tokens:,} tokens; {room:,} fit into {entry.name}, which takes in "
                    f"{entry.context_tokens:,} with everything else. Shorten it, or ask a model that takes in more."
                )
                raise BadRequest(most, field="messages", code="context_length_exceeded")

    async def _kept_pictures(self, caller: Caller, dialogue: Dialogue) -> list[DocumentRow]:
        """The pictures among the person's files; those of earlier messages too, where they were not given here."""
        places = dialogue.pictures
        if dialogue.pictures_before:
            async with self.runtime.db.read_transaction(caller.user.id) as repository:
                if await self._goes_on_from(repository, caller, dialogue) is None:
                    places = (*dialogue.pictures_before, *places)
        must_be_few(places)
        kept: list[DocumentRow] = []
        for number, place in enumerate(dict.fromkeys(places), 1):
            data = await self.pictures.raw(place)
            try:
                kept.append(await self.documents.give(caller.user, f"picture {number}", io.BytesIO(data), len(data)))
            except UserError as error:
                raise unread(place, error.message) from error
        return kept

    async def _commit(
        self,
        caller: Caller,
        request: ChatRequest,
        dialogue: Dialogue,
        wanted: JsonWanted | None,
        files: Sequence[DocumentRow],
    ) -> tuple[TurnRow, int]:
        """The turn, and the number of the log's row ahead of it."""
        asking = [
            dialogue.text,
            BEGUN.format(begun=dialogue.begun) if dialogue.begun else "",
            wanted.words if wanted else "",
        ]
        parameters = {name: text for name, text in tuning_of(request) if name != "stop"}
        if request.most_tokens:
            parameters[MOST_TOKENS] = str(request.most_tokens)
        async with self.runtime.db.transaction(caller.user.id) as repository:
            await self.tokens.must_be_open(repository, caller)
            before = await self._goes_on_from(repository, caller, dialogue)
            place = before.conversation_id if before else await self._new_place(repository, caller, dialogue)
            parameters |= _told(dialogue.instructions, before)
            seq = (await repository(ConversationsRepository).get(place)).seq
            row = await repository(TurnsRepository).create(
                NewTurn(
                    f"turn:{new_id()}",
                    place,
                    "\n\n".join(filter(None, asking)),
                    mode="auto",
                    role=caller.token.role,
                    channel="api",
                    is_tainted=not caller.token.is_own_words,
                    reads=Reads(outside=True, private=True) if files else NOTHING_READ,
                    attachments=tuple(map(attachment_of, files)),
                )
            )
            told = tuple(parameters.items())
            await repository(ApiTokensRepository).take(row.id, caller.token.id, place, request.asked_model, told)
            await repository(ConversationsRepository).append(place, [message_row(row)])
        return row, seq

    async def _new_place(self, repository: Opener, caller: Caller, dialogue: Dialogue) -> str:
        """A conversation for what is said now, behind what the program says was said before."""
        name = title((*(words for words, _ in dialogue.before), dialogue.text)[0])
        is_outside = bool(dialogue.before) or not caller.token.is_own_words
        made = await repository(ConversationsRepository).create(
            caller.token.role, "auto", name, source="api", uses_memory=False, is_title_tainted=is_outside
        )
        said = [(words, answer, None) for words, answer in dialogue.before]
        await lay_down(repository, made.id, said, caller.token.role)
        return made.id

    async def _goes_on_from(self, repository: Opener, caller: Caller, dialogue: Dialogue) -> ApiRequestRow | None:
        """The request whose answer came to just what the program says was said before, and where it ended."""
        if not dialogue.before:
            return None
        before = await repository(ApiTokensRepository).at_thread(caller.token.id, thread_of(dialogue.before))
        if before is None or not await _is_last(repository, before.turn_id, before.conversation_id):
            return None
        return before

    async def _keep_thread(self, asked: Asked, told: str) -> None:
        """Remember what was said up to here, as the program will send it back."""
        row = asked.turn
        thread = thread_of((*asked.dialogue.before, (asked.dialogue.text, told)))
        await self.runtime.db.repository(ApiTokensRepository, row.owner_id).keep_thread(row.id, thread)

    async def _end(self, asked: Asked, event: Event, hearing: Hearing) -> Finished:
        row, state, usage = asked.turn, event.payload["state"], hearing.usage
        rounds = await self.runtime.db.repository(RoundsRepository, row.owner_id).of_turn(row.id)
        # Where something was done before the budget was used up, the answer says so itself.
        if [one.state for one in rounds] == ["refused"]:
            return Finished(failure="quota", text=hearing.voice.said)
        is_whole = state in ENDS
        wrong = await hearing.end(asked.wanted) if is_whole else None
        await self._keep_thread(asked, hearing.told)
        if wrong is not None:
            return Finished(usage=usage, failure="model", text=refusal(wrong), param="response_format")
        if is_whole:
            is_cut = state == "out_of_rounds" or hearing.is_cut
            return Finished(finish="length" if is_cut else "stop", usage=usage)
        turn = await self.runtime.db.repository(TurnsRepository, row.owner_id).get(row.id)
        failure: Failure = "stopped" if state == "stopped" else "model"
        return Finished(usage=usage, failure=failure, text=turn.error or ENDED[state])


async def _is_last(repository: Opener, turn_id: str, conversation_id: str) -> bool:
    """Tell whether nothing was said in the conversation since this turn, which is at its end.

    What became of calls that it left open was, but by nobody.
    """
    if not await repository(ConversationsRepository).standing([conversation_id]):
        return False
    turns = await repository(TurnsRepository).list(conversation_id, include_dropped=True, limit=LATE_MOST + 1)
    since = [*takewhile(lambda turn: turn.id != turn_id, reversed(turns))]
    ended = turns[-len(since) - 1 :]
    is_there = len(since) < len(turns)
    return is_there and all(turn.channel == "result" for turn in since) and all(turn.state in ENDS for turn in ended)


def _told(instructions: str, before: ApiRequestRow | None) -> dict[str, str]:
    """Of the request: what its program tells the model, once for all requests in a row that tell the same."""
    if not instructions:
        return {}
    digest = hashlib.sha256(instructions.encode("utf-8", "replace")).hexdigest()
    is_known = before is not None and before.parameters.get(INSTRUCTED) == digest
    return {INSTRUCTED: digest} if is_known else {INSTRUCTED: digest, INSTRUCTIONS: instructions}
