"""A message that wants what is not set up: the model gets one short note, the person a sentence, an admin the way."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cortex.base.user import User
from tests.lamps import LampCortex
from tests.living_house import LivingHouse, living_house

WISH = "turn off the kitchen lights"
SENTENCE = "Lamp server is not set up. An admin can do it under Integrations."
TYPED = {"address": "http://lamps.lan", "token": "lamp-token"}


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home", of=LampCortex) as opened:
        yield opened


async def notices(house: LivingHouse, user: User, text: str) -> list[tuple[str, str]]:
    cid = await house.conversation(user)
    await house.say(cid, text, user=user)
    return [(one.payload["text"], one.payload["page"]) for one in await house.events(cid, "notice", user=user)]


async def test_the_person_reads_why_and_an_admin_where(house: LivingHouse) -> None:
    assert await notices(house, house.admin, WISH) == [(SENTENCE, "/admin/integrations#lamps")]
    assert await notices(house, house.member, WISH) == [(SENTENCE, "")]


async def test_the_model_gets_one_short_note_behind_the_message(house: LivingHouse) -> None:
    receipt = await house.cortex.tools.explain(house.member, "orchestrator", WISH)
    assert receipt["setup"] == {"text": SENTENCE, "page": "/admin/integrations#lamps"}
    assert 0 < receipt["notes_tokens"] <= 20
    assert not [one for one in receipt["sent"] if one["category"] == "ha"]


@pytest.mark.parametrize("text", ["hello", "write a poem about the sea", "add milk to my shopping list", "thanks!"])
async def test_other_messages_say_nothing_of_it(house: LivingHouse, text: str) -> None:
    assert "setup" not in await house.cortex.tools.explain(house.member, "orchestrator", text)


async def test_a_role_without_such_tools_says_nothing_of_it(house: LivingHouse) -> None:
    assert "setup" not in await house.cortex.tools.explain(house.member, "chat", WISH)


async def test_once_it_is_set_up_nothing_is_said(house: LivingHouse) -> None:
    await house.cortex.integrations.save(house.admin, "lamps", "", TYPED, is_new=True)
    receipt = await house.cortex.tools.explain(house.member, "orchestrator", WISH)
    assert "setup" not in receipt
    assert "ha_call_service" in [one["name"] for one in receipt["sent"]]


async def test_a_search_for_tools_answers_the_same(house: LivingHouse) -> None:
    found = await house.cortex.tools.discover(house.member, "orchestrator", "switch off a lamp")
    assert found.text.startswith(SENTENCE)
    assert not [name for name in found.names if name.startswith("ha_")]
    assert "set up" not in (await house.cortex.tools.discover(house.member, "orchestrator", "add a task")).text
