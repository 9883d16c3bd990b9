"""Browsers that take push: subscribed, looked after, tested, silent, gone."""

from collections.abc import Awaitable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from cortex.base.errors import Conflict, NotAllowed, NotFound, UserError
from cortex.base.user import User
from cortex.notify.context import STAND_IN
from cortex.services.notices.devices import DEVICES_MOST, Subscription
from cortex.storage.accounts import LoginsRepository
from cortex.storage.db import Database
from cortex.storage.secrets import ServerSecretsRepository
from tests.notify.browser import Browser, signature
from tests.notify.loopback import Loopback, Reply
from tests.services.notices.notices_world import ADA, AGENT, BOB, TEA, NoticesWorld, made_world
from tests.still_clock import StillClock

PHONE = "https://push.example.org/phone"


@pytest.fixture
async def world(db: Database, clock: StillClock, tmp_path: Path) -> NoticesWorld:
    return await made_world(db, clock, tmp_path / "home")


async def test_a_browser_that_comes_back_keeps_its_name(world: NoticesWorld) -> None:
    browser = Browser()
    first = await world.subscribed(browser, PHONE)
    assert (first.name, first.state) == ("Firefox on Linux", "ok")
    await world.devices.rename(ADA, first.id, "  My   phone ")
    again = await world.subscribed(Browser(), PHONE)
    moved = await world.subscribed(browser, "https://push.example.org/moved", instead_of=PHONE)
    assert (again.id, again.name, moved.name) == (first.id, "My phone", "My phone")
    assert [device.id for device in await world.devices.list(ADA)] == [moved.id]


async def test_a_browser_that_says_nothing_of_itself_is_called_one(world: NoticesWorld) -> None:
    target, newest = Browser().target(PHONE), await world.devices.key()
    silent = Subscription(endpoint=PHONE, p256dh=target.key, auth=target.secret, signed_for=newest)
    assert (await world.devices.subscribe(await world.login(), silent, "")).name == "Browser"


@pytest.mark.parametrize(
    "wrong",
    [{"endpoint": "http://push.example.org/x"}, {"endpoint": "https://127.0.0.1 /"}, {"p256dh": "AAAA"}, {"auth": "x"}],
    ids=["no https", "no address", "no key", "no secret"],
)
async def test_what_is_no_subscription_is_refused(world: NoticesWorld, wrong: dict[str, str]) -> None:
    target, newest = Browser().target(PHONE), await world.devices.key()
    good = Subscription(endpoint=PHONE, p256dh=target.key, auth=target.secret, signed_for=newest)
    with pytest.raises(UserError):
        await world.devices.subscribe(await world.login(), replace(good, **wrong), AGENT)
    assert await world.devices.list(ADA) == []


async def test_there_is_an_end_to_a_persons_devices(world: NoticesWorld) -> None:
    for number in range(DEVICES_MOST):
        await world.subscribed(Browser(), f"{PHONE}{number}")
    with pytest.raises(UserError, match="At most 20 devices"):
        await world.subscribed(Browser(), PHONE)
    await world.subscribed(Browser(), f"{PHONE}0")
    assert len(await world.devices.list(ADA)) == DEVICES_MOST


@pytest.mark.parametrize(
    ("mails", "contact"),
    [
        ((), STAND_IN),
        (((BOB, "ben@example.org"),), STAND_IN),
        (((BOB, "ben@example.org"), (ADA, "ada@example.org")), "mailto:ada@example.org"),
    ],
    ids=["nobody is known", "a member is no contact", "an admin is"],
)
async def test_a_push_goes_out_although_nothing_was_set(
    db: Database, clock: StillClock, tmp_path: Path, mails: Sequence[tuple[User, str]], contact: str
) -> None:
    browser, bare = Browser(), {"push_subject": "", "public_url": "", "smtp_host": "mail.example.org"}
    with Loopback(Reply(status=201), Reply(status=403, body=b'{"reason": "BadJwtToken"}')) as push:
        world = await made_world(
            db, clock, tmp_path, **bare, smtp_from="root@localhost", notify_hosts=(":".join(map(str, push.place)),)
        )
        for user, mail in mails:
            await world.addresses.put(user, "email", mail)
        device = await world.subscribed(browser, f"{push.origin}/p")
        assert await world.devices.test(ADA, device.id) == ""
        assert '"BadJwtToken"' in await world.devices.test(ADA, device.id)
    assert signature(push.seen[0].headers["Authorization"])[0]["sub"] == contact


