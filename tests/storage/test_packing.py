"""Plans and payloads in their short forms: the same comes back, older rows are read, and damage is told and bounded."""

import base64
import hashlib
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Select, select, text, update
from sqlalchemy.dialects import sqlite

from cortex.base.errors import CortexError
from cortex.base.events import Event
from cortex.storage import packing
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database
from cortex.storage.event_rows import at_length, first_seq, shortened, turns_events
from cortex.storage.plans import AllPlansRepository, PlansRepository
from cortex.storage.schema import EventTable, PlanTable
from tests.databases import SqliteTemplate

GIVEN = {"role": {"name": "chat", "tools": ["tasks"]}, "digest": "0" * 24, "now": None}
RECEIPT = {
    "mode": "auto",
    "tokens": 0,
    "decisions": [
        {
            "name": f"tool_{number}",
            "is_in": False,
            "score": number / 7,
            "reason": "nothing in the message speaks for it",
        }
        for number in range(60)
    ],
    "epoch": {"number": 1, "facts": {"Zürich": "\U0001f600 \x00 \ud800"}},
}
ODD = ({"decisions": [[1, 2], [1, 2]]}, {"decisions": {"a": 1}}, {"decisions": ["a", "b"]})  # of no version
UNEVEN = {"decisions": [{"name": "a", "score": 1}, {"score": 1, "name": "a"}, {"name": "b"}]}
DICTIONARIES = {"plans.1.dict": "18884b72bd3962c7"}


def in_bytes(value: Any) -> str:
    """With the order of its names."""
    return json.dumps(value)


@pytest.mark.parametrize(
    "receipt",
    [RECEIPT, UNEVEN, {}, {"decisions": []}, {"decisions": None}, {"decisions": [{}, {}]}, *ODD],
    ids=[
        "as shipped",
        "uneven rows",
        "empty",
        "no rows",
        "none",
        "rows without names",
        "lists",
        "names of one",
        "texts",
    ],
)
def test_a_plan_comes_back_to_the_letter(receipt: dict[str, Any]) -> None:
    data = packing.pack(receipt, GIVEN)
    assert in_bytes(packing.unpack(data)) == in_bytes((receipt, GIVEN))
    packing.unpack(data)[0]["decisions"] = "changed"
    assert in_bytes(packing.unpack(data)) == in_bytes((receipt, GIVEN)), "two reads share nothing"


def test_a_plan_takes_a_small_part_of_its_text() -> None:
    assert len(packing.pack(RECEIPT, GIVEN)) * 10 < len(in_bytes([RECEIPT, GIVEN]))


def test_no_dictionary_that_rows_are_packed_with_ever_changes() -> None:
    folder = Path(packing.__file__).parent
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest()[:16] for file in folder.glob("*.dict")}
    assert found == DICTIONARIES


def read_or_nothing(data: bytes) -> str:
    """What the bytes say, "" where they are found to be damaged."""
    try:
        return in_bytes(packing.unpack(data))
    except ValueError:
        return ""


def test_damaged_bytes_are_never_taken_for_another_plan() -> None:
    data, whole = packing.pack(RECEIPT, GIVEN), in_bytes((RECEIPT, GIVEN))
    flipped = (data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :] for at in range(len(data)))
    assert {read_or_nothing(one) for one in flipped} <= {"", whole}, "a bit behind the end says nothing"
    assert {read_or_nothing(data[:at]) for at in range(len(data))} == {""}


@pytest.mark.parametrize(
    ("payload", "turn_id"),
    [
        ({"turn": "turn:1a", "round": 1, "part": "1a-1-0", "kind": "text"}, "turn:1a"),
        ({"turn": "turn:1a", "part": "1b-1-0"}, "turn:1a"),
        ({"turn": "turn:1b", "text": "turn:1a"}, "turn:1a"),
        ({"title": "1a-1"}, None),
        ({"turn": "turn:1a"}, None),
        ({"summary": "s"}, "turn:1a"),
    ],
    ids=["its own", "another's part", "another turn", "no turn", "no row's turn", "without"],
)
def test_a_payload_comes_back_to_the_letter(payload: dict[str, Any], turn_id: str | None) -> None:
    kept = shortened(payload, turn_id)
    assert in_bytes(at_length(kept, turn_id)) == in_bytes(payload)
    assert at_length(payload, turn_id) == payload, "as an earlier version kept it"


async def older(db: Database, turn: str, number: int, receipt: str) -> None:
    """A row as the version before wrote it."""
    async with db.connection() as connection:
        await connection.execute(
            text(
                "UPDATE plans SET packed = NULL, receipt = :receipt, given = :given WHERE turn_id = :t AND round = :n"
            ),
            {"receipt": receipt, "given": zipped(GIVEN), "t": turn, "n": number},
        )
        await connection.commit()


def zipped(value: Any) -> str:
    return json.dumps({"zlib": base64.b64encode(zlib.compress(json.dumps(value).encode())).decode()})


