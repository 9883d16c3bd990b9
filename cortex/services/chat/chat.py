"""Talking: send, stop, again, edit, continue, and follow a conversation's log. The page's main door.

A message is committed before it is acknowledged and before a model is asked; runs belong to the engine, never to a
browser's connection.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from cortex.agent.titles import title
from cortex.base.attachments import Attachment
from cortex.base.errors import Conflict, NotFound, UserError
from cortex.base.events import Event, OpenPart
from cortex.base.ids import new_id
from cortex.base.role import ToolMode
from cortex.base.settings import MAX_ROUNDS_CAP
from cortex.base.user import User
from cortex.services.chat.attached_files import attachments, lost_files
from cortex.services.chat.streams import OpenStreams
from cortex.services.chat.transcript import Transcript
from cortex.services.chat.versions import hold_still
from cortex.services.models.models import Models
from cortex.services.runtime import Runtime
from cortex.services.turns.answer_writer import Row, message_row
from cortex.services.turns.queue import TurnQueue
from cortex.storage.conversations import ConversationRow, ConversationsRepository
from cortex.storage.db import Opener
from cortex.storage.documents import DocumentsRepository
from cortex.storage.halts import HaltsRepository
from cortex.storage.plans import PlansRepository
from cortex.storage.summaries import SummariesRepository
from cortex.storage.turns import NOTHING_READ, Reads, TurnRow, TurnsRepository
from cortex.storage.versions import VersionsRepository

MESSAGE_CHARS_MAX = 32_000
LOOK_AGAIN_S = 15.0  # should a signal be lost
NOT_SAID = ("agent", "result", "api")  # channels whose texts no person wrote


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPage:
    """A stretch of a conversation's log: whole turns. `earlier`: pass it as `before` for the stretch above, or None.

    `versions`: the turns whose place has several -> all of them, oldest first. `lost`: as `lost_files` has it.
    """

    conversation: ConversationRow
    events: Sequence[Event]
    earlier: int | None
    seq: int
    versions: Mapping[str, Sequence[str]]
    lost: Mapping[str, bool]

    def folded(self, upto: int | None = None) -> Transcript:
        """The log as it is shown; `upto`: without what came after this number."""
        events = (event for event in self.events if upto is None or event.seq <= upto)
        return Transcript(events, title=self.conversation.title, versions=self.versions, lost=self.lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """What a person does in a conversation."""

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
    ) -> str:
        """Commit the message and start its turn; the turn's id. `is_tainted`: its words are not the person's own.

        `attached`: ids of the person's files that go with it; with one it needs no words. NotFound for a foreign one.
        `model`: asked first, "" for the role's; None for the conversation's. `is_kept`: mode, rounds and model, as far
        as they are given, are the conversation's from now on.

        While another turn runs it is queued: taken in at that turn's next tool boundary, or answered after it.
        """
        words = _checked(text, max_rounds, has_files=bool(attached))
        await self._check_model(user, model, conversation_id)
        async with self.runtime.transaction_then_notify(user.id, conversation_id) as repository:
            files = await attachments(repository(DocumentsRepository), attached)
            if role is not None and role != (await repository(ConversationsRepository).get(conversation_id)).role:
                await repository(ConversationsRepository).set_role(conversation_id, role)
            if is_kept:
                await _keep_settings(repository(ConversationsRepository), conversation_id, mode, max_rounds, model)
            row, is_queued = await _sent(
                repository, conversation_id, words, mode, max_rounds, model, NOTHING_READ, files, is_tainted=is_tainted
            )
        if not is_queued:
            await self.turns.start(row, is_free=True)
        return row.id

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
        return await self._replace(user, row, row.text, mode or row.mode, taken, model=model)

    async def edit(self, user: User, turn_id: str, text: str) -> str:
        """Say it differently: the new text is sent as another version of the turn."""
        row = await self._settled(user, turn_id)
        words = _checked(text, None, has_files=bool(row.attachments))
        return await self._replace(user, row, words, row.mode)

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
            lost = await lost_files(repository(DocumentsRepository), events)
        return LogPage(
            conversation=conversation,
            events=events,
            earlier=shown[0].ordinal if has_more and shown else None,
            seq=conversation.seq,
            versions=versions,
            lost=lost,
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
            raise Conflict("This answer is still being written. Stop it first.")
        if row.is_dropped:
            raise Conflict("Another version of this message is shown. Switch to this one first.")
        if row.taken_by:
            raise Conflict("This message is part of another answer. Regenerate that one.")
        if row.channel in NOT_SAID:  # said again, they would count as the person's own words
            raise Conflict("This text is from a background agent. Ask about it in a message of your own.")
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

    async def _replace(
        self,
        user: User,
        row: TurnRow,
        text: str,
        mode: ToolMode,
        meanwhile: Sequence[str] = (),
        *,
        model: str | None = None,
    ) -> str:
        """Send a text as another version of a turn, in one commit; `meanwhile` waits behind it.

        What goes out of view has been seen, by a person at least: the new turn counts as having read it.
        """
        async with self.runtime.transaction_then_notify(user.id, row.conversation_id) as repository:
            await hold_still(repository, row.conversation_id)
            if (await repository(TurnsRepository).get(row.id)).is_dropped:  # by another tab, since it was looked at
                raise Conflict("Another version of this message is shown now.")
            reads = await repository(TurnsRepository).reads_from(row.conversation_id, row.ordinal)
            dropped = await repository(VersionsRepository).drop_from(row.conversation_id, row.ordinal)
            await repository(ConversationsRepository).append(
                row.conversation_id, [("turn.drop", {"turns": dropped}, None)]
            )
            # Changed words of a job's prompt that a model wrote name no place either: most of them are still its.
            made, is_queued = await _sent(
                repository,
                row.conversation_id,
                text,
                mode,
                row.max_rounds,
                model,
                reads,
                row.attachments,
                is_tainted=row.is_tainted,
            )
            for words in meanwhile:  # none was marked: the turn would not have taken it in
                await _sent(
                    repository, row.conversation_id, words, mode, row.max_rounds, model, NOTHING_READ, is_tainted=False
                )
        if not is_queued:
            await self.turns.start(made, is_free=True)
        return made.id


async def _keep_settings(
    conversations: ConversationsRepository,
    conversation_id: str,
    mode: ToolMode | None,
    max_rounds: int | None,
    model: str | None,
) -> None:
    conversation = await conversations.get(conversation_id)
    if mode is not None and conversation.mode != mode:
        await conversations.set_mode(conversation_id, mode)
    if max_rounds is not None and conversation.max_rounds != max_rounds:
        await conversations.set_max_rounds(conversation_id, max_rounds)
    if model is not None and conversation.model != model:
        await conversations.set_model(conversation_id, model)


async def _sent(
    repository: Opener,
    conversation_id: str,
    words: str,
    mode: ToolMode | None,
    max_rounds: int | None,
    model: str | None,
    reads: Reads,
    attachments: tuple[Attachment, ...] = (),
    *,
    is_tainted: bool,
) -> tuple[TurnRow, bool]:
    """The message as a turn of the conversation, and whether it waits behind another one."""
    conversation = await repository(ConversationsRepository).get(conversation_id)
    row = await repository(TurnsRepository).create(
        f"turn:{new_id()}",
        conversation_id,
        words,
        mode=mode or conversation.mode,
        role=conversation.role,
        model=conversation.model if model is None else model,
        max_rounds=max_rounds if max_rounds is not None else conversation.max_rounds,
        is_tainted=is_tainted,
        reads=Reads(outside=True, private=True) if attachments else reads,
        attachments=attachments,
    )
    ahead = [turn for turn in await repository(TurnsRepository).queued(conversation_id) if turn.ordinal < row.ordinal]
    is_queued = bool(ahead) or await repository(TurnsRepository).running(conversation_id) is not None
    is_queued = is_queued or await repository(HaltsRepository).of(row.owner_id) is not None
    versions = [version.id for version in await repository(VersionsRepository).of(row)]
    rows: list[Row] = [message_row(row, is_queued, versions=versions if len(versions) > 1 else ())]
    if conversation.is_title_auto and not conversation.title and words:
        name = title(words)
        await repository(ConversationsRepository).rename(conversation_id, name, by_user=False, is_tainted=is_tainted)
        rows.append(("title", {"title": name}, None))
    await repository(ConversationsRepository).append(conversation_id, rows)
    return row, is_queued


def _checked(text: str, max_rounds: int | None, *, has_files: bool = False) -> str:
    """The message without outer blanks; UserError for an empty or oversized one."""
    words = text.strip()
    if not words and not has_files:
        raise UserError("Write a message first.")
    if len(words) > MESSAGE_CHARS_MAX:
        raise UserError(
            f"The message has {len(words):,} characters; the limit is {MESSAGE_CHARS_MAX:,}. Put the rest in a file."
        )
    if max_rounds is not None and not 1 <= max_rounds <= MAX_ROUNDS_CAP:
        raise UserError(f"Rounds must be 1 to {MAX_ROUNDS_CAP}, not {max_rounds}.")
    return words


def _carried(receipt: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What a request declared, and what it told of after the message."""
    return [*receipt["sent"], *receipt.get("noted", ())]
