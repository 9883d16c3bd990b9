"""Lays down what was said elsewhere as turns of a conversation: a program's history, a chat that was imported.

Nobody here knows who wrote those answers or what they had read: all that follows in the conversation has read outside
text, and private data, as of a file that its person attaches.
"""

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from cortex.base.events import Event
from cortex.base.ids import new_id
from cortex.base.messages import assistant, user
from cortex.services.turns.answer_writer import Row, opening_rows
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Opener
from cortex.storage.messages import MessagesRepository
from cortex.storage.turns import TurnRow, TurnsRepository

Exchange = tuple[str, str, datetime | None]


async def lay_down(repository: Opener, conversation_id: str, exchanges: Sequence[Exchange], role: str) -> None:
    """Fill an empty conversation with these exchanges: words, their answer, and when they were said.

    Some statements in all, however many there are: whoever writes holds everybody else's writing up.
    """
    if not exchanges:
        return
    turns = repository(TurnsRepository)
    now = turns.clock()
    rows = [
        done_turn(turns.owner_id, conversation_id, words, role, at or now, ordinal=ordinal)
        for ordinal, (words, _, at) in enumerate(exchanges, 1)
    ]
    rows = [replace(row, parent_id=before) for before, row in zip(("", *(row.id for row in rows)), rows, strict=False)]
    await turns.put_all(rows)
    pairs = [(row, answer) for row, (_, answer, _) in zip(rows, exchanges, strict=True)]
    said = {row.id: [(user(row.text), True), (assistant(answer), True)] for row, answer in pairs}
    await repository(MessagesRepository).lay_down(conversation_id, said)
    log = [one for row, answer in pairs for one in _rows(row, answer)]
    events = [
        Event(conversation_id=conversation_id, seq=seq, kind=kind, payload=payload, turn_id=turn_id, at=now)
        for seq, (kind, payload, turn_id) in enumerate(log, 1)
    ]
    await repository(ConversationsRepository).copy_log(events, conversation_id, turn_count=len(rows))


def done_turn(owner_id: str, conversation_id: str, words: str, role: str, at: datetime, *, ordinal: int = 1) -> TurnRow:
    """A turn that was over before it came here, with every mark."""
    return TurnRow(
        id=f"turn:{new_id()}",
        owner_id=owner_id,
        conversation_id=conversation_id,
        ordinal=ordinal,
        parent_id="",
        is_chosen=True,
        state="done",
        text=words,
        mode="auto",
        max_rounds=None,
        role=role,
        channel="api",
        job_id="",
        model="",
        models=(),
        created_at=at,
        started_at=at,
        ended_at=at,
        rounds=0,
        error="",
        is_dropped=False,
        taken_by=None,
        taken_round=None,
        is_tainted=True,
        has_read_outside=True,
        has_read_private=True,
    )


def _rows(row: TurnRow, answer: str) -> list[Row]:
    part = {"turn": row.id, "round": 1, "part": f"{row.id.removeprefix('turn:')}-1-0", "kind": "text", "attempt": 1}
    end = {"turn": row.id, "state": "done", "rounds": 0, "seconds": 0.0, "tools_sent": 0, "can_continue": False}
    return [
        *opening_rows(row),
        ("part.start", part, row.id),
        ("part.end", {**part, "text": answer}, row.id),
        ("turn.end", end, row.id),
    ]
