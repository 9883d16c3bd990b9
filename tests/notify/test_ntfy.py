"""ntfy's JSON contract against a real server on this machine, and its refusals in words."""

import base64
import json

import pytest
from msgspec.structs import replace

from cortex.base.errors import DeliveryError, UserError
from cortex.notify import ChannelContext
from cortex.notify.channels.ntfy import CHANNEL
from cortex.ports.channels import Action, Target, Urgency
from tests.notify.loopback import SITE, Loopback, Reply, Seen
from tests.notify.told import CONTENT, PLAIN, PRIVATE

TAKEN = Reply(status=200, body=b'{"id":"hwQ2YpKdmg","event":"message"}')
TOKEN = "tk_agq4hu2lvr5xk0bo"


async def publish(server: Loopback, notice: object = PLAIN, *, topic: str = "/my-topic", secret: str = TOKEN) -> Seen:
    """What the server got of a notice."""
    channel = CHANNEL.open(server.surroundings())
    await channel.send(notice, Target(address=server.origin + topic, secret=secret))  # type: ignore[arg-type]
    return server.seen[-1]


async def test_a_notice_becomes_a_message_of_the_topic() -> None:
    with Loopback(TAKEN) as server:
        seen = await publish(server)
    message = json.loads(seen.body)
    sequence = message.pop("sequence_id")
    assert message == {
        "topic": "my-topic",
        "title": "Water the plants",
        "message": "The fern first.",
        "priority": 4,
        "click": f"{SITE}/reminders#r1",
        "tags": ["reminder"],
        "actions": [
            {"action": "view", "label": "Done", "url": f"{SITE}/go/a1", "clear": True},
            {"action": "view", "label": "Snooze 10 min", "url": f"{SITE}/go/s1", "clear": True},
        ],
    }
    assert (len(sequence), sequence.isalnum()) == (32, True)
    assert (seen.path, seen.headers["Authorization"]) == ("/", f"Bearer {TOKEN}")
    assert TOKEN.encode() not in seen.body


async def test_a_private_notice_carries_no_content() -> None:
    with Loopback(TAKEN) as server:
        seen = await publish(server, PRIVATE)
    assert [word for word in CONTENT if word in seen.body.decode()] == []
    assert "has something" in seen.body.decode()


@pytest.mark.parametrize(("urgency", "priority"), [("low", 2), ("normal", 3), ("important", 4), ("high", 5)])
async def test_urgency_becomes_priority(urgency: Urgency, priority: int) -> None:
    with Loopback(TAKEN) as server:
        seen = await publish(server, replace(PLAIN, urgency=urgency))
    assert json.loads(seen.body)["priority"] == priority


async def test_a_server_under_a_path_with_a_login_of_its_own() -> None:
    with Loopback(TAKEN) as server:
        seen = await publish(server, topic="/ntfy/my_topic/", secret="ada:pass word".replace(" ", "-"))
    assert seen.path == "/ntfy/"
    assert json.loads(seen.body)["topic"] == "my_topic"
    assert base64.b64decode(seen.headers["Authorization"].removeprefix("Basic ")) == b"ada:pass-word"


async def test_an_open_topic_gets_no_header() -> None:
    with Loopback(TAKEN) as server:
        seen = await publish(server, secret="")
    assert seen.headers["Authorization"] is None


async def test_a_long_text_is_cut_to_what_a_message_holds_and_three_buttons_to_what_it_shows() -> None:
    actions = tuple(Action(kind="ack", path=f"/go/{number}") for number in range(5))
    with Loopback(TAKEN) as server:
        seen = await publish(server, replace(PLAIN, text="语" * 9_000, actions=actions))
    message = json.loads(seen.body)
    assert 3_990 < len(message["message"].encode()) <= 4_000
    assert message["message"].endswith("语…")
    assert len(message["actions"]) == 3


@pytest.mark.parametrize(
    ("reply", "fate", "wait_s", "says"),
    [
        (Reply(status=401, body=b'{"code":40101,"http":401,"error":"unauthorized"}'), "refused", None, "unauthorized"),
        (Reply(status=403), "refused", None, "wants a token"),
        (Reply(status=404), "refused", None, "no ntfy server"),
        (Reply(status=413), "refused", None, "too large"),
        (Reply(status=429, headers={"Retry-After": "5"}), "later", 5.0, "more slowly"),
        (Reply(status=507), "later", None, "problem"),
        (Reply(status=301, headers={"Location": "/"}), "refused", None, "redirects are not followed"),
        (Reply(status=200, body=b"<html>Welcome</html>"), "refused", None, "not as an ntfy server"),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Reply) else None,
)
async def test_a_refusal_says_what_to_do_next(reply: Reply, fate: str, wait_s: float | None, says: str) -> None:
    with Loopback(reply) as server, pytest.raises(DeliveryError, match=says) as caught:
        await publish(server)
    assert (caught.value.fate, caught.value.retry_after_s) == (fate, wait_s)
    assert [part for part in ("my-topic", TOKEN) if part in caught.value.message] == []


@pytest.mark.parametrize(
    ("address", "secret", "field"),
    [
        ("https://ntfy.sh/", "", "address"),
        ("https://ntfy.sh/my topic", "", "address"),
        ("https://ntfy.sh/my.topic", "", "address"),
        ("https://ntfy.sh/topic?auth=x", "", "address"),
        ("http://ntfy.sh/topic", "", "address"),
        ("ntfy.sh/topic", "", "address"),
        ("https://ntfy.sh/" + "t" * 65, "", "address"),
        ("https://ntfy.sh/topic", "tk_a\r\nX: y", "secret"),
        ("https://ntfy.sh/topic", "t" * 501, "secret"),
    ],
    ids=str,
)
def test_what_is_no_topic_or_token_is_refused_by_its_field(address: str, secret: str, field: str) -> None:
    channel = CHANNEL.open(ChannelContext(site=SITE))
    with pytest.raises(UserError) as caught:
        channel.checked(Target(address=address, secret=secret))
    assert caught.value.field == field


def test_a_topic_is_kept_tidy() -> None:
    channel = CHANNEL.open(ChannelContext(site=SITE))
    kept = channel.checked(Target(address=" https://ntfy.sh/my-topic/ ", secret=f" {TOKEN} "))
    assert (kept.address, kept.secret) == ("https://ntfy.sh/my-topic", TOKEN)
