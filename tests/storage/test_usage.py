"""Sums over the ledger on both databases, and the migration that made the ledger."""

import json
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from cortex.base.messages import Usage as Took
from cortex.storage.calls import CallRow, CallsRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database
from cortex.storage.rounds import RoundsRepository
from cortex.storage.turns import NOTHING_READ, NewTurn, TurnsRepository
from cortex.storage.usage import AllUsageRepository, ExpensiveTurn, Span, ToolUsage, UsageRepository
from tests.still_clock import StillClock

USED = Took(input_tokens=100, output_tokens=10, cached_tokens=60)


def receipt(**sent: int) -> dict[str, Any]:
    rows = [{"name": name, "category": "tasks", "tokens": tokens} for name, tokens in sent.items()]
    return {"total_tokens": 1000, "sent": rows, "left_out": {"gate": 100, "fuse": 900 - sum(sent.values())}}


async def answered(db: Database, owner: str, cid: str, turn: str, round: int, cost: float | None, **sent: int) -> None:
    await db.repository(TurnsRepository, owner).create(
        NewTurn(turn, cid, "x", mode="auto", role="coder", is_tainted=False, reads=NOTHING_READ)
    )
    rounds = db.repository(RoundsRepository, owner)
    await rounds.planned(turn, round, receipt(**sent), 500, "m", "e")
    await rounds.answered(turn, round, f"model-{round}", USED, cost, cache="hit" if round > 1 else "first")


@pytest.fixture
async def spans(db: Database, talk: Any, ann: str, ben: str, clock: StillClock) -> list[Span]:
    """Three days of rounds: ann's two turns, one of ben's, one that failed, one on the day before."""
    start = clock()
    clock.forward(days=-1)
    await answered(db, ann, talk.id, "turn:0", 1, 9.0, old=1)
    clock.forward(days=1)
    await answered(db, ann, talk.id, "turn:1", 1, 0.5, add=40, show=30)
    await answered(db, ann, talk.id, "turn:1", 2, None, add=40)
    clock.forward(days=1)
    await answered(db, ann, talk.id, "turn:2", 1, 0.25, add=40)
    await db.repository(RoundsRepository, ann).failed("turn:2", 2, "m", 5)
    theirs = await db.repository(ConversationsRepository, ben).create("coder", "auto", "Ben's", is_title_tainted=False)
    await answered(db, ben, theirs.id, "turn:3", 1, None)
    call = CallRow(
        id="c",
        turn_id="turn:2",
        conversation_id=talk.id,
        round=1,
        name="add",
        arguments="{}",
        arguments_hash="",
        risk="",
    )
    await db.repository(CallsRepository, ann).decided(call)
    return [(start + timedelta(days=day), start + timedelta(days=day + 1)) for day in range(3)]


async def test_cells_are_days_by_key_by_cache_outcome(db: Database, ann: str, spans: list[Span]) -> None:
    cells = await db.repository(UsageRepository, ann).cells(spans, "model")
    told = {(one.day, one.key, one.cache): (one.rounds, one.unpriced, one.cost_usd) for one in cells}
    assert told == {
        (0, "model-1", "first"): (1, 0, 0.5),
        (0, "model-2", "hit"): (1, 1, 0.0),
        (1, "model-1", "first"): (1, 0, 0.25),
    }
    (first,) = [one for one in cells if (one.day, one.cache) == (0, "first")]
    assert (first.total_tokens, first.sent_tokens, first.cut_role, first.cut_choice) == (1000, 70, 100, 830)
    assert (first.input_tokens, first.output_tokens, first.cached_tokens) == (100, 10, 60)


async def test_everybodys_cells_are_told_apart_by_person(db: Database, ann: str, ben: str, spans: list[Span]) -> None:
    cells = await db.repository(AllUsageRepository).cells(spans, "person")
    assert {key: sum(one.rounds for one in cells if one.key == key) for key in (ann, ben)} == {ann: 3, ben: 1}
    assert [one.key for one in await db.repository(UsageRepository, ben).cells(spans, "role")] == ["coder"]
    assert [one.key for one in await db.repository(UsageRepository, ben).cells(spans, "job")] == [""]


