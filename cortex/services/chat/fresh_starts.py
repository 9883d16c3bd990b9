"""Goes on from a chat that became long in a new one, which begins with a summary of it.

The summary is one model call, booked by itself. Where no model can be asked, the new chat begins with the last words
that were said, and says why. It has read what the old one had read: words from outside, and private data.
"""

import asyncio
from collections.abc import Sequence
from weakref import WeakValueDictionary

from msgspec import Struct, field
from msgspec.structs import replace

from cortex.agent.history import SUMMARY_AT, SUMMARY_HEAD, view
from cortex.agent.titles import title
from cortex.base.errors import CortexError, NotFound, UserError
from cortex.base.events import Event
from cortex.base.ids import derived_id
from cortex.base.messages import user as message_of
from cortex.base.model import ModelEntry
from cortex.base.role import Role
from cortex.base.tokens import count
from cortex.base.user import User
from cortex.ports.loop import Request
from cortex.services.chat.laid_down import done_turn
from cortex.services.roles.roles import Roles
from cortex.services.runtime import Runtime
from cortex.services.turns.history import script_of
from cortex.services.turns.lone_calls import LoneCall, LoneCalls
from cortex.storage.conversations import ConversationRow, ConversationsRepository
from cortex.storage.halts import HaltsRepository
from cortex.storage.messages import MessageRow, MessagesRepository, by_turn
from cortex.storage.summaries import SummariesRepository, SummaryRow
from cortex.storage.turns import Reads, TurnsRepository

ROLE = "distill"
CALL_S = 90.0
ANSWER_TOKENS = 1_500  # of 400 words, and for a model that thinks first
LAST_MESSAGES, MESSAGE_CHARS = 6, 600
TAIL = " (continued)"
NO_MODEL = "There is no AI yet."
ALL_STOPPED = "Everything is stopped."
NO_WORDS = "The model gave no summary."


class _Said(Struct, frozen=True, kw_only=True):
    """The old chat as it stands, and the marks of what it had read."""

    messages: Sequence[MessageRow]
    summary: SummaryRow | None
    reads: Reads
    is_halted: bool

    @property
    def is_tainted(self) -> bool:
        """Tell whether words from outside are in it."""
        is_in_summary = self.summary is not None and self.summary.is_tainted
        return self.reads.outside or is_in_summary or any(row.is_tainted for row in self.messages)


