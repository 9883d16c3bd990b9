"""Every route there is, by itself: a visitor is sent to log in, another site is refused, headers stand, others' things
are not there. A new route joins these tests by being there; one with a new kind of id has to say whose it is.
"""

import re
from collections.abc import Iterator
from datetime import timedelta

import httpx
import pytest
from fastapi.routing import APIRoute

from cortex.app import Cortex
from cortex.base import scan
from cortex.base.ids import new_id
from cortex.storage.approvals import Approvals
from cortex.storage.calls import CallRow, Calls
from cortex.storage.conversations import Conversations
from cortex.storage.home import Home
from cortex.storage.plans import Plans
from cortex.storage.summaries import Summaries
from cortex.storage.turns import Turns
from cortex.storage.undo import Undos
from tests.web.conftest import Browser
from web.app import PAGES, frame_routes
from web.security import CSP

OPEN = {
    "/login",
    "/logout",
    "/setup",
    "/welcome",
    "/healthz",
    "/readyz",
    "/static/{path:path}",
    "/manifest.webmanifest",
}
FIELDS = {"version": "1", "by": "1", "text": "words", "choice": "deny", "name": "x", "title": "x", "mode": "auto"}


def routes() -> Iterator[tuple[str, str]]:
    routers = [frame_routes, *(scan.load(f"{PAGES}.{stem}").router for stem in scan.modules(PAGES))]
    for router in routers:
        for route in router.routes:
            assert isinstance(route, APIRoute)
            for method in sorted(route.methods or ()):
                yield method, route.path


def test_the_pages_are_found() -> None:
    assert len(list(routes())) > 60


def filled(path: str, ids: dict[str, str]) -> str:
    for name, value in ids.items():
        path = path.replace("{" + name + "}", value)
    return path


ANY = dict.fromkeys(
    ("cid", "key", "task_id", "name", "role", "login_id", "user_id", "approval_id", "undo_id", "summary_id"), "x"
)


async def test_a_visitor_is_sent_to_log_in_from_every_route(house: Cortex, visitor: httpx.AsyncClient) -> None:
    let_in = {}
    for method, path in routes():
        if path in OPEN:
            continue
        answer = await visitor.request(method, filled(path, ANY))
        is_refused = answer.status_code == 401 or answer.headers.get("location", "").startswith("/login")
        if not is_refused:
            let_in[f"{method} {path}"] = answer.status_code
    assert let_in == {}


async def test_before_the_first_account_every_route_leads_to_set_up(
    empty_house: Cortex, first_visitor: httpx.AsyncClient
) -> None:
    elsewhere = {}
    for method, path in routes():
        if path in OPEN:
            continue
        answer = await first_visitor.request(method, filled(path, ANY))
        if answer.status_code != 401 and answer.headers.get("location") != "/setup":
            elsewhere[f"{method} {path}"] = answer.status_code
    assert elsewhere == {}


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "", "Origin": "https://evil.example"},
        {"Sec-Fetch-Site": ""},
    ],
    ids=["cross-site", "same-site", "foreign origin", "says nothing"],
)
async def test_another_site_can_change_nothing_on_any_route(ada: Browser, headers: dict[str, str]) -> None:
    answered = {}
    for method, path in routes():
        if method in ("GET", "HEAD"):
            continue
        answer = await ada.http.request(method, filled(path, ANY), headers=headers, data=FIELDS)
        if answer.status_code != 403:
            answered[f"{method} {path}"] = answer.status_code
    assert answered == {}


async def test_every_answer_carries_the_policy_and_an_id(ada: Browser) -> None:
    without = []
    for method, path in routes():
        if method != "GET" or path.endswith("/events"):
            continue
        answer = await ada.get(filled(path, ANY))
        whole = answer.headers.get("content-security-policy") == CSP and answer.headers.get("x-request-id")
        if not whole or answer.headers.get("x-content-type-options") != "nosniff":
            without.append(path)
    assert without == []


async def things_of(house: Cortex, person: Browser) -> dict[str, str]:
    """One of everything that has an id, all of it this person's."""
    user, db = person.user, house.house.db
    conversation = await house.conversations.new(user)
    turn_id, call_id = f"turn:{new_id()}", new_id()
    later = db.clock() + timedelta(hours=1)
    await db.open(Turns, user.id).create(
        turn_id, conversation.id, "hello", mode="auto", role="orchestrator", state="done"
    )
    said = {"turn": turn_id, "text": "hello", "at": later.isoformat(), "mode": "auto", "is_steer": False}
    await db.open(Conversations, user.id).append(conversation.id, [("message", said, turn_id)])
    receipt = await house.tools.explain(user, "orchestrator", "hello")
    await db.open(Plans, user.id).add(turn_id, 1, receipt, 100)
    call = CallRow(
        id=call_id,
        turn_id=turn_id,
        conversation_id=conversation.id,
        round=1,
        name="shell_exec",
        arguments="{}",
        arguments_hash="h",
        risk="high",
    )
    await db.open(Calls, user.id).decided(call)
    approval = await db.open(Approvals, user.id).ask(
        call_id, turn_id, "shell_exec", "h", "this machine", "Run", "ls", "you asked", "high", later
    )
    undo = await db.open(Undos, user.id).add(call_id, "tasks", "t", None, "1", "Take it back", later)
    summary = await db.open(Summaries, user.id).add(conversation.id, 1, "what was said", False)
    await Home(house.settings.home, user.id).write("agent_notes/orchestrator.md", "likes tea\n")
    return {
        "cid": conversation.id,
        "key": turn_id.removeprefix("turn:"),
        "task_id": (await house.tasks.create(user, "Water the plants")).id,
        "name": await house.notes.create(user, "Garden"),
        "role": "orchestrator",
        "login_id": (await house.accounts.logins(user))[0].id,
        "user_id": user.id,
        "approval_id": approval.id,
        "undo_id": undo.id,
        "summary_id": summary.id,
    }


async def test_what_belongs_to_another_is_not_there_on_any_route(house: Cortex, ada: Browser, bob: Browser) -> None:
    ids = await things_of(house, ada)
    found = {}
    for method, path in routes():
        if "{" not in path or path in OPEN:
            continue
        assert set(re.findall(r"{(\w+)}", path)) <= ids.keys(), "say above whose this new kind of id is"
        query = {"before": "9", "after": "0"} if method == "GET" else {}
        answer = await bob.http.request(method, filled(path, ids), params=query, data=FIELDS, timeout=10)
        if answer.status_code != (403 if path.startswith("/admin/") else 404):
            found[f"{method} {path}"] = answer.status_code
    assert found == {}
    assert [task.title for task in await house.tasks.list(ada.user)] == ["Water the plants"]
    assert len(await house.accounts.logins(ada.user)) == 1
    assert (await house.notes.read(ada.user, "Garden")).text == "# Garden\n"


async def test_the_owner_does_find_them(house: Cortex, ada: Browser) -> None:
    ids = await things_of(house, ada)
    missing = {}
    for method, path in routes():
        if method == "GET" and "{" in path and path not in OPEN and not path.endswith("/events"):
            answer = await ada.http.get(filled(path, ids), params={"before": "9"}, follow_redirects=True)
            if answer.status_code != 200:
                missing[path] = answer.status_code
    assert missing == {}
