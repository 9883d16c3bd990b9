"""Talking: send, stop, again, edit, continue, and follow a conversation's log. The page's main door.

A message is committed before it is acknowledged and before a model is asked; runs belong to the engine, never to a
browser's connection.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy.exc import SQLAlchemyError

from cortex.base.errors import Conflict, CortexError, NotFound, UserError
from cortex.base.events import Event, OpenPart
from cortex.base.ids import derived_id, new_id
from cortex.base.role import ToolMode
from cortex.base.user import User
from cortex.services.chat.sending import (
    NewMessage,
    attachments,
    checked_words,
    keep_settings,
    states_of_files,
    store_message,
)
from cortex.services.chat.streams import OpenStreams
from cortex.services.chat.transcript import Transcript
from cortex.services.chat.transcript_views import CallCard, TurnView
from cortex.services.chat.versions import hold_still
from cortex.services.models.models import Models
from cortex.services.runtime import Runtime
from cortex.services.turns.approval_log import close_of_turns
from cortex.services.turns.queue import TurnQueue
from cortex.storage.conversations import ConversationRow, ConversationsRepository
from cortex.storage.documents import DocumentsRepository
from cortex.storage.plans import PlansRepository
from cortex.storage.summaries import SummariesRepository
from cortex.storage.turns import TurnRow, TurnsRepository
from cortex.storage.versions import VersionsRepository

LOOK_AGAIN_S = 15.0  # should a signal be lost
BEGINS_WITHIN_S = 5.0  # then whoever sent it is answered, and the start goes on by itself
NOT_SAID = ("agent", "result", "api")  # channels whose texts no person wrote

log = logging.getLogger(__name__)


class LogPage(Struct, frozen=True, kw_only=True):
    """A stretch of a conversation's log: whole turns. `earlier`: pass it as `before` for the stretch above, or None.

    `versions`: the turns whose place has several -> all of them, oldest first. `lost`,
    `unread`: as `states_of_files` has them.
    """

    conversation: ConversationRow
    events: Sequence[Event]
    earlier: int | None
    seq: int
    versions: Mapping[str, Sequence[str]]
    lost: Mapping[str, bool]
    unread: Mapping[str, str]

    def folded(self, upto: int | None = None) -> Transcript:
        """The log as it is shown; `upto`: without what came after this number."""
        events = (event for event in self.events if upto is None or event.seq <= upto)
        return Transcript(
            events, title=self.conversation.title, versions=self.versions, lost=self.lost, unread=self.unread
        )


class Chat(Struct, frozen=True, kw_only=True):
    """A person's side of a conversation: what they send, stop, change and read."""

    runtime: Runtime
    turns: TurnQueue
    streams: OpenStreams
    models: Models

    async def send_message(
        self,
        user: User,
        conversation_id: str,
        text: str,
        *,
        mode: ToolMode | None = None,
        max_rounds: int | None = None,
        role: str | None = None,
        model: str | None = None,
        is_tainted: bool = False,
        is_kept: bool = False,
        attached: Sequence[str] = (),
        once: str = "",
        via: str = "",
    ) -> str:
        """Commit the message and start its turn; the turn's id. `is_tainted`: its words are not the person's own.

        `once`: of whoever sends it; sent again with the same one, the same words are the same message. `via`: the
        messenger by which it came, "" for the page.

        `attached`: ids of the person's files that go with it; with one it needs no words. NotFound for a foreign one.
        `model`: asked first, "" for the role's; None for the conversation's. `is_kept`: mode, rounds and model, as far
        as they are given, are the conversation's from now on.

        While another turn runs it is queued: taken in at that turn's next tool boundary, or answered after it. One that
        waits for the person's approval is set aside for it; what it asks still waits.
        """
        words = checked_words(text, max_rounds, has_files=bool(attached))
        turn_id = f"turn:{derived_id('sent', user.id, once, words, *attached) if once else new_id()}"
        if once and await self.place_of(user, turn_id):
            return turn_id
        await self._check_model(user, model, conversation_id)
        async with self.runtime.transaction_then_notify(user.id, conversation_id) as repository:
            if once and await repository(TurnsRepository).places([turn_id]):  # both came at the same moment
                return turn_id
            files = await attachments(repository(DocumentsRepository), attached)
            if role is not None and role != (await repository(ConversationsRepository).get(conversation_id)).role:
                await repository(ConversationsRepository).set_role(conversation_id, role)
            message = NewMessage(
                words=words, is_tainted=is_tainted, id=turn_id, mode=mode, max_rounds=max_rounds, model=model,
                attachments=files, via=via,
            )  # fmt: skip
            if is_kept:
                await keep_settings(repository(ConversationsRepository), conversation_id, message)
            row, is_queued = await store_message(repository, conversation_id, message)
            living = await repository(TurnsRepository).active()
        if not is_queued:
            await self._begin(row)
        await self.turns.give_way(living)
        return row.id

    async def place_of(self, user: User, turn_id: str) -> str:
        """The conversation in which this turn of the user's stands, "" for none."""
        return (await self.runtime.db.repository(TurnsRepository, user.id).places([turn_id])).get(turn_id, "")

    async def _begin(self, row: TurnRow) -> None:
        """Start its run. The message is stored: that the engine is busy or ends is no reason to tell otherwise."""
        try:
            async with asyncio.timeout(BEGINS_WITHIN_S):
                await self.turns.start(row, is_free=True)
        except (TimeoutError, CortexError, SQLAlchemyError) as error:
            log.warning("chat: turn %s is stored, and begins with the next look of its queue: %r", row.id, error)

    async def stop(self, user: User, conversation_id: str) -> None:
        """End the running turn now; what it said so far stays visible. Nothing running: nothing happens."""
        await self.runtime.db.repository(ConversationsRepository, user.id).get(conversation_id)
        running = await self.runtime.db.repository(TurnsRepository, user.id).running(conversation_id)
        if running is not None:
            await self.turns.stop(running)

    async def again(self, user: User, turn_id: str, mode: ToolMode | None = None, model: str | None = None) -> str:
        """A new version of a turn: its message and those it took in are sent again; the others stay to go back to.

        model: as for `send_message`, for this version alone.
        """
        await self._check_model(user, model)
        row = await self._settled(user, turn_id)
        turns = await self.runtime.db.repository(TurnsRepository, user.id).list(row.conversation_id)
        taken = [turn.text for turn in turns if turn.taken_by == row.id]
        sent = NewMessage(words=row.text, is_tainted=row.is_tainted, mode=mode or row.mode, model=model)
        return await self._replace(user, row, sent, taken)

    async def edit(self, user: User, turn_id: str, text: str, *, once: str = "", via: str = "") -> str:
        """Say it differently: the new text is sent as another version of the turn. `once`, `via`: as they are sent."""
        id = self.id_of_edit(user, once) if once else ""
        if once and await self.place_of(user, id):
            return id
        row = await self._settled(user, turn_id)
        words = checked_words(text, None, has_files=bool(row.attachments))
        sent = NewMessage(words=words, is_tainted=row.is_tainted, id=id, mode=row.mode, via=via)
        return await self._replace(user, row, sent)

    def id_of_edit(self, user: User, once: str) -> str:
        """Return the id of the turn that this edit makes."""
        return f"turn:{derived_id('edited', user.id, once)}"

    async def keep_going(self, user: User, turn_id: str) -> str:
        """Give an interrupted turn, or one that ran out of rounds, another one to finish its work."""
        row = await self._settled(user, turn_id)
        is_again = row.state == "failed"
        return await self.send_message(
            user,
            row.conversation_id,
            row.text if is_again else "Continue where you stopped.",
            mode=row.mode,
            max_rounds=row.max_rounds,
            model=row.model if await self._has_model(user, row.model) else None,
            is_tainted=is_again and row.is_tainted,
            attached=[file.id for file in row.attachments] if is_again else (),
        )

    async def log(self, user: User, conversation_id: str, *, before: int | None = None, turns: int = 30) -> LogPage:
        """The events of the newest `turns` turns, or of those ahead of the turn with ordinal `before`.

        Messages that wait their turn come on top: however many there are, the turn they wait for is among the newest.
        """
        async with self.runtime.db.read_transaction(user.id) as repository:
            conversation = await repository(ConversationsRepository).get(conversation_id)
            turns += len(await repository(TurnsRepository).queued(conversation_id)) if before is None else 0
            rows = await repository(TurnsRepository).list(conversation_id, before=before, limit=turns + 1)
            shown, has_more = rows[-turns:], len(rows) > turns
            first = (
                await repository(ConversationsRepository).first_seq(conversation_id, shown[0].id) if has_more else None
            )
            # The turn that the stretch ends ahead of may be out of view by now.
            following = await repository(VersionsRepository).next_in_view(conversation_id, before) if before else None
            end = await repository(ConversationsRepository).first_seq(conversation_id, following) if following else None
            events = await repository(ConversationsRepository).events(
                conversation_id, after=(first or 1) - 1, before=end
            )
            versions = await repository(VersionsRepository).of_conversation(conversation_id)
            lost, unread = await states_of_files(repository(DocumentsRepository), events)
        return LogPage(
            conversation=conversation,
            events=events,
            earlier=shown[0].ordinal if has_more and shown else None,
            seq=conversation.seq,
            versions=versions,
            lost=lost,
            unread=unread,
        )

    async def follow(
        self, user: User, conversation_id: str, after: int
    ) -> AsyncIterator[tuple[Sequence[Event], Sequence[OpenPart]]]:
        """Rows past `after` in order, with the open parts that have grown, whole: all that is new, each time.

        The reader sets the pace: what it is too slow to see grow, it sees grown. Ends when the person's access does.
        """
        conversations = self.runtime.db.repository(ConversationsRepository, user.id)
        await conversations.get(conversation_id)
        shown: dict[str, OpenPart] = {}
        seq, counter = after, -1
        with self.streams.watching(user.id, conversation_id) as is_allowed, self.runtime.hub.watching(conversation_id):
            while is_allowed():
                counter = await self.runtime.hub.changed(conversation_id, counter, LOOK_AGAIN_S)
                parts = self.runtime.hub.open_parts(conversation_id)
                events = self.runtime.hub.since(conversation_id, seq)
                if events is None:
                    reading = partial(conversations.events, conversation_id, after=seq)
                    events = await self.runtime.outages.wait_out(reading)
                grown = [part for part in parts if shown.get(part.part) != part]
                shown |= {part.part: part for part in grown}
                seq = events[-1].seq if events else seq
                if events or grown:
                    yield events, grown

    async def events(self, user: User, conversation_id: str, after: int, upto: int) -> Sequence[Event]:
        """The rows past `after`, up to `upto`."""
        conversations = self.runtime.db.repository(ConversationsRepository, user.id)
        return await conversations.events(conversation_id, after=after, before=upto + 1)

    async def access_ended(self, user_id: str) -> None:
        """A user's logins ended or their rank changed: their streams close and their running turns stop, at once."""
        self.streams.end_streams(user_id)
        for row in await self.runtime.db.repository(TurnsRepository, user_id).active():
            await self.turns.stop(row)

    async def logged_out(self, user_id: str) -> None:
        """One of a user's browsers logged out: their streams close, what still may watch opens them anew."""
        self.streams.end_streams(user_id)

    async def receipt(self, user: User, turn_id: str) -> dict[str, object]:
        """The receipt of the turn's first plan; NotFound before that.

        With what came `later` and in which round, how many `rounds` there were, and their `rounds_tokens` of tools.
        """
        plans = await self.runtime.db.repository(PlansRepository, user.id).of_turn(turn_id)
        if not plans:
            raise NotFound("No tools have been chosen for this message yet.")
        first = plans[0].receipt
        known = {item["name"] for item in _carried(first)}
        later = {item["name"]: {**item, "round": p.round} for p in reversed(plans) for item in _carried(p.receipt)}
        return {
            **first,
            "later": [item for name, item in later.items() if name not in known],
            "rounds": len(plans),
            "rounds_tokens": sum(plan.receipt["tokens"] for plan in plans),
        }

    def stayed_home(self, turn: TurnView) -> bool:
        """Tell whether nothing of this turn was sent out of the house: by no model, and by no tool that could."""
        called = [self.runtime.registry.get(part.name) for part in turn.parts if isinstance(part, CallCard)]
        is_known = turn.place in ("home", "none") and not turn.was_out
        return is_known and not any(tool is None or tool.is_outward for tool in called)

    async def undo_summary(self, user: User, conversation_id: str, summary_id: str) -> None:
        """Let the model see the summarised messages themselves again, from the next turn on."""
        async with self.runtime.transaction_then_notify(user.id, conversation_id) as repository:
            row = await repository(SummariesRepository).undo(summary_id)
            payload = {
                "summary": row.id,
                "upto_turn": row.upto_ordinal,
                "text": row.text,
                "state": "undone",
                "is_tainted": row.is_tainted,
            }
            await repository(ConversationsRepository).append(conversation_id, [("summary", payload, None)])

    async def _settled(self, user: User, turn_id: str) -> TurnRow:
        """The turn, if it has ended; Conflict while it runs."""
        row = await self.runtime.db.repository(TurnsRepository, user.id).get(turn_id)
        if row.state in ("queued", "running", "waiting"):
            waits = row.state == "waiting"
            raise Conflict(
                f"This answer {'waits for your approval' if waits else 'is still being written'}. Stop it first."
            )
        if row.is_dropped:
            raise Conflict("Another version of this message is shown. Switch to this one first.")
        if row.taken_by:
            raise Conflict("This message is part of another answer. Regenerate that one.")
        if row.channel in NOT_SAID:  # said again, they would count as the person's own words
            raise Conflict("Nobody typed this message, so it cannot be sent again. Write one of your own.")
        return row

    async def set_model(self, user: User, conversation_id: str, model: str) -> None:
        """Ask this model first from the next message on; "" leaves that to the role. UserError where there is none."""
        await self._check_model(user, model, conversation_id)
        await self.runtime.db.repository(ConversationsRepository, user.id).set_model(conversation_id, model)

    async def _check_model(self, user: User, model: str | None, conversation_id: str = "") -> None:
        """UserError for a model that is not among the user's; the conversation's own may be gone meanwhile."""
        if not model or await self._has_model(user, model):
            return
        conversations = self.runtime.db.repository(ConversationsRepository, user.id)
        if not conversation_id or (await conversations.get(conversation_id)).model != model:
            raise UserError(f"There is no model {model!r}. Choose one from the list.", field="model")

    async def _has_model(self, user: User, model: str) -> bool:
        return any(entry.name == model for entry in (await self.models.registry(user)).entries)

    async def _replace(self, user: User, row: TurnRow, sent: NewMessage, meanwhile: Sequence[str] = ()) -> str:
        """Send a text as another version of a turn, in one commit; `meanwhile` waits behind it.

        What goes out of view has been seen, by a person at least: the new turn counts as having read it.
        """
        async with self.runtime.transaction_then_notify(user.id, row.conversation_id) as repository:
            await hold_still(repository, row.conversation_id)
            if (await repository(TurnsRepository).get(row.id)).is_dropped:  # by another tab, since it was looked at
                raise Conflict("Another version of this message is shown now.")
            reads = await repository(TurnsRepository).reads_from(row.conversation_id, row.ordinal)
            dropped = await repository(VersionsRepository).drop_from(row.conversation_id, row.ordinal)
            await close_of_turns(repository, row.conversation_id, dropped)
            await repository(ConversationsRepository).append(
                row.conversation_id, [("turn.drop", {"turns": dropped}, None)]
            )
            # Changed words of a job's prompt that a model wrote name no place either: most of them are still its.
            message = replace(sent, max_rounds=row.max_rounds, reads=reads, attachments=row.attachments)
            bare = NewMessage(words="", is_tainted=False, mode=sent.mode, max_rounds=row.max_rounds, model=sent.model)
            made, is_queued = await store_message(repository, row.conversation_id, message)
            for words in meanwhile:  # none was marked: the turn would not have taken it in
                await store_message(repository, row.conversation_id, replace(bare, words=words))
        if not is_queued:
            await self._begin(made)
        return made.id


def _carried(receipt: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what a request declared, and what it told of after the message."""
    return [*receipt["sent"], *receipt.get("noted", ())]
