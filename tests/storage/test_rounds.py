"""The ledger of model calls: figures of receipts, sums, what is held, what a cache saw, who may see it."""

from datetime import timedelta
from typing import Any

import pytest

from cortex.base.errors import NotFound
from cortex.base.ids import digest
from cortex.base.messages import Usage
from cortex.base.turn import agent_turn
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database
from cortex.storage.plans import PlansRepository, TextsRepository
from cortex.storage.round_rows import Spent
from cortex.storage.rounds import AllRoundsRepository, RoundsRepository
from cortex.storage.turns import NOTHING_READ, NewTurn, TurnsRepository
from cortex.storage.versions import VersionsRepository
from tests.still_clock import StillClock

RECEIPT = {
    "total_tokens": 1000,
    "permitted_tokens": 800,
    "sent": [
        {"name": "task_add", "category": "tasks", "tokens": 120},
        {"name": "tools_discover", "category": "meta", "tokens": 60},
    ],
    "noted": [{"name": "timer_set", "category": "reminders", "tokens": 30}],
    "catalog_tokens": 40,
    "notes_tokens": 30,
    "left_out": {"gate": 200, "fuse": 500, "epoch": 50, "budget": 70, "form": 20, "mode": 10},
    "prefix": {"tools": "t", "system": "s", "history": "h"},
}
LONG = Usage(input_tokens=900, output_tokens=100, cached_tokens=700, written_tokens=50)


async def test_the_figures_of_a_receipt_stand_in_columns_by_what_removed_them(
    db: Database, talk: Any, ann: str
) -> None:
    await talk.turn("turn:1")
    await db.repository(RoundsRepository, ann).planned("turn:1", 1, RECEIPT, 2000, "m", "openai  m")
    (row,) = await db.repository(RoundsRepository, ann).of_turn("turn:1")
    assert (row.total_tokens, row.sent_tokens, row.extra_tokens) == (1000, 150, 100)
    cuts = (row.cut_role, row.cut_choice, row.cut_budget, row.cut_form, row.cut_mode)
    assert cuts == (200, 550, 70, 20, 10)
    assert (row.state, row.role, row.channel, row.conversation_id) == ("planned", "orchestrator", "chat", talk.id)
    assert row.sent == {"task_add": 120, "tools_discover": 60, "timer_set": 30}
    assert sum(row.sent.values()) + 40 == row.sent_tokens + row.extra_tokens  # 40: the catalog, which is no tool
    assert (row.tools_digest, row.history) == ("t", "h")


async def test_a_round_that_is_told_twice_is_one_row(db: Database, talk: Any, ann: str) -> None:
    await talk.turn("turn:1")
    rounds, plans = db.repository(RoundsRepository, ann), db.repository(PlansRepository, ann)
    for number in (1, 2):
        await plans.add("turn:1", 1, {"sent": [number]}, {"version": str(number)})
        await rounds.planned("turn:1", 1, RECEIPT, 2000 + number, "m", "e")
    for _ in range(2):
        await rounds.answered("turn:1", 1, "m", LONG, 0.25, ms=12, cache="hit")
    (plan,), (row,) = await plans.of_turn("turn:1"), await rounds.of_turn("turn:1")
    assert (plan.receipt, plan.given) == ({"sent": [2]}, {"version": "2"})
    assert (row.state, row.request_tokens, row.cached_tokens, row.written_tokens) == ("answered", 2002, 700, 50)
    assert (row.cost_usd, row.ms, row.cache, row.sent_tokens) == (0.25, 12, "hit", 150)


async def test_the_ledger_sums_what_calls_took_and_says_how_many_have_no_price(
    db: Database, talk: Any, ann: str, clock: StillClock
) -> None:
    await talk.turn("turn:1")
    rounds, start = db.repository(RoundsRepository, ann), clock()
    await rounds.answered("turn:1", 1, "m", LONG, 0.25)
    clock.forward(days=1)
    await rounds.answered("turn:1", 2, "m", Usage(input_tokens=50, output_tokens=5), None)
    await rounds.failed("turn:1", 3, "m", 40)
    await rounds.refused("turn:1", 4)
    both = Spent(tokens=1055, usd=0.25, unpriced=1)
    assert await rounds.spent(start) == await rounds.spent_in_turn("turn:1") == both
    assert await db.repository(AllRoundsRepository).spent(start) == both
    assert await rounds.spent(clock()) == Spent(tokens=55, unpriced=1)
    assert await rounds.spent(start, role="coder") == await rounds.spent(start, job_id="nightly") == Spent()
    assert await rounds.spent(start, but=("turn:1", 1)) == Spent(tokens=55, unpriced=1)


async def test_a_turn_takes_what_its_agents_take_though_it_asked_no_model_itself(
    db: Database, talk: Any, ann: str, clock: StillClock
) -> None:
    await talk.turn("turn:1")
    clock.forward(minutes=1)
    for turn_id in (agent_turn("turn:1", "run"), agent_turn("turn:10", "run")):
        await talk.turn(turn_id)
        await db.repository(RoundsRepository, ann).answered(turn_id, 1, "m", LONG, 0.25)
    assert await db.repository(RoundsRepository, ann).spent_in_turn("turn:1") == Spent(tokens=1000, usd=0.25)


