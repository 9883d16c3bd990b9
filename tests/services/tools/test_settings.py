"""What admins set about tools: it reaches every process at the next message, and the gate at the next call."""

import pytest
from msgspec.structs import replace

from cortex.base.errors import NotAllowed, NotFound, UserError
from cortex.ports.loop import CallRecord
from cortex.services.roles.roles import Roles
from cortex.services.tools.settings import ToolSettingsService
from cortex.services.tools.tools import ToolsService
from cortex.services.tools.words import WordsText, line, read, typed_of
from cortex.services.turns.calls import CallLog
from cortex.storage.calls import CallsRepository
from cortex.storage.home import Homes
from cortex.storage.plans import PlansRepository
from cortex.storage.tool_settings import ToolSettingsRepository, ToolWordRow
from cortex.tools import load
from tests.living_house import LivingHouse
from tests.plain_world import TURN

MILK = "add milk to my shopping list"


def another_process(house: LivingHouse) -> ToolsService:
    inside = house.cortex.runtime
    settings = ToolSettingsService(inside.db, inside.registry, house.cortex.integrations)
    return ToolsService(
        registry=inside.registry,
        wired=frozenset({"Tasks", "Discovery"}),
        roles=Roles(load()),
        clock=inside.clock,
        settings=settings,
    )


async def switch_off(house: LivingHouse, name: str) -> None:
    settings = house.cortex.tool_settings
    await settings.change(house.admin, name, is_on=False, sending="needed", asks_first=False)


async def test_a_change_reaches_another_process_at_its_next_look(house: LivingHouse) -> None:
    other = another_process(house)
    assert "task_create" in await other.permitted(house.member, "orchestrator")
    await switch_off(house, "task_create")
    assert "task_create" not in await other.permitted(house.member, "orchestrator")
    assert "task_create" not in (await other.ground()).ready
    receipt = await other.explain(house.member, "orchestrator", MILK)
    assert "task_create" not in {one["name"] for one in receipt["decisions"]}


async def test_while_nothing_changes_nothing_is_read_or_made_again(house: LivingHouse) -> None:
    await switch_off(house, "git_log")
    settings, tools = house.cortex.tool_settings, house.cortex.tools
    assert await settings.in_force() is await settings.in_force()
    assert await tools.ground() is await tools.ground()


async def test_a_change_of_one_tool_leaves_the_others_as_they_were_counted(house: LivingHouse) -> None:
    before = await house.cortex.tools.snapshot()
    settings = house.cortex.tool_settings
    await settings.change(house.admin, "task_list", is_on=True, sending="always", asks_first=False)
    after = await house.cortex.tools.snapshot()
    changed = [new.name for new, old in zip(after.entries, before.entries, strict=True) if new is not old]
    assert changed == ["task_list"]
    assert after.version != before.version
    await settings.take_back(house.admin, "task_list", "sending")
    assert await house.cortex.tools.snapshot() is before


async def test_a_tool_that_is_off_cannot_be_called_by_its_name_either(house: LivingHouse) -> None:
    await switch_off(house, "task_create")
    conversation = await house.conversation(house.member)
    await house.say(conversation, f"use task_create: {MILK}", user=house.member)
    calls = [event.payload["name"] for event in await house.events(conversation, "tool.call", user=house.member)]
    assert "task_create" not in calls
    assert not await house.cortex.tasks.list(house.member)


async def test_ask_first_asks_and_taken_back_it_does_not(house: LivingHouse) -> None:
    settings = house.cortex.tool_settings
    await settings.change(house.admin, "task_create", is_on=True, sending="needed", asks_first=True)
    conversation = await house.conversation(house.member)
    turn = await house.cortex.chat.send_message(house.member, conversation, MILK)
    asked = await house.until(conversation, "approval", user=house.member, state="asked")
    await house.cortex.approvals.answer(house.member, asked.payload["approval"], "once")
    await house.until(conversation, "turn.end", user=house.member, turn=turn)
    assert [task.title for task in await house.cortex.tasks.list(house.member)] == ["milk"]
    await settings.take_back(house.admin, "task_create", "asks_first")
    await house.say(conversation, "add eggs to my shopping list", user=house.member)
    assert len(await house.events(conversation, "approval", user=house.member)) == 2


async def test_a_tool_that_asks_as_it_ships_stays_as_it_ships(house: LivingHouse) -> None:
    settings = house.cortex.tool_settings
    await settings.change(house.admin, "shell_exec", is_on=True, sending="needed", asks_first=False)
    assert (await settings.all()) == {}
    assert house.cortex.runtime.registry.tools["shell_exec"].confirm


