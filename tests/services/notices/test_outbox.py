"""The outbox at work, against real servers on this machine: sent once, tried again, never lost, never in the way."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sized
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from cortex.base.errors import Conflict, ToolFailed
from cortex.engine.hub import LocalHub
from cortex.notify.channels.webhook import CHANNEL as WEBHOOK
from cortex.notify.context import SmtpServer
from cortex.ports.channels import PRIVATE_TEXT
from cortex.ports.outgoing import Mail, Push, PushCount
from cortex.services.notices.delivery import BACK_OFF_S, opening
from cortex.services.notices.notices import NoticeFilter, NoticeRow
from cortex.services.notices.outbox import LEASE_S, LOOK_S, Outbox
from cortex.services.notices.preferences import KINDS
from cortex.services.notifier import OUTBOX
from cortex.storage.accounts import LoginsRepository
from cortex.storage.db import Database
from tests.children import ROOT
from tests.notify.browser import Browser
from tests.notify.loopback import Loopback, Reply
from tests.notify.mail_server import Mailbox, mail_server
from tests.services.notices.notices_world import ADA, BOB, TEA, NoticesWorld, made_world, until
from tests.still_clock import StillClock

TAKEN = Reply(status=200, body=b'{"id":"1"}')
BUSY = Reply(status=503)


def inside(*servers: Loopback) -> dict[str, Any]:
    """The settings that let notices go to these servers."""
    return {"notify_hosts": tuple(f"{host}:{port}" for host, port in (server.place for server in servers))}


def mailed(smtp: SmtpServer) -> dict[str, Any]:
    """The settings that name this mail server."""
    named = {"smtp_host": smtp.host, "smtp_port": smtp.port, "smtp_security": "none", "smtp_from": smtp.sender}
    return {**named, "smtp_user": smtp.user, "smtp_password": smtp.password}


@asynccontextmanager
async def silent_server() -> AsyncIterator[tuple[int, list[bytes]]]:
    """It takes a request and hangs up without a word; its port, and what it took."""
    taken: list[bytes] = []

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken.append(await reader.readuntil(b"\r\n\r\n"))
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], taken


async def test_a_notice_goes_by_every_way_of_its_person(db: Database, clock: StillClock, tmp_path: Path) -> None:
    browser, mailbox = Browser(), Mailbox()
    with Loopback() as push, Loopback(TAKEN) as ntfy, Loopback() as hook:
        async with mail_server(mailbox) as smtp:
            world = await made_world(db, clock, tmp_path, **inside(push, ntfy, hook), **mailed(smtp))
            await world.subscribed(browser, f"{push.origin}/p")
            await world.addresses.put(ADA, "ntfy", f"{ntfy.origin}/plants")
            await world.addresses.put(ADA, "webhook", f"{hook.origin}/hook")
            await world.addresses.put(ADA, "email", "ada@example.org")
            await world.notification_preferences.change(ADA, content=["web_push", "email"])
            async with world.sending():
                id = await world.notices.notify(ADA.id, replace(TEA, urgency="high", actions=("ack", "snooze")))
                ended = await world.ended(id)
    assert {name: (row.state, row.attempt, row.error) for name, row in ended.items()} == {
        name: ("delivered", 1, "") for name in ("email", "ntfy", "web_push", "webhook")
    }
    message = browser.read(push.seen[0].body)
    assert (message["notification"]["title"], message["app_badge"]) == ("Water the plants", 1)
    assert message["notification"]["data"]["id"] == ended["web_push"].id
    assert message["notification"]["navigate"] == f"https://cortex.example.org/reminders?notice={id}"
    assert [one["action"] for one in message["notification"]["actions"]] == ["ack", "snooze"]
    assert message["notification"]["actions"][0]["navigate"].startswith("https://cortex.example.org/go/")
    assert b"The fern first." in (mailbox.mails[0].content or b"")
    assert json.loads(ntfy.seen[0].body)["message"] == PRIVATE_TEXT
    assert json.loads(hook.seen[0].body)["data"]["text"] == PRIVATE_TEXT
    (device,) = await world.devices.list(ADA)
    assert (device.state, device.pushed_at) == ("ok", clock())


@pytest.mark.parametrize(
    ("path", "opened"),
    [
        ("/reminders", "/reminders?notice=n1"),
        ("/runs?role=coder", "/runs?role=coder&notice=n1"),
        ("/c/1#m5", "/c/1?notice=n1#m5"),
    ],
)
def test_the_page_that_a_notice_opens_knows_of_it(path: str, opened: str) -> None:
    at = datetime(2026, 11, 21, tzinfo=UTC)
    row = NoticeRow(
        kind="job",
        title="News",
        text="",
        path=path,
        id="n1",
        owner_id="ada",
        is_replaced=False,
        created_at=at,
        read_at=None,
        acknowledged_at=None,
        is_tainted=False,
    )
    assert opening(row) == opened


async def test_a_channel_that_hangs_holds_up_no_other(db: Database, clock: StillClock, tmp_path: Path) -> None:
    with Loopback(*[Reply(is_held=True)] * 4) as hook, Loopback(*[TAKEN] * 9) as ntfy:
        world = await made_world(db, clock, tmp_path, **inside(hook, ntfy))
        await world.addresses.put(ADA, "webhook", f"{hook.origin}/hook")
        await world.addresses.put(ADA, "ntfy", f"{ntfy.origin}/plants")
        async with world.sending():
            ids = [await world.notices.notify(ADA.id, replace(TEA, key=str(number))) for number in range(9)]

            async def all_by_ntfy() -> bool:
                return {(await world.deliveries(id))["ntfy"].state for id in ids} == {"delivered"}

            await until(all_by_ntfy)
            states = [(await world.deliveries(id))["webhook"].state for id in ids]
    assert "delivered" not in states
    assert states.count("attempting") == WEBHOOK.at_once // 2


async def test_what_was_to_go_by_a_channel_that_is_gone_fails_with_words_and_goes_by_another(
    db: Database, clock: StillClock, tmp_path: Path
) -> None:
    with Loopback(TAKEN) as ntfy:
        world = await made_world(db, clock, tmp_path, **inside(ntfy))
        module = ModuleType("doves")
        module.__dict__["CHANNEL"] = replace(WEBHOOK, label="Doves")
        world.channels.register.put({"pigeon": module})
        await world.addresses.put(ADA, "pigeon", f"{ntfy.origin}/doves")
        id = await world.notices.notify(ADA.id, TEA)
        world.channels.register.put({})
        await world.addresses.put(ADA, "ntfy", f"{ntfy.origin}/plants")
        async with world.sending():
            ended = await world.ended(id)
    assert (ended["pigeon"].state, ended["ntfy"].state) == ("failed", "delivered")
    assert "Unknown channel 'pigeon'" in ended["pigeon"].error


async def test_a_persons_address_that_hangs_holds_up_nobody_else(
    db: Database, clock: StillClock, tmp_path: Path
) -> None:
    with Loopback(*[Reply(is_held=True)] * 4) as hanging, Loopback() as quick:
        world = await made_world(db, clock, tmp_path, **inside(hanging, quick))
        await world.addresses.put(ADA, "webhook", f"{hanging.origin}/hook")
        await world.addresses.put(BOB, "webhook", f"{quick.origin}/hook")
        async with world.sending():
            for number in range(9):
                await world.notices.notify(ADA.id, replace(TEA, key=str(number)))
            clock.forward(seconds=1)
            for number in range(9):
                await world.notices.notify(BOB.id, replace(TEA, key=str(number)))
            await until(lambda: _is_there(quick.seen, 9))
            assert len(hanging.seen) <= WEBHOOK.at_once // 2


async def test_a_server_that_is_busy_is_tried_again_with_growing_pauses(
    db: Database, clock: StillClock, tmp_path: Path
) -> None:
    with Loopback(*[BUSY] * (len(BACK_OFF_S) + 1)) as hook:
        world = await made_world(db, clock, tmp_path, **inside(hook))
        await world.addresses.put(ADA, "webhook", f"{hook.origin}/hook")
        async with world.sending():
            id = await world.notices.notify(ADA.id, TEA)
            for number, wait_s in enumerate(BACK_OFF_S, start=1):

                async def is_put_off(wait_s: float = wait_s) -> bool:
                    row = (await world.deliveries(id))["webhook"]
                    return row.state == "pending" and row.next_at == clock() + timedelta(seconds=wait_s)

                await until(is_put_off)
                assert len(hook.seen) == number
                world.later(seconds=wait_s)
            row = (await world.ended(id))["webhook"]
            assert (row.state, row.attempt) == ("failed", len(BACK_OFF_S) + 1)
            assert "answered 503" in row.error
            view = (await world.addresses.views(ADA))[-1]
            assert (view.name, view.error) == ("webhook", row.error)
            await world.notices.send_again(ADA.id, row.id)
            assert (await world.ended(id))["webhook"].state == "delivered"
            with pytest.raises(Conflict):
                await world.notices.send_again(ADA.id, row.id)
    assert len({seen.headers["webhook-id"] for seen in hook.seen}) == 1


async def test_what_failed_until_its_time_was_up_says_why_it_failed(
    db: Database, clock: StillClock, tmp_path: Path
) -> None:
    with Loopback(BUSY) as hook:
        world = await made_world(db, clock, tmp_path, **inside(hook))
        await world.addresses.put(ADA, "webhook", f"{hook.origin}/hook")
        async with world.sending():
            in_time = clock() + timedelta(seconds=5)
            id = await world.notices.notify(ADA.id, replace(TEA, expires_at=in_time))

            async def was_tried() -> bool:
                return bool((await world.deliveries(id))["webhook"].error)

            await until(was_tried)
            world.later(seconds=BACK_OFF_S[0])
            row = (await world.ended(id))["webhook"]
    assert (row.state, len(hook.seen)) == ("failed", 1)
    assert "answered 503" in row.error


@pytest.mark.parametrize(("asked_s", "wait_s"), [(700, 700), (3, 10)], ids=["longer than ours", "shorter than ours"])
async def test_a_server_that_asks_for_patience_gets_it(
    db: Database, clock: StillClock, tmp_path: Path, asked_s: int, wait_s: int
) -> None:
    with Loopback(Reply(status=429, headers={"Retry-After": str(asked_s)})) as hook:
        world = await made_world(db, clock, tmp_path, **inside(hook))
        await world.addresses.put(ADA, "webhook", f"{hook.origin}/hook")
        async with world.sending():
            id = await world.notices.notify(ADA.id, TEA)

            async def was_tried() -> bool:
                return bool((await world.deliveries(id))["webhook"].error)

            await until(was_tried)
        assert (await world.deliveries(id))["webhook"].next_at == clock() + timedelta(seconds=wait_s)


async def test_what_a_server_refuses_is_not_tried_again(db: Database, clock: StillClock, tmp_path: Path) -> None:
    with Loopback(Reply(status=403)) as hook:
        world = await made_world(db, clock, tmp_path, **inside(hook))
        await world.addresses.put(ADA, "webhook", f"{hook.origin}/hook")
        async with world.sending():
            row = (await world.ended(await world.notices.notify(ADA.id, TEA)))["webhook"]
    assert (row.state, row.attempt) == ("failed", 1)
    assert "signature" in row.error


async def test_a_dead_device_is_removed_and_its_person_told_by_another_way(
    db: Database, clock: StillClock, tmp_path: Path
) -> None:
    mailbox = Mailbox()
    with Loopback(Reply(status=410)) as push:
        async with mail_server(mailbox) as smtp:
            world = await made_world(db, clock, tmp_path, **inside(push), **mailed(smtp))
            await world.subscribed(Browser(), f"{push.origin}/p", user=ADA)
            await world.addresses.put(ADA, "email", "ada@example.org")
            await world.notification_preferences.change(ADA, content=["email"])
            async with world.sending():
                row = (await world.ended(await world.notices.notify(ADA.id, TEA)))["web_push"]
                await until(lambda: _is_there(mailbox.mails, 2))
                (told,) = (await world.notices.page(ADA.id, NoticeFilter(kinds=("system",)))).notices
                assert {name: one.state for name, one in (await world.ended(told.row.id)).items()} == {
                    "email": "delivered"
                }
    assert (row.state, await world.devices.list(ADA)) == ("failed", [])
    assert told.row.title.startswith("Firefox on Linux")
    for words in (b"no longer takes notifications", b"The fern first."):
        assert any(words in (mail.content or b"") for mail in mailbox.mails)


async def _is_there(things: Sized, count: int) -> bool:
    return len(things) >= count


async def test_what_fails_by_its_ways_goes_by_one_more_and_says_so(
    db: Database, clock: StillClock, tmp_path: Path
) -> None:
    mailbox = Mailbox()
    with Loopback(Reply(status=403)) as ntfy, Loopback() as hook:
        async with mail_server(mailbox) as smtp:
            world = await made_world(db, clock, tmp_path, **inside(ntfy, hook), **mailed(smtp))
            await world.addresses.put(ADA, "ntfy", f"{ntfy.origin}/plants")
            await world.addresses.put(ADA, "email", "ada@example.org")
            await world.addresses.put(ADA, "webhook", f"{hook.origin}/hook")
            await world.notification_preferences.change(ADA, channels={"reminder": ["ntfy"]})
            async with world.sending():
                id = await world.notices.notify(ADA.id, TEA)
                await until(lambda: _is_there(mailbox.mails, 1))
                ended = await world.ended(id)
    assert {name: row.state for name, row in ended.items()} == {"ntfy": "failed", "email": "delivered"}
    (page,) = [view for view in await world.addresses.views(ADA) if view.name == "ntfy"]
    assert ("token" in page.error, page.is_tried_again) == (True, False)


async def test_a_way_that_worked_is_way_enough(db: Database, clock: StillClock, tmp_path: Path) -> None:
    with Loopback(Reply(status=403)) as ntfy, Loopback() as hook, Loopback() as push:
        world = await made_world(db, clock, tmp_path, **inside(ntfy, hook, push))
        await world.addresses.put(ADA, "ntfy", f"{ntfy.origin}/plants")
        await world.addresses.put(ADA, "webhook", f"{hook.origin}/hook")
        await world.subscribed(Browser(), f"{push.origin}/p")
        await world.notification_preferences.change(ADA, channels={"reminder": ["ntfy", "webhook"]})
        async with world.sending():
            ended = await world.ended(await world.notices.notify(ADA.id, TEA))
        assert {name: row.state for name, row in ended.items()} == {"ntfy": "failed", "webhook": "delivered"}
        assert push.seen == []


async def test_when_no_way_works_each_was_tried_and_it_ends(db: Database, clock: StillClock, tmp_path: Path) -> None:
    refused = [Reply(status=403)] * 9
    with Loopback(*refused) as ntfy, Loopback(*refused) as hook, Loopback(*refused) as push:
        world = await made_world(db, clock, tmp_path, **inside(ntfy, hook, push))
        await world.addresses.put(ADA, "ntfy", f"{ntfy.origin}/plants")
        await world.addresses.put(ADA, "webhook", f"{hook.origin}/hook")
        await world.subscribed(Browser(), f"{push.origin}/p")
        await world.notification_preferences.change(
            ADA, channels={"reminder": ["ntfy"], "job": ["webhook", "web_push"]}
        )
        async with world.sending():
            id = await world.notices.notify(ADA.id, TEA)
            await until(lambda: _is_there(hook.seen, 1))
            ended = await world.ended(id)
    assert {row.state for row in ended.values()} == {"failed"}
    assert [len(one.seen) for one in (ntfy, push, hook)] == [1, 1, 1]


@pytest.mark.parametrize("reason", ["muted", "unwanted there", "read"])
async def test_nothing_more_is_tried_where_nobody_wants_it(
    db: Database, clock: StillClock, tmp_path: Path, reason: str
) -> None:
    with Loopback(Reply(status=503), Reply(status=403)) as hook, Loopback() as ntfy:
        world = await made_world(db, clock, tmp_path, **inside(ntfy, hook))
        await world.addresses.put(ADA, "ntfy", f"{ntfy.origin}/plants")
        await world.addresses.put(ADA, "webhook", f"{hook.origin}/hook")
        await world.notification_preferences.change(ADA, channels={"reminder": ["webhook"]})
        async with world.sending():
            id = await world.notices.notify(ADA.id, TEA)

            async def was_tried() -> bool:
                return bool((await world.deliveries(id))["webhook"].error)

            await until(was_tried)
            if reason == "muted":
                await world.notification_preferences.change(ADA, muted=["reminder"])
            if reason == "unwanted there":
                await world.notification_preferences.change(ADA, channels={kind: ["webhook"] for kind in KINDS})
            if reason == "read":
                await world.notices.read(ADA.id, [id])
            world.later(seconds=BACK_OFF_S[0])
            ended = await world.ended(id)
    assert list(ended) == ["webhook"]
    assert ntfy.seen == []


async def test_a_lost_answer_is_called_so_and_tried_again_under_the_same_id(
    db: Database, clock: StillClock, tmp_path: Path
) -> None:
    async with silent_server() as (port, taken):
        world = await made_world(db, clock, tmp_path, notify_hosts=(f"127.0.0.1:{port}",))
        await world.addresses.put(ADA, "webhook", f"http://127.0.0.1:{port}/hook")
        async with world.sending():
            id = await world.notices.notify(ADA.id, TEA)
            for tries in (1, 2):

                async def was_tried(tries: int = tries) -> bool:
                    row = (await world.deliveries(id))["webhook"]
                    return row.state == "pending" and row.attempt == tries

                await until(was_tried)
                assert "may have" in (await world.deliveries(id))["webhook"].error
                world.later(seconds=BACK_OFF_S[0])
    ids = {line for head in taken for line in head.split(b"\r\n") if line.lower().startswith(b"webhook-id")}
    assert len(ids) == 1
    assert len(taken) >= 2


async def test_a_try_cut_off_by_the_end_of_the_process_is_made_again_by_the_next(
    db: Database, clock: StillClock, tmp_path: Path
) -> None:
    with Loopback(Reply(is_held=True)) as hook:
        world = await made_world(db, clock, tmp_path, **inside(hook))
        await world.addresses.put(ADA, "webhook", f"{hook.origin}/hook")
        async with world.sending():
            id = await world.notices.notify(ADA.id, TEA)

            async def is_sent() -> bool:
                return len(hook.seen) == 1

            await until(is_sent)
        cut = (await world.deliveries(id))["webhook"]
        assert (cut.state, cut.attempt) == ("attempting", 1)
        after = await made_world(db, clock, tmp_path, **inside(hook))
        async with after.sending():
            await after.ended(await after.notices.notify(ADA.id, replace(TEA, key="another")))
            assert len(hook.seen) == 2  # the other alone: somebody may be at the first
            after.later(seconds=LEASE_S)
            row = (await after.ended(id))["webhook"]
    assert (row.state, row.attempt) == ("delivered", 2)
    first, _, again = (seen.headers["webhook-id"] for seen in hook.seen)
    assert again == first


SENDS_UNTIL_KILLED = """
import asyncio, sys
from pathlib import Path
from cortex.storage.db import Database
from tests.services.notices.notices_world import made_world
from tests.still_clock import StillClock

