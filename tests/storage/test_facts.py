"""Facts: one for each thing said, each with its history, each person's apart; and how far conversations were read."""

from datetime import timedelta
from typing import Any

import pytest

from cortex.base.errors import Conflict, NotFound
from cortex.base.fact import fact_key
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database
from cortex.storage.distill_marks import AllDistillMarksRepository, DistillMarksRepository
from cortex.storage.facts import AllFactsRepository, FactsRepository, FactValues
from cortex.storage.turns import NOTHING_READ, NewTurn, TurnsRepository
from tests.still_clock import StillClock


def fact(text: str, *, is_tainted: bool = False, **values: Any) -> FactValues:
    return FactValues(text=text, source="the user", is_tainted=is_tainted, **values)


@pytest.mark.parametrize(
    "again",
    ["Ann eats no nuts.", "ANN eats no nuts", "Ann  eats — no nuts!", "\uff21nn eats no nuts."],
    ids=["same", "case", "punctuation", "wide letters"],
)
async def test_exact_duplicates_are_one_fact(db: Database, ann: str, again: str) -> None:
    facts = db.repository(FactsRepository, ann)
    first = await facts.add("one", fact("Ann eats no nuts."))
    assert await facts.add("two", fact(again)) == first
    assert await facts.add("one", fact("something else")) == first
    assert await facts.list() == [first]


def test_facts_of_signs_alone_are_told_apart() -> None:
    assert fact_key("🙂") != fact_key("🙁")


async def test_a_change_keeps_what_was_and_overwrites_nothing_newer(db: Database, ann: str) -> None:
    facts = db.repository(FactsRepository, ann)
    made = await facts.add("one", fact("Ann lives in Graz."))
    moved = await facts.change("one", "distill", 1, text="Ann lives in Linz.", is_seen=False)
    assert (moved.text, moved.version, moved.changed_by, moved.is_seen) == ("Ann lives in Linz.", 2, "distill", False)
    (before,) = await facts.history("one")
    assert (before.text, before.version, before.changed_by) == (made.text, 1, "you")
    with pytest.raises(Conflict):
        await facts.change("one", "you", 1, text="Ann lives in Wels.")
    await facts.add("two", fact("Ann has a boat."))
    with pytest.raises(Conflict):
        await facts.change("two", "you", text="ann lives in linz")
    await facts.see()
    assert all(row.is_seen for row in await facts.list())


async def test_a_forgotten_fact_comes_back_or_goes_for_good(db: Database, ann: str, clock: StillClock) -> None:
    facts = db.repository(FactsRepository, ann)
    await facts.add("one", fact("Ann has a boat."))
    gone = await facts.change("one", "you", state="forgotten")
    assert (await facts.list(), gone.forgotten_at) == ([], clock())
    assert (await facts.change("one", "you", state="kept")).forgotten_at is None
    await facts.change("one", "you", state="forgotten")
    assert (await facts.add("two", fact("Ann has a boat."))).id == "two"
    with pytest.raises(Conflict):
        await facts.change("one", "you", state="kept")
    clock.forward(days=2)
    await db.repository(AllFactsRepository).prune(clock() - timedelta(days=1))
    assert [row.id for row in await facts.list("kept", "forgotten")] == ["two"]


async def test_another_users_facts_are_out_of_reach(db: Database, ann: str, ben: str) -> None:
    await db.repository(FactsRepository, ann).add("one", fact("Ann has a boat."))
    others = db.repository(FactsRepository, ben)
    assert (await others.list(), await others.count(), await others.history("one")) == ([], 0, [])
    assert (await others.add("two", fact("Ann has a boat."))).id == "two"
    with pytest.raises(NotFound):
        await others.get("one")
    with pytest.raises(NotFound):
        await others.change("one", "you", text="mine")
    with pytest.raises(Conflict):
        await others.add("one", fact("stolen"))
    assert [row.text for row in await db.repository(FactsRepository, ann).list()] == ["Ann has a boat."]


