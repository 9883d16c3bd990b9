"""The list of runs: newest first, filtered, by pages; words are shown to whom they belong alone."""

import re
from pathlib import Path

import pytest

from cortex.app import Cortex
from cortex.base.messages import Usage
from cortex.base.turn import TurnState
from cortex.services.usage.runs import PAGE, RunQuery
from cortex.storage.accounts import LoginsRepository
from cortex.storage.calls import CallRow, CallsRepository
from cortex.storage.conversations import ConversationsRepository
from cortex.storage.rounds import RoundsRepository
from cortex.storage.turns import NOTHING_READ, NewTurn, TurnsRepository
from tests.living_house import living_house
from tests.plain_world import PLAIN_TURN
from tests.web.conftest import Browser


async def conversation(house: Cortex, person: Browser, title: str = "Garden") -> str:
    return (
        await house.runtime.db.repository(ConversationsRepository, person.user.id).create(
            "orchestrator", "auto", title, is_title_tainted=False
        )
    ).id


async def run(
    house: Cortex,
    person: Browser,
    cid: str,
    text: str,
    state: TurnState = "done",
    *,
    role: str = "orchestrator",
    job_id: str = "",
    tool: str = "",
    cost_usd: float | None = 0.25,
) -> str:
    """A run with one answered round; its key."""
    db, key = house.runtime.db, re.sub(r"\W", "", text)
    turn_id = f"turn:{key}"
    turns, rounds = db.repository(TurnsRepository, person.user.id), db.repository(RoundsRepository, person.user.id)
    await turns.create(
        NewTurn(
            turn_id,
            cid,
            text,
            mode="auto",
            role=role,
            job_id=job_id,
            state="running",
            is_tainted=False,
            reads=NOTHING_READ,
        )
    )
    await rounds.answered(turn_id, 1, "m", Usage(input_tokens=1200, output_tokens=34), cost_usd)
    if tool:
        call = CallRow(
            id=f"call-{key}",
            turn_id=turn_id,
            conversation_id=cid,
            round=1,
            name=tool,
            arguments="{}",
            arguments_hash="h",
            risk="low",
        )
        await db.repository(CallsRepository, person.user.id).decided(call)
    await turns.move(turn_id, state, error="The model said no." if state == "failed" else "")
    return key


def keys(page: str) -> list[str]:
    return re.findall(r'<tr id="run-(\w+)"', page)


async def test_a_house_where_nothing_ran_says_what_to_do(ada: Browser) -> None:
    page = (await ada.get("/runs")).text
    assert "No runs yet." in page
    assert 'href="/c/new"' in page


async def test_the_newest_run_stands_first_with_what_it_took(house: Cortex, ada: Browser) -> None:
    cid = await conversation(house, ada)
    await run(house, ada, cid, "first")
    await run(house, ada, cid, "second", "failed", tool="task_list", cost_usd=None)
    page = (await ada.get("/runs")).text
    assert keys(page) == ["second", "first"]
    assert 'href="/runs/second"' in page
    for words in ("<code>task_list</code>", "1.2k", "$0.25", "unknown", "The model said no.", "in Garden"):
        assert words in page
    assert re.search(r'href="/more"[^>]*aria-current', page)


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("status=running", ["queued", "running"]),
        ("status=done", ["job", "odd", "done"]),
        ("status=failed", ["failed"]),
        ("status=stopped", ["stopped"]),
        ("role=coder", ["odd"]),
        ("tool=task_list", ["odd"]),
        ("job=backup", ["job"]),
        ("conversation={cid}", ["queued", "running", "job", "stopped", "failed", "done"]),
        ("status=failed&role=coder", []),
    ],
    ids=str,
)
async def test_the_list_is_narrowed(house: Cortex, ada: Browser, query: str, shown: list[str]) -> None:
    cid = await conversation(house, ada)
    await run(house, ada, cid, "done")
    await run(
        house, ada, await conversation(house, ada, "Shed"), "odd", "out_of_rounds", role="coder", tool="task_list"
    )
    await run(house, ada, cid, "failed", "failed")
    await run(house, ada, cid, "stopped", "stopped")
    await run(house, ada, cid, "job", job_id="backup")
    await run(house, ada, cid, "running", "running")
    await run(house, ada, cid, "queued", "waiting")
    page = (await ada.get(f"/runs?{query.format(cid=cid)}")).text
    assert keys(page) == shown
    assert ("Nothing matches." in page) == (not shown)