class FreshStarts(Struct, frozen=True, kw_only=True):
    """Begins them. `begun`: held while one is being begun here: a second press waits for what the first one makes."""

    runtime: Runtime
    roles: Roles
    calls: LoneCalls
    begun: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def begin(self, user: User, conversation_id: str) -> str:
        """The id of the new chat: the same one for as long as nothing more was said in the old one. UserError."""
        conversations = self.runtime.db.repository(ConversationsRepository, user.id)
        old = await conversations.get(conversation_id)
        if old.running_turn:
            raise UserError("An answer here is being written, or waits for your approval. Start fresh when it is done.")
        if not old.turn_count:
            raise UserError("Nothing has been said here yet.")
        async with self.begun.setdefault(old.id, asyncio.Lock()):
            id = derived_id("fresh", old.id, old.turn_count)
            while (made := await self._made(user, id)) is not None:
                if made.deleted_at is None:
                    return made.id
                id = derived_id("fresh", id)  # that one was deleted
            said = await self._read(user, old)
            text, why = await self._summary(user, id, said)
            return await self._keep(user, old, id, said, text, why)

    async def _made(self, user: User, id: str) -> ConversationRow | None:
        try:
            return await self.runtime.db.repository(ConversationsRepository, user.id).get(id, with_deleted=True)
        except NotFound:
            return None

    async def _read(self, user: User, old: ConversationRow) -> _Said:
        async with self.runtime.db.read_transaction(user.id) as repository:
            return _Said(
                messages=await repository(MessagesRepository).of_conversation(old.id),
                summary=await repository(SummariesRepository).latest(old.id),
                reads=await repository(TurnsRepository).reads_from(old.id, 0),
                is_halted=await repository(HaltsRepository).of(user.id) is not None,
            )

    async def _summary(self, user: User, id: str, said: _Said) -> tuple[str, str]:
        """The words to begin with, and why they are no summary, "" where they are one."""
        if said.is_halted:
            return last_words(said.messages), ALL_STOPPED
        try:
            role: Role = await self.roles.role(user, ROLE)
            first = next(iter((await self.calls.models.registry(user)).real_chain(role)), None)
            if first is None:
                return last_words(said.messages), NO_MODEL
            sent = await asyncio.to_thread(_request, said, role, first)
            reply = await self.calls.asked(user, LoneCall(id=id, role=ROLE, channel="chat"), sent, first.name, CALL_S)
        except CortexError as error:
            return last_words(said.messages), error.message
        text = reply.message.text.strip() if reply.message else ""
        return (text, "") if text else (last_words(said.messages), reply.failure or NO_WORDS)

    async def _keep(self, user: User, old: ConversationRow, id: str, said: _Said, text: str, why: str) -> str:
        """One transaction: a kill leaves no chat or a whole one. The turn that bears it marks all that follows."""
        async with self.runtime.transaction_then_notify(user.id, id) as repository:
            conversations = repository(ConversationsRepository)
            new = await conversations.create(
                old.role,
                old.mode,
                f"{(old.title or title('')).removesuffix(TAIL)}{TAIL}",
                id=id,
                max_rounds=old.max_rounds,
                parent_id=old.id,
                recipe=old.recipe,
                model=old.model,
                uses_memory=old.uses_memory,
                tool_choices=old.tool_choices,
                is_title_tainted=old.is_title_tainted,
                source="temporary" if old.source == "temporary" else "chat",
            )
            if new.turn_count:  # another process was faster
                return new.id
            at, is_tainted = self.runtime.clock(), said.is_tainted
            turn = replace(
                done_turn(user.id, new.id, text, old.role, at),
                is_tainted=is_tainted,
                has_read_outside=said.reads.outside,
                has_read_private=said.reads.private,
            )
            await repository(TurnsRepository).put(turn)
            words = message_of(f"{SUMMARY_HEAD}\n{text}")
            await repository(MessagesRepository).lay_down(new.id, {turn.id: [(words, is_tainted)]})
            made = {"summary": turn.id, "upto_turn": 1, "text": text, "state": "made", "is_tainted": is_tainted}
            source = {"source": old.id, "source_title": old.title, "why": why}
            row = Event(
                conversation_id=new.id, seq=1, kind="summary", payload={**made, **source}, turn_id=turn.id, at=at
            )
            await conversations.copy_log([row], new.id, turn_count=1)
        return new.id


def last_words(messages: Sequence[MessageRow]) -> str:
    """The last messages, each cut to its beginning, for where nobody can sum up."""
    spoken_words = [row.message for row in messages if row.message.speaker != "tool" and row.message.said]
    names = {"user": "You", "assistant": "Cortex"}
    lines = [
        f"{names.get(one.speaker, one.speaker)}: {_cut(' '.join(one.said.split()))}"
        for one in spoken_words[-LAST_MESSAGES:]
    ]
    return "\n".join(lines)


def _cut(words: str) -> str:
    return words if len(words) <= MESSAGE_CHARS else f"{words[:MESSAGE_CHARS].rsplit(' ', 1)[0]} …"


def _request(said: _Said, role: Role, model: ModelEntry) -> Request:
    upto = said.summary.upto_ordinal if said.summary else 0
    told = view(by_turn(said.messages), summary=said.summary.text if said.summary else "", upto=upto)
    room = round(model.request_tokens * SUMMARY_AT) - count(role.prompt)
    return Request(
        system=role.prompt,
        messages=(message_of(script_of(told, room)),),
        max_output_tokens=ANSWER_TOKENS,
        purpose="summary",
    )
