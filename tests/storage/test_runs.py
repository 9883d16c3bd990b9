"""Runs as rows: one person's or everybody's, with sums that two calls of the same turn do not double."""

from typing import Any

from cortex.base.messages import Usage
from cortex.storage.calls import CallRow, CallsRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database
from cortex.storage.rounds import RoundsRepository
from cortex.storage.runs import AllRunsRepository, RunFilter, RunsRepository
from cortex.storage.turns import NOTHING_READ, NewTurn, TurnsRepository
from tests.plain_world import PLAIN_TURN

ANY = RunFilter()


async def called(db: Database, owner: str, cid: str, turn_id: str, number: int, name: str) -> None:
    call = CallRow(
        id=f"{turn_id}-{number}-{name}",
        turn_id=turn_id,
        conversation_id=cid,
        round=number,
        name=name,
        arguments="{}",
        arguments_hash="h",
        risk="low",
    )
    await db.repository(CallsRepository, owner).decided(call)


async def test_sums_and_tools_of_a_turn_stand_beside_each_other(db: Database, talk: Any, ann: str) -> None:
    await talk.turn("turn:1")
    usage = Usage(input_tokens=100, output_tokens=10)
    await db.repository(RoundsRepository, ann).answered("turn:1", 0, "m", usage, 0.5)
    await db.repository(RoundsRepository, ann).answered("turn:1", 1, "m", usage, None)
    await db.repository(RoundsRepository, ann).answered("turn:1", 2, "m", usage, 0.25)
    await db.repository(RoundsRepository, ann).failed("turn:1", 3, "m", 5)
    for number, name in ((1, "git_log"), (1, "web_read"), (2, "git_log")):
        await called(db, ann, talk.id, "turn:1", number, name)
    sums = await db.repository(AllRunsRepository).sums(["turn:1", "turn:2"])
    assert set(sums) == {"turn:1"}
    one = sums["turn:1"]
    assert (one.rounds, one.input_tokens, one.output_tokens, one.cost_usd, one.unpriced) == (2, 300, 30, 0.75, 1)
    assert await db.repository(AllRunsRepository).tools(["turn:1"]) == {"turn:1": ("git_log", "web_read")}
    assert not await db.repository(AllRunsRepository).sums([])


async def test_a_person_has_their_own_runs_and_the_house_has_all(db: Database, talk: Any, ann: str, ben: str) -> None:
    await talk.turn("turn:1")
    other = (
        await db.repository(ConversationsRepository, ben).create("coder", "auto", "Ben's", is_title_tainted=False)
    ).id
    await db.repository(TurnsRepository, ben).create(
        NewTurn(
            "turn:2",
            other,
            "hi",
            mode="auto",
            role="coder",
            job_id="backup",
            state="running",
            is_tainted=False,
            reads=NOTHING_READ,
        )
    )
    assert [row.id for row in await db.repository(RunsRepository, ann).list(ANY, skip=0, limit=9)] == ["turn:1"]
    everybody = db.repository(AllRunsRepository)
    assert [row.id for row in await everybody.list(ANY, skip=0, limit=9)] == ["turn:2", "turn:1"]
    assert [row.id for row in await everybody.list(ANY, skip=1, limit=9)] == ["turn:1"]
    assert [row.owner_id for row in await everybody.list(ANY, skip=0, limit=9, owner_id=ben)] == [ben]
    (row,) = await everybody.list(RunFilter(states=("running",), role="coder", job_id="backup"), skip=0, limit=9)
    assert (row.title, row.source, row.text) == ("Ben's", "chat", "hi")
    assert await db.repository(RunsRepository, ann).roles() == ["orchestrator"]
    assert await everybody.roles() == ["coder", "orchestrator"]


async def test_a_call_by_hand_is_a_run_and_no_conversation_of_the_list(db: Database, ann: str) -> None:
    conversations = db.repository(ConversationsRepository, ann)
    made = await conversations.create("orchestrator", "auto", "Tried: git_log", source="try", is_title_tainted=False)
    await db.repository(TurnsRepository, ann).create(NewTurn("turn:1", made.id, "x", state="running", **PLAIN_TURN))
    await called(db, ann, made.id, "turn:1", 1, "git_log")
    (row,) = await db.repository(RunsRepository, ann).list(RunFilter(tool="git_log"), skip=0, limit=9)
    assert row.source == "try"
    assert not await conversations.list()
    assert [one.id for one in await conversations.list(source="try")] == [made.id]
