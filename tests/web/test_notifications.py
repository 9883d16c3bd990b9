"""The pages of being told: the bell, the list and its answers, settings and addresses, devices, a button's own page."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from types import ModuleType

import pytest
from fastapi import FastAPI
from msgspec.structs import replace

from cortex.app import Cortex
from cortex.base.clock import now
from cortex.base.errors import UserError
from cortex.notify import ChannelField, ChannelKind
from cortex.ports.channels import ActionKind, Notice, NoticeKind, Target
from cortex.services.notices.notices import NoticeDraft
from cortex.storage.deliveries import AllDeliveriesRepository, DeliveriesRepository
from cortex.storage.devices import ActionLinksRepository, DevicesRepository
from cortex.storage.notices import NoticesRepository, Way
from tests.databases import copy_home, house_settings
from tests.notify import browser as push
from tests.patience import PATIENCE_S
from tests.still_clock import StillClock
from tests.web.conftest import Browser, Seed, browser
from tests.web.marks import marks
from web.live import LivePages

ENDPOINT = "https://push.example/v1/secret-part"


@pytest.fixture
def clock() -> StillClock:
    return StillClock(now())


@pytest.fixture
async def house(tmp_path: Path, seed: Seed, clock: StillClock) -> AsyncIterator[Cortex]:
    copy_home(seed.home, tmp_path / "home")
    settings = house_settings(tmp_path / "home", push_subject="mailto:ada@example.org")
    async with Cortex.at_rest(settings, clock=clock) as cortex:
        yield cortex


async def told(house: Cortex, person: Browser, title: str = "Water the figs", kind: NoticeKind = "system") -> str:
    notice = NoticeDraft(
        key=title, kind=kind, title=title, text="Twice, it is hot.", path="/tasks", actions=("ack",), is_tainted=False
    )
    return await house.notices.notify(person.user.id, notice)


async def test_the_bell_s_panel_has_the_newest_eight_and_no_one_else_s(
    house: Cortex, ada: Browser, bob: Browser, clock: StillClock
) -> None:
    for number in range(10):
        await told(house, ada, f"Water the figs {number}")
        clock.forward(seconds=1)
    await told(house, bob, "Bob's own")
    panel = (await ada.fragment("/notifications/panel")).text
    assert re.findall(r"Water the figs \d(?=</b>)", panel) == [f"Water the figs {number}" for number in range(9, 1, -1)]
    assert "Bob" not in panel
    assert "<html" not in panel
    assert 'href="/notifications"' in panel
    assert (await ada.get("/notifications/panel")).headers["location"] == "/notifications"
    read = await ada.post("/notifications/read", upto=marks(panel).values["upto"])
    assert read.status_code == 303
    assert await house.notices.unread(ada.user.id) == 0


async def test_an_empty_panel_says_what_comes_there(ada: Browser) -> None:
    panel = (await ada.fragment("/notifications/panel")).text
    assert "Nothing yet." in panel
    assert "remind me in 10 minutes" in panel


async def test_the_panel_offers_to_notify_whoever_is_not_notified_anywhere_yet(house: Cortex, ada: Browser) -> None:
    offer = 'href="/start?open=notify"'
    assert offer in (await ada.fragment("/notifications/panel")).text
    await added(house, ada)
    assert offer not in (await ada.fragment("/notifications/panel")).text


async def added(house: Cortex, person: Browser, name: str = "") -> str:
    target = push.Browser().target(ENDPOINT)
    view = await house.accounts.who(person.http.cookies["cortex"])
    assert view
    row = await house.runtime.db.repository(DevicesRepository, person.user.id).add(
        endpoint=ENDPOINT,
        p256dh=target.key,
        auth=target.secret,
        signed_for=await house.devices.key(),
        login_id=view.login_id,
        name=name or "Phone",
        agent="Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0",
    )
    return row.id


# --- the list


async def test_the_empty_list_leads_to_the_devices(ada: Browser) -> None:
    page = (await ada.get("/notifications")).text
    assert "No notifications yet." in page
    assert 'href="/account/devices"' in page


async def test_what_was_told_stands_in_the_list_and_on_every_bell(house: Cortex, ada: Browser, bob: Browser) -> None:
    await told(house, ada)
    page = (await ada.get("/notifications")).text
    assert "Water the figs" in page
    assert "it is hot" in page
    assert 'data-unread="1"' in (await ada.get("/tasks")).text
    assert 'data-unread="0"' in (await bob.get("/tasks")).text


async def test_page_and_fragment_are_of_one_piece(house: Cortex, ada: Browser) -> None:
    await told(house, ada)
    for path in ("/notifications", "/notifications/settings", "/account/devices"):
        page, part = (await ada.get(path)).text, (await ada.fragment(path)).text
        assert part.strip() in page
        assert "<!doctype" not in part


async def test_opening_one_marks_it_read_and_leads_to_what_it_is_about(house: Cortex, ada: Browser) -> None:
    notice = await told(house, ada)
    answer = await ada.post(f"/notifications/{notice}/open")
    assert (answer.status_code, answer.headers["location"]) == (303, "/tasks")
    assert await house.notices.unread(ada.user.id) == 0


async def test_done_acknowledges(house: Cortex, ada: Browser) -> None:
    notice = await told(house, ada)
    await ada.post(f"/notifications/{notice}/ack")
    assert (await house.notices.get(ada.user.id, notice)).row.acknowledged_at
    assert "done" in (await ada.get("/notifications")).text


async def test_all_read_goes_as_far_as_the_page_showed(house: Cortex, ada: Browser, clock: StillClock) -> None:
    await told(house, ada)
    page = (await ada.get("/notifications")).text
    upto = re.findall(r'name="upto" value="([^"]+)"', page)[0]
    clock.forward(seconds=1)
    await told(house, ada, "Came later")
    await ada.post("/notifications/read", upto=upto)
    unread = (await ada.get("/notifications?show=unread")).text
    assert "Came later" in unread
    assert "Water the figs" not in unread


async def test_who_comes_to_a_page_has_read_what_leads_there(house: Cortex, ada: Browser, bob: Browser) -> None:
    await told(house, ada)
    theirs = await told(house, bob)
    others = NoticeDraft(key="pot", kind="message", title="A pot", text="", path="/", is_tainted=False)
    notice = await house.notices.notify(ada.user.id, others)
    assert (await ada.http.post("/notifications/seen", data={"path": "/notes"})).status_code == 204
    assert await house.notices.unread(ada.user.id) == 2
    await ada.http.post("/notifications/seen", data={"path": "/tasks", "notice": theirs})
    await ada.http.post("/notifications/seen", data={"path": "/"})
    assert await house.notices.unread(ada.user.id) == 1
    await ada.http.post("/notifications/seen", data={"path": "/", "notice": notice})
    assert await house.notices.unread(ada.user.id) == 0
    assert await house.notices.unread(bob.user.id) == 1


@pytest.mark.parametrize("upto", ["", "yesterday", "2026-11-21T10:00:00"])
async def test_all_read_without_a_moment_is_refused(ada: Browser, upto: str) -> None:
    assert (await ada.post("/notifications/read", upto=upto)).status_code == 422


async def test_the_list_narrows_to_a_kind_that_can_be_muted(house: Cortex, ada: Browser) -> None:
    await told(house, ada)
    await told(house, ada, "The backup ran", "job")
    page = (await ada.get("/notifications?kind=job")).text
    assert "The backup ran" in page
    assert "Water the figs" not in page
    assert 'name="on" value="1"' in page
    answer = await ada.post("/notifications/mute", kind="job", on="1")
    assert answer.status_code == 303
    assert (await house.notification_preferences.choices_of(ada.user.id)).muted == ("job",)
    page = (await ada.get("/notifications?kind=job")).text
    assert 'name="on" value="1"' not in page
    assert "notice fresh" not in page
    await ada.post("/notifications/mute", kind="job")
    assert (await house.notification_preferences.choices_of(ada.user.id)).muted == ()


async def test_what_nobody_brings_back_cannot_be_snoozed(house: Cortex, ada: Browser) -> None:
    notice = await told(house, ada)
    assert (await ada.post(f"/notifications/{notice}/snooze", choice="1h")).status_code == 422


async def test_words_of_a_notice_are_shown_as_words(house: Cortex, ada: Browser) -> None:
    await told(house, ada, "<b>bold</b> \u202egnp.exe")
    page = (await ada.get("/notifications")).text
    assert "&lt;b&gt;bold" in page
    assert "U+202E" in page


# --- the bell


async def followed(house: Cortex, person: Browser) -> None:
    """Until somebody follows the person's news."""
    async with asyncio.timeout(PATIENCE_S):
        while not house.streams.watched.get(person.user.id):  # noqa: ASYNC110 - a watcher is counted in without a word
            await asyncio.sleep(0.01)


