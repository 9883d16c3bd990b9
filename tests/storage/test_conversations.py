import asyncio
from typing import Any

import pytest

from cortex.base.errors import NotFound
from cortex.base.messages import assistant, user
from cortex.base.role import Channel
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database
from cortex.storage.messages import MessagesRepository
from cortex.storage.turns import AllTurnsRepository, NewTurn, TurnsRepository
from cortex.storage.versions import VersionsRepository
from tests.plain_world import PLAIN_TURN
from tests.still_clock import StillClock


async def test_twenty_appends_at_once_leave_no_gap(db: Database, ann: str) -> None:
    conversation = await db.repository(ConversationsRepository, ann).create(
        "orchestrator", "auto", is_title_tainted=False
    )
    added = await asyncio.gather(
        *(
            db.repository(ConversationsRepository, ann).append(
                conversation.id, [("message", {"n": n, "part": part}, f"turn:{n}") for part in range(3)]
            )
            for n in range(20)
        )
    )
    log = await db.repository(ConversationsRepository, ann).events(conversation.id)
    assert [event.seq for event in log] == list(range(1, 61))
    assert sorted(event.seq for batch in added for event in batch) == list(range(1, 61))
    assert [event for batch in sorted(added, key=lambda b: b[0].seq) for event in batch] == list(log)


async def test_the_log_is_read_in_pieces(db: Database, talk: Any, ann: str) -> None:
    conversations = db.repository(ConversationsRepository, ann)
    await conversations.append(talk.id, [("notice", {"n": n}, "turn:b" if n > 4 else "turn:a") for n in range(1, 9)])
    assert [event.seq for event in await conversations.events(talk.id, after=5)] == [6, 7, 8]
    assert [event.seq for event in await conversations.events(talk.id, after=2, limit=2)] == [3, 4]
    assert [event.seq for event in await conversations.events(talk.id, after=1, before=4)] == [2, 3]
    assert await conversations.first_seq(talk.id, "turn:b") == 5
    assert await conversations.first_seq(talk.id, "turn:c") is None


async def test_an_append_that_fails_uses_up_no_number(db: Database, talk: Any, ann: str) -> None:
    async def append_and_fail() -> None:
        async with db.transaction(ann) as repository:
            await repository(ConversationsRepository).append(talk.id, [("notice", {}, None)])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await append_and_fail()
    (event,) = await db.repository(ConversationsRepository, ann).append(talk.id, [("notice", {}, None)])
    assert event.seq == 1


async def test_lists_the_newest_first_without_deleted_ones(db: Database, ann: str, clock: StillClock) -> None:
    conversations = db.repository(ConversationsRepository, ann)
    ids = []
    for title in ("100% garden", "Kitchen_lights", "Garden plan"):
        ids.append((await conversations.create("orchestrator", "auto", title, is_title_tainted=False)).id)
        clock.forward(minutes=1)
    await conversations.append(ids[0], [("message", {}, None)])
    await conversations.delete(ids[2])
    assert [one.id for one in await conversations.list()] == [ids[0], ids[1]]
    assert [one.id for one in await conversations.list("GARDEN")] == [ids[0]]
    assert [one.id for one in await conversations.list("100%")] == [ids[0]]
    assert [one.id for one in await conversations.list("light")] == [ids[1]]
    assert await conversations.list("ight") == await conversations.list("%") == await conversations.list("_") == []
    with pytest.raises(NotFound):
        await conversations.get(ids[2])
    await conversations.restore(ids[2])
    assert (await conversations.get(ids[2])).title == "Garden plan"


async def test_a_title_that_the_user_gave_stays(db: Database, ann: str) -> None:
    conversations = db.repository(ConversationsRepository, ann)
    id = (await conversations.create("orchestrator", "auto", is_title_tainted=False)).id
    await conversations.rename(id, "by rule", False, is_tainted=False)
    assert ((await conversations.get(id)).title, (await conversations.get(id)).is_title_auto) == ("by rule", True)
    await conversations.rename(id, "mine", True, is_tainted=False)
    await conversations.rename(id, "by rule again", False, is_tainted=False)
    assert ((await conversations.get(id)).title, (await conversations.get(id)).is_title_auto) == ("mine", False)