async def test_a_page_load_finds_out_whether_to_subscribe_anew(world: NoticesWorld) -> None:
    devices, login = world.devices, await world.login()
    newest = await devices.key()
    assert await devices.sync(login, PHONE, newest) == "resubscribe"
    await world.subscribed(Browser(), PHONE)
    assert await devices.sync(login, PHONE, newest) == "ok"
    assert await devices.sync(await world.login(ADA, "login-2"), PHONE, newest) == "resubscribe"
    assert await devices.sync(await world.login(BOB, "bobs"), PHONE, newest) == "resubscribe"
    await world.push_keys.rotate(ADA)
    assert await devices.sync(login, PHONE, newest) == "resubscribe"


async def test_a_device_that_is_signed_out_comes_back_with_the_next_login(world: NoticesWorld) -> None:
    browser = Browser()
    await world.subscribed(browser, PHONE)
    await world.db.repository(LoginsRepository, ADA.id).end("login-1")
    assert [device.state for device in await world.devices.list(ADA)] == ["signed_out"]
    assert (await world.subscribed(browser, PHONE, login="login-2")).state == "ok"


async def test_a_device_is_silent_after_a_week_of_pushes_that_it_did_not_show(
    db: Database, clock: StillClock, tmp_path: Path
) -> None:
    with Loopback() as push:
        world = await made_world(db, clock, tmp_path, notify_hosts=(f"127.0.0.1:{push.place[1]}",))
        device = await world.subscribed(Browser(), f"{push.origin}/p")
        subscribed_at = clock()
        states = []
        for _ in range(2):
            clock.forward(days=4)
            assert await world.devices.test(ADA, device.id) == ""
            clock.forward(minutes=61)
            states += [(one.state, one.silent_since) for one in await world.devices.list(ADA)]
        assert states == [("ok", None), ("silent", subscribed_at)]
        async with world.sending():
            row = (await world.ended(await world.notices.notify(ADA.id, TEA)))["web_push"]
        await world.devices.shown(ADA, row.id)
        (heard,) = await world.devices.list(ADA)
        assert (heard.state, heard.shown_at) == ("ok", clock())


async def test_a_test_that_was_shown_is_noted(db: Database, clock: StillClock, tmp_path: Path) -> None:
    browser = Browser()
    with Loopback() as push:
        world = await made_world(db, clock, tmp_path, notify_hosts=(f"127.0.0.1:{push.place[1]}",))
        device = await world.subscribed(browser, f"{push.origin}/p")
        await world.devices.test(ADA, device.id)
        named = browser.read(push.seen[0].body)["notification"]["data"]["id"]
    clock.forward(seconds=2)
    with pytest.raises(NotFound):
        await world.devices.shown(BOB, named)
    await world.devices.shown(ADA, named)
    assert [one.shown_at for one in await world.devices.list(ADA)] == [clock()]


async def test_a_test_shows_the_error_and_so_does_the_list(db: Database, clock: StillClock, tmp_path: Path) -> None:
    with Loopback(Reply(status=403)) as push:
        world = await made_world(db, clock, tmp_path, notify_hosts=(f"127.0.0.1:{push.place[1]}",))
        device = await world.subscribed(Browser(), f"{push.origin}/p")
        error = await world.devices.test(ADA, device.id)
        assert "VAPID" in error
        assert [(one.state, one.error) for one in await world.devices.list(ADA)] == [("failing", error)]
        assert await world.devices.test(ADA, device.id) == ""
        assert [(one.state, one.error) for one in await world.devices.list(ADA)] == [("ok", "")]


