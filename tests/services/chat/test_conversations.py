import io
import json
import zipfile
from collections.abc import Awaitable, Callable

import pytest

from cortex.base.errors import NotFound, UserError
from cortex.base.messages import Message, Text, ToolCall, ToolResult, assistant, results, user
from cortex.base.user import User
from cortex.engine.hub import LocalHub
from cortex.services.chat.conversations import ConversationsService
from cortex.services.chat.several import SeveralChats
from cortex.storage.accounts import AccountsRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.db import Database
from cortex.storage.messages import MessagesRepository
from cortex.storage.summaries import SummariesRepository
from cortex.storage.turns import NewTurn, TurnsRepository
from cortex.storage.versions import VersionsRepository
from tests.plain_world import PLAIN_TURN
from tests.still_clock import StillClock

CALL = ToolCall(id="c1", name="task_create", arguments='{"title":"Milk"}')
TOOL_TURN = (
    user("add milk"),
    assistant("", CALL),
    results(ToolResult(call_id="c1", name="task_create", text="```\nAdded")),
    assistant("Milk is on the list."),
)

Say = Callable[..., Awaitable[None]]


@pytest.fixture
async def ann(db: Database) -> User:
    await db.repository(AccountsRepository).add("ann", "Ann", "admin", None, "Pacific/Auckland")
    return User(id="ann", name="Ann", rank="admin", time_zone="Pacific/Auckland")


@pytest.fixture
async def ben(db: Database) -> User:
    await db.repository(AccountsRepository).add("ben", "Ben", "member", None, "UTC")
    return User(id="ben", name="Ben", rank="member")


@pytest.fixture
def service(db: Database, clock: StillClock) -> ConversationsService:
    return ConversationsService(db, LocalHub(), clock)


@pytest.fixture
def several(db: Database, service: ConversationsService, clock: StillClock) -> SeveralChats:
    return SeveralChats(db=db, hub=LocalHub(), conversations=service, clock=clock)


@pytest.fixture
def say(db: Database, ann: User) -> Say:
    async def turn(conversation_id: str, id: str, *messages: Message, state: str = "done") -> None:
        said = messages or (user(f"say {id}"), assistant(f"said {id}"))
        async with db.transaction(ann.id) as repository:
            turns, log = repository(TurnsRepository), repository(ConversationsRepository)
            await turns.create(NewTurn(id, conversation_id, said[0].text, **PLAIN_TURN))
            await log.append(conversation_id, [("message", {"turn": id, "text": said[0].text}, id)])
            for number, message in enumerate(said):
                await repository(MessagesRepository).add(id, number, message, False)
            await log.append(
                conversation_id,
                [
                    ("tool.result", {"turn": id, "call": "c1", "state": "ok", "undo": "u1"}, id),
                    ("turn.end", {"turn": id, "state": "done"}, id),
                ],
            )
            await turns.move(id, state)  # type: ignore[arg-type]  # a state by its name

    return turn


async def test_conversations_stand_under_the_day_of_their_last_use_in_the_users_zone(
    service: ConversationsService, ann: User, clock: StillClock
) -> None:
    made = {}
    for title, days in (("old", 0), ("month", 250), ("week", 25), ("yesterday", 4), ("today", 1)):
        clock.forward(days=days)
        made[title] = (await service.new(ann)).id
        await service.rename(ann, made[title], title)
    await service.pin(ann, made["old"], True)
    shown = [(group.label, [one.title for one in group.conversations]) for group in await service.list(ann)]
    assert shown == [
        ("Pinned", ["old"]),
        ("Today", ["today"]),
        ("Yesterday", ["yesterday"]),
        ("Last 7 days", ["week"]),
        ("Last 30 days", ["month"]),
    ]
    clock.forward(minutes=60 * 3)  # 12:00 UTC is past midnight in Auckland
    assert (await service.list(ann))[1].label == "Yesterday"
    clock.forward(days=40)
    assert (await service.list(ann))[-1].label == "July 2027"