async def test_settings_of_a_conversation_are_kept(db: Database, talk: Any, ann: str) -> None:
    conversations = db.repository(ConversationsRepository, ann)
    await conversations.set_role(talk.id, "coder")
    await conversations.set_mode(talk.id, "chat")
    await conversations.set_max_rounds(talk.id, 9)
    await conversations.pin(talk.id, True)
    await conversations.save_selection_state(talk.id, {"epoch": 2, "open": ["tasks"]})
    kept = await conversations.get(talk.id)
    assert (kept.role, kept.mode, kept.max_rounds, kept.is_pinned) == ("coder", "chat", 9, True)
    assert kept.selection_state == {"epoch": 2, "open": ["tasks"]}
    assert [one.id for one in await conversations.pinned()] == [talk.id]


async def test_nothing_of_another_users_conversation_can_be_reached(
    db: Database, talk: Any, ann: str, ben: str
) -> None:
    await talk.turn("turn:1")
    theirs, turns = db.repository(ConversationsRepository, ben), db.repository(TurnsRepository, ben)
    assert await theirs.list() == []
    assert await theirs.events(talk.id) == []
    assert await turns.list(talk.id) == []
    assert await db.repository(VersionsRepository, ben).drop_from(talk.id, 0) == []
    assert await db.repository(MessagesRepository, ben).of_conversation(talk.id) == []
    for attempt in (
        theirs.get(talk.id),
        theirs.append(talk.id, [("notice", {}, None)]),
        theirs.rename(talk.id, "x", True, is_tainted=False),
        theirs.delete(talk.id),
        theirs.save_selection_state(talk.id, {}),
        theirs.create("orchestrator", "auto", id=talk.id, is_title_tainted=False),
        turns.get("turn:1"),
        turns.create(NewTurn("turn:2", talk.id, "hello", **PLAIN_TURN)),
        turns.move("turn:1", "done"),
        db.repository(MessagesRepository, ben).add("turn:1", 5, user("mine now"), False),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert (await db.repository(ConversationsRepository, ann).get(talk.id)).title == "Garden"


async def test_turns_are_numbered_in_order_however_many_come_at_once(db: Database, talk: Any, ann: str) -> None:
    await asyncio.gather(*(talk.turn(f"turn:{n:02}") for n in range(20)))
    assert [turn.ordinal for turn in await db.repository(TurnsRepository, ann).list(talk.id)] == list(range(1, 21))


async def test_a_turn_created_twice_is_one_turn(db: Database, talk: Any, ann: str) -> None:
    first, second = await talk.turn("turn:1"), await talk.turn("turn:1")
    assert first == second
    assert len(await db.repository(TurnsRepository, ann).list(talk.id)) == 1
    assert (await db.repository(ConversationsRepository, ann).get(talk.id)).turn_count == 1


async def test_a_turn_goes_through_its_states(db: Database, talk: Any, ann: str, clock: StillClock) -> None:
    turns = db.repository(TurnsRepository, ann)
    await talk.turn("turn:1")
    assert [turn.id for turn in await turns.queued(talk.id)] == ["turn:1"]
    await turns.move("turn:1", "running", models=("offline",))
    assert (await turns.running(talk.id)) is not None
    assert (await db.repository(ConversationsRepository, ann).get(talk.id)).running_turn == "turn:1"
    started_at, ended_at = clock(), clock.forward(seconds=5)
    await turns.move("turn:1", "waiting")
    ended = await turns.move("turn:1", "done", rounds=2)
    assert ended is not None
    assert (ended.started_at, ended.ended_at, ended.rounds, ended.models) == (started_at, ended_at, 2, ("offline",))
    assert await turns.move("turn:1", "stopped") is None
    assert (await turns.get("turn:1")).state == "done"
    assert await turns.running(talk.id) is None


async def test_steering_messages_are_taken_once_and_found_again(db: Database, talk: Any, ann: str) -> None:
    turns = db.repository(TurnsRepository, ann)
    for id in ("turn:1", "turn:2", "turn:3"):
        await talk.turn(id)
    await turns.move("turn:1", "running")
    assert [turn.id for turn in await turns.take_queued(talk.id, "turn:1", 1)] == ["turn:2", "turn:3"]
    assert [turn.id for turn in await turns.take_queued(talk.id, "turn:1", 1)] == ["turn:2", "turn:3"]
    assert await turns.take_queued(talk.id, "turn:1", 2) == []
    assert await turns.queued(talk.id) == []


async def test_a_jobs_run_that_waits_is_not_taken_as_steering(db: Database, talk: Any, ann: str) -> None:
    turns = db.repository(TurnsRepository, ann)
    await talk.turn("turn:1")
    await turns.move("turn:1", "running")
    waiting: list[tuple[str, Channel]] = [("cron:news", "cron"), ("turn:found", "result"), ("turn:2", "chat")]
    for id, channel in waiting:
        await turns.create(NewTurn(id, talk.id, "hello", channel=channel, **PLAIN_TURN))
    assert [turn.id for turn in await turns.take_queued(talk.id, "turn:1", 1)] == ["turn:2"]
    assert [turn.id for turn in await turns.queued(talk.id)] == ["cron:news", "turn:found"]


async def test_the_engines_start_sees_everybodys_unfinished_turns(db: Database, talk: Any, ann: str, ben: str) -> None:
    await talk.turn("turn:1")
    other = await db.repository(ConversationsRepository, ben).create("orchestrator", "auto", is_title_tainted=False)
    await db.repository(TurnsRepository, ben).create(NewTurn("turn:2", other.id, "hi", state="running", **PLAIN_TURN))
    await talk.turn("turn:3")
    await db.repository(TurnsRepository, ann).move("turn:3", "done")
    assert {(turn.id, turn.owner_id) for turn in await db.repository(AllTurnsRepository).unfinished()} == {
        ("turn:1", ann),
        ("turn:2", ben),
    }


async def test_a_message_written_again_is_the_same_message(db: Database, talk: Any, ann: str) -> None:
    await talk.turn("turn:1", user("hello"), assistant("hi there"))
    messages = db.repository(MessagesRepository, ann)
    await messages.add("turn:1", 1, assistant("said differently by the second try"), False)
    await messages.add("turn:1", 1, assistant("a second one"), True, nth=1)
    kept = await messages.of_turn("turn:1")
    assert [one.message.text for one in kept] == ["hello", "hi there", "a second one"]
    assert [one.is_tainted for one in kept] == [False, False, True]


async def test_the_transcript_leaves_out_what_was_superseded(db: Database, talk: Any, ann: str) -> None:
    for number in (1, 2, 3):
        await talk.turn(f"turn:{number}", user(f"say {number}"), assistant(f"said {number}"))
    assert await db.repository(VersionsRepository, ann).drop_from(talk.id, 2) == ["turn:2", "turn:3"]
    await talk.turn("turn:4", user("say 4"))
    transcript = await db.repository(MessagesRepository, ann).of_conversation(talk.id)
    assert [one.message.text for one in transcript] == ["say 1", "said 1", "say 4"]
    assert [one.ordinal for one in transcript] == [1, 1, 4]
    before = await db.repository(MessagesRepository, ann).of_conversation(talk.id, before_ordinal=4)
    assert [one.message.text for one in before] == ["say 1", "said 1"]
    assert [turn.id for turn in await db.repository(TurnsRepository, ann).list(talk.id)] == ["turn:1", "turn:4"]
    assert len(await db.repository(TurnsRepository, ann).list(talk.id, True)) == 4
    assert [turn.id for turn in await db.repository(TurnsRepository, ann).list(talk.id, True, before=4, limit=2)] == [
        "turn:2",
        "turn:3",
    ]