async def main():
    clock = StillClock()
    world = await made_world(Database(sys.argv[1], clock=clock), clock, Path(sys.argv[2]), notify_hosts=(sys.argv[3],))
    async with world.sending():
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_process_killed_before_it_booked_loses_nothing(db: Database, clock: StillClock, tmp_path: Path) -> None:
    with Loopback(Reply(is_held=True)) as hook:
        world = await made_world(db, clock, tmp_path, **inside(hook))
        await world.addresses.put(ADA, "webhook", f"{hook.origin}/hook")
        id = await world.notices.notify(ADA.id, TEA)
        url, place = db.url.render_as_string(hide_password=False), inside(hook)["notify_hosts"][0]
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", SENDS_UNTIL_KILLED, url, str(tmp_path), place, cwd=ROOT
        )

        async def is_sent() -> bool:
            return len(hook.seen) == 1

        await until(is_sent)
        child.kill()
        await child.wait()
        clock.forward(seconds=LEASE_S)
        async with world.sending():
            row = (await world.ended(id))["webhook"]
    assert (row.state, row.attempt) == ("delivered", 2)
    assert len({seen.headers["webhook-id"] for seen in hook.seen}) == 1


async def test_a_delivery_that_ends_every_process_is_given_up(db: Database, clock: StillClock, tmp_path: Path) -> None:
    with Loopback() as hook:
        world = await made_world(db, clock, tmp_path, **inside(hook))
        await world.addresses.put(ADA, "webhook", f"{hook.origin}/hook")
        id = await world.notices.notify(ADA.id, TEA)
        for _ in range(len(BACK_OFF_S) + 1):
            assert await world.taken()
            clock.forward(seconds=LEASE_S)
        async with world.sending():
            row = (await world.ended(id))["webhook"]
    assert (row.state, hook.seen) == ("failed", [])
    assert "in the middle" in row.error


