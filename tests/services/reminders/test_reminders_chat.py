"""Reminders as the whole house has them: asked for in a chat, told by the running daemon, answered in the list."""

import asyncio

from tests.living_house import LivingHouse
from tests.patience import PATIENCE_S


async def told(house: LivingHouse) -> str:
    """The id of the first notice, as soon as it is there."""
    notices, bell = house.cortex.notices, -1
    async with asyncio.timeout(PATIENCE_S):
        while not (page := await notices.page(house.admin.id)).notices:
            bell = await notices.changed(house.admin.id, bell, 15)
    return page.notices[0].row.id


async def test_the_offline_model_sets_one_and_lists_it(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.say(cid, "remind me in 20 minutes to take the bread out")
    (row,) = (await house.cortex.reminders.listing(house.admin)).next
    assert "the bread" in row.text
    await house.say(cid, "show my reminders")
    results = await house.events(cid, "tool.result")
    assert [event.payload["name"] for event in results] == ["reminders_add", "reminders_list"]
    assert row.text in results[-1].payload["text"]


async def test_the_running_daemon_tells_it_and_hears_the_answer(house: LivingHouse) -> None:
    row = await house.cortex.reminders.add(house.admin, "take the bread out in 2 seconds")
    notice = await told(house)
    await house.cortex.notices.acknowledge(house.admin.id, notice)
    assert (await house.cortex.reminders.get(house.admin, row.id)).state == "done"
