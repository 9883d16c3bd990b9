"""Web Push against a real endpoint on this machine that decrypts as a browser does and checks the signature.

What decrypts and what checks signatures are http_ece and py_vapid, which share no code with Cortex.
"""

import json
import struct
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cortex.base.errors import DeliveryError, UserError
from cortex.notify import ChannelContext
from cortex.notify.channels.web_push import CHANNEL, PAYLOAD_BYTES, payload
from cortex.notify.context import Vapid
from cortex.notify.push_keys import decoded, encoded, new_key, public_key, rotated
from cortex.notify.push_signing import encrypted
from cortex.ports.channels import Action, Target, Urgency
from tests.notify.browser import Browser, signature
from tests.notify.loopback import SITE, Loopback, Reply, Seen
from tests.notify.told import CONTENT, PLAIN, PRIVATE
from tests.still_clock import StillClock

KEY = new_key()
VAPID = Vapid(keys=(KEY,), subject="mailto:ada@example.org")
ANY_TEXT = st.text(st.characters(exclude_categories=()))


class PushService(Loopback):
    """Refuses what the services of Google, Mozilla and Apple refuse. `key`: for which the browser subscribed."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self._key = key

    def judge(self, seen: Seen) -> Reply:
        head, until = seen.headers, StillClock()().timestamp()
        claims, key = signature(head["Authorization"])
        faults = {
            400: head["Content-Encoding"] != "aes128gcm" or not head["TTL"].isdecimal() or not is_one_record(seen.body),
            401: claims["aud"] != self.origin or not until < claims["exp"] <= until + 86_400,
            403: key != self._key or not claims["sub"].startswith(("mailto:", "https://")),
            413: len(seen.body) > 4_096,
        }
        return Reply(status=next((status for status, is_wrong in faults.items() if is_wrong), 201))


def is_one_record(body: bytes) -> bool:
    """Tell whether it is a salt, a record size that holds all of it, a point on the curve, and one record."""
    size, length = struct.unpack("!LB", body[16:21])
    return bool(size >= len(body) - 21 - length and length == 65 and body[21] == 4)


async def push(server: Loopback, browser: Browser, **changed: Any) -> None:
    """Push a notice to the browser through the server."""
    channel = CHANNEL.open(server.surroundings(vapid=VAPID))
    await channel.send(replace(PLAIN, **changed), browser.target(f"{server.origin}/push/x"))


async def test_the_browser_reads_what_was_sent() -> None:
    browser = Browser()
    with Loopback() as server:
        await push(server, browser)
    (seen,) = server.seen
    message = browser.read(seen.body)
    tag = message["notification"].pop("tag")
    assert message == {
        "web_push": 8030,
        "app_badge": 3,
        "notification": {
            "title": "Water the plants",
            "body": "The fern first.",
            "navigate": f"{SITE}/reminders#r1",
            "data": {"id": "d-1", "kind": "reminder"},
            "actions": [
                {"action": "ack", "title": "Done", "navigate": f"{SITE}/go/a1"},
                {"action": "snooze", "title": "Snooze 10 min", "navigate": f"{SITE}/go/s1"},
            ],
            "app_badge": 3,
        },
    }
    assert seen.path == "/push/x"
    assert (seen.headers["TTL"], seen.headers["Urgency"], seen.headers["Topic"]) == ("3600", "high", tag)
    assert seen.headers["Content-Encoding"] == "aes128gcm"


async def test_the_signature_names_the_endpoint_the_house_and_a_time() -> None:
    with Loopback() as server:
        await push(server, Browser())
    claims, key = signature(server.seen[0].headers["Authorization"])
    until = int((StillClock()() + timedelta(hours=12)).timestamp())
    assert claims == {"aud": server.origin, "exp": until, "sub": "mailto:ada@example.org"}
    assert key == public_key(KEY)


@pytest.mark.parametrize("text", ["", "The fern first.", "ä" * 5_000], ids=["empty", "short", "cut"])
async def test_a_strict_push_service_takes_it(text: str) -> None:
    browser = Browser()
    with PushService(public_key(KEY)) as server:
        await push(server, browser, text=text)
    assert text.startswith(browser.read(server.seen[0].body)["notification"]["body"].removesuffix("…"))


async def test_a_strict_push_service_refuses_another_key() -> None:
    with PushService(public_key(new_key())) as server, pytest.raises(DeliveryError, match="VAPID"):
        await push(server, Browser())


def test_the_example_of_the_standard_is_encrypted_to_its_bytes() -> None:
    """RFC 8291, appendix A."""
    target = Target(
        address="https://push.example.net/x",
        key="BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        secret="BTBZMqHH6r4Tts7J_aSIgg",
    )
    body = encrypted(
        b"When I grow up, I want to be a watermelon",
        target,
        key="yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw",
        salt=decoded("DGv6ra1nlYgDCS1FRnbzlw"),
    )
    assert encoded(body) == (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl"
        "7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )


def test_no_two_pushes_have_a_key_or_a_salt_in_common() -> None:
    target = Browser().target("https://push.example.org/x")
    heads = {encrypted(b"the same", target)[at] for _ in range(2) for at in (slice(0, 16), slice(21, 86))}
    assert len(heads) == 4


async def test_a_repeat_of_a_tag_takes_the_place_of_the_earlier_one() -> None:
    browser = Browser()
    with Loopback() as server:
        await push(server, browser)
        await push(server, browser, id="d-2", is_private=True)
        await push(server, browser, tag="another")
    topics = [seen.headers["Topic"] for seen in server.seen]
    tags = [browser.read(seen.body)["notification"]["tag"] for seen in server.seen]
    assert topics == tags
    assert topics[0] == topics[1] != topics[2]
    assert all(len(topic) == 32 and topic.isalnum() for topic in topics)


async def test_a_private_push_carries_no_content() -> None:
    browser = Browser()
    with Loopback() as server:
        await push(server, browser, is_private=True)
    words = browser.decrypted(server.seen[0].body).decode()
    assert [word for word in CONTENT if word in words] == []
    assert "has something" in words


async def test_after_a_rotation_a_device_is_signed_for_under_its_own_key() -> None:
    keys = rotated((KEY,))
    vapid = Vapid(keys=keys, subject=VAPID.subject)
    with Loopback() as server:
        channel = CHANNEL.open(server.surroundings(vapid=vapid))
        for signed_for in (public_key(KEY), public_key(keys[0]), "", "forgotten"):
            await channel.send(PLAIN, Browser().target(f"{server.origin}/push/x", signed_for=signed_for))
    used = [signature(seen.headers["Authorization"])[1] for seen in server.seen]
    assert used == [public_key(KEY), *[public_key(keys[0])] * 3]
    assert len(rotated(rotated(rotated(keys)))) == 3


@pytest.mark.parametrize("status", [200, 201, 202, 204])
async def test_taken_is_taken(status: int) -> None:
    with Loopback(Reply(status=status)) as server:
        await push(server, Browser())
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("reply", "fate", "wait_s", "says"),
    [
        (Reply(status=404), "gone", None, "no longer takes notifications"),
        (Reply(status=410), "gone", None, "no longer takes notifications"),
        (Reply(status=429, headers={"Retry-After": "17"}), "later", 17.0, "more slowly"),
        (Reply(status=429, headers={"Retry-After": "soon"}), "later", None, "more slowly"),
        (Reply(status=503, headers={"Retry-After": "Fri, 20 Nov 2026 09:02:00 GMT"}), "later", 120.0, "problem"),
        (Reply(status=500), "later", None, "problem"),
        (Reply(status=403, body=b'{"reason":"BadJwtToken"}'), "refused", None, "VAPID.*BadJwtToken"),
        (Reply(status=401), "refused", None, "VAPID"),
        (Reply(status=413), "refused", None, "too large"),
        (Reply(status=307, headers={"Location": "/elsewhere"}), "refused", None, "redirects are not followed"),
        (Reply(status=400), "refused", None, "does not take"),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Reply) else None,
)
async def test_a_refusal_says_what_to_do_next(reply: Reply, fate: str, wait_s: float | None, says: str) -> None:
    with Loopback(reply) as server, pytest.raises(DeliveryError, match=says) as caught:
        await push(server, Browser())
    assert (caught.value.fate, caught.value.retry_after_s) == (fate, wait_s)
    assert len(server.seen) == 1


async def test_no_error_shows_the_endpoint_or_the_keys() -> None:
    browser = Browser()
    with Loopback() as server:
        target = browser.target(f"{server.origin}/push/secret-capability?token=abc123")
        echo = f"Cannot POST /push/secret-capability?token=abc123 with {target.secret} at {target.address}"
        server.replies.append(Reply(status=400, body=echo.encode(), headers={"Content-Type": "text/plain"}))
        channel = CHANNEL.open(server.surroundings(vapid=VAPID))
        with pytest.raises(DeliveryError, match="Cannot POST") as caught:
            await channel.send(PLAIN, target)
    shown = [part for part in ("secret-capability", "abc123", target.secret) if part in caught.value.message]
    assert shown == []
    assert target.secret not in repr(target)
    assert KEY not in repr(VAPID)


async def test_a_slow_service_is_not_waited_for() -> None:
    with Loopback(Reply(is_held=True)) as server:
        channel = CHANNEL.open(server.surroundings(vapid=VAPID, total_s=0.2))
        with pytest.raises(DeliveryError, match="did not answer in time") as caught:
            await channel.send(PLAIN, Browser().target(f"{server.origin}/push/x"))
    assert (caught.value.fate, caught.value.is_unknown) == ("later", True)


async def test_a_service_that_is_down_is_tried_again() -> None:
    with Loopback() as server:
        surroundings, endpoint = server.surroundings(vapid=VAPID), f"{server.origin}/push/x"
    with pytest.raises(DeliveryError, match="could not be reached") as caught:
        await CHANNEL.open(surroundings).send(PLAIN, Browser().target(endpoint))
    assert (caught.value.fate, caught.value.is_unknown) == ("later", False)


@pytest.mark.parametrize("place", ["https://127.0.0.1:{port}/x", "https://localhost:{port}/x"])
async def test_an_endpoint_inside_the_network_is_never_reached(place: str) -> None:
    with Loopback() as server:
        endpoint = place.format(port=server.place[1])
        channel = CHANNEL.open(ChannelContext(site=SITE, vapid=VAPID))
        with pytest.raises(DeliveryError, match="“Servers in your network”") as caught:
            await channel.send(PLAIN, Browser().target(endpoint))
    assert caught.value.fate == "refused"
    assert server.seen == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("address", "http://push.example.org/x"),
        ("address", "ftp://push.example.org/x"),
        ("address", "https://ada:pw@push.example.org/x"),
        ("address", "https://push.example.org/a b"),
        ("address", "https://push.example.org:99999/"),
        ("address", "https://[::1/"),
        ("address", "https:///x"),
        ("address", "https://push.example.org/" + "x" * 2_000),
        ("key", "AAAA"),
        ("key", "B" * 87),
        ("key", "ä"),
        ("secret", "AAAA"),
        ("secret", "ä"),
        ("secret", ""),
    ],
    ids=lambda value: value[:24],
)
async def test_what_is_no_subscription_is_refused_by_its_field(field: str, value: str) -> None:
    channel = CHANNEL.open(ChannelContext(site=SITE, vapid=VAPID))
    whole = Browser().target("https://push.example.org/x")
    assert channel.checked(whole) == whole
    broken = replace(whole, **{field: value})
    with pytest.raises(UserError) as caught:
        channel.checked(broken)
    assert caught.value.field == field
    with pytest.raises(DeliveryError) as failed:
        await channel.send(PLAIN, broken)
    assert failed.value.fate == "refused"


@given(title=ANY_TEXT, text=ANY_TEXT, times=st.integers(1, 2_000))
def test_any_text_fits_into_a_push_and_stays_whole(title: str, text: str, times: int) -> None:
    notice = replace(PLAIN, title=title, text=text * times)
    raw = payload(notice, SITE)
    notification = json.loads(raw.decode("utf-8"))["notification"]
    assert len(raw) <= PAYLOAD_BYTES
    assert notification["title"]
    assert len(notification["actions"]) == 2


async def test_the_largest_push_is_taken_whole_by_a_service_of_4096_bytes() -> None:
    browser = Browser()
    with Loopback() as server:
        await push(server, browser, text='ä"👨‍👩‍👧‍👦' * 2_000)
    body = server.seen[0].body
    assert 4_050 < len(body) <= 4_096
    assert browser.read(body)["notification"]["body"].endswith("…")


def test_links_too_long_for_a_push_leave_the_notice_itself() -> None:
    long = "/" + "x" * 1_500
    crowded = replace(PLAIN, actions=(Action(kind="approve", path=long), Action(kind="deny", path=long)), path=long)
    notification = json.loads(payload(crowded, SITE))["notification"]
    assert "actions" not in notification
    assert (notification["navigate"], notification["body"]) == (SITE + long, "The fern first.")
    endless = json.loads(payload(replace(PLAIN, path="/" + "x" * 5_000), SITE))["notification"]
    assert (endless["navigate"], endless["title"]) == (SITE + "/", "Water the plants")


def test_a_target_tells_nobody_where_it_leads() -> None:
    assert "capability" not in repr(Target(address="https://push.example.org/capability", secret="hidden"))
    assert PRIVATE.is_private


@pytest.mark.parametrize(
    ("urgency", "header", "shown"),
    [
        ("low", "low", {"silent": True}),
        ("normal", "normal", {}),
        ("important", "high", {}),
        ("high", "high", {"requireInteraction": True}),
    ],
)
async def test_what_is_urgent_stays_and_what_can_wait_makes_no_sound(
    urgency: Urgency, header: str, shown: dict[str, bool]
) -> None:
    browser = Browser()
    with Loopback() as server:
        await push(server, browser, urgency=urgency)
    message = browser.read(server.seen[0].body)["notification"]
    assert server.seen[0].headers["Urgency"] == header
    assert {name: message[name] for name in ("silent", "requireInteraction") if name in message} == shown