async def packed(db: Database) -> list[bool]:
    async with db.session_scope(reading=True) as session:
        rows = await session.execute(select(PlanTable.packed).order_by(PlanTable.turn_id, PlanTable.round))
        return [one is not None for one in rows.scalars()]


async def test_older_plans_are_read_and_packed_and_a_damaged_one_keeps_nothing_else_from_it(
    db: Database, talk: Any, ann: str
) -> None:
    plans = db.repository(PlansRepository, ann)
    for turn in ("turn:1", "turn:2", "turn:3"):
        await talk.turn(turn)
        await plans.add(turn, 1, RECEIPT, GIVEN)
    await older(db, "turn:1", 1, zipped(RECEIPT))
    await older(db, "turn:2", 1, '{"zlib": "broken"}')
    assert [(one.receipt, one.given) for one in await plans.of_turn("turn:1")] == [(RECEIPT, GIVEN)]
    assert await packed(db) == [False, False, True]
    all_plans = db.repository(AllPlansRepository)
    last = await all_plans.pack_older(("", -1))
    assert last == ("turn:2", 1)
    assert await all_plans.pack_older(last) is None
    assert await packed(db) == [True, False, True]
    for turn in ("turn:1", "turn:3"):
        assert [(one.receipt, one.given) for one in await plans.of_turn(turn)] == [(RECEIPT, GIVEN)]
    with pytest.raises(CortexError, match="damaged"):
        await plans.of_turn("turn:2")
    async with db.transaction() as repository:
        change = update(PlanTable).where(PlanTable.turn_id == "turn:3").values(packed=b"\x01broken")
        await repository(AllPlansRepository).session.execute(change)
    with pytest.raises(CortexError, match="damaged"):
        await plans.of_turn("turn:3")
    assert [one.receipt for one in await plans.of_turn("turn:1")] == [RECEIPT]


async def test_the_version_before_reads_what_this_one_wrote(db: Database, talk: Any, ann: str) -> None:
    plans, conversations = db.repository(PlansRepository, ann), db.repository(ConversationsRepository, ann)
    await talk.turn("turn:1")
    await plans.add("turn:1", 1, RECEIPT, GIVEN)
    payload = {"turn": "turn:1", "round": 1, "part": "1-1-0"}
    await conversations.append(talk.id, [("part.start", payload, "turn:1"), ("title", {"title": "t"}, None)])
    async with db.session_scope(reading=True) as session:
        kept = (await session.execute(select(EventTable.payload).order_by(EventTable.seq))).scalars().all()
    assert kept[-2:] == [{"turn": 0, "round": 1, "part": "*-1-0"}, {"title": "t"}]
    await db.move_to("0037")
    async with db.connection() as connection:
        receipt, given = (await connection.execute(text("SELECT receipt, given FROM plans"))).one()
        events = (await connection.execute(text("SELECT payload FROM events ORDER BY seq"))).scalars().all()
    of = [json.loads(one) if isinstance(one, str) else one for one in (receipt, given, *events[-2:])]
    assert [json.loads(zlib.decompress(base64.b64decode(one["zlib"]))) for one in of[:2]] == [RECEIPT, GIVEN]
    assert of[2:] == [payload, {"title": "t"}]
    await db.move_to("head")
    assert [one.receipt for one in await plans.of_turn("turn:1")] == [RECEIPT]
    assert (await conversations.events(talk.id))[-2].payload == payload


async def test_a_turns_events_are_all_found_whatever_lies_ahead_of_its_message(
    db: Database, talk: Any, ann: str
) -> None:
    conversations = db.repository(ConversationsRepository, ann)
    for turn in ("turn:1", "turn:2"):
        begins = [("notice", {"turn": turn, "text": "a"}, turn), ("message", {"turn": turn}, turn)]
        await conversations.append(talk.id, [*begins, ("turn.end", {"turn": turn}, turn)])  # type: ignore[list-item]
    await conversations.append(talk.id, [("undo", {"turn": "turn:1"}, "turn:1")])
    await conversations.append(talk.id, [("notice", {"turn": "turn:3"}, "turn:3")])

    async def kinds(turn: str) -> list[str]:
        found: list[Event] = list(await conversations.of_turn(talk.id, turn))
        return [event.kind for event in found]

    assert await kinds("turn:1") == ["notice", "message", "turn.end", "undo"]
    assert await kinds("turn:2") == ["notice", "message", "turn.end"]
    assert await kinds("turn:3") == ["notice"], "one without a message"
    assert await conversations.first_seq(talk.id, "turn:2") == 4


@pytest.mark.parametrize("made", [turns_events, first_seq], ids=["events", "first"])
async def test_a_turn_is_found_by_an_index_and_not_by_reading_its_chat(
    sqlite_template: SqliteTemplate, tmp_path: Path, made: Callable[[], Select[Any]]
) -> None:
    statement = str(made().compile(dialect=sqlite.dialect()))
    db = Database(sqlite_template.fresh(tmp_path))
    async with db.connection() as connection:
        values = ("x",) * statement.count("?")
        plan = (await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)).all()
    await db.close()
    assert any("ix_events_turn_id" in str(row) for row in plan), plan
