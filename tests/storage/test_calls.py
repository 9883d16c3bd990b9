import asyncio
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from cortex.base.errors import Conflict, NotFound
from cortex.ports.loop import UndoOffer
from cortex.storage.approvals import ApprovalRow, ApprovalsRepository, GrantsRepository
from cortex.storage.calls import CallRow, CallsRepository
from cortex.storage.db import Database
from cortex.storage.plans import PlansRepository
from cortex.storage.summaries import SummariesRepository
from cortex.storage.undo import UndosRepository
from tests.still_clock import StillClock


def call_of(talk: Any, id: str = "call-1", arguments_hash: str = "aa") -> CallRow:
    return CallRow(
        id=id,
        turn_id="turn:1",
        conversation_id=talk.id,
        round=1,
        name="shell_exec",
        arguments='{"command":"df -h"}',
        arguments_hash=arguments_hash,
        risk="high",
    )


def offer_of(target: str, before: dict[str, Any] | None = None) -> UndoOffer:
    return UndoOffer(category="tasks", target=target, before=before, expected="3", label="Put it back")


async def ask(db: Database, owner_id: str, clock: StillClock, call_id: str = "call-1") -> ApprovalRow:
    return await db.repository(ApprovalsRepository, owner_id).ask(
        call_id,
        "turn:1",
        tool="shell_exec",
        arguments_hash="aa",
        destination="this machine",
        verb="Run a command",
        detail="df -h",
        why="you asked for it",
        risk="high",
        expires_at=clock() + timedelta(minutes=5),
    )


async def test_an_intent_is_recorded_once(db: Database, talk: Any, ann: str) -> None:
    await talk.turn("turn:1")
    calls = db.repository(CallsRepository, ann)
    assert await calls.decided(call_of(talk)) is True
    assert await calls.decided(replace(call_of(talk), arguments="{}")) is False
    kept = await calls.get("call-1")
    assert (kept.state, kept.arguments) == ("decided", '{"command":"df -h"}')
    intents = await asyncio.gather(*(calls.intend("call-1") for _ in range(5)))
    assert [one for one in intents if one] == [replace(kept, state="intended")]
    assert await calls.decided(call_of(talk)) is False
    assert await calls.get("call-1") == replace(kept, state="intended")
    await calls.finish("call-1", "done", text="12 GB free", ms=40, is_tainted=True, spill="files/.results/1.txt")
    done = await calls.get("call-1")
    assert (done.state, done.text, done.ms, done.is_tainted) == ("done", "12 GB free", 40, True)
    assert await calls.of_turn("turn:1") == [done]


async def test_what_a_call_acts_on_is_kept_until_it_has_ended_and_not_by_a_later_try(
    db: Database, talk: Any, ann: str
) -> None:
    await talk.turn("turn:1")
    calls = db.repository(CallsRepository, ann)
    await calls.decided(call_of(talk))
    assert await calls.keep_target("call-1", {"at": 1}) == {"at": 1}
    assert await calls.keep_target("call-1", {"at": 2}) == {"at": 1}
    await calls.intend("call-1")
    await calls.finish("call-1", "done", text="Done.", is_tainted=False)
    assert await calls.keep_target("call-1", {"at": 3}) == {"at": 3}
    assert await calls.target("call-1") is None


async def test_a_yes_is_used_once_for_the_very_same_arguments(
    db: Database, talk: Any, ann: str, clock: StillClock
) -> None:
    await talk.turn("turn:1")
    approvals = db.repository(ApprovalsRepository, ann)
    asked = await ask(db, ann, clock)
    assert await ask(db, ann, clock) == asked
    assert await approvals.pending() == [asked]
    assert asked.conversation_id == talk.id
    assert await approvals.consume(asked.id, "aa") is False
    assert (await approvals.answer(asked.id, "allowed", "ann")).state == "allowed"
    assert await approvals.pending() == []
    with pytest.raises(Conflict):
        await approvals.answer(asked.id, "denied", "ann")
    assert await approvals.consume(asked.id, "other arguments") is False
    assert sorted(await asyncio.gather(*(approvals.consume(asked.id, "aa") for _ in range(5)))) == [False] * 4 + [True]
    assert await approvals.of_call("call-1") == replace(asked, state="used", answered_at=clock(), answered_by="ann")


async def test_silence_is_no_yes(db: Database, talk: Any, ann: str, clock: StillClock) -> None:
    await talk.turn("turn:1")
    approvals = db.repository(ApprovalsRepository, ann)
    asked = await ask(db, ann, clock)
    clock.forward(minutes=6)
    assert await approvals.pending() == []
    with pytest.raises(Conflict, match="ran out or was closed"):
        await approvals.answer(asked.id, "allowed", "ann")
    assert await approvals.expire(asked.id) is True
    assert await approvals.expire(asked.id) is False
    assert await approvals.consume(asked.id, "aa") is False


