"""The door for all that comes from outside: who asks is known before a byte of the body is read, whatever the route,
and each route reads no more than it needs.
"""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from cortex.app import Cortex
from cortex.services.api.tokens import BESIDES
from cortex.services.jobs.forms import JobForm
from cortex.services.jobs.hooks import READ_A_MINUTE
from tests.web.conftest import Browser
from tests.web.sender import FORM, JSON, NO_KIND, PARTS, Sender
from tests.web.test_routes import ANY, OPEN, filled, routes
from web.bodies import FORM_BYTES, TEXT_BYTES, VISITOR_BYTES
from web.security import SAFE_METHODS

WHOLE = 52_000_000
UNKNOWN = (
    "/nowhere",
    "/files/",
    "//files",
    "/account/import/",
    "/static/app.css",
    "/v1/files",
    "/v1/chat",
    "/hooks/x/y",
)
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "x")


KINDS = {"a form": FORM, "parts": PARTS, "JSON": JSON, "no kind": NO_KIND}


CHANGING = [(method, path) for method, path in routes() if method not in SAFE_METHODS]


@pytest.mark.parametrize("kind", KINDS)
async def test_no_route_reads_a_byte_of_somebody_who_is_not_logged_in(app: FastAPI, kind: str) -> None:
    sender, read = Sender(app), {}
    paths = [(method, filled(path, ANY)) for method, path in CHANGING if path not in OPEN]
    for method, path in [*paths, *((method, path) for method in METHODS for path in UNKNOWN)]:
        for token in (b"", b"cortex=" + b"x" * 43):
            await sender.send(method, path, KINDS[kind], (b"cookie", token), body=b"a" * 1000, length=WHOLE)
            if sender.asks or sender.status not in (200, 303, 307, 401, 404):
                read[f"{method} {path}"] = (sender.status, sender.asks)
    assert read == {}


@pytest.mark.parametrize("kind", KINDS)
async def test_an_open_route_reads_no_more_than_a_login_form(app: FastAPI, kind: str) -> None:
    sender, read = Sender(app), {}
    for method, path in CHANGING:
        if path in OPEN:
            path = filled(path, {"address": "x"})
            await sender.send(method, path, KINDS[kind], body=b"a" * 1000, length=VISITOR_BYTES + 1)
            if sender.asks or sender.status not in (303, 401, 413):
                read[f"{method} {path}"] = (sender.status, sender.asks)
    assert read == {}


async def test_a_login_form_of_any_length_that_people_type_is_read(app: FastAPI, visitor: httpx.AsyncClient) -> None:
    answer = await visitor.post("/login", data={"name": "Ada", "password": "x" * 10_000})
    assert (answer.status_code, "wrong" in answer.text) == (422, True)


async def test_a_member_pays_no_reading_on_an_admins_route(app: FastAPI, bob: Browser) -> None:
    sender, read = Sender(app), {}
    cookie = (b"cookie", b"cortex=" + bob.http.cookies["cortex"].encode())
    for method, path in routes():
        if path.startswith("/admin") and method not in SAFE_METHODS:
            await sender.send(method, filled(path, ANY), FORM, cookie, body=b"a" * 1000, length=60_000)
            if (sender.asks, sender.status) != (0, 403):
                read[f"{method} {path}"] = (sender.status, sender.asks)
    assert read == {}


async def test_a_route_takes_what_it_needs_and_says_how_much(app: FastAPI, ada: Browser) -> None:
    sender, cookie = Sender(app), (b"cookie", b"cortex=" + ada.http.cookies["cortex"].encode())
    for path, most, words in (
        ("/tasks", FORM_BYTES, "64 KB"),
        ("/notes/Garden", TEXT_BYTES, "2 MB"),
        ("/account/import", WHOLE, "52 MB"),
    ):
        await sender.send("POST", path, FORM, cookie, body=b"a", length=most + 1)
        assert (sender.status, sender.asks) == (413, 0)
        assert f"at most {words}" in sender.text.decode()


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("content-encoding", "gzip", 415),
        ("content-encoding", "identity", 303),
        ("content-type", "multipart/form-data; boundary=b; charset=punycode", 415),
        ("content-type", "multipart/form-data; boundary=b; charset=unicode_escape", 415),
        ("content-type", "application/x-www-form-urlencoded; charset=UTF-8", 303),
    ],
)
async def test_what_a_body_is_packed_in_is_said_and_not_unpacked(
    ada: Browser, name: str, value: str, status: int
) -> None:
    kind = {"content-type": "application/x-www-form-urlencoded"}
    answer = await ada.http.post("/tasks", headers=kind | {name: value}, content=b"title=Milk")
    assert answer.status_code == status


