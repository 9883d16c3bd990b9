"""Any input to any route of the real daemon: a page, or a refusal in a sentence; never a failure of ours."""

import logging
import re
from typing import Any
from urllib.parse import urlencode

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.core.result import Ok

from tests.e2e.caller import PASSWORD, Caller
from tests.e2e.daemon import Daemon
from tests.e2e.fuzzed import NONSENSE, document
from tests.patience import PATIENCE_S

logging.getLogger("schemathesis").setLevel(logging.ERROR)
HEAD_BYTES = 65_000
BUDGET = [
    pytest.param(80, id="sample"),
    pytest.param(10_000, id="whole", marks=[pytest.mark.full, pytest.mark.timeout(3_600)]),
]


@pytest.fixture(scope="module")
def ids(ada: Caller) -> dict[str, list[str]]:
    """One of everything whose id stands in a path, as far as a person makes it by a form."""
    place = ada.send("new", "add milk to my shopping list")
    ada.post("/tasks", title="Buy bread")
    ada.post("/reminders", words="call tomorrow at 9")
    ada.post("/notes", name="Garden")
    ada.post("/skills", title="Compost", description="When somebody asks about compost")
    ada.post("/jobs/new", name="Hourly", kind="prompt", prompt="Say hello.", when="every day at 7")

    def found(page: str, pattern: str) -> list[str]:
        return sorted(set(re.findall(pattern, ada.get(page).text)) - {"new", "preview", "import"})

    return {
        "cid": [place],
        "key": found(f"/c/{place}", r'id="t([0-9A-Za-z]+)"'),
        "task_id": found("/tasks", r"/tasks/([\w-]+)/complete"),
        "reminder_id": found("/reminders", r'href="/reminders/([\w-]+)"'),
        "name": found("/notes", r'href="/notes/([^"/]+)"'),
        "skill": found("/skills", r'href="/skills/([^"/]+)"'),
        "job_id": found("/jobs", r'href="/jobs/([\w-]+)"'),
        "role": ["orchestrator"],
        "category": ["tasks"],
        "tool": ["task_create"],
        "number": ["1"],
    }


def test_there_is_one_of_everything(ids: dict[str, list[str]]) -> None:
    assert {name for name, found in ids.items() if not found} == set()


@pytest.mark.parametrize("examples", BUDGET)
def test_no_route_fails_on_any_input(house: Daemon, ada: Caller, ids: dict[str, list[str]], examples: int) -> None:
    """By schemathesis, over the document of all routes: what fits it, and nonsense in each of its places."""
    ada.post("/confirm", password=PASSWORD)
    schema = schemathesis.openapi.from_dict(document(ids))
    operations = [found.ok().as_strategy() for found in schema.get_all_operations() if isinstance(found, Ok)]
    with requests.Session() as session:
        session.trust_env = False
        session.headers["Origin"] = house.origin  # else every form is refused as another site's, before it is read
        session.headers["Connection"] = "close"  # the daemon closes one on which nothing comes for 10 s, under load too

        @settings(
            max_examples=examples, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
        )
        @given(case=st.one_of(operations))
        def ask(case: Any) -> None:
            request = case.as_transport_kwargs(base_url=house.origin) | {"cookies": {"cortex": ada.token}}
            try:
                answer = session.request(**request, allow_redirects=False, timeout=PATIENCE_S)
            except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError):
                # h11 reads no more of a head than this and closes: its 400 may be lost on the way, nothing else may.
                assert len(session.prepare_request(requests.Request(**request)).url or "") > HEAD_BYTES
                return
            assert is_sound(answer.status_code, answer.text), (
                answer.status_code,
                answer.request.url,
                answer.request.body,
            )

        ask()
    assert "Log out" in ada.get("/account").text
    assert "Traceback" not in house.log


def is_sound(status: int, text: str) -> bool:
    """A page, a way on, or a refusal with a sentence."""
    return status < 400 or (status < 500 and len(text) > 10)


@pytest.mark.parametrize(
    "said",
    [
        *(one for one in NONSENSE if "\r" not in one and "\x00" not in one and one.isascii() and len(one) < 9000),
        "7" * 5000,
        "-1",
        "1.5",
        str(10**18 - 1),
    ],
)
def test_a_stream_begins_whatever_the_browser_saw_last(ada: Caller, ids: dict[str, list[str]], said: str) -> None:
    with ada.stream(f"/c/{ids['cid'][0]}/events", {"Last-Event-ID": said}) as answer:
        assert answer.status_code == 200


@pytest.mark.parametrize("name", ["after", "shown"])
@pytest.mark.parametrize("said", NONSENSE)
def test_a_stream_refuses_a_place_that_is_none(ada: Caller, ids: dict[str, list[str]], name: str, said: str) -> None:
    with ada.stream(f"/c/{ids['cid'][0]}/events?" + urlencode({name: said}), {}) as answer:
        assert answer.status_code in (200, 422)


BODIES = {
    "JSON": ("application/json", b'{"text": "x"}'),
    "deep JSON": ("application/json", b"[" * 100_000),
    "no type": ("", b"text=x"),
    "a type that is none": ("\xff/\xfe;;;", b"text=x"),
    "multipart without a boundary": ("multipart/form-data", b"text=x"),
    "multipart cut short": (
        "multipart/form-data; boundary=b",
        b'--b\r\nContent-Disposition: form-data; name="text"\r\n\r\nx',
    ),
    "multipart of nonsense": ("multipart/form-data; boundary=b", b"--b\r\n\x00\xff: \r\n\r\n--b--"),
    "a file as text": (
        "multipart/form-data; boundary=b",
        b'--b\r\nContent-Disposition: form-data; name="text"; filename="f"\r\n\r\nx\r\n--b--\r\n',
    ),
    "a thousand and more fields": ("application/x-www-form-urlencoded", b"&".join(b"f%d=1" % n for n in range(3000))),
    "two megabytes of empty fields": ("application/x-www-form-urlencoded", b"&" * 1_900_000),
    "half a megabyte of escapes": ("application/x-www-form-urlencoded", b"text=" + b"%41" * 180_000),
    "broken escapes": ("application/x-www-form-urlencoded", b"text=" + b"%" * 700_000),
    "half of UTF-8": ("application/x-www-form-urlencoded", b"text=%ff%fe%ed%a0%80"),
    "another character set": ("application/x-www-form-urlencoded; charset=utf-7", b"text=+AGE-"),
    "a list of fields": ("application/x-www-form-urlencoded", b"text=a&text=b&text=c"),
}


@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize(
    "path",
    [
        "/c/new/messages",
        "/jobs/new",
        *(
            pytest.param(path, marks=pytest.mark.full)
            for path in ("/tasks", "/admin/tools/task_create/call", "/push/subscribe")
        ),
    ],
)
def test_a_body_of_another_kind_is_refused_in_a_sentence(ada: Caller, kind: str, path: str) -> None:
    content_type, body = BODIES[kind]
    answer = ada.send_body(path, content_type, body)
    assert is_sound(answer.status_code, answer.text), answer.text[:300]