async def test_rounds_a_turn_and_the_dearest_turns(db: Database, ann: str, spans: list[Span]) -> None:
    whole = (spans[0][0], spans[-1][1])
    mine = db.repository(UsageRepository, ann)
    assert list(await mine.histogram(whole)) == [(1, 1), (2, 1)]
    dear = await mine.dear(whole, 5)
    assert [(one.turn_id, one.rounds, one.tokens, one.cost_usd) for one in dear] == [
        ("turn:1", 2, 220, 0.5),
        ("turn:2", 1, 110, 0.25),
    ]
    assert dear[0].at == spans[0][0]
    everybody = await db.repository(AllUsageRepository).dear(whole, 9)
    unpriced = next(one for one in everybody if one.turn_id == "turn:3")
    assert isinstance(unpriced, ExpensiveTurn)
    assert unpriced.cost_usd is None


async def test_tools_that_were_sent_or_called(db: Database, ann: str, ben: str, spans: list[Span]) -> None:
    whole = (spans[0][0], spans[-1][1])
    assert list(await db.repository(UsageRepository, ann).tools(whole)) == [
        ToolUsage(name="add", rounds=3, tokens=120, calls=1),
        ToolUsage(name="show", rounds=1, tokens=30),
    ]
    assert list(await db.repository(UsageRepository, ben).tools(whole)) == []


async def test_the_ledger_is_made_of_what_the_receipts_and_their_rows_knew_and_goes_back_there(
    db: Database, talk: Any, ann: str
) -> None:
    await talk.turn("turn:1")
    old = {
        "total_tokens": 1000,
        "permitted_tokens": 900,
        "sent": [{"name": "add", "category": "tasks", "tokens": 40}, {"name": "d", "category": "meta", "tokens": 60}],
        "catalog_tokens": 7,
        "notes_tokens": 3,
        "decisions": [
            {"is_in": True, "stage": "fuse", "tokens": 40},
            {"is_in": False, "stage": "fuse", "tokens": 500},
            {"is_in": False, "stage": "budget", "tokens": 360},
        ],
    }
    await db.move_to("0002")
    columns = (
        "turn_id, round, owner_id, receipt, request_tokens, model, "
        "input_tokens, output_tokens, cached_tokens, written_tokens, cost_usd, created_at"
    )
    rows = [(1, json.dumps(old), "m", 0.5), (2, "{}", "", None)]
    async with db.connection() as connection:
        for number, kept, model, cost in rows:
            values = f"'turn:1', {number}, :owner, :receipt, 800, :model, 100, 10, 60, 5, :cost, '2026-11-20 09:00:00'"
            given = {"owner": ann, "receipt": kept, "model": model, "cost": cost}
            await connection.execute(text(f"INSERT INTO plans ({columns}) VALUES ({values})"), given)  # noqa: S608 - ours
        await connection.commit()
    await db.move_to("head")
    first, second = await db.repository(RoundsRepository, ann).of_turn("turn:1")
    assert (first.state, first.model, first.conversation_id, first.role) == ("answered", "m", talk.id, "orchestrator")
    assert (first.total_tokens, first.sent_tokens, first.extra_tokens) == (1000, 43, 67)
    assert (first.cut_role, first.cut_choice, first.cut_budget, first.cut_form) == (100, 500, 360, 0)
    assert (first.input_tokens, first.cached_tokens, first.cost_usd, first.sent) == (100, 60, 0.5, {"add": 40, "d": 60})
    assert (second.state, second.cost_usd, second.total_tokens) == ("planned", None, 0)
    await db.move_to("0002")
    async with db.connection() as connection:
        kept_rows = (
            await connection.execute(text("SELECT model, input_tokens, cost_usd FROM plans ORDER BY round"))
        ).all()
    assert [tuple(row) for row in kept_rows] == [("m", 100, 0.5), ("", 100, None)]
    await db.move_to("head")