@pytest.mark.parametrize("path", ["/scratchpad", "/jobs/new", "/account/tokens", "/tasks"])
@pytest.mark.parametrize("length", [100, 40_000])
async def test_a_login_that_ended_while_the_body_came_counts_no_more(
    house: Cortex, bob: Browser, path: str, length: int
) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield b"text="
        begun.set()
        await go_on.wait()
        yield b"a" * length

    head = {"content-type": "application/x-www-form-urlencoded", "content-length": str(length + 5)}
    async with asyncio.TaskGroup() as group:
        sent = group.create_task(bob.http.post(path, content=slowly(), headers=head))
        await begun.wait()
        for login in await house.accounts.logins(bob.user):
            await house.accounts.revoke(bob.user, login.id)
        go_on.set()
    assert sent.result().headers["location"].startswith("/login")


def bearer(token: str) -> tuple[bytes, bytes]:
    return b"authorization", f"Bearer {token}".encode()


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/mcp"])
async def test_a_program_is_counted_before_its_body_is_read(
    app: FastAPI, house: Cortex, ada: Browser, path: str
) -> None:
    token = await house.api_tokens.make(ada.user, {"name": "Any", "role": "orchestrator", "per_minute": 3})
    sender = Sender(app)
    for _ in range(3 + BESIDES):
        await sender.send("POST", path, JSON, bearer(token), body=b"[" * 1_000_000)
        assert (sender.status, sender.asks > 0) == (400, True)
    await sender.send("POST", path, JSON, bearer(token), body=b"[" * 1_000_000)
    assert (sender.status, sender.asks, sender.headers["retry-after"]) == (429, 0, "61")
    assert b"At most 3 requests per minute" in sender.text


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/mcp"])
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"a":[' + b"[]," * 400_000 + b"[]]}", "too many items"),
        (b'{"a":' * 101 + b"1" + b"}" * 101, "too deeply: at most 100 levels"),
        (b'{"max_tokens":' + b"9" * 1_000_000 + b"}", "too large or too long"),
        (b'{"max_tokens":1e999999}', "too large or too long"),
        (b'{"max_tokens":Infinity}', "too large or too long"),
        ('{"messages":[]}'.encode("utf-16"), "not JSON in UTF-8"),
    ],
    ids=["items", "levels", "digits", "exponent", "infinity", "UTF-16"],
)
async def test_what_costs_much_to_parse_is_not_parsed(
    app: FastAPI, house: Cortex, ada: Browser, path: str, body: bytes, said: str
) -> None:
    token = await house.api_tokens.make(ada.user, {"name": "Any", "role": "orchestrator"})
    await (sender := Sender(app)).send("POST", path, JSON, bearer(token), body=body)
    assert (sender.status, said in sender.text.decode()) == (400, True)


async def test_at_a_jobs_address_nothing_is_read_that_proves_nothing(app: FastAPI, house: Cortex, ada: Browser) -> None:
    job = await house.jobs.add(ada.user, JobForm(name="Truffles", prompt="Dig.", when="every day at 7"))
    secret = await house.hooks.open(ada.user, job.id, needs_secret=True)
    hook = await house.hooks.get(ada.user, job.id)
    assert hook
    sender, path = Sender(app), f"/hooks/{hook.address}"
    for place, header, length, answer in (
        ("/hooks/nowhere", bearer(secret), 0, (401, 0)),
        (path, FORM, 0, (401, 0)),
        (path, bearer(secret), 256_001, (413, 0)),
        (path, bearer("wrong"), 0, (401, 1)),
        (path, bearer(secret), 0, (202, 1)),
    ):
        await sender.send("POST", place, header, body=b"door=front", length=length)
        assert (sender.status, sender.asks) == answer
    many = b"&".join(b"a" for _ in range(20_000))
    await sender.send("POST", path, FORM, bearer(secret), body=many)
    assert (sender.status, b"too many fields" in sender.text) == (422, True)
    seen = await house.hooks.get(ada.user, job.id)
    assert seen
    assert (seen.taken, seen.refused) == (1, 3)


async def test_an_address_that_is_called_too_often_is_not_read(app: FastAPI, house: Cortex, ada: Browser) -> None:
    job = await house.jobs.add(ada.user, JobForm(name="Truffles", prompt="Dig.", when="every day at 7"))
    await house.hooks.open(ada.user, job.id, needs_secret=False)
    hook = await house.hooks.get(ada.user, job.id)
    assert hook
    sender = Sender(app)
    for _ in range(READ_A_MINUTE):
        again = (b"idempotency-key", b"same")
        await sender.send("POST", f"/hooks/{hook.address}", again, body=b"ring")
        assert sender.status == 202
    await sender.send("POST", f"/hooks/{hook.address}", again, body=b"ring")
    assert (sender.status, sender.asks) == (429, 0)