async def test_a_filter_is_kept_on_the_way_through_the_pages(house: Cortex, ada: Browser) -> None:
    cid = await conversation(house, ada)
    for number in range(PAGE + 2):
        await run(house, ada, cid, f"run{number}")
    first = (await ada.get("/runs?role=orchestrator")).text
    assert len(keys(first)) == PAGE
    assert 'href="/runs?role=orchestrator&amp;page=2"' in first
    second = (await ada.get("/runs?role=orchestrator&page=2")).text
    assert keys(second) == ["run1", "run0"]
    assert 'href="/runs?role=orchestrator"' in second


async def test_a_page_with_a_run_that_goes_on_looks_again_and_any_other_does_not(house: Cortex, ada: Browser) -> None:
    cid = await conversation(house, ada)
    await run(house, ada, cid, "over")
    assert "load delay:2s" not in (await ada.get("/runs")).text
    await run(house, ada, cid, "on", "running")
    part = (await ada.fragment("/runs")).text
    assert "<html" not in part
    assert 'hx-trigger="load delay:2s"' in part
    assert "so far" in part


async def test_deleted_conversations_and_messages_that_were_taken_in_are_no_runs(house: Cortex, ada: Browser) -> None:
    cid = await conversation(house, ada)
    await run(house, ada, cid, "main", "running")
    turns = house.runtime.db.repository(TurnsRepository, ada.user.id)
    await turns.create(NewTurn("turn:aside", cid, "aside", **PLAIN_TURN))
    await turns.take_queued(cid, "turn:main", 1)
    assert keys((await ada.get("/runs")).text) == ["main"]
    gone = await conversation(house, ada)
    await run(house, ada, gone, "gone")
    await house.conversations.delete(ada.user, gone)
    assert keys((await ada.get("/runs")).text) == ["main"]


async def test_a_member_sees_only_what_is_theirs(house: Cortex, ada: Browser, bob: Browser) -> None:
    await run(house, ada, await conversation(house, ada, "Secret"), "adas")
    await run(house, bob, await conversation(house, bob), "bobs")
    page = (await bob.get("/runs")).text
    assert keys(page) == ["bobs"]
    assert 'name="person"' not in page
    for person in ("all", ada.user.id):
        assert (await bob.get(f"/runs?person={person}")).status_code == 403


async def test_an_admin_sees_the_figures_of_all_and_the_words_of_none_but_their_own(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    await run(house, ada, await conversation(house, ada), "adas")
    await run(house, bob, await conversation(house, bob, "Secret"), "bobs", "failed")
    assert keys((await ada.get("/runs")).text) == ["adas"]
    page = (await ada.get("/runs?person=all")).text
    assert keys(page) == ["bobs", "adas"]
    assert "A run of <bdi>Bob</bdi>" in page
    assert "Secret" not in page
    assert "The model said no." not in page
    assert keys((await ada.get(f"/runs?person={bob.user.id}")).text) == ["bobs"]
    assert (await ada.get("/runs?person=nobody")).status_code == 404


async def test_an_admin_who_gave_no_password_lately_is_asked_for_it(house: Cortex, ada: Browser) -> None:
    (login, *_) = await house.accounts.logins(ada.user)
    await house.runtime.db.repository(LoginsRepository, ada.user.id).confirm(login.id, house.runtime.clock())
    assert (await ada.get("/runs")).status_code == 200
    assert (await ada.get("/runs?person=all")).headers["location"].startswith("/confirm")


async def test_a_real_answer_is_listed_with_its_tool(tmp_path: Path) -> None:
    async with living_house(tmp_path / "home") as alive:
        await alive.say(await alive.conversation(), "add milk to my shopping list")
        view = await alive.cortex.runs.list(alive.admin, RunQuery())
    (only,) = view.runs
    assert only.row.state == "done"
    assert "task_create" in only.tools
    assert only.sum.rounds == 2
    assert only.ms is not None
