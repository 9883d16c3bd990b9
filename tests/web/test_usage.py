"""Usage, budgets and traces in the browser: what stands there, what the forms change, what is refused to whom."""

import csv
import io
import re
from datetime import date
from html import unescape
from typing import Any

import pytest

from cortex.app import Cortex
from cortex.base.messages import Usage, user
from cortex.services.accounts.accounts import CONFIRMED_FOR
from cortex.services.jobs.forms import JobForm
from cortex.storage.accounts import LoginsRepository
from cortex.storage.audit import AuditRepository
from cortex.storage.messages import MessagesRepository
from cortex.storage.plans import PlansRepository
from cortex.storage.rounds import RoundsRepository
from cortex.storage.turns import NOTHING_READ, NewTurn, TurnsRepository
from tests.plain_world import PLAIN_TURN
from tests.web.conftest import Browser
from web import usage_money
from web.plots import Series, ceiling, largest, stacked
from web.usage_tables import TableColumn, TableRow, UsageTable, as_csv, dollars, short

BUDGET = {"kind": "user", "subject": "", "limit_tokens": "20,000", "limit_usd": "", "at_limit": "stop", "model": ""}


async def spend(
    house: Cortex, person: Browser, turn: str, text: str = "add milk", cost: float | None = 0.25, *, job_id: str = ""
) -> str:
    """A turn with a receipt and an answered call, as the engine would leave it; its key."""
    cid = (await house.conversations.new(person.user)).id
    db, owner = house.runtime.db, person.user.id
    turns = db.repository(TurnsRepository, owner)
    await turns.create(NewTurn(f"turn:{turn}", cid, text, state="done", job_id=job_id, **PLAIN_TURN))
    await db.repository(MessagesRepository, owner).add(f"turn:{turn}", 0, user(text), False)
    receipt = await house.tools.explain(person.user, "orchestrator", "add milk to my shopping list")
    await db.repository(PlansRepository, owner).add(f"turn:{turn}", 1, receipt)
    rounds = db.repository(RoundsRepository, owner)
    await rounds.planned(f"turn:{turn}", 1, receipt, 900, "=sonnet", "anthropic  claude")
    usage = Usage(input_tokens=1000, output_tokens=50, cached_tokens=600, written_tokens=300)
    await rounds.answered(f"turn:{turn}", 1, "=sonnet", usage, cost, ms=1200, cache="hit")
    return turn


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


async def test_an_empty_page_names_the_first_action(ada: Browser) -> None:
    page = await ada.get("/usage")
    assert "No messages" in page.text
    assert 'href="/c/new"' in page.text


async def test_the_page_says_what_was_sent_left_out_and_paid(house: Cortex, ada: Browser) -> None:
    await spend(house, ada, "one")
    await spend(house, ada, "two", cost=None)
    page = unescape((await ada.get("/usage?p=7")).text)
    assert "$0.25" in page
    assert "unknown price" in page
    assert "/usage?p=7&by=model" in re.findall(r'href="([^"]+)" aria-current="page">Week', page)
    assert "from the cache" in page
    assert 'href="/runs/one"' in page
    page = page.partition('id="fold-engine"')[2]
    plot = page[page.index('<svg class="wide"') : page.index("</svg>", page.index('<svg class="wide"'))]
    assert 'fill="url(#pt-0)"' in plot
    assert "not needed" in plot
    assert "<html" not in (await ada.fragment("/usage")).text


async def test_the_page_opens_with_the_months_money_and_the_days_limits(house: Cortex, ada: Browser) -> None:
    await spend(house, ada, "one")
    await spend(house, ada, "two", cost=None)
    await ada.post("/admin/budgets", **{**BUDGET, "limit_tokens": "", "limit_usd": "0.5"})
    page = unescape((await ada.get("/usage")).text)
    first, _, engine = page.partition('id="fold-engine"')
    today = house.runtime.clock()
    assert f"{today:%B}" in first
    assert re.search(r'class="figure">\s*\$0\.25\s*<', first)
    assert "1 model call has no known price" in first
    assert "$0.25 of $0.50" in first
    assert "Tool tokens" not in first
    assert "Tool tokens" in engine


