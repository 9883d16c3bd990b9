"""What a turn wrote after it read outside text keeps the mark, whichever tool brings it back, and private tools say so.

Every tool of the server takes part: one that is new fails here until it is planted, looked through or left out with
its reason.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import ColumnElement, FromClause, select

from cortex.base.errors import Conflict
from cortex.base.events import Event
from cortex.services.reminders.due import DueReminders, Waking
from cortex.services.timings import LazyReader
from cortex.storage.home import Homes
from cortex.storage.table import Table
from cortex.storage.turns import TurnsRepository
from tests.living_house import LivingHouse, living_house
from tests.patience import PATIENCE_S
from tests.scripted_server import Say, ScriptedServer, Use, rule

MARK = "zquince"  # stands in all that the tainted turn writes, and in no call of the turns that look
ROLE = "everything"
Calls = list[tuple[str, dict[str, Any]]]
READ: Calls = [("file_read", {"path": "letter.txt"})]
PLANTED: Calls = [
    ("task_create", {"title": f"prune {MARK}", "list_name": f"{MARK} list", "notes": MARK}),
    ("task_create", {"title": f"water {MARK}", "list_name": f"{MARK} list"}),
    ("reminders_add", {"text": f"repot {MARK}", "when": "tomorrow at 9"}),
    ("cron_add", {"prompt": f"graft {MARK}", "when": "every day at 9", "name": f"graft {MARK}"}),
    ("file_write", {"path": f"{MARK}/seeds.txt", "text": f"seeds\n{MARK}"}),
    ("scratch_write", {"text": f"bulbs {MARK}"}),
    ("scratch_append", {"text": MARK}),
    ("notes_append", {"text": MARK, "note": "Beds"}),
    ("ae_journal_entry_create", {"text": f"pruned {MARK}", "journal": f"{MARK} beds", "title": f"beds {MARK}"}),
    ("ae_journal_entry_create", {"text": f"weeded {MARK}", "journal": f"{MARK} beds", "title": f"paths {MARK}"}),
    ("ae_journal_entry_append", {"entry": "paths", "text": MARK}),
    ("agent_notes_write", {"text": f"likes {MARK}"}),
    ("agent_notes_append", {"text": MARK}),
    ("spawn_agent", {"task": f"compare {MARK}"}),
]
LOOKS: Calls = [
    ("task_list", {}),
    ("task_list", {"done": True}),
    ("task_list", {"query": "nothing so named"}),
    ("ae_task_list", {}),
    ("ae_task_list", {"column": "no such"}),
    ("ae_task_list", {"query": "nothing so named"}),
    ("ae_journal_list", {}),
    ("ae_journal_entries_list", {}),
    ("ae_journal_entries_list", {"journal": "no such"}),
    ("ae_journal_search", {"query": "paths"}),
    ("ae_journal_entry_read", {"entry": "paths"}),
    ("ae_journal_entry_update", {"entry": "paths", "text": "raked"}),
    ("ae_journal_entry_append", {"entry": "paths", "text": "again"}),
    ("ae_journal_entry_prepend", {"entry": "paths", "text": "first"}),
    ("ae_journal_entry_disable", {"entry": "beds"}),
    ("task_complete", {"task": "e"}),
    ("task_complete", {"task": "prune"}),
    ("task_update", {"task": "water", "priority": 2}),
    ("reminders_list", {}),
    ("reminders_remove", {"reminder": "repot"}),
    ("cron_list", {}),
    ("cron_toggle", {"job": "graft", "enabled": False}),
    ("cron_remove", {"job": "graft"}),
    ("file_list", {"deep": True}),
    ("file_grep", {"pattern": "seeds"}),
    ("file_search", {"query": "seeds"}),
    ("scratch_read", {}),
    ("notes_read", {"note": "beds"}),
    ("scratch_clear", {}),
    ("agent_notes_read", {}),
    ("agent_notes_clear", {}),
    ("agent_status", {}),
    ("agent_status", {"agent": "compare"}),
    ("agent_cancel", {"agent": "compare"}),
    ("session_read", {}),
    ("session_search", {"query": "compare"}),
    ("skill_list", {}),
    ("tools_discover", {"query": "show my tasks"}),
    ("cortex_status", {}),
    ("cortex_logs", {}),
]
BY_PATH = {"file_read", "file_diff", "file_stat", "file_syntax_check", "git_status", "git_log", "git_diff"}
ELSEWHERE = {
    **dict.fromkeys(BY_PATH, "all that files hold is from outside, whoever wrote them"),
    **dict.fromkeys(("http_fetch", "web_read", "web_search", "http_post"), "what they bring is from outside"),
    **dict.fromkeys(("shell_exec", "aider_run", "aider_status"), "what they bring is from outside"),
    **dict.fromkeys(("cortex_restart", "cortex_update", "claude_allow_dir"), "an admin's yes each time, no text kept"),
    "web_push": "written as a notice, which no tool reads",
    "email_send": "leaves the server",
    **dict.fromkeys(
        ("memory_add", "memory_search", "memory_forget"),
        "a fact of a marked turn is only proposed, which no tool reads; tests/services/memory has those of people",
    ),
    "reminders_clear": "names nothing",
    "skill_read": "skills are written by people; tests/tools/test_skills.py has those of tools",
    "tool_call": "is the tool that it calls",
}


@pytest.fixture
async def house(tmp_path: Path, scripted: ScriptedServer) -> AsyncIterator[LivingHouse]:
    for word, calls in (("read", READ), ("plant", PLANTED), ("look", LOOKS)):
        scripted.rules.append(rule(f"^{word}", Say(calls=tuple(Use(*call, is_blind=True) for call in calls)), "Done."))
    async with living_house(tmp_path / "home") as opened:
        await opened.connect(scripted)
        home = Homes(tmp_path / "home").home_of(opened.admin.id)
        await home.write("files/letter.txt", "Please do as I say.")
        await home.write(f"roles/{ROLE}.md", "---\ntools: [all]\n---\nYou may do all.\n")
        yield opened


async def carried_out(house: LivingHouse, text: str) -> list[Event]:
    """The results of a message in a new conversation, in which every question gets a yes."""
    cid = await house.conversation(role=ROLE)
    return await gone_on(house, cid, text)


async def gone_on(house: LivingHouse, cid: str, text: str) -> list[Event]:
    turn = await house.cortex.chat.send_message(house.admin, cid, text)
    async with asyncio.timeout(PATIENCE_S):
        async for events, _ in house.cortex.chat.follow(house.admin, cid, 0):
            mine = [event for event in events if event.payload.get("turn") == turn]
            for event in mine:
                if event.kind == "approval" and event.payload["state"] == "asked":
                    await house.cortex.approvals.answer(house.admin, event.payload["approval"], "once")
            if any(event.kind == "turn.end" for event in mine):
                break
    return [event for event in await house.events(cid, "tool.result") if event.payload["turn"] == turn]


def shows(results: Iterable[Event]) -> dict[str, set[bool]]:
    """Of the tools whose results show what was planted: whether they are marked."""
    found: dict[str, set[bool]] = {}
    for event in results:
        if MARK in event.payload["text"]:
            found.setdefault(event.payload["name"], set()).add(event.payload["is_tainted"])
    return found


@pytest.mark.moves_cache_prefix(reason="a branch begins anew")
async def test_what_was_written_over_outside_text_keeps_its_mark_through_every_tool(house: LivingHouse) -> None:
    registry = house.cortex.runtime.registry
    permitted = await house.cortex.tools.permitted(house.admin, ROLE)
    known = {name for name, _ in [*PLANTED, *LOOKS]} | ELSEWHERE.keys()
    known |= {one.name for one in registry.tools.values() if one.reads_untrusted and one.effect == "read"}
    assert permitted - known == set(), "say here what these tools write, or show, or why they do neither"

    cid = await house.conversation(role=ROLE)
    await gone_on(house, cid, "read it")
    planted = await gone_on(house, cid, "plant it")
    assert [event.payload["text"] for event in planted if event.payload["state"] != "ok"] == []
    await house.until(cid, "agent", state="done")

    looked = await carried_out(house, "look")
    found = shows(looked)
    assert {name for name, marks in found.items() if marks != {True}} == set()
    assert {name for name in found if not registry.tools[name].reads_private} == set()
    assert found.keys() >= {name for name, _ in LOOKS} - {
        *("scratch_clear", "agent_notes_clear", "session_read", "skill_list", "tools_discover"),
        *("cortex_status", "cortex_logs"),
    }
    for event in reversed(looked):  # what was removed and emptied comes back marked
        if event.payload["undo"]:
            with suppress(Conflict):  # a job that was switched off, deleted and put back is not switched on as well
                await house.cortex.undo.undo(house.admin, event.payload["undo"])
    again = shows(await carried_out(house, "look"))
    assert {name for name, marks in again.items() if marks != {True}} == set()
    assert again.keys() == found.keys()


UNMARKED = {
    "events": "a page's view of rows that are marked",
    "approvals": "says by `why` what was read, and is asked on a page",
    "grants": "says what an approval said",
    "undos": "what is put back keeps its row's mark; a page's mark stands in it",
    "calls": "what was asked for; a result that shows what stood there before is marked, the turn always",
    "plans": "receipts of requests, for pages",
    "rounds": "receipts of requests, for pages",
    "texts": "receipts of requests, for pages",
    "slots": "the result on the job's page; its notice and its turn are marked",
    "learning_cases": "wording for the choice of tools, which grants nothing",
}


@pytest.mark.moves_cache_prefix(reason="a branch begins anew")
async def test_every_row_that_holds_what_was_read_is_marked(house: LivingHouse) -> None:
    cortex, person = house.cortex, house.admin
    cid = await house.conversation(role=ROLE)
    await gone_on(house, cid, "read it")
    await gone_on(house, cid, "plant it")
    await house.until(cid, "agent", state="done")
    (run,) = await cortex.agents.list(person.id, 10)
    result = await house.until(cid, "message", agent=run.id)
    await house.until(cid, "turn.end", turn=result.payload["turn"])
    (job,) = (await cortex.jobs.list(person)).jobs
    await cortex.jobs.run_now(person, job.job.id)
    (reminder,) = (await cortex.reminders.listing(person)).next
    at = reminder.next_at
    assert at is not None
    later = replace(cortex.runtime, clock=lambda: at)
    due = DueReminders(runtime=later, timings=LazyReader(), notifier=cortex.notices)
    assert await due.tell_one(Waking(id=reminder.id, owner_id=person.id, next_at=at))
    await told(house, kinds={"job", "reminder"})
    last = (await cortex.runtime.db.repository(TurnsRepository, person.id).list(cid))[-1]
    await cortex.conversations.branch(person, cid, last.id)

    clean: list[str] = []
    marked: set[str] = set()
    async with cortex.runtime.db.session_scope(reading=True) as session:
        for table in Table.metadata.sorted_tables:
            marks = [column.name for column in table.columns if column.name in ("is_tainted", "is_title_tainted")]
            for row in (await session.execute(select(*_texts(table)))).mappings():
                if MARK in str(dict(row)) and table.name not in UNMARKED:
                    if any(row[mark] for mark in marks):
                        marked.add(table.name)
                    else:
                        clean.append(f"{table.name}: {dict(row)}")
    assert clean == []
    assert UNMARKED.keys() <= Table.metadata.tables.keys()
    assert marked == {
        "journals",
        "journal_entries",
        "journal_versions",
        "tasks",
        "reminders",
        "jobs",
        "notices",
        "conversations",
        "turns",
        "messages",
    }


def _texts(table: FromClause) -> list[ColumnElement[Any]]:
    """The columns of a row; the planner's memory is for receipts."""
    return [column for column in table.columns if column.name != "selection_state"]


async def told(house: LivingHouse, kinds: set[str]) -> None:
    """Wait until notices of all these kinds stand."""
    notices, seen = house.cortex.notices, -1
    async with asyncio.timeout(PATIENCE_S):
        while not kinds <= {view.row.kind for view in (await notices.page(house.admin.id)).notices}:
            seen = await notices.changed(house.admin.id, seen, PATIENCE_S)
