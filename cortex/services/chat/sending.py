"""A message as it is stored: checked, as a turn of its conversation, with its row in the log. `chat.py` sends it."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from cortex.agent.titles import title
from cortex.base.attachments import Attachment, attachments_of
from cortex.base.errors import NotFound, UserError
from cortex.base.events import Event
from cortex.base.hidden import without_unseen
from cortex.base.ids import new_id
from cortex.base.role import ToolMode
from cortex.base.settings import MAX_ROUNDS_CAP
from cortex.services.turns.answer_writer import Row, message_row
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Opener
from cortex.storage.documents import DocumentRow, DocumentsRepository
from cortex.storage.halts import HaltsRepository
from cortex.storage.turns import NOTHING_READ, NewTurn, Reads, TurnRow, TurnsRepository
from cortex.storage.versions import VersionsRepository

MESSAGE_CHARS_MAX = 32_000


class NewMessage(Struct, frozen=True, kw_only=True):
    """A message to store. `id`: of its turn, "" for a new one. Mode, rounds and model None: as its conversation has it.

    `reads`: what it counts as having read, besides its attachments. `model` "": the role's. `via`: the messenger by
    which it came, "" for the page.
    """

    words: str
    is_tainted: bool
    id: str = ""
    mode: ToolMode | None = None
    max_rounds: int | None = None
    model: str | None = None
    reads: Reads = NOTHING_READ
    attachments: tuple[Attachment, ...] = ()
    via: str = ""


async def keep_settings(conversations: ConversationsRepository, conversation_id: str, message: NewMessage) -> None:
    """Let the message's settings be the conversation's from now on, as far as they are given."""
    conversation = await conversations.get(conversation_id)
    if message.mode is not None and conversation.mode != message.mode:
        await conversations.set_mode(conversation_id, message.mode)
    if message.max_rounds is not None and conversation.max_rounds != message.max_rounds:
        await conversations.set_max_rounds(conversation_id, message.max_rounds)
    if message.model is not None and conversation.model != message.model:
        await conversations.set_model(conversation_id, message.model)


async def store_message(repository: Opener, conversation_id: str, message: NewMessage) -> tuple[TurnRow, bool]:
    """The message as a turn of the conversation, and whether it waits behind another one."""
    conversation = await repository(ConversationsRepository).get(conversation_id)
    row = await repository(TurnsRepository).create(
        NewTurn(
            message.id or f"turn:{new_id()}",
            conversation_id,
            message.words,
            mode=message.mode or conversation.mode,
            role=conversation.role,
            model=conversation.model if message.model is None else message.model,
            max_rounds=conversation.max_rounds if message.max_rounds is None else message.max_rounds,
            is_tainted=message.is_tainted,
            reads=Reads(outside=True, private=True) if message.attachments else message.reads,
            attachments=message.attachments,
        )
    )
    is_halted = await repository(HaltsRepository).of(row.owner_id) is not None
    is_queued = is_halted or await repository(TurnsRepository).is_behind(row)
    versions = [version.id for version in await repository(VersionsRepository).of(row)]
    shown = versions if len(versions) > 1 else ()
    rows: list[Row] = [message_row(row, is_queued, versions=shown, via=message.via)]
    if conversation.is_title_auto and not conversation.title and message.words:
        name = title(message.words)
        await repository(ConversationsRepository).rename(
            conversation_id, name, by_user=False, is_tainted=row.is_tainted
        )
        rows.append(("title", {"title": name}, None))
    await repository(ConversationsRepository).append(conversation_id, rows)
    return row, is_queued


def checked_words(text: str, max_rounds: int | None, *, has_files: bool = False) -> str:
    """The message as its person sees it, without outer blanks; UserError for an empty or oversized one.

    What they do not see they did not say: it may have come with a page that they pasted or shared, or in a snippet.
    """
    words = without_unseen(text).strip()
    if not words and not has_files:
        raise UserError("Write a message first.")
    if len(words) > MESSAGE_CHARS_MAX:
        raise UserError(
            f"The message has {len(words):,} characters; the limit is {MESSAGE_CHARS_MAX:,}. Put the rest in a file."
        )
    if max_rounds is not None and not 1 <= max_rounds <= MAX_ROUNDS_CAP:
        raise UserError(f"Rounds must be 1 to {MAX_ROUNDS_CAP}, not {max_rounds}.")
    return words


FILES_MOST = 10


async def attachments(documents: DocumentsRepository, ids: Sequence[str]) -> tuple[Attachment, ...]:
    """The person's files of these ids. UserError where there are too many, NotFound where one is not there."""
    if len(ids) > FILES_MOST:
        raise UserError(f"A message can have at most {FILES_MOST} files.")
    rows = await documents.named(list(dict.fromkeys(ids)))
    if len(rows) < len({*ids}):
        raise NotFound("An attached file no longer exists.")
    return tuple(map(attachment_of, rows))


def attachment_of(row: DocumentRow) -> Attachment:
    """The file as a message bears it."""
    return Attachment(id=row.id, name=row.name, media_type=row.media_type, size_bytes=row.size_bytes)


async def states_of_files(
    documents: DocumentsRepository, events: Iterable[Event]
) -> tuple[Mapping[str, bool], Mapping[str, str]]:
    """The deleted files of these messages -> whether they can be restored; those not read in full -> what says so."""
    ids = {file.id for event in events if event.kind == "message" for file in attachments_of(event.payload)}
    rows = {row.id: row for row in await documents.named(sorted(ids))} if ids else {}
    lost = {id: id in rows for id in ids if id not in rows or rows[id].deleted_at is not None}
    return lost, {row.id: row.note for row in rows.values() if row.note and row.state != "waiting"}
