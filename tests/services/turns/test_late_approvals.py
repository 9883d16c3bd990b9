"""A request for approval lives as long as it says, whoever looks, whatever the person does meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import update

from cortex.base.errors import Conflict, NotFound
from cortex.services.turns.approval_log import CLOSED, NOBODY, scope_of
from cortex.services.turns.approvals import APPROVAL_HOURS
from cortex.services.turns.end import WAITS
from cortex.services.turns.queue import waiting_in_the_way
from cortex.storage.approvals import ApprovalsRepository, GrantsRepository
from cortex.storage.calls import CallsRepository
from cortex.storage.messages import MessagesRepository
from cortex.storage.notices import NoticesRepository
from cortex.storage.schema import ApprovalTable
from cortex.storage.turns import NewTurn, TurnRow, TurnsRepository
from tests.e2e.test_calls_wire import connect
from tests.living_house import LivingHouse, living_house
from tests.plain_world import PLAIN_TURN
from tests.scripted_server import ScriptedServer, Use, rule
from tests.still_clock import StillClock

SHELL = "run `echo tidied up` in the shell"
TIDY = Use("shell_exec", {"command": "echo tidied up"})


@pytest.fixture
def model(request: pytest.FixtureRequest) -> Iterator[ScriptedServer]:
    rules = (
        rule("remind", "You can have a reminder."),
        rule("I have now allowed", "Not yet.", "Tidied."),
        rule("shell", TIDY),
    )
    with ScriptedServer(*rules, cache_minimum_tokens=1) as server:
        yield server
        assert server.problems == []
        assert server.cache_breaks() == [] or request.node.get_closest_marker("moves_cache_prefix")


ROW: dict[str, Any] = dict.fromkeys(TurnRow.__struct_fields__)


class Chat:
    """One chat of a scripted model whose first call asks."""

    def __init__(self, house: LivingHouse, cid: str) -> None:
        self.house, self.cid, self.cortex = house, cid, house.cortex

    def rows(self, kind: type[Any]) -> Any:
        return self.cortex.runtime.db.repository(kind, self.house.admin.id)

    async def send(self, text: str) -> str:
        return await self.cortex.chat.send_message(self.house.admin, self.cid, text)

    async def ask(self) -> tuple[str, str]:
        """A turn that waits, and its question."""
        turn_id = await self.send(SHELL)
        asked = await self.house.until(self.cid, "approval", state="asked", turn=turn_id)
        return turn_id, asked.payload["approval"]

    async def until_ended(self, turn_id: str) -> None:
        await self.house.until(self.cid, "turn.end", turn=turn_id)

    async def last(self) -> TurnRow:
        turns = self.cortex.runtime.db.repository(TurnsRepository, self.house.admin.id)
        return (await turns.list(self.cid))[-1]

    async def calls(self) -> list[tuple[str, str, str]]:
        turns = await self.rows(TurnsRepository).list(self.cid)
        rows = [row for turn in turns for row in await self.rows(CallsRepository).of_turn(turn.id)]
        return [(row.name, row.state, row.text) for row in rows]

    async def answer(self, approval: str, choice: str = "once") -> None:
        await self.cortex.approvals.answer(self.house.admin, approval, choice)

    async def state(self, approval: str) -> str:
        return str((await self.rows(ApprovalsRepository).get(approval)).state)


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
async def chat(tmp_path: Path, model: ScriptedServer, clock: StillClock) -> AsyncIterator[Chat]:
    async with living_house(tmp_path / "home", clock=clock) as house:
        await connect(house, model)
        yield Chat(house, await house.conversation())


async def test_it_lives_for_twelve_hours_though_its_page_is_open(chat: Chat) -> None:
    with chat.cortex.streams.watching(chat.house.admin.id, chat.cid):
        _, approval = await chat.ask()
    row = await chat.rows(ApprovalsRepository).get(approval)
    assert row.expires_at - row.created_at == timedelta(hours=APPROVAL_HOURS)
    await chat.answer(approval, "deny")


async def test_a_message_sent_meanwhile_gets_its_own_answer_and_the_yes_still_works(chat: Chat) -> None:
    first, approval = await chat.ask()
    second = await chat.send("remind me of the bread")
    await chat.until_ended(second)
    assert await chat.state(approval) == "asked"
    said = [row.message for row in await chat.rows(MessagesRepository).of_turn(first)]
    assert [part.text for message in said if message.speaker == "tool" for part in message.parts] == [WAITS]
    await chat.answer(approval)
    third = await chat.last()
    await chat.until_ended(third.id)
    assert [(name, state) for name, state, _ in await chat.calls()] == [
        ("shell_exec", "refused"),
        ("shell_exec", "done"),
    ]
    assert await chat.state(approval) == "used"
    assert (await chat.rows(MessagesRepository).of_turn(third.id))[-1].message.text == "Tidied."


async def test_each_of_several_messages_is_answered_and_edited_arguments_are_what_runs(chat: Chat) -> None:
    _, approval = await chat.ask()
    for text in ("remind me of the bread", "remind me of the milk"):
        await chat.until_ended(await chat.send(text))
    await chat.cortex.call_changes.allow(chat.house.admin, approval, '{"command": "echo edited"}')
    made = await chat.last()
    await chat.until_ended(made.id)
    calls = await chat.rows(CallsRepository).of_turn(made.id)
    assert [(row.state, "echo edited" in row.arguments) for row in calls] == [("done", True)]
    assert "edited" in calls[0].text


async def test_an_answer_while_another_turn_runs_comes_after_it_and_a_second_answer_is_refused(chat: Chat) -> None:
    _, approval = await chat.ask()
    other = await chat.send(SHELL + " please")
    await chat.house.until(chat.cid, "approval", state="asked", turn=other)
    await chat.answer(approval)
    with pytest.raises(Conflict, match="allowed before"):
        await chat.answer(approval, "deny")
    await chat.until_ended(other)  # it is set aside in its turn: what was allowed goes on
    made = await chat.last()
    await chat.until_ended(made.id)
    assert [row.state for row in await chat.rows(CallsRepository).of_turn(made.id)] == ["done"]
    assert len(await chat.rows(ApprovalsRepository).pending()) == 1


async def test_a_no_after_the_turn_runs_nothing_and_the_next_message_tells_the_model(
    chat: Chat, model: ScriptedServer, clock: StillClock
) -> None:
    _, approval = await chat.ask()
    await chat.until_ended(await chat.send("remind me of the bread"))
    clock.forward(seconds=1)
    await chat.answer(approval, "deny")
    await chat.until_ended(await chat.send("remind me of the milk"))
    assert [state for _, state, _ in await chat.calls()] == ["refused"]
    assert "user denied it" in str(model.log[-1].body)


@pytest.mark.moves_cache_prefix(reason="after twelve hours nothing is cached any more")
async def test_nobody_answers_for_twelve_hours_and_it_is_asked_again_once(chat: Chat, clock: StillClock) -> None:
    first, approval = await chat.ask()
    with pytest.raises(Conflict, match="does not need"):
        await chat.cortex.approvals.ask_again(chat.house.admin, approval)
    await chat.until_ended(await chat.send("remind me of the bread"))
    clock.forward(minutes=APPROVAL_HOURS * 60 + 1)
    await chat.cortex.approval_timer.look()
    assert await chat.state(approval) == "expired"
    assert [text for *_, text in await chat.calls()] == [NOBODY]
    with pytest.raises(Conflict, match="ran out or was closed"):
        await chat.answer(approval)
    assert await chat.cortex.approvals.ask_again(chat.house.admin, approval) == chat.cid
    made = await chat.last()
    asked = await chat.house.until(chat.cid, "approval", state="asked", turn=made.id)
    assert "echo tidied up" in asked.payload["detail"]
    with pytest.raises(Conflict, match="asked again before"):
        await chat.cortex.approvals.ask_again(chat.house.admin, approval)
    with pytest.raises(NotFound):
        await chat.cortex.approvals.ask_again(chat.house.member, approval)
    await chat.answer(asked.payload["approval"])
    await chat.until_ended(made.id)
    assert [row.state for row in await chat.rows(CallsRepository).of_turn(made.id)] == ["done"]
    assert [row.state for row in await chat.rows(CallsRepository).of_turn(first)] == ["refused"]


async def test_a_stop_closes_it_and_it_can_be_asked_again(chat: Chat) -> None:
    _, approval = await chat.ask()
    await chat.cortex.chat.stop(chat.house.admin, chat.cid)
    assert await chat.state(approval) == "expired"
    await chat.cortex.approvals.ask_again(chat.house.admin, approval)
    made = await chat.last()
    await chat.house.until(chat.cid, "approval", state="asked", turn=made.id)


async def test_a_deleted_chat_asks_nothing_any_more(chat: Chat) -> None:
    _, approval = await chat.ask()
    await chat.until_ended(await chat.send("remind me of the bread"))
    await chat.cortex.conversations.delete(chat.house.admin, chat.cid)
    assert await chat.rows(ApprovalsRepository).pending() == []
    assert [text for *_, text in await chat.calls()] == [CLOSED], "nobody was too late"
    with pytest.raises(Conflict, match="ran out or was closed"):
        await chat.answer(approval)


@pytest.mark.moves_cache_prefix(reason="after twelve hours nothing is cached any more")
@pytest.mark.parametrize("meanwhile", ["a permission", "nothing asks"])
async def test_who_asks_again_is_asked_whatever_would_let_it_run_by_now(
    tmp_path: Path, model: ScriptedServer, clock: StillClock, meanwhile: str
) -> None:
    """The button says what it does: it never runs the call."""
    async with living_house(tmp_path / "home", clock=clock) as house:
        await connect(house, model)
        await house.cortex.tool_settings.change(
            house.admin, "scratch_write", is_on=True, sending="needed", asks_first=True
        )
        model.rules = [rule("jot", Use("scratch_write", {"text": "tea"}, is_blind=True)), rule("hello", "Hello.")]
        chat = Chat(house, await house.conversation())
        jot = await chat.send("jot it down")
        approval = (await house.until(chat.cid, "approval", state="asked", turn=jot)).payload["approval"]
        await chat.until_ended(await chat.send("hello"))
        clock.forward(minutes=APPROVAL_HOURS * 60 + 1)
        await chat.cortex.approval_timer.look()
        if meanwhile == "a permission":
            row = await chat.rows(ApprovalsRepository).get(approval)
            scope = scope_of(row.destination, row.detail, row.arguments_hash)
            await chat.rows(GrantsRepository).add(row.tool, scope, chat.cid, clock() + timedelta(hours=1))
        else:
            await house.cortex.tool_settings.change(
                house.admin, "scratch_write", is_on=True, sending="needed", asks_first=False
            )
        await chat.cortex.approvals.ask_again(house.admin, approval)
        made = await chat.last()
        asked = await house.until(chat.cid, "approval", state="asked", turn=made.id)
        assert [row.state for row in await chat.rows(CallsRepository).of_turn(made.id)] == ["decided"]
        await chat.answer(asked.payload["approval"])
        await house.until(chat.cid, "tool.result", turn=made.id, state="ok")


@pytest.mark.moves_cache_prefix(reason="a tool is switched off")
async def test_a_right_taken_away_meanwhile_holds_for_a_late_yes(chat: Chat) -> None:
    _, approval = await chat.ask()
    await chat.until_ended(await chat.send("remind me of the bread"))
    await chat.cortex.tool_settings.change(
        chat.house.admin, "shell_exec", is_on=False, sending="needed", asks_first=False
    )
    await chat.answer(approval)
    made = await chat.last()
    await chat.until_ended(made.id)
    assert [state for _, state, _ in await chat.calls()] == ["refused", "refused"]


async def test_chats_that_wait_leave_a_place_to_talk_in(chat: Chat) -> None:
    waiting = [await chat.ask()]
    for _ in range(3):
        other = Chat(chat.house, await chat.house.conversation())
        waiting.append(await other.ask())
    talk = Chat(chat.house, await chat.house.conversation())
    await talk.until_ended(await talk.send("remind me of the bread"))
    assert [await chat.state(approval) for _, approval in waiting] == ["asked"] * 4


async def notices(chat: Chat) -> list[str]:
    return [row.subject_id for row in await chat.rows(NoticesRepository).list() if row.kind == "approval"]


async def test_a_request_is_notified_of_once_when_nobody_has_looked_at_it_for_a_minute(
    chat: Chat, clock: StillClock
) -> None:
    with chat.cortex.streams.watching(chat.house.admin.id, chat.cid):  # open, and nobody need be in front of it
        _, approval = await chat.ask()
    for _ in range(5):
        clock.forward(seconds=50)
        await chat.cortex.approvals.seen(chat.house.admin, approval)
        await chat.cortex.approval_timer.look()
    assert await notices(chat) == []
    clock.forward(seconds=61)
    with pytest.raises(NotFound):  # another person's look does not count
        await chat.cortex.approvals.seen(chat.house.member, approval)
    await asyncio.gather(*(chat.cortex.approval_timer.look() for _ in range(3)))  # as several processes do
    assert await notices(chat) == [approval]
    clock.forward(seconds=61)
    await chat.cortex.approval_timer.look()
    assert await notices(chat) == [approval]


async def test_what_was_answered_is_not_notified_of(chat: Chat, clock: StillClock) -> None:
    with chat.cortex.streams.watching(chat.house.admin.id, chat.cid):
        turn_id, approval = await chat.ask()
    await chat.answer(approval, "deny")
    await chat.until_ended(turn_id)
    clock.forward(seconds=61)
    await chat.cortex.approval_timer.look()
    assert await notices(chat) == []


async def test_a_notice_that_was_due_while_cortex_was_down_comes_once_after_the_start(
    tmp_path: Path, clock: StillClock
) -> None:
    async with living_house(tmp_path / "home", clock=clock) as house:
        chat = Chat(house, await house.conversation())
        with chat.cortex.streams.watching(house.admin.id, chat.cid):
            _, approval = await chat.ask()
    clock.forward(seconds=61)
    for _ in range(2):
        async with living_house(tmp_path / "home", clock=clock) as house:
            chat = Chat(house, chat.cid)
            await chat.cortex.approval_timer.look()
            assert await notices(chat) == [approval]


async def test_what_a_killed_process_left_undone_is_done_by_the_next_look(chat: Chat) -> None:
    first, approval = await chat.ask()
    await chat.rows(TurnsRepository).create(
        NewTurn("turn:said", chat.cid, "remind me", **PLAIN_TURN)
    )  # the message is committed, and its process dies
    await chat.cortex.turn_queue.settle_stalled()
    await chat.house.until(chat.cid, "turn.end", turn=first, is_set_aside=True)
    await chat.until_ended("turn:said")
    dying = replace(chat.cortex.approvals, begin=nobody)
    await dying.answer(chat.house.admin, approval, "once")  # committed, and its process dies
    await chat.cortex.turn_queue.settle_stalled()
    made = await chat.last()
    await chat.until_ended(made.id)
    assert [row.state for row in await chat.rows(CallsRepository).of_turn(made.id)] == ["done"]
    assert await chat.cortex.runtime.runner.status(first) == "cancelled"


async def nobody(row: TurnRow) -> None:
    """Start nothing."""


def test_turns_of_jobs_give_way_to_a_message_and_those_of_programs_do_not() -> None:
    waiting = TurnRow(**{**ROW, "id": "turn:job", "state": "waiting", "channel": "cron", "conversation_id": "c"})
    said = replace(waiting, id="turn:said", state="queued", channel="chat")
    program = replace(waiting, id="turn:api", channel="api")
    assert [row.id for row in waiting_in_the_way([waiting, said])] == ["turn:job"]
    assert waiting_in_the_way([program, said]) == []
    assert waiting_in_the_way([waiting, replace(said, channel="cron")]) == []


async def test_a_late_yes_to_what_is_shown_otherwise_by_now_asks_anew(chat: Chat) -> None:
    """What a call would do is looked up when it asks: hours later the same words may mean another thing."""
    _, approval = await chat.ask()
    await chat.until_ended(await chat.send("remind me of the bread"))
    async with chat.cortex.runtime.db.session_scope() as session:
        await session.execute(update(ApprovalTable).values(detail="rm the one file that you were shown"))
    await chat.answer(approval)
    made = await chat.last()
    await chat.house.until(chat.cid, "approval", state="asked", turn=made.id)
    assert [row.state for row in await chat.rows(CallsRepository).of_turn(made.id)] == ["decided"]
    assert await chat.state(approval) == "allowed"