async def test_the_bell_rings_on_an_open_page(house: Cortex, ada: Browser, app: FastAPI) -> None:
    stream = LivePages(house, app.state.pages).bell(ada.user, 0)
    assert "event: ready" in await anext(stream)
    coming = asyncio.ensure_future(anext(stream))
    await followed(house, ada)
    assert not coming.done()
    await told(house, ada)
    said = await asyncio.wait_for(coming, PATIENCE_S)
    assert 'hx-target="#bell-n"' in said
    assert "event: unread\ndata: 1\n\n" in said
    await stream.aclose()


async def test_an_open_page_says_what_is_new_once_and_takes_back_what_was_answered(
    house: Cortex, ada: Browser, app: FastAPI, clock: StillClock
) -> None:
    await told(house, ada, "Told long ago")
    clock.forward(seconds=1)
    stream = LivePages(house, app.state.pages).bell(ada.user, 0)

    async def heard(event: str) -> str:
        async with asyncio.timeout(PATIENCE_S):
            return await anext(text async for text in stream if f"event: {event}\n" in text)

    first = asyncio.ensure_future(heard("told"))
    await followed(house, ada)
    await house.notification_preferences.change(ada.user, muted=["agent"])
    await told(house, ada, "Nobody hears this", "agent")
    notice = await told(house, ada, "Water <b>the figs</b>")
    said = await first
    assert f'action="/notifications/{notice}/open"' in said
    assert ("<b>the figs" in said, "&lt;b&gt;the figs" in said) == (False, True)
    assert 'data-path="/tasks"' in said
    await told(house, ada, "And the palms")
    assert "And the palms" in await heard("told")
    await house.notices.acknowledge(ada.user.id, notice)
    assert f"event: heard\ndata: {notice}\n\n" in await heard("heard")
    await stream.aclose()