async def test_what_a_job_takes_is_counted_under_its_id(db: Database, talk: Any, ann: str, clock: StillClock) -> None:
    turns = db.repository(TurnsRepository, ann)
    made = await turns.create(
        NewTurn(
            "turn:9",
            talk.id,
            "back up",
            mode="auto",
            role="admin",
            channel="cron",
            job_id="nightly",
            is_tainted=False,
            reads=NOTHING_READ,
        )
    )
    rounds = db.repository(RoundsRepository, ann)
    await rounds.answered("turn:9", 1, "m", LONG, None)
    assert made.job_id == "nightly"
    assert (await rounds.spent(clock(), job_id="nightly")).tokens == 1000
    assert (await rounds.of_turn("turn:9"))[0].channel == "cron"


async def test_what_is_held_counts_until_it_is_answered_released_or_too_old(
    db: Database, talk: Any, ann: str, clock: StillClock
) -> None:
    await talk.turn("turn:1")
    rounds, start = db.repository(RoundsRepository, ann), clock()
    until = start + timedelta(minutes=15)
    await rounds.hold("turn:1", 1, 500, 0.1, until)
    assert await rounds.spent(start) == Spent(held_tokens=500, held_usd=0.1)
    await rounds.planned("turn:1", 1, RECEIPT, 2000, "m", "e")
    assert (await rounds.spent(start)).held_tokens == 500
    await rounds.answered("turn:1", 1, "m", LONG, 0.0)
    assert await rounds.spent(start) == Spent(tokens=1000)
    await rounds.hold("turn:1", 2, 500, 0.1, until)
    await rounds.release("turn:1")
    assert (await rounds.spent(start)).held_tokens == 0
    await rounds.hold("turn:1", 3, 500, 0.1, until)
    clock.forward(minutes=16)
    assert (await rounds.spent(start)).held_tokens == 0


async def test_the_request_before_is_the_last_answered_one_and_knows_whether_its_turn_was_replaced(
    db: Database, talk: Any, ann: str, clock: StillClock
) -> None:
    await talk.turn("turn:1")
    await talk.turn("turn:2")
    rounds = db.repository(RoundsRepository, ann)
    assert await rounds.before(talk.id, "turn:1", 1) is None
    await rounds.planned("turn:1", 1, RECEIPT, 1, "m", "e")
    await rounds.answered("turn:1", 1, "m", LONG, None)
    clock.forward(seconds=9)
    await rounds.planned("turn:1", 2, RECEIPT, 1, "m", "e")
    await rounds.planned("turn:2", 1, RECEIPT, 1, "m", "e")
    found = await rounds.before(talk.id, "turn:2", 1)
    assert found is not None
    assert (found.input_tokens, found.tools_digest, found.is_replaced) == (900, "t", False)
    await db.repository(VersionsRepository, ann).drop_from(talk.id, 1)
    found = await rounds.before(talk.id, "turn:2", 1)
    assert found is not None
    assert found.is_replaced


async def test_what_an_endpoint_showed_is_read_newest_first(
    db: Database, talk: Any, ann: str, clock: StillClock
) -> None:
    await talk.turn("turn:1")
    rounds = db.repository(RoundsRepository, ann)
    for number in range(1, 5):
        known = {"endpoint": "e", "kept_tokens": 100 * (number - 1), "idle_s": float(number)}
        await rounds.answered("turn:1", number, "m", LONG, None, **known)
        clock.forward(seconds=1)
    assert [one.kept_tokens for one in await rounds.seen("e", 2)] == [300, 200]
    assert await rounds.seen("another", 9) == []


async def test_the_ledger_outlives_the_conversation(db: Database, talk: Any, ann: str, clock: StillClock) -> None:
    await talk.turn("turn:1")
    start = clock()
    await db.repository(RoundsRepository, ann).answered("turn:1", 1, "m", LONG, 0.25)
    await db.repository(ConversationsRepository, ann).delete(talk.id)
    assert (await db.repository(RoundsRepository, ann).spent(start)).tokens == 1000


async def test_a_text_is_kept_once_and_only_its_owner_reads_it(db: Database, ann: str, ben: str) -> None:
    texts = db.repository(TextsRepository, ann)
    await texts.keep("You are Cortex.", "[]", "[]")
    await texts.keep("[]")
    await db.repository(TextsRepository, ben).keep("mine")
    digests = [digest("You are Cortex."), digest("[]"), digest("mine")]
    assert set((await texts.get(digests)).values()) == {"You are Cortex.", "[]"}
    assert set((await db.repository(TextsRepository, ben).get(digests)).values()) == {"mine"}


async def test_anothers_calls_are_neither_seen_nor_changed(
    db: Database, talk: Any, ann: str, ben: str, clock: StillClock
) -> None:
    await talk.turn("turn:1")
    await db.repository(RoundsRepository, ann).answered("turn:1", 1, "m", LONG, 0.25)
    theirs = db.repository(RoundsRepository, ben)
    for attempt in (
        theirs.planned("turn:1", 1, RECEIPT, 1, "m", "e"),
        theirs.answered("turn:1", 1, "m", Usage(), None),
        theirs.hold("turn:1", 1, 1, 0.0, clock()),
        theirs.refused("turn:1", 1),
        theirs.failed("turn:1", 1, "m", 1),
    ):
        with pytest.raises(NotFound):
            await attempt
    await theirs.release("turn:1")
    assert await theirs.of_turn("turn:1") == []
    assert await theirs.at("turn:1", 1) is None
    assert await theirs.before(talk.id, "turn:2", 1) is None
    assert await theirs.spent(clock()) == Spent()
    assert (await db.repository(RoundsRepository, ann).of_turn("turn:1"))[0].cost_usd == 0.25
