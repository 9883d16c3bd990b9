"""Usage, a turn's trace and budgets in Chromium with the real daemon: the numbers are those of the receipts."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from sqlalchemy import text

from cortex.storage.packing import unpack
from tests.databases import rows_of
from tests.e2e.caller import Caller
from tests.e2e.conftest import Opens
from tests.e2e.daemon import Daemon
from tests.e2e.pages import go
from tests.e2e.person import ask, new_chat, said

pytestmark = pytest.mark.browser


def receipts(home: Path) -> list[dict[str, Any]]:
    """Every receipt whose call was answered, from the database itself."""
    answered = text(
        "SELECT plans.packed, rounds.input_tokens, rounds.output_tokens FROM plans JOIN rounds "
        "ON rounds.turn_id = plans.turn_id AND rounds.round = plans.round WHERE rounds.state = 'answered'"
    )
    with rows_of(home) as rows:
        found = rows.execute(answered).all()
    return [{**unpack(packed)[0], "input": given, "output": out} for packed, given, out in found]


def numbers(row: list[str]) -> list[int]:
    return [int(re.sub(r"\D", "", cell)) for cell in row if re.search(r"\d", cell)]


def test_the_usage_pages_numbers_are_those_of_the_receipts(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    page = new_chat(window)
    ask(page, "add milk and eggs to my shopping list")
    ask(page, "hello")
    page.goto("/usage")
    expect(page.get_by_role("heading", name="Usage", level=1)).to_be_visible()
    page.locator("#fold-engine > summary").click()
    page.locator("#tokens details.more > summary").click()
    table = page.get_by_role("table", name="Tool tokens a day")
    heads = table.get_by_role("columnheader").all_inner_texts()
    today = numbers(table.get_by_role("row").last.get_by_role("cell").all_inner_texts()[1:])
    shown = dict(zip(heads[1:], today, strict=True))
    kept = receipts(house.home)
    assert shown["All tools in full"] == sum(one["total_tokens"] for one in kept) > 0
    assert shown["Sent"] + shown["Way back and catalog"] == sum(one["tokens"] + one["notes_tokens"] for one in kept)
    left = sum(shown[name] for name in heads[4:])
    assert left == sum(sum(one["left_out"].values()) for one in kept) > 0
    by = page.get_by_role("table", name="By model").get_by_role("row").last.get_by_role("cell").all_inner_texts()
    assert (by[0], int(by[1].replace(",", ""))) == ("offline", len(kept))
    assert int(by[3].replace(",", "")) == sum(one["input"] for one in kept)
    assert int(by[7].replace(",", "")) == sum(one["output"] for one in kept)
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV of By model").click()
    file = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert file[1].split(",")[:2] == ["offline", str(len(kept))]


def test_a_tool_turns_trace_and_its_replay_under_all(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    page = new_chat(window)
    answer = ask(page, "add candles to my shopping list")
    before = len(receipts(house.home))
    answer.get_by_role("link", name="More for this answer").click()
    page.get_by_role("link", name="Trace of this answer").click()
    expect(page.get_by_role("heading", name="Round 1")).to_be_visible()
    first = page.locator("#round-1")
    first.locator("summary", has_text="Plan:").click()
    expect(first.get_by_role("table", name="Sent in round 1")).to_contain_text("task_create")
    first.locator("summary", has_text="Request").click()
    expect(first.get_by_role("group", name="System text of round 1")).to_contain_text("Cortex")
    first.locator("details.call > summary").click()
    expect(first.get_by_role("group", name="Arguments of task_create")).to_contain_text("candles")
    first.get_by_label("Replay under").select_option("all")
    first.get_by_role("button", name="Show difference of round 1").click()
    expect(page.get_by_role("heading", name="With the recipe all")).to_be_visible()
    change = page.get_by_role("table", name="What would change")
    expect(change.get_by_role("row", name=re.compile("web_read"))).to_contain_text("+ in")
    expect(change.get_by_role("row", name=re.compile("tools_discover"))).to_contain_text("out")
    assert len(receipts(house.home)) == before, "a replay plans and asks nobody"
    page.get_by_role("link", name="Back to the conversation").click()
    page.locator(".turn.bot .whyb").last.click()
    expect(page.get_by_role("link", name="Full trace")).to_be_visible()


def test_a_budget_of_a_few_tokens_ends_a_turn_in_a_text(house: Daemon, ada: Caller, opens: Opens) -> None:
    window = opens(house.origin, ada.token)
    page = go(window, "/admin/budgets")
    page.get_by_label("Tokens per day").fill("5")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("used up", exact=False).first).to_be_visible()
    answer = ask(new_chat(window), "hello")
    assert "used up" in said(answer)
    assert answer.locator(".fail").count() == 0
    page.goto("/usage")
    page.locator("#fold-budgets > summary").click()
    expect(page.get_by_role("table", name="Budgets today")).to_contain_text("used up")
    page.goto("/admin/budgets")
    page.get_by_role("link", name="Remove the budget of each person").first.click()
    page.get_by_role("button", name="Remove").last.click()
    expect(page.get_by_text("No budgets yet.")).to_be_visible()
    assert "I stopped" not in said(ask(new_chat(window), "hello again"))