async def test_where_nothing_has_a_price_the_messages_stand_first(house: Cortex, ada: Browser) -> None:
    await spend(house, ada, "one", cost=0.0)
    first = (await ada.get("/usage")).text.partition('id="fold-engine"')[0]
    assert re.search(r'class="figure">\s*1\s*<small>messages', first)
    assert "1 of 1 model calls cost nothing." in first
    assert "$" not in first[first.index('class="figure"') :]


async def test_everybodys_page_says_who_took_what(house: Cortex, ada: Browser, bob: Browser) -> None:
    await spend(house, ada, "one")
    await spend(house, bob, "two", cost=0.75)
    first = (await ada.get("/usage?person=all")).text.partition('id="fold-engine"')[0]
    shares = re.findall(r'<span dir="auto">(\w+)</span>.*?<b class="n">([^<]+)</b>', first, re.DOTALL)
    assert [one for one in shares if one[0] in ("Ada", "Bob")] == [("Bob", "$0.75"), ("Ada", "$0.25")]
    assert "<h2>Who</h2>" in first
    assert "<h2>Who</h2>" not in (await ada.get("/usage")).text


@pytest.mark.parametrize(
    ("day", "spent", "pace"),
    [(2, 1.0, ""), (10, 1.0, "$3.00"), (30, 3.0, "$3.00")],
    ids=["too early to say", "a third", "the whole month"],
)
def test_the_pace_is_what_the_month_will_come_to(day: int, spent: float, pace: str) -> None:
    assert usage_money._pace(spent, date(2026, 11, day)) == pace


@pytest.mark.parametrize("table", ["tokens", "by", "cost", "cache", "rounds", "turns"])
async def test_each_table_comes_as_a_file_with_the_pages_numbers(house: Cortex, ada: Browser, table: str) -> None:
    await spend(house, ada, "one")
    answer = await ada.get(f"/usage.csv?p=7&table={table}")
    assert answer.headers["content-type"].startswith("text/csv")
    assert f"cortex-{table}-7-days.csv" in answer.headers["content-disposition"]
    head, *rows = rows_of(answer.text)
    assert rows
    assert all(len(row) == len(head) for row in rows)


async def test_the_file_holds_plain_numbers_and_nothing_that_a_sheet_would_run(house: Cortex, ada: Browser) -> None:
    await spend(house, ada, "one")
    head, row = rows_of((await ada.get("/usage.csv?p=28&table=by")).text)
    assert dict(zip(head, row, strict=True)) == {
        "Model": "'=sonnet",
        "Rounds": "1",
        "Tool tokens sent": row[2],
        "Input": "1000",
        "Cached": "600",
        "Written": "300",
        "Fresh": "100",
        "Output": "50",
        "Cost": "0.25",
    }
    assert (await ada.get("/usage.csv?table=secrets")).status_code == 404


@pytest.mark.parametrize("by", ["model", "role", "tool", "job", "person"])
async def test_every_breakdown_is_drawn(house: Cortex, ada: Browser, by: str) -> None:
    await spend(house, ada, "one")
    page = await ada.get(f"/usage?by={by}")
    assert page.status_code == 200
    label = {"model": "=sonnet", "role": "orchestrator", "tool": "task_create", "job": "(no job)", "person": "Ada"}
    assert label[by] in page.text


async def test_jobs_are_told_by_their_names(house: Cortex, ada: Browser) -> None:
    job = await house.jobs.add(ada.user, JobForm(name="Morning brief", prompt="x", when="every day at 7"))
    await spend(house, ada, "one", job_id=job.id)
    form = {"kind": "job", "subject": "Morning brief", "limit_tokens": "5000", "at_limit": "stop"}
    assert (await ada.post("/admin/budgets", **form)).status_code == 303
    for path in ("/usage?by=job", "/admin/budgets", "/runs"):
        page = (await ada.get(path)).text
        assert "Morning brief" in page
        assert f"job {job.id}" not in page
    assert 'value="Morning brief"' in (await ada.get("/admin/budgets")).text
    refused = await ada.post("/admin/budgets", **{**form, "subject": "Evening brief"})
    assert (refused.status_code, "no job" in refused.text) == (422, True)