async def test_another_persons_devices_are_out_of_reach(world: NoticesWorld) -> None:
    device = await world.subscribed(Browser(), PHONE)
    devices = world.devices
    attempts: tuple[Awaitable[object], ...] = (
        devices.rename(BOB, device.id, "mine"),
        devices.test(BOB, device.id),
        devices.remove(BOB, device.id),
    )
    for attempt in attempts:
        with pytest.raises(NotFound):
            await attempt
    await devices.unsubscribe(BOB, PHONE)
    with pytest.raises(Conflict):  # who knows the endpoint alone does not get the device
        await world.subscribed(Browser(), PHONE, user=BOB, login="bobs")
    assert [one.name for one in await devices.list(ADA)] == ["Firefox on Linux"]
    await devices.unsubscribe(ADA, PHONE)
    assert await devices.list(ADA) == []


# --- the keys


async def test_the_keys_are_made_once_sealed_and_stand_after_a_restart(
    world: NoticesWorld, db: Database, clock: StillClock, tmp_path: Path
) -> None:
    await world.push_keys.ensure()
    (key,) = await world.push_keys.keys()
    after = await made_world(db, clock, tmp_path / "home")
    await after.push_keys.ensure()
    assert await after.push_keys.keys() == (key,)
    sealed = await db.repository(ServerSecretsRepository).get("push")
    assert sealed is not None
    assert key.encode() not in sealed


async def test_a_device_is_signed_for_under_the_key_it_knows_until_it_subscribes_anew(
    db: Database, clock: StillClock, tmp_path: Path
) -> None:
    with Loopback() as push:
        world = await made_world(db, clock, tmp_path, notify_hosts=(f"127.0.0.1:{push.place[1]}",))
        other = await made_world(db, clock, tmp_path, notify_hosts=(f"127.0.0.1:{push.place[1]}",))
        device = await world.subscribed(Browser(), f"{push.origin}/p")
        (former,) = await world.push_keys.public()
        await other.push_keys.rotate(ADA)
        newest = await world.devices.key()
        assert newest != former
        assert await world.devices.test(ADA, device.id) == ""
        await world.subscribed(Browser(), f"{push.origin}/p")
        assert await world.devices.test(ADA, device.id) == ""
        assert [signature(seen.headers["Authorization"])[1] for seen in push.seen] == [former, newest]
        for _ in range(3):
            await world.push_keys.rotate(ADA)
        assert [one.state for one in await world.devices.list(ADA)] == ["expired"]


async def test_the_keys_are_the_admins_matter(world: NoticesWorld) -> None:
    before = await world.push_keys.public()
    with pytest.raises(NotAllowed):
        await world.push_keys.rotate(BOB)
    assert await world.push_keys.public() == before


async def test_what_was_sealed_under_another_key_is_said_and_lost_on_nobody(
    world: NoticesWorld, db: Database, clock: StillClock, tmp_path: Path
) -> None:
    await world.subscribed(Browser(), PHONE)
    await world.addresses.put(ADA, "ntfy", "https://ntfy.example.org/plants")
    other = await made_world(db, clock, tmp_path / "home", secret_key="another" * 6)
    assert "secret key" in (await other.addresses.views(ADA))[1].error
    async with other.sending():
        ended = await other.ended(await other.notices.notify(ADA.id, TEA))
    assert {name: row.state for name, row in ended.items()} == {"ntfy": "failed", "web_push": "failed"}
    assert all("old key" in row.error for row in ended.values())
    assert await other.notices.unread(ADA.id) == 1
    assert clock() - ended["ntfy"].created_at < timedelta(seconds=1)
