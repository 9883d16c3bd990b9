"""A message as it is stored: checked, as a turn of its conversation, with its row in the log. `chat.py` sends it."""

from cortex.agent.titles import title
from cortex.base.attachments import Attachment
from cortex.base.errors import UserError
from cortex.base.ids import new_id
from cortex.base.role import ToolMode
from cortex.base.settings import MAX_ROUNDS_CAP
from cortex.services.turns.answer_writer import Row, message_row
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Opener
from cortex.storage.halts import HaltsRepository
from cortex.storage.turns import Reads, TurnRow, TurnsRepository
from cortex.storage.versions import VersionsRepository

MESSAGE_CHARS_MAX = 32_000


async def keep_settings(
    conversations: ConversationsRepository,
    conversation_id: str,
    mode: ToolMode | None,
    max_rounds: int | None,
    model: str | None,
) -> None:
    """Let these be the conversation's from now on, as far as they are given."""
    conversation = await conversations.get(conversation_id)
    if mode is not None and conversation.mode != mode:
        await conversations.set_mode(conversation_id, mode)
    if max_rounds is not None and conversation.max_rounds != max_rounds:
        await conversations.set_max_rounds(conversation_id, max_rounds)
    if model is not None and conversation.model != model:
        await conversations.set_model(conversation_id, model)


async def store_message(
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
    id: str = "",
) -> tuple[TurnRow, bool]:
    """The message as a turn of the conversation, and whether it waits behind another one. `id`: else a new one."""
    conversation = await repository(ConversationsRepository).get(conversation_id)
    row = await repository(TurnsRepository).create(
        id or f"turn:{new_id()}",
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
    is_halted = await repository(HaltsRepository).of(row.owner_id) is not None
    is_queued = is_halted or await repository(TurnsRepository).is_behind(row)
    versions = [version.id for version in await repository(VersionsRepository).of(row)]
    rows: list[Row] = [message_row(row, is_queued, versions=versions if len(versions) > 1 else ())]
    if conversation.is_title_auto and not conversation.title and words:
        name = title(words)
        await repository(ConversationsRepository).rename(conversation_id, name, by_user=False, is_tainted=is_tainted)
        rows.append(("title", {"title": name}, None))
    await repository(ConversationsRepository).append(conversation_id, rows)
    return row, is_queued


def checked_words(text: str, max_rounds: int | None, *, has_files: bool = False) -> str:
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
