"""The admin's pages of the audit log and of approvals."""

import csv
import io
import json
import re
from datetime import timedelta
from pathlib import Path

import pytest

from cortex.app import Cortex
from cortex.base.ids import new_id
from cortex.storage.approvals import ApprovalRow, ApprovalsRepository, GrantsRepository
from cortex.storage.audit import AuditRepository
from cortex.storage.turns import NewTurn, TurnsRepository
from tests.plain_world import PLAIN_TURN
from tests.web.conftest import Browser
from web.audit_words import WORDS


@pytest.mark.parametrize("page", ["/admin/audit", "/admin/audit/export", "/admin/approvals"])
async def test_only_an_admin_with_the_password_given_of_late_opens_it(
    house: Cortex, ada: Browser, bob: Browser, page: str
) -> None:
    assert (await bob.get(page)).status_code == 403
    assert (await ada.get(page)).status_code == 200


async def test_the_log_is_filtered_by_person_kind_and_day(house: Cortex, ada: Browser, bob: Browser) -> None:
    audit = house.runtime.db.repository(AuditRepository)
    await audit.add(bob.user.id, "tool.changed", "task_create", {"is_on": [None, False]})
    await audit.add(ada.user.id, "tool.words", "tasks")
    page = (await ada.get(f"/admin/audit?person={bob.user.id}&kind=tool")).text
    assert "task_create" in page
    assert "changed the examples of" not in page
    today = house.runtime.clock().date()
    assert "task_create" in (await ada.get(f"/admin/audit?since={today}&until={today}")).text
    assert "task_create" not in (await ada.get(f"/admin/audit?until={today - timedelta(days=2)}")).text
    assert "task_create" in (await ada.get("/admin/audit?since=yesterday&until=today")).text
    assert "task_create" not in (await ada.get("/admin/audit?until=yesterday")).text
    refused = await ada.get("/admin/audit?since=soon")
    assert (refused.status_code, "Write a day such" in refused.text, 'value="soon"' in refused.text) == (
        422,
        True,
        True,
    )


async def test_a_row_is_told_in_words_and_its_json_stands_behind_it(house: Cortex, ada: Browser, bob: Browser) -> None:
    audit = house.runtime.db.repository(AuditRepository)
    await audit.add(ada.user.id, "user.closed", bob.user.id, {"why": "moved out"})
    await audit.add("", "login.failed", "eve<b>", {"address": "192.0.2.7"})
    await audit.add("command", "moon.phase_shown", "full")
    page = (await ada.get("/admin/audit")).text
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))
    assert f"{ada.user.name} closed the account {bob.user.name}" in words
    assert "Somebody failed to log in as eve&lt;b&gt;" in words
    assert "The command line moon: phase shown full" in words
    assert "&#34;why&#34;: &#34;moved out&#34;" in page


def test_every_action_that_cortex_writes_has_words() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in (Path(__file__).parents[2] / "cortex").rglob("*.py"))
    written = re.findall(r"\.add\(\s*[^()\"]*?\"([a-z_]+\.[a-z_]+)\"", source)
    assert len(set(written)) > 40
    assert set(written) - WORDS.keys() == set()


async def test_the_log_goes_page_by_page(house: Cortex, ada: Browser) -> None:
    for number in range(60):
        await house.runtime.db.repository(AuditRepository).add("", "test.row", f"row-{number}")
    first = (await ada.get("/admin/audit?kind=test")).text
    assert first.count('id="audit-') >= 50
    assert "row-9<" not in first
    older = first.partition("before=")[2].partition('"')[0]
    assert "row-9<" in (await ada.get(f"/admin/audit?kind=test&before={older}")).text
    assert (await ada.get(f"/admin/audit?before={10**30}")).status_code == 422


async def test_the_export_is_whole_safe_for_sheets_and_noted(house: Cortex, ada: Browser) -> None:
    audit = house.runtime.db.repository(AuditRepository)
    await audit.add("", "login.failed", "=HYPERLINK(1)")
    sheet = await ada.get("/admin/audit/export?form=csv&kind=login.failed")
    rows = list(csv.DictReader(io.StringIO(sheet.text)))
    assert [row["subject"] for row in rows] == ["'=HYPERLINK(1)"]
    assert "attachment" in sheet.headers["content-disposition"]
    lines = (await ada.get("/admin/audit/export?form=jsonl")).text.splitlines()
    assert [json.loads(line)["number"] for line in lines] == list(range(len(lines), 0, -1))
    assert [row.action for row in await audit.list(1)] == ["audit.exported"]


async def asked(house: Cortex, person: Browser, command: str) -> ApprovalRow:
    """A question to this person."""
    conversation = await house.conversations.new(person.user)
    db, turn_id = house.runtime.db, f"turn:{new_id()}"
    async with db.transaction(person.user.id) as repository:
        await repository(TurnsRepository).create(NewTurn(turn_id, conversation.id, "x", state="waiting", **PLAIN_TURN))
        return await repository(ApprovalsRepository).ask(
            call_id=new_id(),
            turn_id=turn_id,
            tool="shell_exec",
            arguments_hash="h",
            destination="this server",
            verb="Run a command",
            detail=command,
            why="",
            risk="high",
            expires_at=db.clock() + timedelta(hours=1),
        )


async def test_an_admin_answers_only_what_they_were_asked_and_sees_no_arguments_of_others(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    own, other = await asked(house, ada, "make tea"), await asked(house, bob, "read my diary")
    page = (await ada.get("/admin/approvals")).text
    assert "make tea" in page
    assert "read my diary" not in page
    assert f'action="/approvals/{own.id}"' in page
    assert f'href="/approvals/{own.id}?back=/admin/approvals"' in page, "a command is allowed on a page of its own"
    assert f'id="waits-{other.id}"' in page
    assert "Cannot be undone" in page
    assert f"/approvals/{other.id}" not in page
    assert (await ada.post(f"/approvals/{other.id}", choice="once")).status_code == 404
    assert (await ada.get(f"/approvals/{other.id}")).status_code == 404
    assert (await bob.post(f"/approvals/{own.id}", choice="once")).status_code == 404
    await house.runtime.db.repository(ApprovalsRepository, bob.user.id).answer(other.id, "denied", bob.user.id)
    page = (await ada.get(f"/admin/approvals?person={bob.user.id}&state=denied&tool=shell_exec")).text
    assert page.count("shell_exec</code>") == 1, "his in the history"
    assert "No approval matches" in (await ada.get("/admin/approvals?tool=email_send")).text


async def test_an_admin_takes_back_what_anybody_allowed(house: Cortex, ada: Browser, bob: Browser) -> None:
    grants = house.runtime.db.repository(GrantsRepository, bob.user.id)
    later = house.runtime.clock() + timedelta(hours=1)
    made = await grants.add("http_post", "hooks.example", None, later)
    await grants.add("shell_exec", "read my diary #0123456789abcdef", None, later)
    page = (await ada.get("/admin/approvals")).text
    assert "hooks.example" in page
    assert "diary" not in page
    assert (await bob.post(f"/admin/approvals/grants/{made.id}/revoke")).status_code == 403
    assert (await ada.post(f"/admin/approvals/grants/{made.id}/revoke")).status_code == 303
    assert [one.tool for one in await grants.list()] == ["shell_exec"]
    assert [row.action for row in await house.runtime.db.repository(AuditRepository).list(1)] == ["grant.revoked"]