async def test_quiet_hours_hold_back_a_second_try_too(db: Database, tmp_path: Path) -> None:
    clock = StillClock(datetime(2026, 11, 20, 20, 59, 55, tzinfo=UTC))
    db.clock = clock
    with Loopback(BUSY) as hook:
        world = await made_world(db, clock, tmp_path, **inside(hook))
        await world.addresses.put(ADA, "webhook", f"{hook.origin}/hook")
        await world.notification_preferences.change(ADA, quiet="22:00-07:00")
        async with world.sending():
            id = await world.notices.notify(ADA.id, TEA)

            async def next_at(at: datetime) -> bool:
                return (await world.deliveries(id))["webhook"].next_at == at

            await until(lambda: next_at(clock() + timedelta(seconds=BACK_OFF_S[0])))
            world.later(seconds=BACK_OFF_S[0])  # 22:00:05 there
            morning = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)
            await until(lambda: next_at(morning))
            urgent = await world.notices.notify(ADA.id, replace(TEA, key="fire", urgency="high"))
            assert (await world.ended(urgent))["webhook"].state == "delivered"
            clock.at = morning
            world.notices.wake()
            assert (await world.ended(id))["webhook"].state == "delivered"


async def read(world: NoticesWorld, id: str) -> None:
    await world.notices.read(ADA.id, [id])