async def test_the_bell_falls_silent_when_the_access_ends(house: Cortex, ada: Browser, app: FastAPI) -> None:
    stream = LivePages(house, app.state.pages).bell(ada.user, 0)
    await anext(stream)
    coming = asyncio.ensure_future(anext(stream, "over"))
    await followed(house, ada)
    house.streams.end_streams(ada.user.id)
    assert await asyncio.wait_for(coming, PATIENCE_S) == "over"


# --- settings


async def test_the_choices_are_kept(house: Cortex, ada: Browser) -> None:
    await added(house, ada)
    kinds = [("told", "job"), ("told", "reminder"), ("way", "job.web_push"), ("content", "web_push")]
    times = [("quiet_from", "22:00"), ("quiet_to", "07:00"), ("digest_hour", "8")]
    body = "&".join(f"{name}={value}" for name, value in kinds + times)
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert (await ada.http.post("/notifications/settings", content=body, headers=headers)).status_code == 303
    choices = await house.notification_preferences.choices_of(ada.user.id)
    assert (choices.quiet, choices.digest_hour, choices.content) == ("22:00-07:00", 8, ("web_push",))
    assert set(choices.muted) == {"approval", "agent", "system", "message", "digest"}
    assert "job" not in choices.channels, "the usual ways are not written down: a device that comes later joins them"
    assert choices.channels["reminder"] == ()
    page = (await ada.get("/notifications/settings")).text
    assert 'value="22:00"' in page


