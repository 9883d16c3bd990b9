import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cortex.base.errors import Conflict, NotFound, UserError
from cortex.base.events import Event
from cortex.base.messages import Text
from cortex.storage.calls import CallsRepository
from cortex.storage.messages import MessagesRepository
from cortex.storage.tasks import TasksRepository
from cortex.storage.turns import TurnsRepository
from tests.living_house import LivingHouse, living_house
from tests.patience import PATIENCE_S
from tests.scripted_server import ScriptedServer, Use, rule


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path) as opened:
        yield opened


@pytest.fixture
async def slow_house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path, offline_delay_ms=120) as opened:
        yield opened


async def test_a_message_becomes_a_task_and_every_step_is_told(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.say(cid, "add milk and eggs to my shopping list")
    assert [(task.title, task.list_name) for task in await house.cortex.tasks.list(house.admin)] == [
        ("milk", "shopping"),
        ("eggs", "shopping"),
    ]
    kinds = [event.kind for event in await house.events(cid)]
    expected = ["message", "title", "turn.start", "selection", "usage", "tool.call", "tool.call", "tool.result"]
    assert kinds[:8] == expected
    assert kinds[-1] == "turn.end"


async def test_the_log_is_numbered_without_gaps(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.say(cid, "add milk to my shopping list")
    await house.say(cid, "hello")
    assert [event.seq for event in await house.events(cid)] == list(range(1, len(await house.events(cid)) + 1))


async def test_chat_only_sends_no_tool_and_runs_none(house: LivingHouse) -> None:
    cid = await house.conversation()
    turn_id = await house.say(cid, "add milk to my shopping list", mode="chat")
    assert await house.events(cid, "tool.call") == []
    assert (await house.cortex.chat.receipt(house.admin, turn_id))["sent"] == []


async def test_undo_takes_the_task_back_once(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.say(cid, "add milk to my shopping list")
    undo_id = (await house.events(cid, "tool.result"))[0].payload["undo"]
    await house.cortex.undo.undo(house.admin, undo_id)
    assert await house.cortex.tasks.list(house.admin) == []
    assert (await house.events(cid, "undo"))[0].payload["state"] == "undone"
    with pytest.raises(Conflict):
        await house.cortex.undo.undo(house.admin, undo_id)


async def test_redo_does_it_again_and_it_counts_as_done(house: LivingHouse) -> None:
    cid = await house.conversation()
    turn_id = await house.say(cid, "add milk to my shopping list")
    undo_id = (await house.events(cid, "tool.result"))[0].payload["undo"]
    (task,) = await house.cortex.tasks.list(house.admin)
    for standing in (0, 1, 0, 1):
        await house.cortex.undo.undo(house.admin, undo_id)
        undo_id = (await house.events(cid, "undo"))[-1].payload["next"]
        assert len(await house.rows(CallsRepository).standing([turn_id])) == standing
    (again,) = await house.cortex.tasks.list(house.admin)
    assert (again.id, again.title, again.list_name) == (task.id, task.title, task.list_name)
    states = [event.payload["state"] for event in await house.events(cid, "undo")]
    assert states == ["undone", "redone", "undone", "redone"]


async def test_what_was_changed_since_is_not_taken_back_and_says_so_each_time(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.say(cid, "add milk to my shopping list")
    undo_id = (await house.events(cid, "tool.result"))[0].payload["undo"]
    (task,) = await house.cortex.tasks.list(house.admin)
    await house.rows(TasksRepository).complete(task.id)
    for _ in range(2):
        with pytest.raises(Conflict, match="has changed since"):
            await house.cortex.undo.undo(house.admin, undo_id)
    assert [event.payload["state"] for event in await house.events(cid, "undo")] == ["refused"] * 2


async def test_no_earlier_message_is_edited_while_an_answer_is_written(house: LivingHouse) -> None:
    cid = await house.conversation()
    first = await house.say(cid, "hello")
    turn = await house.cortex.chat.send_message(house.admin, cid, "run `echo hi` in the shell")
    await house.until(cid, "approval", turn=turn, state="asked")
    with pytest.raises(Conflict, match="is being written"):
        await house.cortex.chat.edit(house.admin, first, "hello again")
    assert await house.events(cid, "turn.drop") == []
    await house.cortex.chat.stop(house.admin, cid)


async def test_another_users_undo_is_not_to_be_found(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.say(cid, "add milk to my shopping list")
    undo_id = (await house.events(cid, "tool.result"))[0].payload["undo"]
    with pytest.raises(NotFound):
        await house.cortex.undo.undo(house.member, undo_id)


@pytest.mark.parametrize(("choice", "state"), [("deny", "refused"), ("once", "ok")], ids=str)
async def test_a_shell_command_runs_only_on_the_admins_word(house: LivingHouse, choice: str, state: str) -> None:
    cid = await house.conversation()
    await house.cortex.chat.send_message(house.admin, cid, "run `echo hi-$((40+2))` in the shell")
    asked = await house.until(cid, "approval", state="asked")
    assert asked.payload["detail"] == "echo hi-$((40+2))"
    await house.cortex.approvals.answer(house.admin, asked.payload["approval"], choice)
    result = await house.until(cid, "tool.result")
    assert result.payload["state"] == state
    assert ("hi-42" in result.payload["text"]) == (state == "ok")


async def test_an_approval_answers_once_and_to_its_owner_alone(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.cortex.chat.send_message(house.admin, cid, "run `df -h` in the shell")
    approval = (await house.until(cid, "approval", state="asked")).payload["approval"]
    with pytest.raises(NotFound):
        await house.cortex.approvals.answer(house.member, approval, "once")
    await house.cortex.approvals.answer(house.admin, approval, "deny")
    with pytest.raises(Conflict):
        await house.cortex.approvals.answer(house.admin, approval, "once")


async def test_the_call_that_runs_uses_its_approval_up(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.cortex.chat.send_message(house.admin, cid, "run `echo once` in the shell")
    approval = (await house.until(cid, "approval", state="asked")).payload["approval"]
    await house.cortex.approvals.answer(house.admin, approval, "once")
    assert (await house.until(cid, "tool.result")).payload["state"] == "ok"
    with pytest.raises(Conflict, match="allowed before"):
        await house.cortex.approvals.answer(house.admin, approval, "once")


async def test_a_no_is_what_the_model_reads_in_place_of_the_result(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    scripted.rules = [rule("shell", Use("shell_exec", {"command": "df -h"}), "Then not.")]
    await house.connect(scripted)
    cid = await house.conversation()
    await house.cortex.chat.send_message(house.admin, cid, "run `df -h` in the shell")
    approval = (await house.until(cid, "approval", state="asked")).payload["approval"]
    await house.cortex.approvals.answer(house.admin, approval, "deny")
    await house.until(cid, "turn.end")
    read = scripted.log[-1].body["messages"][-1]
    assert read["role"] == "tool"
    assert "denied this call" in read["content"]


async def test_a_grant_covers_the_same_call_in_this_conversation_and_no_other(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.cortex.chat.send_message(house.admin, cid, "every weekday at 7 sum up my tasks")
    asked = await house.until(cid, "approval", state="asked")
    await house.cortex.approvals.answer(house.admin, asked.payload["approval"], "conversation")
    await house.until(cid, "turn.end")
    granted = await house.cortex.approvals.grants(house.admin)
    assert [(grant.tool, grant.conversation_id) for grant in granted] == [("cron_add", cid)]
    with pytest.raises(NotFound):
        await house.cortex.approvals.revoke(house.member, granted[0].id)
    await house.say(cid, "every weekday at 7 sum up my tasks")
    assert len(await house.events(cid, "approval")) == 2
    turn = await house.cortex.chat.send_message(house.admin, cid, "every weekday at 8 sum up my tasks")
    assert (await house.until(cid, "approval", turn=turn)).payload["state"] == "asked"
    await house.cortex.chat.stop(house.admin, cid)
    await house.cortex.approvals.revoke(house.admin, granted[0].id)
    assert await house.cortex.approvals.grants(house.admin) == []
    other = await house.conversation()
    await house.cortex.chat.send_message(house.admin, other, "every weekday at 7 sum up my tasks")
    await house.until(other, "approval", state="asked")


async def test_no_grant_is_offered_for_what_brings_text_from_outside(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.cortex.chat.send_message(house.admin, cid, "run `echo one` in the shell")
    asked = await house.until(cid, "approval", state="asked")
    assert asked.payload["can_be_granted"] is False
    with pytest.raises(UserError, match="each call needs approval"):
        await house.cortex.approvals.answer(house.admin, asked.payload["approval"], "conversation")
    await house.cortex.approvals.answer(house.admin, asked.payload["approval"], "once")
    await house.until(cid, "turn.end")


async def test_a_question_closes_with_its_stopped_turn(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.cortex.chat.send_message(house.admin, cid, "run `df -h` in the shell")
    approval = (await house.until(cid, "approval", state="asked")).payload["approval"]
    await house.cortex.chat.stop(house.admin, cid)
    assert (await house.events(cid, "approval"))[-1].payload["state"] == "expired"
    assert await house.cortex.approvals.pending(house.admin) == []
    with pytest.raises(Conflict):
        await house.cortex.approvals.answer(house.admin, approval, "once")


async def test_a_member_has_no_shell(house: LivingHouse) -> None:
    cid = await house.conversation(house.member)
    await house.say(cid, "run `df -h` in the shell", user=house.member)
    names = [event.payload["name"] for event in await house.events(cid, "tool.call", user=house.member)]
    assert "shell_exec" not in names
    assert await house.events(cid, "approval", user=house.member) == []


async def test_stop_ends_the_turn_and_keeps_what_was_said(slow_house: LivingHouse) -> None:
    cid = await slow_house.conversation()
    await slow_house.cortex.chat.send_message(slow_house.admin, cid, "hello")
    await slow_house.until(cid, "part.start")
    async with asyncio.timeout(PATIENCE_S):
        while not any(part.text for part in slow_house.cortex.hub.open_parts(cid)):  # noqa: ASYNC110 - it is being written
            await asyncio.sleep(0.01)
    await slow_house.cortex.chat.stop(slow_house.admin, cid)
    end = (await slow_house.events(cid, "turn.end"))[0].payload
    part = (await slow_house.events(cid, "part.end"))[0].payload
    assert end["state"] == "stopped"
    assert part["is_partial"]
    assert part["text"]
    await slow_house.cortex.chat.send_message(slow_house.admin, cid, "add tea to my shopping list")
    await slow_house.until(cid, "tool.result", state="ok")


async def test_a_message_sent_while_a_turn_runs_is_answered_after_it(slow_house: LivingHouse) -> None:
    cid = await slow_house.conversation()
    await slow_house.cortex.chat.send_message(slow_house.admin, cid, "hello")
    second = await slow_house.cortex.chat.send_message(slow_house.admin, cid, "hello again")
    await slow_house.until(cid, "turn.end", turn=second)
    order = [event.payload["turn"] for event in await slow_house.events(cid, "turn.start", "turn.end")]
    assert order == [order[0], order[0], second, second]


async def test_an_edit_sets_the_old_turn_and_its_followers_aside(house: LivingHouse) -> None:
    cid = await house.conversation()
    first = await house.say(cid, "hello")
    second = await house.say(cid, "hello again")
    new = await house.cortex.chat.edit(house.admin, first, "add tea to my shopping list")
    await house.until(cid, "turn.end", turn=new)
    assert (await house.events(cid, "turn.drop"))[0].payload["turns"] == [first, second]
    stored = await house.rows(MessagesRepository).of_conversation(cid)
    assert {row.turn_id for row in stored} == {new}


async def test_a_new_try_sends_the_same_words_again(house: LivingHouse) -> None:
    cid = await house.conversation()
    first = await house.say(cid, "hello")
    new = await house.cortex.chat.again(house.admin, first)
    await house.until(cid, "turn.end", turn=new)
    row = await house.rows(TurnsRepository).get(new)
    assert row.text == "hello"


async def test_a_new_try_reads_what_the_earlier_one_did_and_what_was_taken_back_no_more(house: LivingHouse) -> None:
    async def behind(turn_id: str) -> str:
        rows = await house.rows(MessagesRepository).of_turn(turn_id)
        return "\n\n".join(part.text for part in rows[0].message.parts[1:] if isinstance(part, Text))

    cid = await house.conversation()
    first = await house.say(cid, "add milk to my shopping list")
    undo_id = (await house.events(cid, "tool.result"))[0].payload["undo"]
    second = await house.cortex.chat.again(house.admin, first, mode="chat")
    await house.until(cid, "turn.end", turn=second)
    assert "set aside" in await behind(second)
    assert '"title":"milk"' in await behind(second)
    assert "[from outside]" not in await behind(second)
    stands = "An earlier version did this already, and it was kept: Add milk to shopping."
    assert [event.payload["text"] for event in await house.events(cid, "notice")] == [stands]
    await house.cortex.undo.undo(house.admin, undo_id)
    third = await house.cortex.chat.edit(house.admin, second, "add bread to my shopping list")
    await house.until(cid, "turn.end", turn=third)
    assert "Done already" not in await behind(third)


@pytest.mark.parametrize(
    ("text", "rounds"), [("", None), ("   ", None), ("x" * 32_001, None), ("hi", 0), ("hi", 26)], ids=str
)
async def test_a_message_that_cannot_be_sent_is_refused_and_leaves_nothing(
    house: LivingHouse, text: str, rounds: int | None
) -> None:
    cid = await house.conversation()
    with pytest.raises(UserError):
        await house.cortex.chat.send_message(house.admin, cid, text, max_rounds=rounds)
    assert await house.events(cid) == []


async def test_another_users_conversation_is_not_to_be_found(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.say(cid, "hello")
    with pytest.raises(NotFound):
        await house.cortex.chat.send_message(house.member, cid, "hello")
    with pytest.raises(NotFound):
        await house.cortex.chat.log(house.member, cid)
    with pytest.raises(NotFound):
        await house.cortex.chat.stop(house.member, cid)


async def test_streams_and_turns_end_when_access_ends(slow_house: LivingHouse) -> None:
    cid = await slow_house.conversation(slow_house.member)
    await slow_house.cortex.chat.send_message(slow_house.member, cid, "hello")
    seen: list[Event] = []

    async def watch() -> None:
        async for events, _ in slow_house.cortex.chat.follow(slow_house.member, cid, 0):
            seen.extend(events)

    watcher = asyncio.create_task(watch())
    await slow_house.until(cid, "part.start", user=slow_house.member)
    await slow_house.cortex.accounts.set_active("bob", False)
    await asyncio.wait_for(watcher, PATIENCE_S)
    assert "part.start" in [event.kind for event in seen]


async def test_a_long_conversation_opens_by_its_newest_turns(house: LivingHouse) -> None:
    cid = await house.conversation()
    turns = [await house.say(cid, f"hello {number}", mode="chat") for number in range(5)]
    page = await house.cortex.chat.log(house.admin, cid, turns=2)
    above = await house.cortex.chat.log(house.admin, cid, turns=2, before=page.earlier)
    assert {event.turn_id for event in page.events} - {None} == set(turns[3:])
    assert {event.turn_id for event in above.events} - {None} == set(turns[1:3])


async def test_a_page_holds_the_turn_that_runs_however_many_messages_wait_behind_it(slow_house: LivingHouse) -> None:
    cid, chat = await slow_house.conversation(), slow_house.cortex.chat
    first = await chat.send_message(slow_house.admin, cid, "tell me who you are")
    began = await slow_house.until(cid, "part.start", turn=first)
    for text in ("one", "two", "three"):
        await chat.send_message(slow_house.admin, cid, text)
    page = await chat.log(slow_house.admin, cid, turns=1)
    assert began.seq in [event.seq for event in page.events]


async def test_a_message_sent_before_a_tool_boundary_steers_the_running_turn(slow_house: LivingHouse) -> None:
    cid = await slow_house.conversation()
    first = await slow_house.cortex.chat.send_message(slow_house.admin, cid, "run `sleep 1` in the shell")
    asked = await slow_house.until(cid, "approval", state="asked")
    second = await slow_house.send_meanwhile(cid, asked.payload["approval"], "once", "and be brief")
    steered = await slow_house.until(cid, "steer")
    assert steered.payload == {"turn": second, "into": first, "round": 1}
    await slow_house.until(cid, "usage", round=2)
    await slow_house.cortex.chat.stop(slow_house.admin, cid)
    stored = await slow_house.cortex.runtime.db.repository(MessagesRepository, slow_house.admin.id).of_turn(first)
    assert [row.message.text for row in stored if row.message.speaker == "user"][-1] == "and be brief"
    assert [event.payload["turn"] for event in await slow_house.events(cid, "turn.start")] == [first]


BRACKETS = "[" * 100_000


@pytest.mark.moves_cache_prefix(reason="so long a call is summarised before the next message")
@pytest.mark.parametrize("kind", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("arguments", "says"),
    [(BRACKETS, "not valid JSON"), (f'{{"title": {BRACKETS}', "not valid JSON"), ('{"url": "http://[x"}', "address")],
    ids=["brackets", "brackets in an object", "half an address"],
)
async def test_arguments_that_cannot_be_read_are_an_error_result(
    tmp_path: Path, scripted: ScriptedServer, kind: str, arguments: str, says: str
) -> None:
    tool = "http_fetch" if "url" in arguments else "task_create"
    scripted.rules = [rule("^add", Use(tool, arguments, is_blind=True), "That did not work."), rule("", "Hello.")]
    async with living_house(tmp_path / "home") as house:
        form = {"name": "m", "provider": kind, "model": "s", "base_url": scripted.base_url, "api_key": "test-key"}
        await house.cortex.models.save(house.admin, form)
        cid = await house.conversation()
        for text in ("add milk", "thanks"):
            turn = await house.say(cid, text)
            await house.until(cid, "turn.end", turn=turn, state="done")
        (result,) = await house.events(cid, "tool.result")
        assert result.payload["state"] != "ok"
        assert says in result.payload["text"]
        assert [event.payload["text"] for event in await house.events(cid, "part.end")][-1] == "Hello."


async def test_half_a_surrogate_in_a_call_ends_no_turn(tmp_path: Path, scripted: ScriptedServer) -> None:
    use = Use("task_create", '{"title": "milk \ud800"}', is_blind=True)
    scripted.rules = [rule("^add", use, "It is on the list."), rule("", "Hello.")]
    async with living_house(tmp_path / "home") as house:
        await house.connect(scripted)
        cid = await house.conversation()
        for text in ("add milk", "thanks"):
            turn = await house.say(cid, text)
            await house.until(cid, "turn.end", turn=turn, state="done")


async def test_half_an_address_in_a_message_is_plain_text(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.say(cid, "look at http://[x please")
    turn = await house.say(cid, "add milk to my shopping list")
    (result,) = [event for event in await house.events(cid, "tool.result") if event.payload["turn"] == turn]
    assert result.payload["state"] == "ok"
