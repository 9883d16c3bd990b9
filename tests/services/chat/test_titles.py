"""A chat is named by a model after its first answer: once, booked, never over a name that its person gave."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cortex.base.messages import user
from cortex.ports.loop import Request
from cortex.services.chat.titles import cleaned
from cortex.services.turns.lone_calls import LoneCall
from cortex.storage.rounds import RoundsRepository
from cortex.storage.turns import TurnsRepository
from tests.living_house import LivingHouse, living_house
from tests.plain_world import TURN
from tests.scripted_server import Fault, ScriptedServer, rule

ASKED = "^The person:"
NAME = "Plums for the weekend"


@pytest.fixture
async def house(tmp_path: Path, scripted: ScriptedServer) -> AsyncIterator[LivingHouse]:
    scripted.rules = [rule(ASKED, f'"{NAME}."'), rule("", "They are in the bowl.")]
    async with living_house(tmp_path / "home") as opened:
        await opened.connect(scripted)
        yield opened


def slots(house: LivingHouse, tmp_path: Path, count: int | None) -> None:
    """Let its model's server say that it answers so many requests at once."""
    (file,) = (tmp_path / "home").rglob("model_registry.json")
    data = json.loads(file.read_text(encoding="utf-8"))
    data["models"][0]["told"] = {"slots": count}
    file.write_text(json.dumps(data), encoding="utf-8")


def asked(scripted: ScriptedServer) -> list[str]:
    said = [seen.body["messages"][-1]["content"] for seen in scripted.log]
    return [text for text in said if text.startswith("The person:")]


async def looked(house: LivingHouse, turn_id: str) -> None:
    """The end of this turn was looked at, whatever the task beside has looked at by now."""
    row = await house.rows(TurnsRepository).get(turn_id)
    opening = replace(TURN, id=row.id, conversation_id=row.conversation_id, user_id=row.owner_id, text=row.text)
    house.cortex.model_titles.opened.add(replace(opening, ordinal=row.ordinal, models=("m",)))
    await house.cortex.model_titles.look()


async def test_a_model_names_it_after_the_first_answer_and_what_it_took_is_booked(
    house: LivingHouse, scripted: ScriptedServer, tmp_path: Path
) -> None:
    slots(house, tmp_path, 2)
    cid = await house.conversation()
    await house.say(cid, "where are the plums for the weekend, please?")
    await house.until(cid, "title", title=NAME)
    (script,) = asked(scripted)
    assert "They are in the bowl." in script
    (booked,) = await house.rows(RoundsRepository).of_turn(f"title:{cid}")
    assert (booked.role, booked.input_tokens > 0) == ("distill", True)
    assert [event.payload["title"] for event in await house.events(cid, "title")][-1] == NAME
    await looked(house, await house.say(cid, "and the pears?"))
    assert len(asked(scripted)) == 1


@pytest.mark.parametrize("count", [1, None], ids=["one slot", "says nothing"])
async def test_a_server_of_ones_own_that_answers_one_at_a_time_is_not_asked(
    house: LivingHouse, scripted: ScriptedServer, tmp_path: Path, count: int | None
) -> None:
    slots(house, tmp_path, count)
    cid = await house.conversation()
    turn = await house.say(cid, "where are the plums?")
    await looked(house, turn)
    assert asked(scripted) == []
    assert (await house.cortex.conversations.get(house.admin, cid)).title == "Where are the plums?"


async def test_a_name_that_its_person_gave_stays(house: LivingHouse, scripted: ScriptedServer, tmp_path: Path) -> None:
    slots(house, tmp_path, 2)
    cid = await house.conversation()
    await house.cortex.conversations.rename(house.admin, cid, "Fruit")
    turn = await house.say(cid, "where are the plums?")
    await looked(house, turn)
    assert asked(scripted) == []
    assert (await house.cortex.conversations.get(house.admin, cid)).title == "Fruit"


async def test_what_is_no_title_leaves_the_name_of_the_first_message(
    house: LivingHouse, scripted: ScriptedServer, tmp_path: Path
) -> None:
    slots(house, tmp_path, 2)
    scripted.rules = [rule(ASKED, "one\ntwo\nthree"), rule("", "Here.")]
    cid = await house.conversation()
    turn = await house.say(cid, "where are the plums?")
    await looked(house, turn)
    assert asked(scripted)
    assert (await house.cortex.conversations.get(house.admin, cid)).title == "Where are the plums?"


async def test_a_call_that_is_broken_off_is_booked(house: LivingHouse, scripted: ScriptedServer) -> None:
    scripted.fail(Fault(kind="hang"))
    call, sent = (
        LoneCall(id="title:late", role="distill", channel="chat"),
        Request(system="", messages=(user("The person:"),)),
    )
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(house.cortex.lone_calls.ask(house.admin, call, sent, "m"))
        await asyncio.to_thread(scripted.wait_for, 1)
        asking.cancel()
    (booked,) = await house.rows(RoundsRepository).of_turn(call.id)
    assert booked.state == "failed"  # which holds nothing any more


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("“Plums in the bowl.”", "Plums in the bowl"),
        ("**Title: Plums**", "Plums"),
        ("<think>a\nb</think>\nPlums", "Plums"),
        ("Plums\nPears", ""),
        ("p" * 80, ""),
        ("Plums \u202eelif.exe\U000e0041", "Plums elif.exe"),
        ("<think>" * 500_000, ""),  # at once: a pattern took minutes, and no page answered
        ("", ""),
    ],
    ids=["quoted", "bold", "thought first", "two lines", "a sentence", "hiding", "without an end", "nothing"],
)
def test_only_a_title_is_taken(said: str, title: str) -> None:
    assert cleaned(said) == title
