"""The ways of choosing tools in a living house: by role, by conversation, with what each needs of the loop."""

import json

import pytest

from cortex.base.errors import NotFound, UserError
from cortex.base.events import Event
from cortex.selection.recipes import RECIPES
from tests.living_house import LivingHouse
from tests.scripted_server import ScriptedServer, Use, rule


def said(events: list[Event]) -> list[str]:
    return [event.payload["text"] for event in events]


@pytest.mark.parametrize("recipe", sorted(RECIPES))
async def test_a_conversation_chooses_its_own_way(house: LivingHouse, recipe: str) -> None:
    cid = await house.conversation()
    await house.cortex.conversations.set_recipe(house.admin, cid, recipe)
    await house.say(cid, "hello")
    assert [made["recipe"] for made in await house.receipts(cid)] == [recipe]
    head = await house.cortex.conversations.get(house.admin, cid)
    assert (await house.cortex.composer.composer(house.admin, head)).recipe == recipe


async def test_a_role_chooses_a_way_and_the_conversation_stands_above_it(house: LivingHouse) -> None:
    await house.cortex.roles.change(house.admin, "orchestrator", {"recipe": "inara"})
    cid = await house.conversation()
    await house.say(cid, "create a task: water the plants")
    assert {made["recipe"] for made in await house.receipts(cid)} == {"inara"}
    await house.cortex.conversations.set_recipe(house.admin, cid, "punch")
    await house.say(cid, "hello")
    assert (await house.receipts(cid))[-1]["recipe"] == "punch"
    await house.cortex.conversations.set_recipe(house.admin, cid, "")
    await house.say(cid, "hello")
    assert (await house.receipts(cid))[-1]["recipe"] == "inara"


async def test_an_unknown_way_is_refused_and_the_known_ones_are_named(house: LivingHouse) -> None:
    cid = await house.conversation()
    with pytest.raises(UserError, match="no recipe 'nonsense'; known: all, cortex"):
        await house.cortex.conversations.set_recipe(house.admin, cid, "nonsense")
    with pytest.raises(UserError, match="'recipe' must be one of all, cortex"):
        await house.cortex.roles.change(house.admin, "orchestrator", {"recipe": "nonsense"})
    with pytest.raises(NotFound):
        await house.cortex.conversations.set_recipe(house.member, cid, "punch")


async def test_the_offline_model_acts_under_keywords(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.cortex.conversations.set_recipe(house.admin, cid, "inara")
    await house.say(cid, "create a task: water the plants")
    assert [event.payload["name"] for event in await house.events(cid, "tool.call")] == ["task_create"]


@pytest.mark.moves_cache_prefix(reason="this way declares what a discovery found, in the next round")
async def test_a_discovery_under_ora_declares_what_it_found_and_the_list_loses_it(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    await house.connect(scripted)
    scripted.rules = [rule("notes", Use("scratch_append", {"text": "milk"}), "Noted.")]
    cid = await house.conversation()
    await house.cortex.conversations.set_recipe(house.admin, cid, "ora")
    await house.say(cid, "put milk into the notes")
    assert ["scratch_append" in request.tools for request in scripted.log] == [False, True, True]
    systems = [request.body["messages"][0]["content"] for request in scripted.log]
    assert ["- scratch_append:" in system for system in systems] == [True, False, False]
    await house.say(cid, "thanks")
    assert scripted.log[-1].tools == scripted.log[-2].tools


@pytest.mark.moves_cache_prefix(reason="this way declares what a discovery found, in the next round")
async def test_three_business_calls_a_turn_under_ora_and_discovery_is_not_counted(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    await house.connect(scripted)
    lines = [Use("scratch_append", {"text": text}) for text in ("milk", "eggs", "bread", "jam")]
    scripted.rules = [rule("shop", *lines, "Done.")]
    cid = await house.conversation()
    await house.cortex.conversations.set_recipe(house.admin, cid, "ora")
    await house.say(cid, "shop for me", max_rounds=10)
    results = [json.dumps(event.payload) for event in await house.events(cid, "tool.result")]
    assert len(results) == 5
    assert ["no further" in told for told in results] == [False, False, False, False, True]


@pytest.mark.moves_cache_prefix(reason="short forms from round 2 rewrite the tools")
async def test_short_forms_go_out_from_the_second_round_under_repi(
    house: LivingHouse, scripted: ScriptedServer
) -> None:
    await house.connect(scripted)
    scripted.rules = [rule("milk", Use("task_create", {"title": "milk"}), "Done.")]
    cid = await house.conversation()
    await house.cortex.conversations.set_recipe(house.admin, cid, "repi")
    await house.say(cid, "milk please")
    first, second = ({each["function"]["name"]: each["function"] for each in one.body["tools"]} for one in scripted.log)
    assert first.keys() == second.keys()
    assert first["task_create"]["description"]
    assert not second["task_create"].get("description")
    assert "description" not in json.dumps(second["task_create"]["parameters"])