async def test_a_title_is_one_line_and_reaches_the_log(service: ConversationsService, ann: User, db: Database) -> None:
    id = (await service.new(ann)).id
    await service.rename(ann, id, "  My\n  garden " + "x" * 300)
    title = (await service.get(ann, id)).title
    assert title.startswith("My garden x")
    assert len(title) == 120
    assert [event.payload for event in await db.repository(ConversationsRepository, ann.id).events(id)] == [
        {"title": title}
    ]
    with pytest.raises(UserError):
        await service.rename(ann, id, " \n ")


async def test_a_deleted_conversation_comes_back(service: ConversationsService, ann: User) -> None:
    id = (await service.new(ann)).id
    await service.delete(ann, id)
    assert await service.list(ann) == []
    await service.restore(ann, id)
    assert [one.id for group in await service.list(ann) for one in group.conversations] == [id]


async def test_a_conversation_that_is_being_answered_is_not_deleted(
    service: ConversationsService, ann: User, say: Say
) -> None:
    id = (await service.new(ann)).id
    await say(id, "turn:1", state="running")
    with pytest.raises(UserError, match="Stop it first"):
        await service.delete(ann, id)


async def test_markdown_reads_like_the_conversation(
    service: ConversationsService, ann: User, say: Say, db: Database
) -> None:
    id = (await service.new(ann)).id
    await service.rename(ann, id, "Shopping")
    await say(id, "turn:1", *TOOL_TURN)
    await say(id, "turn:2", user("forget this"))
    await db.repository(VersionsRepository, ann.id).drop_from(id, 2)
    await say(id, "turn:3", user("go on"), state="stopped")
    assert await service.export_markdown(ann, id) == (
        "# Shopping\n\n2026-11-20 22:00, Cortex\n\n"
        "## You, 2026-11-20 22:00\n\nadd milk\n\n"
        'Used `task_create` with:\n\n```json\n{"title":"Milk"}\n```\n\n'
        "It gave:\n\n````\n```\nAdded\n````\n\n"
        "### Cortex\n\nMilk is on the list.\n\n"
        "## You, 2026-11-20 22:00\n\ngo on\n\n*Stopped.*\n"
    )


