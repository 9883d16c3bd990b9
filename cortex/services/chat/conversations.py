"""A user's conversations as the sidebar and the command line handle them: list, open, rename, delete, search, branch.

What is said in them is `services/chat/chat.py`'s matter.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from types import MappingProxyType
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.clock import Clock, now
from cortex.base.errors import NotFound, UserError
from cortex.base.events import Event
from cortex.base.ids import derived_id, new_id
from cortex.base.role import ToolMode
from cortex.base.turn import LOOP_ENDS
from cortex.base.user import User
from cortex.ports.engine import Hub
from cortex.selection.recipes import recipe as known_recipe
from cortex.services.chat.exports import as_json, as_markdown
from cortex.storage.conversations import ConversationRow as ConversationRow
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database, Opener
from cortex.storage.distill_marks import DistillMarksRepository
from cortex.storage.messages import MessagesRepository
from cortex.storage.summaries import SummariesRepository
from cortex.storage.turns import TurnRow, TurnsRepository

MAX_TITLE = 120
FILE_NAME_CHARACTERS = 80
PAGE = 60
UNDO = timedelta(days=1)  # how long a deleted one is listed

Deleted = Callable[[str, str], Awaitable[None]]


class DayGroup(Struct, frozen=True, kw_only=True):
    """Conversations under one label of the sidebar: Pinned, Today, Yesterday, … or a month."""

    label: str
    conversations: tuple[ConversationRow, ...]


class ConversationPage(Struct, frozen=True, kw_only=True):
    """A stretch of the list. `older`: the next one holds what was last used before then; None for the last."""

    groups: Sequence[DayGroup]
    older: datetime | None


class ConversationsService(Struct, frozen=True):
    """Every method takes the user first and sees nothing of anybody else's.

    `listeners`: called with the user's and the conversation's id of each that was deleted.
    """

    db: Database
    hub: Hub
    clock: Clock = now
    listeners: Sequence[Deleted] = ()

    async def list(self, user: User, *, is_archived: bool = False) -> Sequence[DayGroup]:
        """The first page of them."""
        return (await self.page(user, is_archived=is_archived)).groups

    async def page(self, user: User, *, before: datetime | None = None, is_archived: bool = False) -> ConversationPage:
        """The conversations by day of last use, pinned first: those in the list, or the archived ones."""
        conversations = self.db.repository(ConversationsRepository, user.id)
        newest = await conversations.list("", PAGE + 1, before, is_archived=is_archived)
        shown, older = newest[:PAGE], newest[PAGE - 1].updated_at if len(newest) > PAGE else None
        pinned = [] if before or is_archived else await conversations.pinned()
        groups = self._grouped(user, list({one.id: one for one in (*pinned, *shown)}.values()))
        return ConversationPage(groups=groups, older=older)

    async def deleted(self, user: User, *, skip: int = 0, limit: int) -> Sequence[ConversationRow]:
        """Those that were deleted in the last day, to be restored; the latest first, behind the first `skip`."""
        conversations = self.db.repository(ConversationsRepository, user.id)
        return await conversations.deleted(self.clock() - UNDO, skip=skip, limit=limit)

    async def get(self, user: User, conversation_id: str) -> ConversationRow:
        """The conversation; NotFound when it is absent, deleted or another user's."""
        return await self.db.repository(ConversationsRepository, user.id).get(conversation_id)

    async def new(
        self,
        user: User,
        role: str = "orchestrator",
        mode: ToolMode = "auto",
        tool_choices: Mapping[str, str] = MappingProxyType({}),
        once: str = "",
        *,
        is_temporary: bool = False,
    ) -> ConversationRow:
        """An empty conversation; a form that names no role begins with the usual one.

        is_temporary: as `services/chat/temporary.py` has it.

        `once`: asked for again with the same one, it is the same conversation.
        """
        id = derived_id("new", user.id, once) if once else None
        return await self.db.repository(ConversationsRepository, user.id).create(
            role or "orchestrator",
            mode,
            id=id,
            tool_choices=dict(tool_choices),
            is_title_tainted=False,
            source="temporary" if is_temporary else "chat",
            uses_memory=not is_temporary,
        )

    async def rename(self, user: User, conversation_id: str, title: str) -> None:
        """Give it a title of the user's own; UserError for an empty one."""
        words = " ".join(title.split())[:MAX_TITLE]
        if not words:
            raise UserError("A title needs at least one word.", field="title")
        async with self.db.transaction(user.id) as repository:
            await repository(ConversationsRepository).rename(conversation_id, words, is_tainted=False)
            await repository(ConversationsRepository).append(conversation_id, [("title", {"title": words}, None)])
        self.hub.announce(conversation_id)

    async def delete(self, user: User, conversation_id: str) -> None:
        """Hide it everywhere; UserError while a turn runs in it."""
        conversation = await self.get(user, conversation_id)
        if conversation.running_turn:
            raise UserError("An answer here is being written, or waits for your approval. Stop it first, then delete.")
        await self.db.repository(ConversationsRepository, user.id).delete(conversation_id)
        self.hub.announce(conversation_id)
        for listener in self.listeners:
            await listener(user.id, conversation_id)

    async def restore(self, user: User, conversation_id: str) -> None:
        """Bring a deleted one back."""
        await self.db.repository(ConversationsRepository, user.id).restore(conversation_id)
        self.hub.announce(conversation_id)

    async def pin(self, user: User, conversation_id: str, on: bool) -> None:
        """Keep it at the top of the list, or no longer."""
        await self.db.repository(ConversationsRepository, user.id).pin(conversation_id, on)

    async def set_recipe(self, user: User, conversation_id: str, recipe: str) -> None:
        """Choose its tools in another way, from the next turn on; "" leaves that to the role. UserError names them."""
        if recipe:
            known_recipe(recipe)
        await self.db.repository(ConversationsRepository, user.id).set_recipe(conversation_id, recipe)

    async def set_memory(self, user: User, conversation_id: str, *, is_used: bool) -> None:
        """Use memory in it, or no longer: nothing more is recalled there then, nor learned from what is said."""
        async with self.db.transaction(user.id) as repository:
            before = await repository(ConversationsRepository).get(conversation_id)
            if before.source == "temporary":
                raise UserError("A temporary chat uses no memory. Start another chat for that.")
            await repository(ConversationsRepository).set_memory(conversation_id, is_used=is_used)
            if is_used and not before.uses_memory:  # what was said without memory stays so
                await repository(DistillMarksRepository).move(conversation_id, before.turn_count, "")

    async def ids(self, user: User) -> Sequence[str]:
        """Of all of the user's, the oldest first."""
        return await self.db.repository(ConversationsRepository, user.id).ids()

    async def export_markdown(self, user: User, conversation_id: str) -> str:
        """The conversation to read and keep, times in the user's zone."""
        conversation = await self.get(user, conversation_id)
        turns = await self.db.repository(TurnsRepository, user.id).list(conversation_id)
        messages = await self.db.repository(MessagesRepository, user.id).of_conversation(conversation_id)
        return as_markdown(conversation, turns, messages, ZoneInfo(user.time_zone))

    async def export_json(self, user: User, conversation_id: str) -> str:
        """Everything there is about it: turns, messages and the log, as JSON."""
        conversation = await self.get(user, conversation_id)
        turns = await self.db.repository(TurnsRepository, user.id).list(conversation_id, include_dropped=True)
        messages = await self.db.repository(MessagesRepository, user.id).of_conversation(conversation_id)
        events = await self.db.repository(ConversationsRepository, user.id).events(conversation_id)
        return as_json(conversation, turns, messages, events)

    def file_name(self, user: User, conversation: ConversationRow) -> str:
        """The name of an exported one, without its ending: title and date of last use, for any file system."""
        day = conversation.updated_at.astimezone(ZoneInfo(user.time_zone))
        return f"{file_words(conversation.title)} {day:%Y-%m-%d}"

    async def branch(self, user: User, conversation_id: str, upto_turn: str) -> str:
        """The id of a new conversation that goes on from this turn: all up to and with it, under new ids."""
        async with self.db.transaction(user.id) as repository:
            original = await repository(ConversationsRepository).get(conversation_id)
            last = await repository(TurnsRepository).get(upto_turn)
            if last.conversation_id != original.id:
                raise NotFound("This message is not in this conversation.")
            if last.state not in LOOP_ENDS:
                raise UserError("This answer is still being written. Branch when it is done.")
            turns = [
                turn for turn in await repository(TurnsRepository).list(original.id) if turn.ordinal <= last.ordinal
            ]
            copy = await repository(ConversationsRepository).create(
                original.role,
                original.mode,
                f"{original.title or 'Conversation'} (branch)",
                max_rounds=original.max_rounds,
                source="temporary" if original.source == "temporary" else "chat",
                parent_id=original.id,
                recipe=original.recipe,
                model=original.model,
                uses_memory=original.uses_memory,
                tool_choices=original.tool_choices,
                is_title_tainted=original.is_title_tainted,
            )
            await _copy(repository, original.id, copy.id, turns)
        return copy.id

    def _grouped(self, user: User, found: Sequence[ConversationRow]) -> Sequence[DayGroup]:
        zone = ZoneInfo(user.time_zone)
        today = self.clock().astimezone(zone).date()
        groups: dict[str, list[ConversationRow]] = {}
        for one in sorted(found, key=lambda one: (one.is_pinned, one.updated_at), reverse=True):
            label = "Pinned" if one.is_pinned else day_label(one.updated_at.astimezone(zone).date(), today)
            groups.setdefault(label, []).append(one)
        return [DayGroup(label=label, conversations=tuple(ones)) for label, ones in groups.items()]


