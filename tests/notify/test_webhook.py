"""Webhooks: what the receiver gets and how it knows the sender, against a real server on this machine."""

import base64
import hashlib
import hmac
import json
from dataclasses import replace
from datetime import timedelta

import pytest

from cortex.base.errors import DeliveryError, UserError
from cortex.base.standard_webhooks import new_secret, signature
from cortex.notify import ChannelContext
from cortex.notify.channels.webhook import CHANNEL
from cortex.ports.channels import Notice, Target
from tests.notify.loopback import SITE, Loopback, Reply, Seen
from tests.notify.told import CONTENT, PLAIN, PRIVATE
from tests.still_clock import StillClock

SECRET = new_secret()
KEY = base64.b64decode(SECRET.removeprefix("whsec_"))


async def call(server: Loopback, notice: Notice = PLAIN, *, path: str = "/hook/T0/B1") -> Seen:
    """What the server got of a notice."""
    channel = CHANNEL.open(server.surroundings())
    await channel.send(notice, Target(address=server.origin + path, secret=SECRET))
    return server.seen[-1]


def is_genuine(seen: Seen, key: bytes) -> bool:
    """The receiver's check, as Standard Webhooks describes it."""
    said = f"{seen.headers['webhook-id']}.{seen.headers['webhook-timestamp']}.".encode() + seen.body
    digest = base64.b64encode(hmac.new(key, said, hashlib.sha256).digest()).decode()
    return hmac.compare_digest(seen.headers["webhook-signature"], f"v1,{digest}")


async def test_the_receiver_gets_the_notice_and_knows_who_sent_it() -> None:
    with Loopback(Reply(status=204)) as server:
        seen = await call(server)
    value = json.loads(seen.body)
    tag = value["data"].pop("tag")
    assert value == {
        "type": "notice.reminder",
        "timestamp": "2026-11-20T09:00:00+00:00",
        "data": {
            "id": "d-1",
            "title": "Water the plants",
            "text": "The fern first.",
            "url": f"{SITE}/reminders#r1",
            "urgency": "important",
            "actions": [
                {"kind": "ack", "title": "Done", "url": f"{SITE}/go/a1"},
                {"kind": "snooze", "title": "Snooze 10 min", "url": f"{SITE}/go/s1"},
            ],
        },
    }
    assert len(tag) == 32
    assert is_genuine(seen, KEY)
    assert not is_genuine(replace(seen, body=seen.body.replace(b"fern", b"rose")), KEY)
    assert not is_genuine(seen, b"another key of thirty-two bytes!")


async def test_a_second_try_bears_the_same_id_and_its_own_time() -> None:
    with Loopback(Reply(status=500)) as server:
        surroundings = server.surroundings()
        assert isinstance(surroundings.clock, StillClock)
        channel = CHANNEL.open(surroundings)
        target = Target(address=f"{server.origin}/hook", secret=SECRET)
        with pytest.raises(DeliveryError):
            await channel.send(PLAIN, target)
        later = surroundings.clock.forward(minutes=5)
        await channel.send(PLAIN, target)
    assert [seen.headers["webhook-id"] for seen in server.seen] == ["d-1", "d-1"]
    times = [int(later.timestamp() - timedelta(minutes=5).total_seconds()), int(later.timestamp())]
    assert [int(seen.headers["webhook-timestamp"]) for seen in server.seen] == times
    assert all(is_genuine(seen, KEY) for seen in server.seen)


async def test_a_private_notice_carries_no_content() -> None:
    with Loopback() as server:
        seen = await call(server, PRIVATE)
    assert [word for word in CONTENT if word in seen.body.decode()] == []
    assert json.loads(seen.body)["type"] == "notice"


def test_the_signature_is_that_of_the_standard_s_own_example() -> None:
    signed = signature(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    )
    assert signed == "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    ("reply", "fate", "wait_s", "says"),
    [
        (Reply(status=302, headers={"Location": "/elsewhere"}), "refused", None, "redirects are not followed"),
        (Reply(status=401), "refused", None, "secret the same"),
        (Reply(status=404), "refused", None, "nothing at this address"),
        (Reply(status=410), "refused", None, "remove this webhook"),
        (Reply(status=418, body=b"short and stout", headers={"Content-Type": "text/plain"}), "refused", None, "stout"),
        (Reply(status=429, headers={"Retry-After": "90"}), "later", 90.0, "more slowly"),
        (Reply(status=503, headers={"Retry-After": "999999999"}), "later", 86_400.0, "problem"),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Reply) else None,
)
async def test_a_refusal_says_what_to_do_next(reply: Reply, fate: str, wait_s: float | None, says: str) -> None:
    with Loopback(reply) as server, pytest.raises(DeliveryError, match=says) as caught:
        await call(server)
    assert (caught.value.fate, caught.value.retry_after_s) == (fate, wait_s)
    assert [seen.path for seen in server.seen] == ["/hook/T0/B1"]
    assert "T0" not in caught.value.message


@pytest.mark.parametrize("body", [b"\x1b[31mno\r\n" * 100_000, b"[" * 15_000, b"\xff\xfe", b""], ids=len)
async def test_an_answer_of_any_size_and_kind_is_one_short_line(body: bytes) -> None:
    reply = Reply(status=400, body=body, headers={"Content-Type": "text/plain"})
    with Loopback(reply) as server, pytest.raises(DeliveryError) as caught:
        await call(server)
    assert len(caught.value.message) < 400
    assert caught.value.message.isprintable()


@pytest.mark.parametrize("secret", ["", "short", "whsec_", "whsec_AAAA", "whsec_no base64 at all, but long"])
def test_a_secret_that_protects_nothing_is_refused(secret: str) -> None:
    channel = CHANNEL.open(ChannelContext(site=SITE))
    with pytest.raises(UserError) as caught:
        channel.checked(Target(address="https://example.org/hook", secret=secret))
    assert caught.value.field == "secret"


def test_a_secret_of_one_s_own_words_will_do() -> None:
    channel = CHANNEL.open(ChannelContext(site=SITE))
    target = Target(address="https://example.org/hook?a=1", secret="sixteen letters!")
    assert channel.checked(target) == target
