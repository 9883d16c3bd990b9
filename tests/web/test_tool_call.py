"""Calls by hand from a tool's page: through the real gate, with its question, its record and its undo."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cortex.app import Cortex
from cortex.storage.audit import AuditRepository
from cortex.storage.calls import CallRow, CallsRepository
from tests.living_house import PASSWORD, LivingHouse, living_house
from tests.patience import PATIENCE_S
from tests.web import conftest
from tests.web.conftest import Browser
from tests.web.marks import marks
from web.app import create_app

CREATE = "/admin/tools/task_create/call"
WRITE = "/admin/tools/file_write/call"


@pytest.fixture
async def alive(tmp_path: Path) -> AsyncIterator[LivingHouse]:
    async with living_house(tmp_path / "home") as opened:
        yield opened


@pytest.fixture
async def hand(alive: LivingHouse) -> AsyncIterator[Browser]:
    token = await alive.cortex.accounts.login("ada", PASSWORD, "127.0.0.1", "test")
    person = await conftest.logged_in(create_app(alive.cortex), alive.cortex, "ada", token)
    async with person.http:
        yield person


async def calls_of(alive: LivingHouse, tool: str) -> list[CallRow]:
    return list(await alive.cortex.runtime.db.repository(CallsRepository, alive.admin.id).of_tool(tool, 10))


async def ended(browser: Browser, place: str) -> str:
    """The page of a call once it no longer runs."""
    async with asyncio.timeout(PATIENCE_S):
        while 'hx-trigger="load delay:1s"' in (page := (await browser.get(place)).text):  # noqa: ASYNC110 - as the page does
            await asyncio.sleep(0.05)
    return page


async def test_a_field_stands_for_each_argument(hand: Browser) -> None:
    page = (await hand.get(CREATE)).text
    assert 'for="f-title">title' in page
    assert ">due (optional)" in page
    assert 'data-writes="f-due"' in page
    assert 'name="a.priority" type="number"' in page
    assert CREATE in marks(await hand.get("/admin/tools/task_create")).links
    assert "Default: inbox." in page
    assert "Default: 0." in page
    assert 'value="INFO"' in (await hand.get("/admin/tools/cortex_logs/call")).text


async def test_a_call_is_made_in_the_admins_name_recorded_and_shown(alive: LivingHouse, hand: Browser) -> None:
    answer = await hand.post(CREATE, **{"a.title": "Oil the gate", "a.due": "2027-03-01", "a.priority": "2"})
    place = answer.headers["location"]
    page = await ended(hand, place.partition("#")[0])
    (task,) = await alive.cortex.tasks.list(alive.admin)
    assert (task.title, str(task.due), task.priority) == ("Oil the gate", "2027-03-01", 2)
    assert not await alive.cortex.tasks.list(alive.member)
    (row,) = await calls_of(alive, "task_create")
    assert (row.state, row.is_rescued, row.came) == ("done", False, "")
    assert "<dd>done</dd>" in page
    assert row.text.partition("\n")[0][:20] in page
    assert marks(page).values["a.title"] == "Oil the gate"
    assert re.search(r'action="/undo/\w+"', page)
    actions = [
        entry.action for entry in await alive.cortex.runtime.db.repository(AuditRepository).list(subject="task_create")
    ]
    assert actions == ["tool.tried"]


async def test_it_stands_in_the_runs_and_its_trace_and_not_in_the_sidebar(alive: LivingHouse, hand: Browser) -> None:
    answer = await hand.post(CREATE, **{"a.title": "Oil the gate"})
    await ended(hand, answer.headers["location"].partition("#")[0])
    runs = (await hand.get("/runs")).text
    assert "manual" in runs
    (key,) = re.findall(r'<tr id="run-(\w+)"', runs)
    trace = (await hand.get(f"/runs/{key}")).text
    assert "Called manually" in trace
    assert "Oil the gate" in trace
    assert '"name": "task_create"' in (await hand.get(f"/runs/{key}/trace.json")).text
    assert not await alive.cortex.conversations.list(alive.admin)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "This is needed."),
        ({"a.title": "x", "a.priority": "9"}, "Must be at most 3."),
        ({"a.title": "x", "a.due": "soon"}, "Write a day such as tomorrow"),
        ({"json": '{"title": 5}'}, "title: must be text"),
        ({"json": '{"title": "x", "colour": "red"}'}, "colour: is not known here"),
        ({"json": "{title"}, "This is not JSON"),
        ({"json": "[1]"}, "one JSON object"),
        ({"a.title": "x", "role": "nobody"}, "nobody"),
    ],
    ids=["missing", "too much", "no date", "wrong type", "unknown", "no JSON", "no object", "unknown role"],
)
async def test_wrong_arguments_are_told_at_their_field_and_nothing_runs(
    alive: LivingHouse, hand: Browser, fields: dict[str, str], said: str
) -> None:
    answer = await hand.post(CREATE, **fields)
    assert answer.status_code in (404, 422)
    assert said in answer.text
    assert not await calls_of(alive, "task_create")


async def test_json_stands_in_place_of_the_fields(alive: LivingHouse, hand: Browser) -> None:
    answer = await hand.post(CREATE, **{"a.title": "not this", "json": '{"title": "this"}'})
    await ended(hand, answer.headers["location"].partition("#")[0])
    assert [task.title for task in await alive.cortex.tasks.list(alive.admin)] == ["this"]


async def test_what_acts_outside_wants_a_yes_that_holds_for_these_arguments_alone(
    alive: LivingHouse, hand: Browser
) -> None:
    fields = {"a.path": "gate.md", "a.text": "oiled"}
    asked = await hand.post(WRITE, **fields)
    assert "Call" in asked.text
    assert not await calls_of(alive, "file_write")
    (sure,) = re.findall(r'name="sure"\s+value="(\w+)"', asked.text)
    again = await hand.post(WRITE, **{**fields, "a.text": "rusty", "sure": sure})
    assert "Call" in again.text
    assert not await calls_of(alive, "file_write")
    answer = await hand.post(WRITE, **fields, sure=sure)
    await ended(hand, answer.headers["location"].partition("#")[0])
    assert [row.state for row in await calls_of(alive, "file_write")] == ["done"]


async def test_the_gate_asks_first_and_a_no_runs_nothing(alive: LivingHouse, hand: Browser) -> None:
    await alive.cortex.tool_settings.change(alive.admin, "task_create", is_on=True, sending="needed", asks_first=True)
    answer = await hand.post(CREATE, **{"a.title": "Oil the gate"})
    place = answer.headers["location"].partition("#")[0]
    page = (await hand.get(place)).text
    assert "Needs your OK:" in page
    (approval,) = await alive.cortex.approvals.pending(alive.admin)
    assert f'action="/approvals/{approval.id}"' in page
    await hand.post(f"/approvals/{approval.id}", choice="deny")
    page = await ended(hand, place)
    assert "<dd>not run</dd>" in page
    assert not await alive.cortex.tasks.list(alive.admin)
    answer = await hand.post(CREATE, **{"a.title": "Oil the gate"})
    (approval,) = await alive.cortex.approvals.pending(alive.admin)
    await hand.post(f"/approvals/{approval.id}", choice="once")
    await ended(hand, answer.headers["location"].partition("#")[0])
    assert [task.title for task in await alive.cortex.tasks.list(alive.admin)] == ["Oil the gate"]


async def test_an_error_of_the_tool_is_shown_as_the_model_would_read_it(hand: Browser) -> None:
    answer = await hand.post("/admin/tools/task_complete/call", json='{"task": "no such task"}')
    page = await ended(hand, answer.headers["location"].partition("#")[0])
    assert "<dd>failed</dd>" in page
    assert "Output" in page


@pytest.mark.parametrize(
    ("tool", "why"),
    [("ha_get_state", "Home Assistant is not set up."), ("tools_discover", "Try one of those")],
    ids=["not set up", "meta"],
)
async def test_what_cannot_run_here_has_no_form_and_says_why(
    alive: LivingHouse, hand: Browser, tool: str, why: str
) -> None:
    place = f"/admin/tools/{tool}/call"
    page = (await hand.get(place)).text
    assert why in page
    assert "Call it</button>" not in page
    answer = await hand.post(place, json='{"query": "x", "name": "x"}')
    assert answer.status_code == 422
    assert not await calls_of(alive, tool)


async def test_a_tool_that_is_off_or_outside_of_the_role_is_not_called(alive: LivingHouse, hand: Browser) -> None:
    settings = alive.cortex.tool_settings
    await settings.change(alive.admin, "task_create", is_on=False, sending="needed", asks_first=False)
    assert "switched off" in (await hand.post(CREATE, **{"a.title": "x"})).text
    await settings.take_back(alive.admin, "task_create", "is_on")
    (role, *_) = [name for name in await alive.cortex.roles.names(alive.admin) if not await _may(alive.cortex, name)]
    answer = await hand.post(CREATE, **{"a.title": "x", "role": role})
    assert "Choose another role" in answer.text
    assert not await calls_of(alive, "task_create")


async def _may(cortex: Cortex, role: str) -> bool:
    return "task_create" in await cortex.tools.permitted(await cortex.accounts.named("ada"), role)


async def test_the_call_of_another_tool_is_not_shown_here(hand: Browser) -> None:
    answer = await hand.post(CREATE, **{"a.title": "x"})
    (key,) = re.findall(r"run=(\w+)", answer.headers["location"])
    assert (await hand.get(f"/admin/tools/task_list/call?run={key}")).status_code == 404
    assert (await hand.get(f"{CREATE}?run=nothing")).status_code == 404


async def test_a_turn_of_a_chat_is_no_call_by_hand(alive: LivingHouse, hand: Browser) -> None:
    turn_id = await alive.say(await alive.conversation(), "add milk to my shopping list")
    assert (await hand.get(f"{CREATE}?run={turn_id.removeprefix('turn:')}")).status_code == 404