async def acknowledge(world: NoticesWorld, id: str) -> None:
    await world.notices.acknowledge(ADA.id, id)


async def expire(world: NoticesWorld, id: str) -> None:
    world.clock.forward(minutes=5)


async def remove_the_address(world: NoticesWorld, id: str) -> None:
    await world.addresses.remove(ADA, "ntfy")


@pytest.mark.parametrize(
    ("meanwhile", "why"),
    [
        (read, "read before"),
        (acknowledge, "answered before"),
        (expire, "time was up"),
        (remove_the_address, "no address"),
    ],
    ids=["read", "answered", "over", "no address"],
)
async def test_what_is_over_before_it_was_sent_is_dropped(
    db: Database,
    clock: StillClock,
    tmp_path: Path,
    meanwhile: Callable[[NoticesWorld, str], Awaitable[None]],
    why: str,
) -> None:
    with Loopback(TAKEN) as ntfy:
        world = await made_world(db, clock, tmp_path, **inside(ntfy))
        await world.addresses.put(ADA, "ntfy", f"{ntfy.origin}/plants")
        in_time = clock() + timedelta(minutes=5)
        id = await world.notices.notify(ADA.id, replace(TEA, expires_at=in_time))
        await meanwhile(world, id)
        async with world.sending():
            row = (await world.ended(id))["ntfy"]
    assert (row.state, ntfy.seen) == ("dropped", [])
    assert why in row.error


