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


async def test_a_housemate_is_reminded_in_plain_words_and_it_can_be_taken_back(house: LivingHouse) -> None:
    ben = (await house.cortex.accounts.add_user("Ben", "member")).user
    cid = await house.conversation()
    await house.say(cid, "Remind Ben in 20 minutes to call his mother")
    (row,) = (await house.cortex.reminders.listing(ben)).next
    assert row.text == f"call his mother (from {house.admin.name})"
    assert row.is_tainted, "another person's words are no instruction to their assistant"
    assert not (await house.cortex.reminders.listing(house.admin)).next
    (call,) = await house.events(cid, "tool.result")
    assert "Will remind Ben: call his mother (" in call.payload["text"]
    await house.cortex.undo.undo(house.admin, call.payload["undo"])
    assert not (await house.cortex.reminders.listing(ben)).next


async def test_a_housemate_gets_a_message_at_once_and_in_two_minutes(house: LivingHouse) -> None:
    ben = (await house.cortex.accounts.add_user("Ben", "member")).user
    await house.say(await house.conversation(), "Send Ben a message: dinner is ready")
    (notice,) = (await house.cortex.notices.page(ben.id)).notices
    assert (notice.row.title, notice.row.text) == (f"From {house.admin.name}", "dinner is ready")
    assert not (await house.cortex.notices.page(house.admin.id)).notices, "nobody else is told"
    await house.say(await house.conversation(), "Tell Ben in two minutes that dinner is ready")
    (row,) = (await house.cortex.reminders.listing(ben)).next
    assert row.text.startswith("dinner is ready")


async def test_somebody_who_is_not_here_is_said_and_nobody_is_reminded(house: LivingHouse) -> None:
    cid = await house.conversation()
    await house.say(cid, "Remind Xaver in 20 minutes to call his mother")
    assert "Nobody here is called 'Xaver'" in (await house.events(cid, "tool.result"))[-1].payload["text"]
    assert not (await house.cortex.reminders.listing(house.admin)).next