async def test_facts_are_found_by_words_and_state(db: Database, ann: str) -> None:
    facts = db.repository(FactsRepository, ann)
    await facts.add("one", fact("Ann eats 100% no nuts."))
    await facts.add("two", fact("Ann's boss likes nuts.", is_tainted=True, state="proposed"))
    assert [row.id for row in await facts.list("kept", query="NUTS")] == ["one"]
    assert [row.id for row in await facts.list("proposed", query="nuts boss")] == ["two"]
    assert await facts.list(query="0%_") == []
    assert await facts.count() == 2


async def spoken(db: Database, user: str, clock: StillClock, *ids: str, **values: Any) -> str:
    conversation = await db.repository(ConversationsRepository, user).create(
        "orchestrator", "auto", is_title_tainted=False
    )
    turns = db.repository(TurnsRepository, user)
    for id in ids:
        await turns.create(
            NewTurn(id, conversation.id, "hello", mode="auto", role="r", is_tainted=False, reads=NOTHING_READ, **values)
        )
        await turns.move(id, "done")
    clock.forward(minutes=1)
    return conversation.id


async def test_what_is_new_and_over_is_found_once(db: Database, ann: str, clock: StillClock) -> None:
    everybody, began = db.repository(AllDistillMarksRepository), clock()
    cid = await spoken(db, ann, clock, "turn:1", "turn:2")
    await spoken(db, ann, clock, "turn:cron", channel="cron")
    assert await everybody.quiet(began, began - timedelta(minutes=1), 9) == []
    (found,) = await everybody.quiet(began, clock(), 9)
    assert (found.owner_id, found.conversation_id, found.upto_ordinal) == (ann, cid, 2)
    marks = db.repository(DistillMarksRepository, ann)
    assert await marks.claim(cid, clock() + timedelta(minutes=5))
    assert not await marks.claim(cid, clock() + timedelta(minutes=5))
    assert await everybody.quiet(began, clock(), 9) == []
    assert await marks.move(cid, 2, "2 facts")
    assert not await marks.move(cid, 2, "again")
    assert await everybody.quiet(began, clock(), 9) == []
    assert ((await marks.get(cid)).upto_ordinal, (await marks.get(cid)).outcome) == (2, "2 facts")
    turns = db.repository(TurnsRepository, ann)
    await turns.create(NewTurn("turn:3", cid, "more", mode="auto", role="r", is_tainted=False, reads=NOTHING_READ))
    clock.forward(minutes=9)
    assert await everybody.quiet(began, clock(), 9) == [], "it is being answered"
    await turns.move("turn:3", "done")
    assert [row.upto_ordinal for row in await everybody.quiet(began, clock(), 9)] == [3]


async def test_tries_that_died_are_counted_until_one_ends(db: Database, ann: str, clock: StillClock) -> None:
    cid = await spoken(db, ann, clock, "turn:1")
    marks = db.repository(DistillMarksRepository, ann)
    for tries in (1, 2):
        assert await marks.claim(cid, clock() + timedelta(minutes=5))
        assert (await marks.get(cid)).tries == tries
        clock.forward(minutes=6)
    await marks.let_go(cid, clock() + timedelta(minutes=60))
    assert (await marks.get(cid)).tries == 0
    assert not await marks.claim(cid, clock() + timedelta(minutes=5))
    clock.forward(minutes=61)
    assert await marks.claim(cid, clock() + timedelta(minutes=5))


async def test_another_users_marks_are_out_of_reach(db: Database, ann: str, ben: str, clock: StillClock) -> None:
    cid = await spoken(db, ann, clock, "turn:1")
    await db.repository(DistillMarksRepository, ann).move(cid, 1, "done")
    others = db.repository(DistillMarksRepository, ben)
    assert not await others.move(cid, 7, "theirs")
    assert not await others.claim(cid, clock() + timedelta(minutes=5))
    assert (await others.get(cid)).upto_ordinal == 0
    assert (await db.repository(DistillMarksRepository, ann).get(cid)).upto_ordinal == 1