async def test_a_device_whose_login_ended_is_told_nothing(db: Database, clock: StillClock, tmp_path: Path) -> None:
    with Loopback() as push:
        world = await made_world(db, clock, tmp_path, **inside(push))
        await world.subscribed(Browser(), f"{push.origin}/p")
        before = await world.notices.notify(ADA.id, TEA)
        await db.repository(LoginsRepository, ADA.id).end("login-1")
        after = await world.notices.notify(ADA.id, replace(TEA, key="after"))
        async with world.sending():
            assert (await world.ended(before))["web_push"].state == "dropped"
        assert (await world.deliveries(after), push.seen) == ({}, [])
        assert [device.state for device in await world.devices.list(ADA)] == ["signed_out"]


async def test_two_processes_send_it_once(db: Database, clock: StillClock, tmp_path: Path) -> None:
    with Loopback() as hook:
        world = await made_world(db, clock, tmp_path, **inside(hook))
        other = await made_world(db, clock, tmp_path, **inside(hook))
        await world.addresses.put(ADA, "webhook", f"{hook.origin}/hook")
        ids = [await world.notices.notify(ADA.id, replace(TEA, key=str(number))) for number in range(20)]
        async with world.sending(), other.sending():
            for id in ids:
                assert (await world.ended(id))["webhook"].state == "delivered"
    sent = [seen.headers["webhook-id"] for seen in hook.seen]
    assert len(sent) == len(set(sent)) == 20


