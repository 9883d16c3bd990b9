"""Lays down what was said elsewhere as turns of a conversation: a program's history, a chat that was imported.

Nobody here knows who wrote those answers or what they had read: all that follows in the conversation has read outside.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from cortex.base.ids import new_id
from cortex.base.messages import assistant, user
from cortex.base.role import Channel, ToolMode
from cortex.services.turns.answer_writer import Row, message_row
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Opener
from cortex.storage.messages import MessagesRepository
from cortex.storage.turns import Reads, TurnRow, TurnsRepository

Exchange = tuple[str, str, datetime | None]


async def lay_down(
    repository: Opener,
    conversation_id: str,
    exchanges: Sequence[Exchange],
    *,
    role: str,
    mode: ToolMode,
    channel: Channel,
) -> None:
    """Add these exchanges, words with their answer and when they were said, at the end of the conversation."""
    for words, answer, at in exchanges:
        row = await repository(TurnsRepository).create(
            f"turn:{new_id()}",
            conversation_id,
            words,
            mode=mode,
            role=role,
            channel=channel,
            state="done",
            is_tainted=True,
            reads=Reads(outside=True),
        )
        spoken = [(user(words), True), (assistant(answer), True)]
        await repository(MessagesRepository).add_all(row.id, spoken)
        shown = row if at is None else replace(row, created_at=at)
        await repository(ConversationsRepository).append(conversation_id, _rows(shown, answer))


def _rows(row: TurnRow, answer: str) -> list[Row]:
    part = {"turn": row.id, "round": 1, "part": f"{row.id.removeprefix('turn:')}-1-0", "kind": "text", "attempt": 1}
    start = {"turn": row.id, "role": row.role, "model": "", "max_rounds": 0, "max_rounds_from": ""}
    end = {"turn": row.id, "state": "done", "rounds": 0, "seconds": 0.0, "tools_sent": 0, "can_continue": False}
    return [
        message_row(row),
        ("turn.start", start, row.id),
        ("part.start", part, row.id),
        ("part.end", {**part, "text": answer}, row.id),
        ("turn.end", end, row.id),
    ]