async def test_half_a_span_of_quiet_is_refused_with_its_words_beside_it(ada: Browser) -> None:
    answer = await ada.post("/notifications/settings", quiet_from="22:00")
    assert answer.status_code == 422
    assert 'id="quiet-e"' in answer.text
    assert 'value="22:00"' in answer.text


async def test_an_admin_makes_a_new_key_for_push_and_is_asked_first(house: Cortex, ada: Browser, bob: Browser) -> None:
    await added(house, ada)
    (former,) = await house.push_keys.public()
    assert "/admin/push-keys" in marks(await ada.get("/notifications/settings")).links
    asked = (await ada.get("/admin/push-keys")).text
    assert "new push key" in asked
    assert "/admin/push-keys" in marks(asked).forms
    assert await house.push_keys.public() == (former,)
    assert (await ada.post("/admin/push-keys")).headers["location"] == "/notifications/settings#web_push"
    newest, kept = await house.push_keys.public()
    assert kept == former != newest
    assert "key created" in (await ada.get("/notifications/settings")).text
    assert "/admin/push-keys" not in (await bob.get("/notifications/settings")).text
    assert (await bob.get("/admin/push-keys")).status_code == 403
    assert (await bob.post("/admin/push-keys")).status_code == 403
    assert await house.push_keys.public() == (newest, former)


async def test_an_address_is_kept_and_its_secret_shown_once(house: Cortex, ada: Browser) -> None:
    answer = await ada.post("/notifications/settings/address", channel="webhook", address="https://example.org/in")
    assert answer.status_code == 200
    secret = re.findall(r'link-out" tabindex="0">([^<]+)<', answer.text)[0]
    page = (await ada.get("/notifications/settings")).text
    assert secret not in page
    assert "https://example.org/…" in page
    await ada.post("/notifications/settings/remove", channel="webhook")
    assert "https://example.org/…" not in (await ada.get("/notifications/settings")).text


async def test_a_wrong_address_is_refused_at_its_field(ada: Browser) -> None:
    answer = await ada.post("/notifications/settings/address", channel="ntfy", address="not an address")
    assert answer.status_code == 422
    assert 'id="address-ntfy-e"' in answer.text
    assert marks(answer).fields["address-ntfy"] == "not an address"


async def test_a_test_without_an_address_says_so(ada: Browser) -> None:
    answer = await ada.post("/notifications/settings/test", channel="ntfy")
    assert answer.status_code == 422
    assert "an address first" in answer.text


async def test_a_way_that_failed_is_told_where_it_is_set_and_what_took_its_place(
    house: Cortex, ada: Browser, clock: StillClock
) -> None:
    await house.addresses.put(ada.user, "ntfy", "https://ntfy.example.org/plants")
    await house.addresses.put(ada.user, "webhook", "https://hook.example.org/plants")
    await house.notification_preferences.change(ada.user, channels={"system": ["ntfy"]})
    notice = await told(house, ada)
    (row,) = await house.runtime.db.repository(AllDeliveriesRepository).take("ntfy", 1, 90.0)
    await house.runtime.db.repository(DeliveriesRepository, ada.user.id).again(
        row.id, row.attempt, clock(), "The server sleeps."
    )
    page = (await ada.get("/notifications/settings")).text
    assert "tried again" in page
    assert "The server sleeps." in page
    (row,) = await house.runtime.db.repository(AllDeliveriesRepository).take("ntfy", 1, 90.0)
    clock.forward(seconds=1)
    await house.runtime.db.repository(DeliveriesRepository, ada.user.id).end(
        row.id, row.attempt, "failed", "The token is wrong."
    )
    assert await house.runtime.db.repository(NoticesRepository, ada.user.id).send_instead(
        notice, [Way(channel="webhook")]
    )
    assert not await house.runtime.db.repository(NoticesRepository, ada.user.id).send_instead(
        notice, [Way(channel="email")]
    )
    page = (await ada.get("/notifications/settings")).text
    assert ("delivery failed" in page, "tried again" in page) == (True, False)
    page = (await ada.get("/notifications")).text
    assert "token is wrong" in page
    assert "channel failed: queued" in page