class Bell(LocalHub):
    """A hub that keeps how long it was asked to wait for the outbox."""

    def __init__(self) -> None:
        super().__init__()
        self.waits_s: list[float] = []

    async def changed(self, conversation_id: str, since: int, timeout_s: float) -> int:
        if conversation_id == OUTBOX and since >= 0:
            self.waits_s.append(timeout_s)
        return await super().changed(conversation_id, since, timeout_s)


async def test_with_nothing_to_send_it_looks_twice_a_minute_at_most(
    db: Database, clock: StillClock, tmp_path: Path
) -> None:
    world, bell = await made_world(db, clock, tmp_path, notify_hosts=("127.0.0.1:9",)), Bell()
    loop = Outbox(db=db, hub=bell, delivery=world.outbox.delivery, clock=clock, refresh=world.outbox.refresh)
    worker = asyncio.create_task(loop.send_due())

    async def has_looked() -> bool:
        return bool(bell.waits_s)

    await until(has_looked)
    assert bell.waits_s == [LOOK_S]
    await world.addresses.put(ADA, "webhook", "http://127.0.0.1:9/hook")
    await world.notification_preferences.change(ADA, quiet="10:00-10:10")  # it is 10:00 there
    await world.notices.notify(ADA.id, TEA)
    bell.announce(OUTBOX)

    async def has_looked_again() -> bool:
        return len(bell.waits_s) == 2

    await until(has_looked_again)
    worker.cancel()
    await asyncio.wait([worker])
    assert bell.waits_s == [LOOK_S, LOOK_S]


