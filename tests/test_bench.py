"""The bench's table and where it is written; the figures themselves are no business of a test."""

from pathlib import Path

from tests.bench.__main__ import (
    BEGIN,
    END,
    PAGE,
    PROMPTS_BEGIN,
    PROMPTS_END,
    RECIPES_BEGIN,
    RECIPES_END,
    TABLES_BEGIN,
    TABLES_END,
    table,
    update,
)
from tests.bench.figure import Figure, percentile

HEAD = {"date": "2026-11-21", "machine": "2 cores", "recipe": "cortex", "seed": 1}


def figure(value: float) -> Figure:
    return Figure(what="idle memory", value=value, unit="MB", how="resident", goal=130, stretch=95)


def test_a_missed_goal_and_a_missing_measure_are_said() -> None:
    told = table(HEAD, [figure(108.2), figure(131)], {"page": "needs chromium"})
    assert "| idle memory | 108 MB | ≤ 130 (stretch 95) | resident |" in told
    assert "| idle memory | 131 MB | ≤ 130 (stretch 95), missed | resident |" in told
    assert "| page | not measured | | needs chromium |" in told


def test_only_what_stands_between_the_markers_is_replaced(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"above\n{BEGIN}\nold\n{END}\nbelow\n", encoding="utf-8")
    update(readme, "new")
    assert readme.read_text(encoding="utf-8") == f"above\n{BEGIN}\nnew\n{END}\nbelow\n"


def test_the_page_has_each_marker_once() -> None:
    marks = (RECIPES_BEGIN, RECIPES_END, PROMPTS_BEGIN, PROMPTS_END, TABLES_BEGIN, TABLES_END, BEGIN, END)
    text = PAGE.read_text(encoding="utf-8")
    assert [text.count(mark) for mark in marks] == [1] * 8


def test_a_percentile_is_a_value_of_the_sample() -> None:
    assert percentile(list(range(1, 101)), 0.95) == 96
    assert percentile([7.0], 0.99) == 7.0