async def test_json_holds_turns_messages_and_the_log(service: ConversationsService, ann: User, say: Say) -> None:
    id = (await service.new(ann)).id
    await say(id, "turn:1", *TOOL_TURN)
    whole = json.loads(await service.export_json(ann, id))
    assert (whole["format"], whole["id"]) == ("cortex.conversation/1", id)
    (turn,) = whole["turns"]
    assert [message["speaker"] for message in turn["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert [event["seq"] for event in whole["events"]] == [1, 2, 3]


async def test_a_branch_goes_on_from_its_turn_under_new_ids(
    service: ConversationsService, ann: User, say: Say, db: Database
) -> None:
    id = (await service.new(ann, "coder", "all")).id
    await service.rename(ann, id, "Garden")
    await say(id, "turn:1")
    await say(id, "turn:2", user("dropped"))
    await db.repository(VersionsRepository, ann.id).drop_from(id, 2)
    await say(id, "turn:3")
    await say(id, "turn:4")
    await db.repository(SummariesRepository, ann.id).add(id, 1, "we began", True)
    before = await service.export_json(ann, id)

    branch = await service.branch(ann, id, "turn:3")

    head = await service.get(ann, branch)
    assert (head.title, head.role, head.mode, head.parent_id) == ("Garden (branch)", "coder", "all", id)
    turns = await db.repository(TurnsRepository, ann.id).list(branch, include_dropped=True)
    assert [turn.text for turn in turns] == ["say turn:1", "say turn:3"]
    assert not {turn.id for turn in turns} & {"turn:1", "turn:3"}
    messages = await db.repository(MessagesRepository, ann.id).of_conversation(branch)
    assert [one.message.parts for one in messages] == [
        (Text(text=text),) for text in ("say turn:1", "said turn:1", "say turn:3", "said turn:3")
    ]
    events = await db.repository(ConversationsRepository, ann.id).events(branch)
    assert [event.seq for event in events] == list(range(1, 7)) == list(range(1, head.seq + 1))
    assert {event.turn_id for event in events} == {turn.id for turn in turns}
    assert all(event.payload["turn"] == event.turn_id and event.payload.get("undo") is None for event in events)
    summary = await db.repository(SummariesRepository, ann.id).latest(branch)
    assert summary is not None
    assert (summary.text, summary.is_tainted) == ("we began", True)
    assert await service.export_json(ann, id) == before

    await say(branch, "turn:9")
    assert (await db.repository(TurnsRepository, ann.id).get("turn:9")).ordinal == 4


async def test_no_branch_from_an_answer_that_is_still_written(
    service: ConversationsService, ann: User, say: Say
) -> None:
    id, other = (await service.new(ann)).id, (await service.new(ann)).id
    await say(id, "turn:1", state="running")
    await say(other, "turn:2")
    with pytest.raises(UserError, match="still being written"):
        await service.branch(ann, id, "turn:1")
    with pytest.raises(NotFound):
        await service.branch(ann, id, "turn:2")
    assert len((await service.list(ann))[0].conversations) == 2


async def test_another_user_reaches_nothing(service: ConversationsService, ann: User, ben: User, say: Say) -> None:
    id = (await service.new(ann)).id
    await say(id, "turn:1", user("garden"))
    assert await service.list(ben) == []
    for attempt in (
        service.get(ben, id),
        service.rename(ben, id, "mine"),
        service.delete(ben, id),
        service.restore(ben, id),
        service.pin(ben, id, True),
        service.export_markdown(ben, id),
        service.export_json(ben, id),
        service.branch(ben, id, "turn:1"),
    ):
        with pytest.raises(NotFound):
            await attempt


async def listed(service: ConversationsService, user: User, *, is_archived: bool = False) -> set[str]:
    return {one.id for group in await service.list(user, is_archived=is_archived) for one in group.conversations}


async def test_archived_chats_leave_the_list_until_somebody_writes_there(
    service: ConversationsService, several: SeveralChats, ann: User, say: Say, clock: StillClock
) -> None:
    a, b, c = [(await service.new(ann)).id for _ in range(3)]
    await service.pin(ann, a, True)
    await several.archive(ann, [a])
    clock.forward(minutes=1)
    done = await several.archive(ann, [a, b])
    assert done.count == 1  # the other one was archived before
    assert (await listed(service, ann), await listed(service, ann, is_archived=True)) == ({c}, {a, b})
    assert await several.undo(ann, "archive", done.at) == 1
    assert await listed(service, ann) == {b, c}
    with pytest.raises(UserError, match="nothing left to undo"):
        await several.undo(ann, "archive", done.at)
    await say(a, "turn:1")
    assert await listed(service, ann) == {a, b, c}


async def test_one_press_deletes_several_and_one_brings_them_back(
    service: ConversationsService, several: SeveralChats, ann: User, ben: User, say: Say, clock: StillClock
) -> None:
    before, a, b, busy = [(await service.new(ann)).id for _ in range(4)]
    theirs = (await service.new(ben)).id
    await say(busy, "turn:1", state="running")
    await service.delete(ann, before)
    clock.forward(minutes=1)
    done = await several.delete(ann, [a, b, busy, theirs, before])
    assert (done.count, done.left) == (2, 1)
    assert await listed(service, ann) == {busy}
    assert await listed(service, ben) == {theirs}
    with pytest.raises(UserError):
        await several.undo(ben, "delete", done.at)
    assert await several.undo(ann, "delete", done.at) == 2
    assert await listed(service, ann) == {a, b, busy}


async def test_several_are_exported_each_under_a_name_of_its_own(
    service: ConversationsService, several: SeveralChats, ann: User, ben: User, say: Say
) -> None:
    ids = [(await service.new(ann)).id for _ in range(3)]
    for id, title in zip(ids, ("Plan: a/b", "Plan  a b", "../.."), strict=True):
        await service.rename(ann, id, title)
    await say(ids[0], "turn:1", user("garden"))
    packed = zipfile.ZipFile(io.BytesIO(await several.export(ann, ids)))
    assert sorted(packed.namelist()) == ["Chat.md", "Plan a b (2).md", "Plan a b.md"]
    assert any("garden" in packed.read(name).decode() for name in packed.namelist())
    with pytest.raises(NotFound):
        await several.export(ben, ids)
    with pytest.raises(UserError, match="at least one"):
        await several.pin(ann, [])
    assert await several.pin(ann, ids) == 3