# --- the digest


async def test_the_digest_tells_what_was_of_low_urgency_once_at_its_hour(
    db: Database, clock: StillClock, tmp_path: Path
) -> None:
    with Loopback() as hook:
        world = await made_world(db, clock, tmp_path, **inside(hook))
        await world.addresses.put(ADA, "webhook", f"{hook.origin}/hook")
        await world.notification_preferences.change(ADA, digest_hour="12", content=["webhook"])  # 11:00 UTC
        low = replace(TEA, kind="job", urgency="low")
        for number in range(3):
            await world.notices.notify(
                ADA.id, replace(low, key=str(number), title=f"Backup {number}", is_tainted=number == 1)
            )
            clock.forward(minutes=1)
        await world.notices.notify(BOB.id, replace(low, title="Bob's"))
        await world.digests.go_round()
        assert (await world.notices.page(ADA.id, NoticeFilter(kinds=("digest",)))).notices == ()
        clock.forward(minutes=120)
        await world.notices.notify(ADA.id, replace(low, key="later", title="After the hour"))
        await world.digests.go_round()
        await world.digests.go_round()
        (told,) = (await world.notices.page(ADA.id, NoticeFilter(kinds=("digest",)))).notices
        async with world.sending():
            await world.ended(told.row.id)
        clock.forward(days=1)
        await world.digests.go_round()
        (next_day,) = (await world.notices.page(ADA.id, NoticeFilter(kinds=("digest",)))).notices
    assert told.row.text == "• Backup 0\n• Backup 1\n• Backup 2"
    assert ["3 things" in json.loads(seen.body)["data"]["title"] for seen in hook.seen] == [True]
    assert next_day.row.text == "• After the hour"
    assert (told.row.is_tainted, next_day.row.is_tainted) == (True, False)
    assert (await world.notices.page(BOB.id, NoticeFilter(kinds=("digest",)))).notices == ()


async def test_a_digest_that_came_due_while_cortex_was_down_is_told_at_the_start(
    db: Database, clock: StillClock, tmp_path: Path
) -> None:
    world = await made_world(db, clock, tmp_path)
    await world.notification_preferences.change(ADA, digest_hour="12")
    await world.notices.notify(ADA.id, replace(TEA, urgency="low"))
    clock.forward(days=2)
    await world.digests.go_round()
    (told,) = (await world.notices.page(ADA.id, NoticeFilter(kinds=("digest",)))).notices
    assert told.row.text == "• Water the plants"