async def test_a_yes_in_time_does_not_keep_for_ever(db: Database, talk: Any, ann: str, clock: StillClock) -> None:
    await talk.turn("turn:1")
    approvals = db.repository(ApprovalsRepository, ann)
    asked = await ask(db, ann, clock)
    clock.forward(minutes=4)
    await approvals.answer(asked.id, "allowed", "ann")
    clock.forward(minutes=10)
    assert await approvals.consume(asked.id, "aa") is False


async def test_grants_cover_one_tool_and_one_exact_destination(
    db: Database, talk: Any, ann: str, clock: StillClock
) -> None:
    grants = db.repository(GrantsRepository, ann)
    soon = clock() + timedelta(hours=1)
    here = await grants.add("http_post", "https://a.example", talk.id, soon)
    everywhere = await grants.add("email_send", "b@example.org", None, soon)
    assert await grants.find("http_post", "https://a.example", talk.id) == here
    assert await grants.find("http_post", "https://a.example", "another") is None
    assert await grants.find("http_post", "https://a.example", None) is None
    assert await grants.find("http_post", "https://a.example/x", talk.id) is None
    assert await grants.find("email_send", "b@example.org", talk.id) == everywhere
    await grants.revoke(here.id)
    assert await grants.list() == [everywhere]
    clock.forward(minutes=61)
    assert await grants.find("email_send", "b@example.org", None) is None


async def test_an_undo_is_offered_for_a_while_and_used_once(
    db: Database, talk: Any, ann: str, clock: StillClock
) -> None:
    await talk.turn("turn:1")
    await db.repository(CallsRepository, ann).decided(call_of(talk))
    undos = db.repository(UndosRepository, ann)
    day = timedelta(hours=24)
    first = await undos.add("call-1", offer_of("t1", {"title": "Milk"}), clock() + day)
    assert await undos.add("call-1", offer_of("t1"), clock() + day) == first
    second = await undos.add("call-1", offer_of("t2"), clock() + day)
    assert {undo.id for undo in await undos.of_call("call-1")} == {first.id, second.id}
    assert (await undos.use(first.id)).before == {"title": "Milk"}
    with pytest.raises(Conflict, match="already"):
        await undos.use(first.id)
    await undos.give_back(first.id)
    assert len(await undos.list()) == 2
    clock.forward(days=2)
    with pytest.raises(Conflict, match="too late"):
        await undos.use(second.id)
    assert await undos.list() == []


async def test_the_summary_in_force_is_the_furthest_not_undone(db: Database, talk: Any, ann: str) -> None:
    summaries = db.repository(SummariesRepository, ann)
    for number in range(1, 8):  # a summary is in force where its last turn is in view
        await talk.turn(f"turn:{number}")
    first = await summaries.add(talk.id, 3, "we planned a garden", False)
    assert await summaries.add(talk.id, 3, "we planned a garden", False) == first
    second = await summaries.add(talk.id, 7, "and planted it", True)
    assert await summaries.latest(talk.id) == second
    assert await summaries.latest(talk.id, before_ordinal=7) == first
    await summaries.undo(second.id)
    assert await summaries.latest(talk.id) == first


async def test_another_user_can_neither_see_nor_answer_nor_use(
    db: Database, talk: Any, ann: str, ben: str, clock: StillClock
) -> None:
    await talk.turn("turn:1")
    await db.repository(CallsRepository, ann).decided(call_of(talk))
    asked = await ask(db, ann, clock)
    undo = await db.repository(UndosRepository, ann).add("call-1", offer_of("t1"), clock() + timedelta(days=1))
    grant = await db.repository(GrantsRepository, ann).add("a", "b", None, clock() + timedelta(days=1))
    summary = await db.repository(SummariesRepository, ann).add(talk.id, 1, "x", False)
    for attempt in (
        db.repository(CallsRepository, ben).get("call-1"),
        db.repository(CallsRepository, ben).finish("call-1", "done", text="", is_tainted=False),
        db.repository(CallsRepository, ben).decided(call_of(talk)),
        db.repository(ApprovalsRepository, ben).get(asked.id),
        db.repository(ApprovalsRepository, ben).answer(asked.id, "allowed", "ben"),
        ask(db, ben, clock),
        db.repository(UndosRepository, ben).use(undo.id),
        db.repository(UndosRepository, ben).add("call-1", offer_of("t2"), clock()),
        db.repository(GrantsRepository, ben).revoke(grant.id),
        db.repository(GrantsRepository, ben).add("a", "b", talk.id, clock()),
        db.repository(SummariesRepository, ben).add(talk.id, 1, "x", False),
        db.repository(SummariesRepository, ben).undo(summary.id),
        db.repository(PlansRepository, ben).add("turn:1", 1, {}),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert await db.repository(CallsRepository, ben).intend("call-1") is None
    assert await db.repository(ApprovalsRepository, ben).expire(asked.id) is False
    assert await db.repository(GrantsRepository, ben).find("a", "b", None) is None
    assert (await db.repository(CallsRepository, ann).get("call-1")).state == "decided"
    assert (await db.repository(ApprovalsRepository, ann).get(asked.id)).state == "asked"