async def test_only_admins_change_anything_and_only_what_there_is(house: LivingHouse) -> None:
    settings = house.cortex.tool_settings
    with pytest.raises(NotAllowed):
        await settings.take_back(house.member, "task_create", "is_on")
    with pytest.raises(NotFound):
        await settings.take_back(house.admin, "no_tool", "is_on")
    with pytest.raises(UserError):
        await settings.take_back(house.admin, "tool_call", "is_on")
    with pytest.raises(NotFound):
        await settings.words("no_category")
    assert await house.rows(CallsRepository).of_tool("task_create", 5) == []


async def test_a_call_of_a_tool_that_the_first_plan_left_out_is_counted_as_rescued(house: LivingHouse) -> None:
    cortex, user = house.cortex, house.admin
    conversation = await house.conversation()
    turn_id = await house.say(conversation, MILK)
    first = (await cortex.runtime.db.repository(PlansRepository, user.id).of_turn(turn_id))[0].receipt
    book = CallLog(runtime=cortex.runtime, contexts=cortex.turn_contexts, homes=Homes(cortex.settings.home))
    now = cortex.runtime.clock().isoformat()
    turn = replace(TURN, id=turn_id, conversation_id=conversation, user_id=user.id, text=MILK, now=now)
    late = next(one["name"] for one in first["decisions"] if not one["is_in"])
    await book.record(turn, 2, record("call-late", late))
    await book.record(turn, 2, record("call-sent", "task_create"))
    calls = {
        row.id: row.is_rescued for row in await cortex.runtime.db.repository(CallsRepository, user.id).of_turn(turn_id)
    }
    assert (calls["call-late"], calls["call-sent"]) == (True, False)


def record(call_id: str, tool: str) -> CallRecord:
    return CallRecord(id=call_id, wire_id=call_id, tool=tool, arguments="{}", hash="h", risk="low", title="")


async def test_words_are_read_as_they_are_shown(house: LivingHouse) -> None:
    registry = house.cortex.runtime.registry
    typed = WordsText(
        phrases="Groceries [task_create, task_list]\n\n  pantry  ",
        examples="we are out of bread\nWE are  out of bread [task_list]",
        no_examples=registry.categories["tasks"].examples[0][0],
    )
    words = read(registry, "tasks", typed, "task_create")
    assert [line(word) for word in words] == [
        "Groceries [task_create task_list]",
        "pantry [task_create]",
        "WE are out of bread [task_list]",
        typed.no_examples,
    ]
    again = typed_of(words)
    assert read(registry, "tasks", again) == words


async def test_a_shipped_example_with_other_tools_takes_the_place_of_the_shipped_one(house: LivingHouse) -> None:
    registry = house.cortex.runtime.registry
    shipped = registry.categories["tasks"].examples[0][0]
    with pytest.raises(UserError, match="is shipped already"):
        read(registry, "tasks", WordsText(examples=f"{shipped} [task_update]"))
    words = read(registry, "tasks", WordsText(examples=f"{shipped} [task_update]", no_examples=shipped))
    assert await house.cortex.tool_settings.save_words(house.admin, "tasks", words) == 1
    tasks = next(domain for domain in (await house.cortex.tools.snapshot()).domains if domain.name == "tasks")
    assert [(each.tools, each.is_own) for each in tasks.examples if each.text == shipped] == [(("task_update",), True)]


async def test_a_phrase_that_shipped_once_and_was_left_out_is_no_matter_any_more(house: LivingHouse) -> None:
    settings = house.cortex.tool_settings
    own = ToolWordRow(
        category="tasks", kind="phrase", text="shopping list", text_key="shopping list", tools=("task_create",)
    )
    async with house.cortex.runtime.db.transaction() as repository:
        await repository(ToolSettingsRepository).add_words([replace(own, tools=(), is_left_out=True)], "ada")
    ground = await house.cortex.tools.ground()
    assert ground.snapshot is ground.shipped
    assert list(await settings.words("tasks")) == []
    assert await settings.save_words(house.admin, "tasks", ()) == 0
    assert await settings.save_words(house.admin, "tasks", [own]) == 1
    assert list(await settings.words("tasks")) == [own]
    tasks = next(domain for domain in (await house.cortex.tools.snapshot()).domains if domain.name == "tasks")
    assert [(each.text, each.tools) for each in tasks.triggers] == [("shopping list", ("task_create",))]