@pytest.mark.parametrize(
    ("since", "hour"),
    [
        (datetime(2027, 3, 26, 12, tzinfo=UTC), "2"),
        pytest.param(datetime(2027, 3, 26, 12, tzinfo=UTC), "8", marks=pytest.mark.full),
        (datetime(2027, 10, 29, 12, tzinfo=UTC), "2"),
        pytest.param(datetime(2027, 10, 29, 12, tzinfo=UTC), "8", marks=pytest.mark.full),
    ],
    ids=["an hour that is not there", "in spring", "an hour that comes twice", "in autumn"],
)
async def test_a_digest_comes_once_a_day_over_restarts_and_changes_of_the_clock(
    db: Database, clock: StillClock, tmp_path: Path, since: datetime, hour: str
) -> None:
    clock.forward(seconds=(since - clock()).total_seconds())
    told = []
    for number in range(3 * 24):
        world = await made_world(db, clock, tmp_path)  # as after a start: nothing is remembered but the tables
        if not number:
            await world.notification_preferences.change(ADA, digest_hour=hour)
        await world.notices.notify(ADA.id, replace(TEA, key=str(number), urgency="low"))
        await world.digests.go_round()
        for view in (await world.notices.page(ADA.id, NoticeFilter(kinds=("digest",)))).notices:
            told.append(view.row.created_at.astimezone(ZoneInfo(ADA.time_zone)))
        clock.forward(minutes=60)
    days = [at.date().isoformat() for at in dict.fromkeys(told)]
    assert len(days) == len(set(days)) == 3
    assert {at.hour for at in told} <= {int(hour), int(hour) + 1}


async def test_a_day_on_which_all_was_read_has_no_digest(db: Database, clock: StillClock, tmp_path: Path) -> None:
    world = await made_world(db, clock, tmp_path)
    await world.notification_preferences.change(ADA, digest_hour="12")
    await world.notices.notify(ADA.id, replace(TEA, urgency="low"))
    await world.notices.read_all(ADA.id, clock())
    clock.forward(days=1)
    await world.digests.go_round()
    assert (await world.notices.page(ADA.id, NoticeFilter(kinds=("digest",)))).notices == ()


# --- the tools' ports


async def test_the_ports_are_open_where_the_house_can_send(db: Database, clock: StillClock, tmp_path: Path) -> None:
    bare = await made_world(db, clock, tmp_path / "a", push_subject="", public_url="")
    whole = await made_world(db, clock, tmp_path / "b", smtp_host="mail.example.org", smtp_from="a@example.org")
    assert bare.wired & {"Push", "Mail"} == {"Push"}
    assert {"Push", "Mail"} <= whole.wired


async def test_a_tools_push_says_what_became_of_it(db: Database, clock: StillClock, tmp_path: Path) -> None:
    browser = Browser()
    with Loopback(Reply(), BUSY) as push:
        world = await made_world(db, clock, tmp_path, **inside(push))
        port = world.scope.provide(Push, ADA.id)
        async with world.sending():
            assert await port.push("call-0", "Cortex", "hello") == PushCount(devices=0, failed=0)
            await world.subscribed(browser, f"{push.origin}/p")
            assert await port.push("call-1", "**Cortex**", "- hello") == PushCount(devices=1, failed=0)
            assert await port.push("call-1", "Cortex", "hello") == PushCount(devices=1, failed=0)
            assert await port.push("call-2", "Cortex", "hello") == PushCount(devices=0, failed=0, waiting=1)
            await world.notification_preferences.change(ADA, muted=["message"])
            with pytest.raises(ToolFailed, match="muted"):
                await port.push("call-3", "Cortex", "hello")
    assert len(push.seen) == 2
    said = [(one.row.title, one.row.text) for one in (await world.notices.page(ADA.id)).notices]
    assert ("Cortex", "• hello") in said, "no marks of Markdown"


async def test_a_tools_mail_goes_out_with_the_way_back_to_its_user(
    db: Database, clock: StillClock, tmp_path: Path
) -> None:
    mailbox = Mailbox()
    async with mail_server(mailbox) as smtp:
        world = await made_world(db, clock, tmp_path, **mailed(smtp))
        port = world.scope.provide(Mail, ADA.id)
        assert await port.own_address() == ""
        await world.addresses.put(ADA, "email", "ada@example.org")
        assert await port.own_address() == "ada@example.org"
        await port.send_mail("call-1", ["ben@example.org"], "Late", "I come at 9.", {})
        mailbox.refusals["eve@example.org"] = "550 no such person"
        with pytest.raises(ToolFailed, match="550 no such person"):
            await port.send_mail("call-2", ["eve@example.org"], "Late", "I come at 9.", {})
    (mail,) = mailbox.mails
    assert b"Reply-To: ada@example.org" in (mail.content or b"")
    assert await world.scope.provide(Mail, BOB.id).own_address() == ""