class Dovecote:
    """A channel of another package, whose places are known to it alone."""

    def __init__(self, flown: list[tuple[str, Target]]) -> None:
        self._flown = flown

    def checked(self, target: Target) -> Target:
        if target.key == "none":
            raise UserError("There is no such loft.", field="key")
        return target

    async def send(self, notice: Notice, target: Target) -> None:
        self._flown.append((notice.title, target))


async def test_a_channel_from_elsewhere_has_its_form_and_is_sent_to(house: Cortex, ada: Browser) -> None:
    flown: list[tuple[str, Target]] = []
    module = ModuleType("doves")
    module.__dict__["CHANNEL"] = ChannelKind(
        label="Pigeon post",
        order=15,
        open=lambda _: Dovecote(flown),
        tested="a list",
        fields=(
            ChannelField(name="address", label="Dovecote", hint="Where it lives."),
            ChannelField(name="key", label="Loft", input="text", is_shown=True),
            ChannelField(name="secret", label="Whistle"),
        ),
    )
    house.channels.register.put({"pigeon": module})
    page = (await ada.get("/notifications/settings")).text
    assert page.index(">Push</h2>") < page.index(">Pigeon post</h2>") < page.index(">E-mail</h2>")
    assert "Where it lives." in page
    place = {"channel": "pigeon", "address": "https://doves.example.org/a/b", "secret": "tu-whit"}
    refused = await ada.post("/notifications/settings/address", **place, key="none")
    assert 'id="key-pigeon-e"' in refused.text
    assert 'value="none"' in refused.text
    await ada.post("/notifications/settings/address", **place, key="north")
    await ada.post("/notifications/settings/address", **{**place, "secret": ""}, key="south")
    page = (await ada.get("/notifications/settings")).text
    assert ("https://doves.example.org/…" in page, "/a/b" in page, 'value="south"' in page, "tu-whit" in page) == (
        *(True, False),
        *(True, False),
    )
    assert "Pigeon post" in (await ada.get("/jobs/new")).text
    await ada.post("/notifications/settings/test", channel="pigeon")
    assert flown == [("Cortex: test", Target(address=place["address"], key="south", secret="tu-whit"))]


async def test_what_was_chosen_of_a_channel_that_is_gone_stays_and_its_deliveries_keep_its_name(
    house: Cortex, ada: Browser
) -> None:
    module = ModuleType("doves")
    module.__dict__["CHANNEL"] = replace(house.channels.kinds["ntfy"], label="Pigeon post")
    house.channels.register.put({"pigeon": module})
    await house.addresses.put(ada.user, "pigeon", "https://doves.example.org/ada")
    await house.addresses.put(ada.user, "ntfy", "https://ntfy.example.org/ada")
    await house.notification_preferences.change(ada.user, channels={"system": ["pigeon"]})
    await told(house, ada)
    house.channels.register.put({})
    assert (await ada.post("/notifications/settings", told="system", way="system.ntfy")).status_code == 303
    choices = await house.notification_preferences.choices_of(ada.user.id)
    assert set(choices.channels["system"]) == {"ntfy", "pigeon"}
    assert "pigeon: queued" in (await ada.get("/notifications")).text


async def test_mail_says_what_an_admin_has_to_set_up(ada: Browser) -> None:
    assert "Mail server and sender are missing" in (await ada.get("/notifications/settings")).text


# --- devices


async def test_a_browser_subscribes_under_the_key_of_the_house(house: Cortex, ada: Browser) -> None:
    headers = {"Accept": "application/json"}
    key = (await ada.http.get("/push/key", headers=headers)).json()["key"]
    target = push.Browser().target(ENDPOINT)
    fields = {"endpoint": ENDPOINT, "p256dh": target.key, "auth": target.secret, "signed_for": key}
    made = await ada.http.post("/push/subscribe", data=fields, headers=headers)
    (device,) = await house.devices.list(ada.user)
    assert (device.id, device.state) == (made.json()["id"], "ok")
    page = (await ada.get("/account/devices")).text
    assert f'id="device-{device.id}"' in page
    assert ENDPOINT not in page