def file_words(title: str) -> str:
    """A title as a part of a file's name: letters, digits and a few signs, "Chat" where none is left."""
    return " ".join(re.sub(r"[^\w.,()-]+", " ", title).split())[:FILE_NAME_CHARACTERS].strip(" .") or "Chat"


def day_label(day: date, today: date) -> str:
    """Under which words a day stands in the sidebar."""
    days = (today - day).days
    if days <= 0:
        return "Today"
    if days == 1:
        return "Yesterday"
    if days <= 7:
        return "Last 7 days"
    if days <= 30:
        return "Last 30 days"
    return f"{day:%B %Y}"


async def _copy(repository: Opener, source: str, into: str, turns: Sequence[TurnRow]) -> None:
    """Lay turns, messages, summaries and log down again in `into`, and how far it was read for facts.

    Not the ledger: nothing was spent twice.
    """
    ids = {turn.id: f"turn:{new_id()}" for turn in turns}
    for turn in turns:
        taken_by = ids.get(turn.taken_by) if turn.taken_by else None
        parent_id = ids.get(turn.parent_id, "")
        copy = replace(turn, id=ids[turn.id], conversation_id=into, parent_id=parent_id, taken_by=taken_by)
        await repository(TurnsRepository).put(copy)
    await repository(MessagesRepository).copy(ids, into)
    last, ordinals = turns[-1].ordinal if turns else 0, {turn.ordinal for turn in turns}
    for summary in await repository(SummariesRepository).of_conversation(source):
        if summary.upto_ordinal in ordinals and summary.undone_at is None:
            ids[summary.id] = derived_id("copy", into, summary.id)
            await repository(SummariesRepository).add(
                into, summary.upto_ordinal, summary.text, summary.is_tainted, id=ids[summary.id]
            )
    log = [
        _copied(event, into, ids)
        for event in await repository(ConversationsRepository).events(source)
        if _belongs(event, ids)
    ]
    renumbered = [replace(event, seq=seq) for seq, event in enumerate(log, start=1)]
    await repository(ConversationsRepository).copy_log(renumbered, into, turn_count=last)
    marks = repository(DistillMarksRepository)
    await marks.move(into, min((await marks.get(source)).upto_ordinal, last), "")


def _belongs(event: Event, ids: dict[str, str]) -> bool:
    if event.kind == "summary":
        return event.payload.get("summary") in ids
    return event.turn_id in ids and event.kind not in ("turn.drop", "undo", "title")


def _copied(event: Event, into: str, ids: dict[str, str]) -> Event:
    payload = {
        key: ids.get(value, value) if key in ("turn", "upto_turn", "summary") else value
        for key, value in event.payload.items()
        if key != "versions"  # the others stay with the original
    }
    if "undo" in payload:
        payload["undo"] = None  # the way back stays with the original
    turn_id = ids.get(event.turn_id) if event.turn_id else None
    return replace(event, conversation_id=into, payload=payload, turn_id=turn_id)