async def test_a_member_sees_nobody_elses_and_an_admin_with_the_password_all(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    await spend(house, ada, "one")
    await spend(house, bob, "two")
    assert 'href="/runs/one"' not in (await bob.get("/usage")).text
    for path in ("/usage?person=all", f"/usage?person={ada.user.id}", "/usage.csv?table=by&person=all"):
        assert (await bob.get(path)).status_code == 403
    everybody = (await ada.get("/usage?person=all")).text
    assert 'href="/runs/one"' in everybody
    assert 'href="/runs/two"' in everybody
    assert (await ada.get("/usage?person=nobody")).status_code == 404


async def _forget_password(house: Cortex, ada: Browser) -> None:
    for login in await house.accounts.logins(ada.user):
        at = house.runtime.clock() - CONFIRMED_FOR
        await house.runtime.db.repository(LoginsRepository, ada.user.id).confirm(login.id, at)


async def test_what_is_others_asks_for_the_password_again(house: Cortex, ada: Browser, bob: Browser) -> None:
    await spend(house, bob, "two")
    await _forget_password(house, ada)
    for path in ("/usage?person=all", "/runs/two", "/runs/two/trace.json", "/admin/budgets"):
        answer = await ada.get(path)
        assert answer.headers["location"].startswith("/confirm"), path
    assert (await ada.get("/usage")).status_code == 200
    assert all(entry.action != "trace.read" for entry in await house.runtime.db.repository(AuditRepository).list())


async def test_a_budget_is_set_shown_with_its_state_changed_and_taken_away(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    await spend(house, ada, "one")
    assert (await ada.post("/admin/budgets", **BUDGET)).status_code == 303
    page = unescape((await ada.get("/admin/budgets")).text)
    assert "1,050 of 20,000" in page
    await ada.post("/admin/budgets", **{**BUDGET, "limit_tokens": "1200"})
    (budget,) = await house.budget_admin.list()
    assert budget.limit_tokens == 1200
    mine = (await ada.get("/usage")).text
    assert ", almost used up" in mine
    assert "0 of 1,200" in (await bob.get("/usage")).text
    asked = await ada.get(f"/admin/budgets/{budget.id}/remove")
    assert "Remove this budget?" in asked.text
    await ada.post(f"/admin/budgets/{budget.id}/remove")
    assert await house.budget_admin.list() == []
    assert (await ada.post(f"/admin/budgets/{budget.id}/remove")).status_code == 404
    actions = [entry.action for entry in (await house.runtime.db.repository(AuditRepository).list())[:3]]
    assert actions == ["budget.removed", "budget.set", "budget.set"]


@pytest.mark.parametrize(
    ("wrong", "field", "words"),
    [
        ({"limit_tokens": "lots"}, "limit_tokens", "Tokens must be a whole number."),
        ({"limit_tokens": ""}, "limit_tokens", "Set a limit in tokens, in dollars, or both."),
        ({"limit_usd": "1e9"}, "limit_usd", "Write dollars like 2.50."),
        ({"kind": "planet"}, "kind", "Choose whose budget it is."),
        ({"kind": "role"}, "subject", "Name the role."),
        ({"subject": "Zed"}, "subject", "There is no account named"),
        ({"at_limit": "explode"}, "at_limit", "Choose what happens at the limit."),
        ({"at_limit": "model"}, "model", "Name the model that takes over."),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
async def test_a_wrong_budget_is_refused_beside_its_field_and_what_was_typed_stays(
    house: Cortex, ada: Browser, wrong: dict[str, str], field: str, words: str
) -> None:
    answer = await ada.post("/admin/budgets", **{**BUDGET, **wrong})
    assert answer.status_code == 422
    page = unescape(answer.text)
    assert words in page
    assert re.search(rf'id="f-{field}"[^>]*aria-invalid="true"', page)
    assert await house.budget_admin.list() == []


async def test_a_trace_shows_its_rounds_and_leads_back(house: Cortex, ada: Browser) -> None:
    await spend(house, ada, "one", text="add <b>milk</b>")
    page = (await ada.get("/runs/one")).text
    assert ("<b>milk" in page, "&lt;b&gt;milk" in page) == (False, True)
    for words in ("Round 1", "=sonnet", "1.2 s", "$0.25", "read from the cache", "task_create", "Left out by"):
        assert words in page
    as_file = await ada.get("/runs/one/trace.json")
    assert as_file.json()["rounds"][0]["took"]["cached_tokens"] == 600


async def test_a_round_without_a_stored_input_cannot_be_replayed_and_says_so(house: Cortex, ada: Browser) -> None:
    await spend(house, ada, "one")
    assert "Replay under" not in (await ada.get("/runs/one")).text
    assert (await ada.get("/runs/one?round=1&recipe=all")).status_code == 404


async def test_anothers_trace_is_hidden_from_members_and_noted_for_admins(
    house: Cortex, ada: Browser, bob: Browser
) -> None:
    await spend(house, ada, "one")
    await spend(house, bob, "two")
    assert (await bob.get("/runs/one")).status_code == 404
    page = unescape((await ada.get("/runs/two")).text)
    assert "to Bob." in page
    entry = (await house.runtime.db.repository(AuditRepository).list())[0]
    assert (entry.action, entry.actor, entry.subject) == ("trace.read", ada.user.id, bob.user.id)


async def test_a_turn_without_a_call_on_record_says_so(house: Cortex, ada: Browser) -> None:
    cid = (await house.conversations.new(ada.user)).id
    await house.runtime.db.repository(TurnsRepository, ada.user.id).create(
        NewTurn("turn:x", cid, "hi", mode="auto", role="chat", state="done", is_tainted=False, reads=NOTHING_READ)
    )
    assert "No model call" in (await ada.get("/runs/x")).text


# --- plots and tables ---------------------------------------------------------------------------------------------


def test_layers_stand_on_each_other_and_fill_the_axis_no_further_than_its_round_top() -> None:
    plot = stacked("t", "u", ["a", "b"], [Series(name="x", values=[10, 0]), Series(name="y", values=[30, 7])], str)
    assert plot is not None
    wide = plot.drawings[0]
    low, high = wide.columns[0].bars
    assert (low.series, high.series) == (0, 1)
    assert high.y + high.height == pytest.approx(low.y, abs=0.2)
    assert low.y + low.height == pytest.approx(wide.floor, abs=0.2)
    assert min(bar.y for column in wide.columns for bar in column.bars) >= wide.ticks[-1].at - 0.2
    assert [tick.text for tick in wide.ticks] == ["0.0", "25.0", "50.0"]
    assert [column.title for column in wide.columns] == ["a: x 10, y 30", "b: y 7"]
    assert len(wide.columns[1].bars) == 1


def test_nothing_to_see_is_no_plot() -> None:
    assert stacked("t", "u", ["a"], [Series(name="x", values=[0])], str) is None
    assert stacked("t", "u", ["a"], [], str) is None


@pytest.mark.parametrize(
    ("value", "top"), [(1, 1), (1.1, 2), (2.2, 2.5), (26, 50), (99, 100), (0.003, 0.005), (7e6, 1e7)]
)
def test_the_axis_ends_at_a_round_number(value: float, top: float) -> None:
    assert ceiling(value) == pytest.approx(top)


def test_more_layers_than_patterns_are_added_up_in_the_last() -> None:
    many = [Series(name=str(number), values=[number, 1]) for number in range(9)]
    kept = largest(many, "others")
    assert [one.name for one in kept] == ["8", "7", "6", "5", "4", "others"]
    assert kept[-1].values == [0 + 1 + 2 + 3, 4]
    assert largest(many[:6], "others") == many[:6]


@pytest.mark.parametrize(
    ("value", "words"), [(0, "$0"), (0.0042, "$0.0042"), (1.2, "$1.20"), (12345.678, "$12,345.68")]
)
def test_dollars(value: float, words: str) -> None:
    assert dollars(value) == words


@pytest.mark.parametrize(("value", "words"), [(0, "0"), (950, "950"), (1250, "1.2k"), (2e6, "2M"), (3.4e9, "3.4G")])
def test_short_numbers(value: float, words: str) -> None:
    assert short(value) == words


@pytest.mark.parametrize("start", list("=+-@\t\r"))
def test_a_cell_that_a_sheet_would_run_is_made_text(start: str) -> None:
    cells: tuple[Any, ...] = (f"{start}cmd", None, 0.5)
    columns = tuple(TableColumn(label=name) for name in "abc")
    table = UsageTable(name="t", caption="", columns=columns, rows=(TableRow(cells=cells),))
    assert rows_of(as_csv(table))[1] == [f"'{start}cmd", "", "0.5"]
