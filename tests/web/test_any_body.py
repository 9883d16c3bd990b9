"""A megabyte of anything, by anybody, to any route: answered in words, the loop never held, memory hardly grown."""

import hashlib
import inspect
import io
import json
import zipfile
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote_from_bytes

import pytest
from fastapi import FastAPI
from fastapi.params import Form
from fastapi.routing import APIRoute
from pydantic import BaseModel

from cortex.app import Cortex
from cortex.base import scan
from cortex.base.record import field_names
from tests.e2e.fuzzed import BY_HAND, ENDS_THE_LOGIN, LEAVES_THE_MACHINE
from tests.web.conftest import Browser
from tests.web.sender import FORM, JSON, PARTS, Sender, costs
from tests.web.test_routes import filled, things_of
from web.bodies import FORM as SMALL
from web.bodies import VISITOR, taken_by
from web.register import PAGES
from web.security import SAFE_METHODS

HELD_S = 0.2
GROWN_MB = 64.0
HASHES = {"/login", "/confirm", "/setup", "/welcome"}  # which by design takes 64 MB more, two at a time
HASH_MB = 128.0
SIZE = 1_000_000
FEW_BYTES = 60_000  # as much as a small form takes
LEFT_OUT = (
    ENDS_THE_LOGIN
    | LEAVES_THE_MACHINE
    | {"/account/delete", "/account/logins/{login_id}/end", "/stop-all", "/admin/users/{user_id}/disable"}
    | {"/admin/users/{user_id}/delete", "/admin/users/{user_id}/reset"}
    | {"/admin/mcp/{server}/look", "/admin/mcp/{server}/login"}  # start a program, which may answer nothing
)
# fmt: off
TEXTS = (
    "a", " ", "\n", "[", "*a", "| a |\n", "<b>", "1", "a@", "a,b\n", "> ", "`", "é", "\u0301", "\U0001f9ff", "\\",
    "(a", "* * * * * x\n", "every day at 7 and ", "---\na: &a [*a]\n", "- [ ] a\n  ", "http://a.b ", '{"a":', "&lt;",
    "a\tb\r\n", "today tomorrow 9:00 ", "-----BEGIN CERTIFICATE-----\nAAAA\n", "A=b\n", "'", '"', "#", "\u202e",
    "x: y\n", "%s{{",
)
# fmt: on


def _part(name: str, data: bytes, file: str = "") -> bytes:
    named = f'; filename="{file}"' if file else ""
    return f'--b\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'.encode() + data + b"\r\n"


def _zip() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for number in range(3_000):
            archive.writestr(f"{number}/SKILL.md", "x" * 200)
    return held.getvalue()


