"""Intervals: Wilson's by its known values, drawn ones the same for a seed and as wide as the figures say."""

from math import sqrt
from statistics import pstdev

import pytest

from tests.bench import intervals
from tests.bench.rows import Utterance
from tests.bench.scores import ScoredRow


def given(number: int, *, is_met: bool, talk: str | None = None, category: str = "x") -> ScoredRow:
    names = frozenset({"a"} if is_met else {"b"})
    return ScoredRow(
        row=Utterance(text="t", kind="tool", conversation=talk),
        needs=(("a",),),
        categories=frozenset({category}),
        names=names,
        has_nonweb=True,
        tokens=100 + number,
        ms=1.0,
    )


@pytest.mark.parametrize(
    ("share", "count", "low", "high"),
    [(0.5, 100, 0.4038, 0.5962), (0.0, 20, 0.0, 0.1611), (1.0, 20, 0.8389, 1.0), (0.0, 0, 0.0, 1.0)],
    ids=["half", "never", "always", "none"],
)
def test_the_interval_of_a_share_is_wilsons(share: float, count: int, low: float, high: float) -> None:
    assert intervals.wilson(share, count) == pytest.approx((low, high), abs=1e-4)


def test_a_drawn_interval_is_that_of_the_normal_law_for_many_values() -> None:
    values = [float(number % 10) for number in range(400)]
    low, high = intervals.drawn({"x": values}, [1] * 400, 7)["x"]
    error = pstdev(values) / sqrt(400)
    assert (low, high) == pytest.approx((4.5 - 1.96 * error, 4.5 + 1.96 * error), abs=0.05)


def test_a_seed_gives_the_same_draws_and_another_does_not() -> None:
    sums, counts = {"x": [float(number * number % 17) for number in range(60)]}, [1, 2, 3] * 20
    assert intervals.drawn(sums, counts, 7) == intervals.drawn(sums, counts, 7)
    assert intervals.drawn(sums, counts, 7) != intervals.drawn(sums, counts, 8)


def test_single_messages_have_wilsons_interval_for_recall_and_a_drawn_one_for_sizes() -> None:
    rows = [given(number, is_met=number % 4 > 0) for number in range(100)]
    found = intervals.of_rows(rows, 7)
    assert found["recall"] == pytest.approx(intervals.wilson(0.75, 100), abs=1e-4)
    low, high = found["tokens_mean"]
    assert low < 149.5 < high
    assert found["tools_mean"] == (1.0, 1.0)


def test_turns_of_one_conversation_are_drawn_together() -> None:
    apart = [given(0, is_met=number % 20 < 10) for number in range(100)]
    alike = [given(0, is_met=number % 20 < 10, talk=str(number // 10)) for number in range(100)]
    width = {key: high - low for key, (low, high) in intervals.of_rows(apart, 7).items()}
    wider = {key: high - low for key, (low, high) in intervals.of_rows(alike, 7).items()}
    assert wider["recall"] > 2 * width["recall"]


def test_a_set_that_needs_no_tool_has_none() -> None:
    assert intervals.of_rows([], 7) == {}


def test_each_category_has_its_own_figures() -> None:
    rows = [given(n, is_met=True, category="lamps") for n in range(3)] + [given(9, is_met=False, category="files")]
    found = intervals.by_category(rows, 7)
    assert list(found) == ["files", "lamps"]
    assert (found["lamps"]["rows"], found["lamps"]["recall"], found["files"]["recall"]) == (3, 1.0, 0.0)
    assert found["lamps"]["intervals"]["recall"][0] == pytest.approx(intervals.wilson(1.0, 3)[0], abs=1e-4)
