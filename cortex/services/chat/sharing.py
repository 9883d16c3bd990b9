"""Letting a housemate read a chat, or one answer: as it stands now, the words alone, never to write.

What is said later is not shared with it. Tools, their results, files and thoughts stay with whose they are.
"""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from cortex.agent.titles import title
from cortex.base.errors import NotFound, UserError
from cortex.base.messages import Message
from cortex.base.user import User
from cortex.services.notifier import Notifier, notify
from cortex.storage.accounts import AccountsRepository
from cortex.storage.audit import AuditRepository
from cortex.storage.chat_shares import ChatShareRow as ChatShareRow
from cortex.storage.chat_shares import ChatSharesRepository
from cortex.storage.conversations import ConversationRow, ConversationsRepository
from cortex.storage.db import Database
from cortex.storage.messages import MessagesRepository
from cortex.storage.notices import NoticeValues
from cortex.storage.turns import TurnRow, TurnsRepository


class Housemate(Struct, frozen=True, kw_only=True):
    """Somebody who has an account here. `id` of it."""

    id: str
    name: str


class SharedTurn(Struct, frozen=True, kw_only=True):
    """A message and its answer, Markdown."""

    said: str
    answer: str
    at: datetime


class SharedChat(Struct, frozen=True, kw_only=True):
    """A share and the turns that its reader sees."""

    share: ChatShareRow
    turns: Sequence[SharedTurn]


class ChatSharing(Struct, frozen=True, kw_only=True):
    """One person's at a time; every method takes whose."""

    db: Database
    notifier: Notifier

    async def housemates(self, user: User) -> Sequence[Housemate]:
        """All others with an account that is open, by name."""
        accounts = await self.db.repository(AccountsRepository).list()
        return [Housemate(id=one.id, name=one.name) for one in accounts if one.is_active and one.id != user.id]

    async def of_chat(self, user: User, conversation_id: str) -> Sequence[ChatShareRow]:
        """With whom the person shares this chat or an answer of it."""
        return await self.db.repository(ChatSharesRepository, user.id).of_conversation(conversation_id)

    async def given(self, user: User) -> Sequence[ChatShareRow]:
        """All that others let the person read."""
        return [_named(row) for row in await self.db.repository(ChatSharesRepository, user.id).given()]

    async def share(self, user: User, conversation_id: str, turn_id: str, people: Sequence[str]) -> Sequence[str]:
        """Let these people read the chat as it stands, or the one answer; their names, once they were told.

        UserError for nobody, and for a chat without an answer; NotFound for what is not there.
        """
        if not set(people) - {user.id}:
            raise UserError("Choose who may read it.", field="people")
        async with self.db.transaction(user.id) as repository:
            conversation = await repository(ConversationsRepository).get(conversation_id)
            if conversation.source == "temporary":
                raise UserError("A temporary chat cannot be shared: nothing of it is kept.", field="people")
            turns = await _answered(repository(TurnsRepository), conversation, turn_id)
            turn_ids = [row.id for row in turns]
            given = await repository(ChatSharesRepository).give(conversation_id, turn_id, turn_ids, people)
            names = {one.id: one.name for one in await repository(AccountsRepository).list()}
            for reader_id in given:
                await repository(AuditRepository).add(user.id, "chat.shared", names[reader_id])
        last = turns[-1]
        what = f"an answer with you: {_asked(last.text if last.channel == 'chat' else '')}"
        what = what if turn_id else f"a chat with you: {conversation.title or 'New chat'}"
        for reader_id, share_id in given.items():
            await self._tell(user, what, reader_id, share_id, f"shared:{share_id}:{last.id}")
        return [names[reader_id] for reader_id in given]

    async def end(self, user: User, share_id: str) -> ChatShareRow:
        """Let it be read no longer, for whoever gave it or was given it; what it was. NotFound."""
        async with self.db.transaction(user.id) as repository:
            row = await repository(ChatSharesRepository).get(share_id)
            await repository(ChatSharesRepository).end(share_id)
        return row

    async def read(self, user: User, share_id: str) -> SharedChat:
        """Return what was shared, for its reader or its owner; NotFound."""
        row = _named(await self.db.repository(ChatSharesRepository, user.id).get(share_id))
        async with self.db.read_transaction(row.owner_id) as repository:  # the share has just said that this may be
            turns = await repository(TurnsRepository).list(row.conversation_id)
            messages = await repository(MessagesRepository).of_conversation(row.conversation_id)
        said: dict[str, list[Message]] = {}
        for one in messages:
            said.setdefault(one.turn_id, []).append(one.message)
        shown = [_shown(turn, said.get(turn.id, [])) for turn in turns if turn.id in row.turn_ids]
        return SharedChat(share=row, turns=shown)

    async def _tell(self, user: User, what: str, reader_id: str, share_id: str, key: str) -> None:
        values = NoticeValues(
            kind="message",
            title=f"{user.name} shared {what}"[:200],
            text="You can read it. Nothing that you do there changes it.",
            path=f"/shared/{share_id}",
            subject_id=share_id,
            is_tainted=True,  # a title is another person's words
        )
        await notify(self.db, self.notifier, reader_id, key, values)


async def _answered(turns: TurnsRepository, conversation: ConversationRow, turn_id: str) -> Sequence[TurnRow]:
    """The turns that are shared: no later one, and no version that stands there later. UserError for no answer yet."""
    if turn_id:
        row = await turns.get(turn_id)
        if row.conversation_id != conversation.id:
            raise NotFound("This message is not in this conversation.")
        ended = [row] if row.ended_at else []
    else:
        ended = [row for row in await turns.list(conversation.id) if row.ended_at]
    if not ended:
        raise UserError("There is no answer to share yet. Wait until it is written.", field="people")
    return ended


def _named(row: ChatShareRow) -> ChatShareRow:
    """The share of one answer under the name of its own question: the chat's tells of what is not shared."""
    return replace(row, title=_asked(row.said)) if row.turn_id else row


def _asked(said: str) -> str:
    return title(said) or "An answer"


def _shown(turn: TurnRow, messages: Sequence[Message]) -> SharedTurn:
    answer = "\n\n".join(one.text for one in messages if one.speaker == "assistant" and one.text)
    return SharedTurn(said=turn.text if turn.channel == "chat" else "", answer=answer, at=turn.created_at)
