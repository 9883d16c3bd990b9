import re

from cortex.agent.history import SUMMARY_HEAD
from cortex.base.messages import Message, Text, ToolCall, ToolResult, assistant, results, user
from cortex.storage.messages import MessagesRepository
from cortex.storage.summaries import SummariesRepository
from cortex.storage.turns import NewTurn, TurnsRepository
from tests.living_house import LivingHouse
from tests.plain_world import PLAIN_TURN
from tests.scripted_server import ScriptedServer, rule

LONG = "The boiler man comes on Tuesday and wants the cellar key from the neighbour. "


async def filled(house: LivingHouse, turns: int) -> str:
    """A conversation whose turns were made much longer than the offline model's window allows."""
    cid = await house.conversation()
    messages = house.rows(MessagesRepository)
    for number in range(turns):
        turn_id = await house.say(cid, f"hello {number}", mode="chat")
        await messages.add(turn_id, 90, user(LONG * 120), False)
        await messages.add(turn_id, 91, assistant(LONG * 120), False)
    return cid


async def test_a_past_that_outgrows_the_window_is_summarised_and_can_be_taken_back(house: LivingHouse) -> None:
    cid = await filled(house, 8)
    await house.say(cid, "hello", mode="chat")
    made = (await house.events(cid, "summary"))[0].payload
    assert made["state"] == "made"
    assert "boiler" in made["text"]
    before = await house.rows(MessagesRepository).of_conversation(cid)
    await house.cortex.chat.undo_summary(house.admin, cid, made["summary"])
    assert (await house.events(cid, "summary"))[-1].payload["state"] == "undone"
    assert await house.rows(SummariesRepository).latest(cid) is None
    assert await house.rows(MessagesRepository).of_conversation(cid) == before


async def test_the_model_reads_the_summary_and_each_later_turn_once(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    scripted.rules = [rule("boiler man", "He comes on Tuesday."), rule("", "Hello.")]
    cid = await filled(house, 5)
    await house.connect(scripted, context_tokens=20_000)
    await house.say(cid, "hello at last", mode="chat")
    made = (await house.events(cid, "summary"))[0].payload
    read = [said["content"] for said in scripted.log[-1].body["messages"] if said["role"] == "user"]
    head, *later = [text for text in read if not text.startswith(LONG)]
    assert head.startswith(SUMMARY_HEAD)
    assert made["text"] in head
    names = re.findall(r"^hello .+$", "\n".join([head, *later]), re.MULTILINE)
    assert 1 < made["upto_turn"] < 5
    assert names == [*(f"hello {number}" for number in range(made["upto_turn"], 5)), "hello at last"]


async def test_what_was_recalled_behind_a_message_is_no_part_of_the_summary(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    scripted.rules = [rule("boiler man", "He comes on Tuesday."), rule("", "Hello.")]
    cid = await filled(house, 5)
    messages = house.rows(MessagesRepository)
    (first, *_) = await house.events(cid, "turn.start")
    recalled = Message(speaker="user", parts=(Text(text="what to cook"), Text(text="The user is vegetarian.")))
    await messages.add(first.payload["turn"], 92, recalled, False)
    await house.connect(scripted, context_tokens=20_000)
    await house.say(cid, "hello at last", mode="chat")
    script = scripted.log[0].body["messages"][-1]["content"]
    assert "user: what to cook\n" in script
    assert "vegetarian" not in script


async def test_a_message_that_was_taken_in_before_a_kill_is_read_by_the_run_that_goes_on(house: LivingHouse) -> None:
    cid, person = await house.conversation(), house.admin.id
    turns = house.cortex.runtime.db.repository(TurnsRepository, person)
    await turns.create(NewTurn("turn:1", cid, "hello", **PLAIN_TURN))
    turn = await house.cortex.turn_runs.turn_start.start_turn(person, "turn:1")
    assert turn is not None
    await turns.create(NewTurn("turn:2", cid, "and buy milk", **PLAIN_TURN))
    history = house.cortex.turn_runs.ports.history
    assert await history.steer(turn, 1) == ("and buy milk",)
    assert await history.steer(turn, 1) == ("and buy milk",)  # killed before the engine had kept the step
    assert await history.steer(turn, 2) == ()


async def test_a_short_past_is_not_summarised(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.say(cid, "hello", mode="chat")
    await house.say(cid, "hello", mode="chat")
    assert await house.events(cid, "summary") == []


async def test_an_edit_before_a_summary_voids_it(house: LivingHouse) -> None:
    cid = await filled(house, 8)
    await house.say(cid, "hello", mode="chat")
    first = (await house.events(cid, "turn.start"))[0].payload["turn"]
    new = await house.cortex.chat.edit(house.admin, first, "hello from the start")
    await house.until(cid, "turn.end", turn=new)
    assert await house.rows(SummariesRepository).latest(cid) is None


async def test_a_long_result_of_a_tool_counts_whole(house: LivingHouse) -> None:
    cid = await house.conversation()
    messages = house.rows(MessagesRepository)
    call = ToolCall(id="c", name="file_read", arguments="{}")
    for number in range(4):
        turn_id = await house.say(cid, f"hello {number}", mode="chat")
        await messages.add(turn_id, 90, assistant("", call), False)
        await messages.add(turn_id, 91, results(ToolResult(call_id="c", name="file_read", text=LONG * 400)), False)
    await house.say(cid, "hello", mode="chat")
    assert await house.events(cid, "summary") != []
