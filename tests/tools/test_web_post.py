"""Sending to the web from the chat: to exactly the address that was allowed, never inside, never on by a redirect."""

from pathlib import Path

import httpx
import pytest
from pydantic import ValidationError

from cortex.base.address import PUBLIC
from cortex.base.errors import CortexError, ToolFailed
from cortex.base.http import GuardedTransport
from cortex.base.user import User
from cortex.integrations.web import Web
from tests.streamed import streamed
from tests.tool_world import World
from tests.tools.test_web import Dialled, inside

SSRF = (Path(__file__).parents[1] / "base" / "ssrf_urls.txt").read_text(encoding="utf-8").split()
HOOK = "https://example.org/hook"


class Receiver:
    """Keeps what was sent to it."""

    def __init__(self) -> None:
        self.got: list[httpx.Request] = []

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.got.append(request)
        match request.url.path:
            case "/moved":
                return httpx.Response(
                    307, headers={"Location": "https://evil.example/take"}, stream=httpx.ByteStream(b"")
                )
            case "/long":
                return streamed(200, "x" * 5_000)
            case "/photo":
                return streamed(200, b"\x89PNG\0\0", "image/png")
            case "/slow":
                raise httpx.ReadTimeout("slow")
            case "/down":
                raise httpx.ConnectError("no route")
            case "/wrong":
                return streamed(422, "name is missing")
            case _:
                return streamed(201, '{"id":7}', "application/json")


@pytest.fixture
def receiver(world: World) -> Receiver:
    made = Receiver()
    world.wired[Web] = Web(lambda: httpx.AsyncClient(transport=httpx.MockTransport(made), follow_redirects=True))
    return made


async def test_a_body_arrives_as_it_was_given(world: World, ann: User, receiver: Receiver) -> None:
    text = await world.text(ann, "http_post", url=HOOK, body='{"state": "done"}', headers={"X-Key": "k"})
    assert text == 'Status 201.\n{"id":7}'
    (request,) = receiver.got
    assert (request.method, str(request.url), request.content) == ("POST", HOOK, b'{"state": "done"}')
    assert (request.headers["Content-Type"], request.headers["X-Key"]) == ("application/json", "k")


@pytest.mark.parametrize(
    ("kind", "body", "sent_as"),
    [("form", "a=1&b=2", "application/x-www-form-urlencoded"), ("text", "grüße", "text/plain; charset=utf-8")],
)
async def test_the_kind_of_body_is_told(
    world: World, ann: User, receiver: Receiver, kind: str, body: str, sent_as: str
) -> None:
    await world.text(ann, "http_post", url=HOOK, body=body, kind=kind, method="PUT")
    (request,) = receiver.got
    assert (request.method, request.content.decode(), request.headers["Content-Type"]) == ("PUT", body, sent_as)


async def test_without_a_body_none_is_claimed(world: World, ann: User, receiver: Receiver) -> None:
    await world.text(ann, "http_post", url=HOOK, method="DELETE")
    assert "Content-Type" not in receiver.got[0].headers


async def test_a_redirect_is_not_followed(world: World, ann: User, receiver: Receiver) -> None:
    text = await world.text(ann, "http_post", url="https://example.org/moved", body="{}")
    assert "not followed" in text
    assert len(receiver.got) == 1


@pytest.mark.usefixtures("receiver")
async def test_what_came_back_is_told_short(world: World, ann: User) -> None:
    assert "name is missing" in await world.text(ann, "http_post", url="https://example.org/wrong", body="{}")
    long = await world.text(ann, "http_post", url="https://example.org/long")
    assert "1000 more characters" in long
    assert "binary data" in await world.text(ann, "http_post", url="https://example.org/photo")


@pytest.mark.parametrize(
    "arguments",
    [
        {"body": "{state: done}"},
        {"body": "x" * 100_001, "kind": "text"},
        {"url": "file:///etc/passwd"},
        {"url": "https://ann:pass@example.org/"},
        {"headers": {"Host": "inside"}},
        {"headers": {"Transfer-Encoding": "chunked"}},
        {"headers": {"X-A\r\nHost": "inside"}},
        {"headers": {"X-A": "a\r\nHost: inside"}},
        {"headers": {"X-A": "ü"}},
        {"headers": {f"X-{n}": "a" for n in range(21)}},
    ],
)
async def test_what_cannot_be_sent_is_not(
    world: World, ann: User, receiver: Receiver, arguments: dict[str, object]
) -> None:
    with pytest.raises(ToolFailed):
        await world.text(ann, "http_post", **{"url": HOOK, **arguments})
    assert receiver.got == []


@pytest.mark.usefixtures("receiver")
async def test_wrong_arguments_run_nothing(world: World, ann: User) -> None:
    with pytest.raises(ValidationError):
        await world.text(ann, "http_post", url=HOOK, method="GET")


@pytest.mark.usefixtures("receiver")
@pytest.mark.parametrize("path", ["slow", "down"])
async def test_a_receiver_that_is_down_or_slow_is_said(world: World, ann: User, path: str) -> None:
    with pytest.raises(ToolFailed, match="example"):
        await world.text(ann, "http_post", url=f"https://example.org/{path}", body="{}")


@pytest.mark.parametrize("url", SSRF)
async def test_inside_addresses_are_never_reached(world: World, ann: User, url: str) -> None:
    dialled = Dialled()
    world.wired[Web] = Web(lambda: httpx.AsyncClient(transport=GuardedTransport(PUBLIC, inside, dialled)))
    with pytest.raises(CortexError):
        await world.text(ann, "http_post", url=url, body="{}")
    assert dialled.addresses == []
