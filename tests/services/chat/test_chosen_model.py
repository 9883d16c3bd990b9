"""A model that is chosen for a chat, or for one answer: it is asked first, and what happens once it is gone."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cortex.base.errors import UserError
from cortex.storage.turns import TurnsRepository
from tests.living_house import LivingHouse, living_house
from tests.scripted_server import Fault, ScriptedServer, rule

pytestmark = pytest.mark.moves_cache_prefix(reason="another model, and another version")


@pytest.fixture
async def house(tmp_path: Path, scripted: ScriptedServer) -> AsyncIterator[LivingHouse]:
    """Two models, of which the role's is `first`."""
    scripted.rules = [rule("", "Yes.")]
    async with living_house(tmp_path) as opened:
        for name in ("first", "second"):
            form = {"name": name, "provider": "openai", "model": name, "base_url": scripted.base_url}
            price = {"input_usd": 3.0, "output_usd": 15.0} if name == "first" else {"input_usd": 1.0, "output_usd": 2.0}
            await opened.cortex.models.save(opened.admin, {**form, "api_key": "test-key", "price": price})
        yield opened


async def asked(house: LivingHouse, cid: str) -> list[str]:
    """The model that answered each message in view."""
    return [turn.model for turn in (await house.cortex.chat.log(house.admin, cid)).folded().turns]


async def test_a_chat_goes_on_with_the_model_that_was_chosen_until_the_role_says_it_again(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.say(cid, "one", mode="chat")
    await house.say(cid, "two", mode="chat", model="second", is_kept=True)
    await house.say(cid, "three", mode="chat")
    await house.cortex.chat.set_model(house.admin, cid, "")
    await house.say(cid, "four", mode="chat")
    assert await asked(house, cid) == ["first", "second", "second", "first"]
    other = await house.conversation()
    await house.say(other, "a quick one", mode="chat", model="second")  # for this message alone
    await house.say(other, "five", mode="chat")
    assert await asked(house, other) == ["second", "first"]


async def test_regenerating_with_another_model_makes_a_version_of_its_own(house: LivingHouse) -> None:
    cid = await house.conversation()
    first = await house.say(cid, "one", mode="chat")
    again = await house.cortex.chat.again(house.admin, first, model="second")
    await house.until(cid, "turn.end", turn=again)
    versions = await house.cortex.versions.of(house.admin, again)
    assert [version.models for version in versions] == [("first",), ("second",)]
    assert versions[0].cost_usd != versions[1].cost_usd
    third = await house.cortex.chat.again(house.admin, again)
    await house.until(cid, "turn.end", turn=third)
    assert await asked(house, cid) == ["first"]


async def test_a_chosen_model_that_is_gone_leaves_the_word_to_the_role_and_says_so(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.cortex.chat.set_model(house.admin, cid, "second")
    await house.cortex.models.remove(house.admin, "second")
    composer = await house.cortex.composer.composer(house.admin, await house.cortex.conversations.get(house.admin, cid))
    assert (composer.chosen, composer.asks["model"]) == ("second", "first")
    turn_id = await house.say(cid, "one", mode="chat", model="second", is_kept=True)  # as the page sends it again
    assert await asked(house, cid) == ["first"]
    notices = [event.payload["text"] for event in await house.events(cid, "notice")]
    ((gone, after),) = [(notice.split()[0], notice.split()[-1]) for notice in notices]
    assert (gone, after) == ("second", "first.")
    row = await house.rows(TurnsRepository).get(turn_id)
    assert (row.model, row.models) == ("second", ("first",))


async def test_a_chosen_model_that_fails_is_followed_by_the_roles(house: LivingHouse, scripted: ScriptedServer) -> None:
    scripted.fail(Fault(kind="status", status=400))
    cid = await house.conversation()
    await house.say(cid, "one", mode="chat", model="second")
    assert await asked(house, cid) == ["first"]
    assert "with first" in (await house.events(cid, "notice"))[0].payload["text"]


async def test_no_model_is_chosen_that_the_person_does_not_have(house: LivingHouse) -> None:
    cid = await house.conversation()
    turn_id = await house.say(cid, "one", mode="chat")
    with pytest.raises(UserError, match="Choose one from the list"):
        await house.cortex.chat.set_model(house.admin, cid, "third")
    with pytest.raises(UserError, match="Choose one from the list"):
        await house.cortex.chat.again(house.admin, turn_id, model="third")
    with pytest.raises(UserError, match="Choose one from the list"):
        await house.cortex.chat.send_message(house.admin, cid, "two", model="third")
    assert len((await house.cortex.chat.log(house.admin, cid)).folded().turns) == 1


async def test_a_branch_keeps_the_model_that_was_chosen(house: LivingHouse) -> None:
    cid = await house.conversation()
    turn_id = await house.say(cid, "one", mode="chat", model="second", is_kept=True)
    branch = await house.cortex.conversations.branch(house.admin, cid, turn_id)
    await house.say(branch, "two", mode="chat")
    assert await asked(house, branch) == ["second", "second"]