NOISE = hashlib.shake_256(b"noise").digest(SIZE)
BODIES: Mapping[str, tuple[tuple[bytes, bytes], Callable[[], bytes]]] = {
    "noise": ((b"content-type", b"application/octet-stream"), lambda: NOISE),
    "noise as a form": (FORM, lambda: NOISE),
    "noise as parts": (PARTS, lambda: NOISE),
    "separators": (FORM, lambda: b"&" * SIZE),
    "fields": (FORM, lambda: b"a=1&" * (SIZE // 4)),
    "escapes": (FORM, lambda: b"text=" + b"%" * SIZE),
    "parts": (PARTS, lambda: _part("a", b"") * (SIZE // 60)),
    "files": (PARTS, lambda: _part("file", b"", "f") * (SIZE // 75)),
    "a part's head": (PARTS, lambda: b"--b\r\nX: " + b"a" * SIZE),
    "lines of a head": (PARTS, lambda: b"--b\r\n" + b"X: a\r\n" * (SIZE // 6)),
    "ends of lines": (PARTS, lambda: _part("file", b"\r" * SIZE, "f") + b"--b--\r\n"),
    "nearly the border": (PARTS, lambda: _part("files", b"\r\n--" * (SIZE // 4), "f.txt") + b"--b--\r\n"),
    "a zip of many": (PARTS, lambda: _part("file", _zip(), "a.zip") + b"--b--\r\n"),
    "a file of text": (PARTS, lambda: _part("files", b"a b\n" * (SIZE // 4), "a.txt") + b"--b--\r\n"),
    "deep JSON": (JSON, lambda: b"[" * SIZE),
    "deep objects": (JSON, lambda: b'{"a":' * (SIZE // 5)),
    "empty lists": (JSON, lambda: b'{"messages":[' + b"[]," * (SIZE // 3) + b"[]]}"),
    "lists within the limit": (JSON, lambda: b'{"messages":[' + b"[]," * 45_000 + b"[]]}"),
    "keys": (JSON, lambda: ("{" + ",".join(f'"{n}":1' for n in range(90_000)) + "}").encode()),
    "digits": (JSON, lambda: b'{"max_tokens":' + b"9" * SIZE + b"}"),
    "half surrogates": (JSON, lambda: b'{"messages":[{"role":"user","content":"' + b"\\ud800" * (SIZE // 6) + b'"}]}'),
    "quotes": (JSON, lambda: b'{"a":"' + b'\\"' * (SIZE // 2)),
    "a call": (JSON, lambda: _call([[]] * 9_000)),
    "a call of words": (JSON, lambda: _call(["a" * 90] * 9_000)),
    "a greeting": (JSON, lambda: json.dumps(_rpc("initialize", {"capabilities": [[]] * 9_000})).encode()),
}


def _rpc(method: str, params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _call(values: Sequence[object]) -> bytes:
    arguments = {"title": values, "names": values, "notes": {"a": values}}
    return json.dumps(_rpc("tools/call", {"name": "task_create", "arguments": arguments})).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One request. `who`: visitor, member, admin or token."""

    method: str
    path: str
    who: str
    kind: str

    @property
    def place(self) -> int:
        """A number that stays the same, for a sample."""
        return int.from_bytes(hashlib.sha256(repr(self).encode()).digest()[:4], "big")


def _routes() -> Iterator[APIRoute]:
    for stem in scan.modules(PAGES):
        for route in scan.load(f"{PAGES}.{stem}").router.routes:
            if not route.methods & set(SAFE_METHODS) and route.path not in LEFT_OUT:
                yield route


def _names(route: APIRoute) -> Iterator[str]:
    """The fields of its form."""
    if route.path in BY_HAND:
        yield from field_names(BY_HAND[route.path])
    for name, given in inspect.signature(route.endpoint, eval_str=True).parameters.items():
        marks = getattr(given.annotation, "__metadata__", ())
        kind = getattr(given.annotation, "__origin__", given.annotation)
        if any(isinstance(mark, Form) for mark in marks):
            yield from kind.model_fields if isinstance(kind, type) and issubclass(kind, BaseModel) else [name]


def _cases() -> Iterator[Case]:
    for route in _routes():
        for method in sorted(route.methods or ()):
            for who in ("visitor", "member", "admin", "token"):
                for kind in BODIES:
                    yield Case(method=method, path=route.path, who=who, kind=kind)
            for name in {*_names(route), "text"}:
                for text in TEXTS:
                    yield Case(method=method, path=route.path, who="admin", kind=f"{name}={text}")


def _body(case: Case) -> tuple[tuple[bytes, bytes], bytes]:
    if case.kind in BODIES:
        kind, made = BODIES[case.kind]
        return kind, made()
    name, _, text = case.kind.partition("=")
    route = next(one for one in _routes() if one.path == case.path)
    takes = taken_by(route.endpoint, is_open="/login" in case.path)
    size = {id(SMALL): FEW_BYTES, id(VISITOR): 16_000}.get(id(takes), SIZE)
    value = quote_from_bytes(text.encode()).encode()
    rest = b"".join(b"&%s=1" % one.encode() for one in _names(route) if one != name)
    return FORM, name.encode() + b"=" + value * ((size - len(rest) - 20) // len(value)) + rest


HEAD_BYTES = 60_000
HEADS: Mapping[str, tuple[bytes, bytes]] = {
    "a cookie of quotes": (b"cookie", b'a="' + b'\\"' * (HEAD_BYTES // 2) + b'"'),
    "cookies": (b"cookie", b"a=b;" * (HEAD_BYTES // 4)),
    "news that are nested": (b"cookie", b"cortex_toast=" + b64encode(b"[" * 40_000)),
    "a gap in the encodings": (b"accept-encoding", b"gzip" + b" " * HEAD_BYTES + b"br"),
    "ranges": (b"range", b"bytes=" + b"0-0," * (HEAD_BYTES // 4)),
    "kinds": (b"accept", b"a/b;q=0.1," * (HEAD_BYTES // 10)),
    "parameters": (b"content-type", b"a;" * (HEAD_BYTES // 2)),
    "a place": (b"hx-current-url", b"http://a/" + b"?#" * (HEAD_BYTES // 2)),
    "a number": (b"last-event-id", b"9" * HEAD_BYTES),
    "a token": (b"authorization", b"Bearer" + b" " * HEAD_BYTES + b"a"),
}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("who", ["visitor", "admin"])
async def test_any_line_of_a_head_on_any_page(app: FastAPI, house: Cortex, ada: Browser, who: str, head: str) -> None:
    login = (b"cookie", b"cortex=" + ada.http.cookies["cortex"].encode())
    sender, wrong = Sender(app), {}
    for path in ("/login", "/account", "/static/vendor/app.css", "/v1/models", "/manifest.webmanifest", "/nowhere"):
        given = [HEADS[head], login] if who == "admin" else [HEADS[head]]
        with costs() as cost:
            await sender.send("GET", path, *given)
        if not sender.is_in_words or cost.held_s > HELD_S or cost.grown_mb > GROWN_MB:
            wrong[path] = (sender.status, round(cost.held_s, 2), round(cost.grown_mb), sender.text[:200])
    assert wrong == {}


CASES = sorted(_cases(), key=lambda case: case.place)
SAMPLE = 60


@pytest.mark.parametrize(
    "step", [pytest.param(1, id="all", marks=[pytest.mark.full, pytest.mark.timeout(7_200)]), len(CASES) // SAMPLE]
)
async def test_any_body_of_anybody_on_any_route(
    app: FastAPI, house: Cortex, ada: Browser, bob: Browser, step: int
) -> None:
    ids = await things_of(house, ada)
    await house.hooks.open(ada.user, ids["job_id"], needs_secret=False)
    hook = await house.hooks.get(ada.user, ids["job_id"])
    assert hook
    ids["address"] = hook.address
    token = await house.api_tokens.make(ada.user, {"name": "Any", "role": "orchestrator", "per_minute": 6_000})
    who = {
        "visitor": (b"cookie", b"none=1"),
        "member": (b"cookie", b"cortex=" + bob.http.cookies["cortex"].encode()),
        "admin": (b"cookie", b"cortex=" + ada.http.cookies["cortex"].encode()),
        "token": (b"authorization", b"Bearer " + token.encode()),
    }
    sender, wrong = Sender(app), {}
    accepts = (b"accept", b"application/json, text/event-stream, text/html")
    for case in CASES[::step]:
        kind, body = _body(case)
        with costs() as cost:
            await sender.send(case.method, filled(case.path, ids), kind, who[case.who], accepts, body=body)
        most_mb = GROWN_MB + HASH_MB * (case.path in HASHES)
        if not sender.is_in_words or cost.held_s > HELD_S or cost.grown_mb > most_mb:
            wrong[str(case)] = (sender.status, round(cost.held_s, 2), round(cost.grown_mb), sender.text[:200])
    assert wrong == {}
