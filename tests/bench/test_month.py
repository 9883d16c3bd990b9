"""A few days of a household on the real services; what was learned from them, and all of it taken back."""

import asyncio
from pathlib import Path

import pytest

from cortex.base.errors import UserError
from tests.bench import month as months
from tests.bench.files import RoutingSet
from tests.bench.ground import ground
from tests.bench.month import HouseholdPerson, Month, MonthReport, SaidRow, Way
from tests.bench.month_replay import replayed
from tests.bench.rows import Kind, Utterance

WAY: Way = "learned and refitted"
NOTE = (("notes_append",),)
WEEK = (
    "Zorblax, up with you",
    "Zorblax please, two rounds",
    "let Zorblax run",
    "a long one for Zorblax",
    "Zorblax for the whole family",
    "quick, Zorblax",
    "my turn, Zorblax",
    "Zorblax, it is late",
    "one more Zorblax",
)


def said(day: int, text: str, kind: Kind = "tool", who: str = "jo") -> SaidRow:
    return SaidRow(day=day, who=who, text=text, kind=kind, need_tools=NOTE if kind == "tool" else ())


MONTH = Month(
    people=(
        HouseholdPerson(person="jo", rank="admin", shares=True),
        HouseholdPerson(person="opa", rank="member", shares=False),
    ),
    said=(
        *(said(1, text) for text in WEEK),
        said(2, "Zorblax or the frobnicator", who="opa"),
        said(2, "hello there", "chat"),
        said(24, "somebody wake Zorblax"),
        said(0, "could Zorblax get going"),
    ),
)
CASES = (
    RoutingSet(
        name="own",
        rows=(
            Utterance(id="milk", text="put milk on my list", kind="tool", need_tools=(("task_create",),)),
            Utterance(id="hello", text="hello", kind="chat"),
        ),
    ),
)


@pytest.fixture(scope="module")
def found() -> MonthReport:
    return asyncio.run(replayed(MONTH, CASES, ground(), lambda _: None, (WAY,)))


def test_what_is_learned_is_found_at_the_first_request_of_later_weeks_and_in_other_words(found: MonthReport) -> None:
    recall = {(one.way, one.week): one.recall for one in found.weeks}
    assert {week: share for (way, week), share in recall.items() if way == "as shipped"} == {1: 0.0, 4: 0.0, 0: 0.0}
    assert {week: share for (way, week), share in recall.items() if way == WAY} == {1: 0.0, 4: 1.0, 0: 1.0}


def test_the_words_of_who_does_not_share_are_not_learned_from(found: MonthReport) -> None:
    assert found.ways[0].answers == len(WEEK)


def test_a_refit_of_the_week_holds(found: MonthReport) -> None:
    refits = found.ways[0].refits
    assert (refits.made, refits.held) == (1, 1)
    assert refits.cases >= len(WEEK)


def test_own_cases_are_not_forgotten(found: MonthReport) -> None:
    forgot = found.ways[0].forgot
    assert (forgot.rows, forgot.before, forgot.after, forgot.lost) == (1, 1, 1, ())
    assert (forgot.plain, forgot.burdened) == (1, (0, 0))


def test_undone_every_plan_is_what_it_was_byte_for_byte(found: MonthReport) -> None:
    undone = found.ways[0].undone
    assert (undone.plans, undone.same) == (len(MONTH.said), len(MONTH.said))


def test_the_report_is_told_in_lines(found: MonthReport) -> None:
    told = months.told(found)
    assert "other words" in told
    assert f"undone: {len(MONTH.said)} of {len(MONTH.said)} plans as before" in told


def test_the_household_that_ships_has_a_month_and_other_words() -> None:
    month = months.read()
    assert all(len(month.of(week)) >= 50 for week in (*months.WEEKS, 0))
    names = {entry.name for entry in ground().snapshot.entries}
    assert {name for row in month.said for group in row.need_tools for name in group} <= names
    learned = {row.text for row in month.said if 0 < row.week < months.WEEKS[-1]}
    assert learned.isdisjoint(row.text for row in month.of(0))


def test_a_stranger_in_the_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "month.jsonl"
    path.write_text('{"day": 1, "who": "eve", "text": "hello", "kind": "chat"}\n', encoding="utf-8")
    with pytest.raises(UserError, match="'eve' wrote"):
        months.read(path)
