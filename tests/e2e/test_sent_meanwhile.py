"""A message sent while a turn runs and read at its next step: that step carries the tools for its own words.

Only the model is scripted; its server is as strict as the real ones and checks that no cached prefix is left.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from cortex.base.messages import ToolCall, ToolResult, assistant, results, user
from cortex.services.tools.plans import past_turns
from cortex.storage.turns import TurnsRepository
from tests.e2e.test_calls_wire import WAYS, calls_of, connect, names, plans_of
from tests.living_house import LivingHouse, living_house
from tests.scripted_server import ScriptedServer, Use, rule

REMINDER = "remind me in 20 minutes to call the dentist"
TIDY = Use("shell_exec", {"command": "echo tidied up"})
ADD = Use("reminders_add", {"text": "call the dentist", "when": "in 20 minutes"})
BRIDGED = Use("tool_call", {"name": ADD.tool, "arguments": ADD.arguments})


def called(name: str) -> ToolCall:
    return ToolCall(id="w", name=name, arguments="{}")


@pytest.fixture
def strict() -> Iterator[ScriptedServer]:
    with ScriptedServer(rule("shell", TIDY, "Tidied."), cache_minimum_tokens=1) as server:
        yield server
        assert server.problems == []
        assert server.cache_breaks() == []


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home") as opened:
        yield opened


async def sent_meanwhile(house: LivingHouse, *texts: str, **how: Any) -> str:
    """A turn that has not heard of the answer to its call yet while these are sent; its id once it has ended."""
    conversation = await house.conversation()
    how = {"text": "run `echo tidied up` in the shell", **how}
    turn_id = await house.cortex.chat.send_message(house.admin, conversation, **how)
    asked = await house.until(conversation, "approval", state="asked")
    await house.send_meanwhile(conversation, asked.payload["approval"], "once", *texts)
    await house.until(conversation, "turn.end", turn=turn_id)
    return turn_id


async def reminders(house: LivingHouse) -> list[str]:
    return [each.text for each in (await house.cortex.reminders.listing(house.admin)).next]


@pytest.mark.parametrize("way", WAYS)
async def test_what_is_read_at_the_next_step_finds_its_tool_there(
    house: LivingHouse, strict: ScriptedServer, way: str
) -> None:
    strict.rules.insert(0, rule("remind me", BRIDGED if way == "bridge" else ADD, "I will."))
    await connect(house, strict, way)
    turn_id = await sent_meanwhile(house, REMINDER)
    first, second, _ = await plans_of(house, turn_id)
    assert "reminders_add" not in names(first)
    assert "reminders_add" in second.receipt["added"]
    assert [(row.name, row.state, row.came) for row in await calls_of(house, turn_id)] == [
        ("shell_exec", "done", ""),
        ("reminders_add", "done", ""),
    ]
    assert await reminders(house) == ["call the dentist"]


@pytest.mark.parametrize("recipe", ["cortex", "inara", "punch", "vector", "repi"])
async def test_what_the_turn_used_stays_beside_it_in_every_way_that_goes_by_words(
    house: LivingHouse, recipe: str
) -> None:
    with ScriptedServer(rule("remind me", ADD, "I will."), rule("shell", TIDY, "Tidied.")) as server:
        form = {"name": "scripted", "provider": "openai", "model": "gpt-4o", "base_url": server.base_url}
        await house.cortex.models.save(house.admin, {**form, "api_key": server.api_key, "cache": {"caches": False}})
        conversation = await house.conversation()
        await house.cortex.conversations.set_recipe(house.admin, conversation, recipe)
        turn_id = await house.cortex.chat.send_message(house.admin, conversation, "run `echo tidied up` in the shell")
        asked = await house.until(conversation, "approval", state="asked")
        await house.send_meanwhile(conversation, asked.payload["approval"], "once", REMINDER)
        await house.until(conversation, "turn.end", turn=turn_id)
    second = (await plans_of(house, turn_id))[1]
    assert {"shell_exec", "reminders_add"} <= set(names(second))


async def test_the_offline_model_does_what_is_sent_meanwhile_and_tells_of_both(house: LivingHouse) -> None:
    turn_id = await sent_meanwhile(house, "add milk to my shopping list", REMINDER)
    rows = await calls_of(house, turn_id)
    assert [row.name for row in rows] == ["shell_exec", "task_create", "reminders_add"]
    assert [task.title for task in await house.cortex.tasks.list(house.admin)] == ["milk"]
    assert await reminders(house) == ["call the dentist"]


async def test_the_receipt_of_the_step_names_the_tool_its_reason_and_whose_words_it_was_planned_for(
    house: LivingHouse,
) -> None:
    turn_id = await sent_meanwhile(house, REMINDER)
    receipt = (await plans_of(house, turn_id))[1].receipt
    decided = next(each for each in receipt["decisions"] if each["name"] == "reminders_add")
    assert decided["is_in"]
    assert decided["reason"]
    assert "sent meanwhile" in receipt["labels"]["planned for"]


@pytest.mark.parametrize("round_number", [1, 2, 3], ids=["before it", "reading it", "after it"])
async def test_each_round_can_be_planned_again_to_the_byte(house: LivingHouse, round_number: int) -> None:
    turn_id = await sent_meanwhile(house, REMINDER)
    again = await house.cortex.replays.replay(house.admin.id, turn_id, round_number, "cortex")
    assert again.is_exact


def test_a_later_message_finds_it_as_the_last_thing_that_was_asked_for() -> None:
    done = [results(ToolResult(call_id="w", name="t", text="ok")), user("(Cortex: two tools are available now.)")]
    turn = [user("tidy up"), assistant("", called("shell_exec")), *done, user(REMINDER)]
    past = past_turns([[*turn, assistant("", called("reminders_add")), *done, assistant("Done.")]])
    assert [(one.user, one.called) for one in past] == [
        ("tidy up", ("shell_exec",)),
        (REMINDER, ("reminders_add",)),
    ]


async def test_a_message_is_not_read_at_a_step_that_carries_no_tools(house: LivingHouse) -> None:
    turn_id = await sent_meanwhile(house, REMINDER, max_rounds=2)
    assert [row.name for row in await calls_of(house, turn_id)] == ["shell_exec"]
    async with house.cortex.runtime.db.transaction(house.admin.id) as repository:
        after = (
            await repository(TurnsRepository).list((await repository(TurnsRepository).get(turn_id)).conversation_id)
        )[-1]
    await house.until(after.conversation_id, "turn.end", turn=after.id)
    assert await reminders(house) == ["call the dentist"]