async def test_a_device_that_was_removed_elsewhere_stays_so(house: Cortex, ada: Browser) -> None:
    device = await added(house, ada)
    assert (await ada.post(f"/account/devices/{device}/remove")).status_code == 303
    fields = {"endpoint": ENDPOINT, "p256dh": "p", "auth": "a", "signed_for": "k", "device": device}
    assert (await ada.http.post("/push/subscribe", data=fields)).json() == {"id": ""}
    assert await house.devices.list(ada.user) == []


async def test_a_subscription_that_is_none_is_refused_in_words(ada: Browser) -> None:
    answer = await ada.http.post("/push/subscribe", data={"endpoint": "x"}, headers={"Accept": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["error"]["message"]


async def test_a_device_is_renamed_and_one_without_a_name_refused(house: Cortex, ada: Browser) -> None:
    device = await added(house, ada)
    await ada.post(f"/account/devices/{device}", name="Kitchen tablet")
    assert "Kitchen tablet" in (await ada.get("/account/devices")).text
    answer = await ada.post(f"/account/devices/{device}", name=" ")
    assert answer.status_code == 422
    assert 'aria-describedby="f-name-e"' in answer.text


async def test_the_page_asks_before_a_device_is_removed(house: Cortex, ada: Browser) -> None:
    device = await added(house, ada)
    assert "Remove Phone?" in (await ada.get(f"/account/devices/{device}/remove")).text


async def test_an_unknown_delivery_is_no_error_for_the_worker(ada: Browser) -> None:
    assert (await ada.post("/push/ack", id="nothing")).json() == {"known": False}


async def test_a_browser_gives_its_subscription_up(house: Cortex, ada: Browser) -> None:
    await added(house, ada)
    await ada.post("/push/unsubscribe", endpoint=ENDPOINT)
    assert await house.devices.list(ada.user) == []


# --- the page behind a button


async def linked(house: Cortex, person: Browser, action: ActionKind = "ack") -> str:
    notice = await told(house, person)
    until = house.runtime.clock() + timedelta(hours=1)
    await house.runtime.db.repository(ActionLinksRepository, person.user.id).add("a-token", notice, action, until)
    return notice


async def test_a_button_asks_first_acts_once_and_leads_on(house: Cortex, ada: Browser) -> None:
    notice = await linked(house, ada)
    assert "Water the figs" in (await ada.get("/go/a-token")).text
    assert not (await house.notices.get(ada.user.id, notice)).row.acknowledged_at
    answer = await ada.post("/go/a-token")
    assert (answer.status_code, answer.headers["location"]) == (303, "/tasks")
    assert (await house.notices.get(ada.user.id, notice)).row.acknowledged_at
    assert (await ada.post("/go/a-token")).status_code == 409
    assert "already used" in (await ada.get("/go/a-token")).text


async def test_a_button_needs_the_login_and_comes_back_to_itself(house: Cortex, ada: Browser, app: FastAPI) -> None:
    await linked(house, ada)
    async with browser(app) as visitor:
        answer = await visitor.get("/go/a-token")
    assert answer.headers["location"] == "/login?next=/go/a-token"


async def test_a_yes_to_an_old_question_wants_the_password_again(
    house: Cortex, ada: Browser, clock: StillClock
) -> None:
    await linked(house, ada, "approve")
    assert (await ada.get("/go/a-token")).status_code == 200
    clock.forward(minutes=30)
    for answer in (await ada.get("/go/a-token"), await ada.post("/go/a-token")):
        assert (answer.status_code, answer.headers["location"]) == (303, "/confirm?next=/go/a-token")


async def test_a_question_that_was_answered_elsewhere_has_no_button(house: Cortex, ada: Browser) -> None:
    await linked(house, ada, "approve")
    page = (await ada.get("/go/a-token")).text
    assert "already answered" in page
    assert 'action="/go/a-token"' not in page
