import asyncio

import pytest
from sqlalchemy import delete, func, select

from cortex.base.errors import Conflict, NotFound
from cortex.storage.accounts import LoginsRepository
from cortex.storage.db import Database
from cortex.storage.deliveries import AllDeliveriesRepository, DeliveriesRepository
from cortex.storage.devices import ActionLinksRepository, AllActionLinksRepository, DeviceRow, DevicesRepository
from cortex.storage.jobs import AllJobsRepository, JobsRepository
from cortex.storage.notices import NoticesRepository, Way
from cortex.storage.reminders import AllRemindersRepository, RemindersRepository
from cortex.storage.schema import (
    AccountTable,
    ActionLinkTable,
    DeliveryTable,
    NoticeTable,
    PushDeviceTable,
    SlotTable,
)
from cortex.storage.slots import SlotsRepository
from tests.still_clock import StillClock
from tests.storage.made_time import HOUR, NEWS, NINE, TEA, TOLD, second_process


async def subscribed(
    db: Database,
    owner_id: str,
    endpoint: str = "https://push.test/1",
    *,
    auth: str = "auth",
    login_id: str | None = None,
) -> DeviceRow:
    return await db.repository(DevicesRepository, owner_id).add(
        endpoint=endpoint, p256dh="key", auth=auth, signed_for="vapid", login_id=login_id, name="Phone", agent="Firefox"
    )


async def test_a_browser_that_subscribes_again_keeps_its_name_and_takes_the_new_keys(db: Database, ann: str) -> None:
    devices = db.repository(DevicesRepository, ann)
    first = await subscribed(db, ann)
    await devices.rename(first.id, "Pocket")
    await devices.pushed(first.id, "the service did not answer")
    again = await subscribed(db, ann, auth="fresh")
    assert (again.id, again.name, again.auth, again.error) == (first.id, "Pocket", "fresh", "")
    other = await subscribed(db, ann, "https://push.test/2")
    assert {device.id for device in await devices.list()} == {first.id, other.id}


async def test_what_became_of_pushes_is_noted(db: Database, ann: str, clock: StillClock) -> None:
    devices = db.repository(DevicesRepository, ann)
    device = await subscribed(db, ann)
    await devices.pushed(device.id)
    pushed = clock()
    await devices.shown(device.id)
    clock.forward(minutes=1)
    await devices.pushed(device.id, "busy")
    after = await devices.get(device.id)
    assert (after.pushed_at, after.shown_at, after.error) == (pushed, pushed, "busy")


async def test_a_browser_in_which_another_person_signed_in_is_theirs(db: Database, ann: str, ben: str) -> None:
    await subscribed(db, ann)
    taken = await subscribed(db, ben)
    assert taken.owner_id == ben
    assert await db.repository(DevicesRepository, ann).list() == []
    with pytest.raises(Conflict):
        await subscribed(db, ann, auth="guessed")
    assert await db.repository(DevicesRepository, ben).list() == [taken]


async def test_nothing_more_is_sent_to_a_device_that_was_removed(db: Database, ann: str) -> None:
    device = await subscribed(db, ann)
    notices, deliveries = db.repository(NoticesRepository, ann), db.repository(DeliveriesRepository, ann)
    ways = [Way(channel="web_push", device_id=device.id), Way(channel="ntfy")]
    await notices.add("sent", TOLD, ways)
    (taken,) = await db.repository(AllDeliveriesRepository).take("web_push", 1, 60)
    await deliveries.end(taken.id, 1, "delivered")
    await notices.add("one", TOLD, ways)
    assert await db.repository(DevicesRepository, ann).remove(device.id) is True
    assert await db.repository(DevicesRepository, ann).remove(device.id) is False
    found = await deliveries.of_notices(["sent", "one"])
    assert {row.channel: row.state for row in found["sent"]} == {"web_push": "delivered", "ntfy": "pending"}
    assert {row.channel: row.state for row in found["one"]} == {"web_push": "dropped", "ntfy": "pending"}


async def test_a_device_outlives_its_login(db: Database, ann: str) -> None:
    logins = db.repository(LoginsRepository, ann)
    await logins.add("swept", "swept", "::1", "Firefox", db.clock() + HOUR)
    await subscribed(db, ann, "https://push.test/swept", login_id="swept")
    await logins.end("swept")
    (left,) = await db.repository(DevicesRepository, ann).list()
    assert (left.endpoint, left.login_id) == ("https://push.test/swept", None)


async def test_a_button_is_pressed_once(db: Database, ann: str, clock: StillClock) -> None:
    await db.repository(NoticesRepository, ann).add("one", TOLD)
    links = db.repository(ActionLinksRepository, ann)
    await links.add("token", "one", "ack", clock() + HOUR)
    assert (await links.get("token")).used_at is None
    async with second_process(db) as other:
        pressed = await asyncio.gather(
            *(one.repository(ActionLinksRepository, ann).use("token") for one in (db, other) * 3),
            return_exceptions=True,
        )
    assert [link.action for link in pressed if not isinstance(link, BaseException)] == ["ack"]
    assert sum(isinstance(link, Conflict) for link in pressed) == 5
    assert (await links.get("token")).used_at == clock()
    clock.forward(minutes=61)
    with pytest.raises(NotFound):
        await links.use("token")
    assert await db.repository(AllActionLinksRepository).prune() == 1


async def test_another_users_devices_and_buttons_are_out_of_reach(db: Database, ann: str, ben: str) -> None:
    device = await subscribed(db, ann)
    await db.repository(NoticesRepository, ann).add("one", TOLD)
    await db.repository(ActionLinksRepository, ann).add("token", "one", "ack", db.clock() + HOUR)
    theirs, links = db.repository(DevicesRepository, ben), db.repository(ActionLinksRepository, ben)
    assert await theirs.list() == []
    assert await theirs.remove(device.id) is False
    for attempt in (
        theirs.get(device.id),
        theirs.rename(device.id, "mine"),
        theirs.pushed(device.id),
        theirs.shown(device.id),
        links.get("token"),
        links.use("token"),
        links.add("other", "one", "ack", db.clock() + HOUR),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert await db.repository(DevicesRepository, ann).list() == [device]


async def test_deleting_an_account_leaves_nothing_of_its_time_and_reach(db: Database, ann: str, ben: str) -> None:
    job = await db.repository(JobsRepository, ann).add(None, NEWS, NINE)
    await db.repository(SlotsRepository, ann).write_down(job.id, NINE)
    await db.repository(RemindersRepository, ann).add(None, TEA, NINE)
    device = await subscribed(db, ann)
    await db.repository(NoticesRepository, ann).add("one", TOLD, [Way(channel="web_push", device_id=device.id)])
    await db.repository(ActionLinksRepository, ann).add("token", "one", "ack", NINE)
    await db.repository(JobsRepository, ben).add("theirs", NEWS, NINE)
    async with db.session_scope() as session:
        await session.execute(delete(AccountTable).where(AccountTable.id == ann))
    assert [one.id for one in await db.repository(AllJobsRepository).armed()] == ["theirs"]
    assert await db.repository(AllRemindersRepository).armed() == []
    async with db.session_scope(reading=True) as session:
        tables = (SlotTable, NoticeTable, DeliveryTable, PushDeviceTable, ActionLinkTable)
        counts = [(await session.execute(select(func.count()).select_from(table))).scalar_one() for table in tables]
    assert counts == [0, 0, 0, 0, 0]
