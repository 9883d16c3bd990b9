from math import log2

import pytest

from tests.bench import scores
from tests.bench.rows import Groups, Kind, Utterance
from tests.bench.scores import ScoredRow


def given(
    kind: Kind,
    needs: Groups = (),
    names: tuple[str, ...] = (),
    *,
    category: str = "x",
    found: tuple[str, ...] | None = None,
    tokens: int = 100,
    has_nonweb: bool = False,
) -> ScoredRow:
    return ScoredRow(
        row=Utterance(text="t", kind=kind),
        needs=needs,
        categories=frozenset({category}) if needs else frozenset(),
        names=frozenset(names),
        has_nonweb=has_nonweb,
        tokens=tokens,
        ms=1.0,
        found=frozenset(found) if found is not None else None,
    )


def test_recall_is_the_share_of_tool_rows_whose_every_group_was_met() -> None:
    rows = [
        given("tool", (("a", "b"),), ("b",), tokens=100),
        given("tool", (("a",), ("c",)), ("a",), found=("c",), tokens=300),
        given("tool", (("a",),), (), found=("d",), tokens=200),
        given("tool", (), ("a",), tokens=9_999),
        given("chat"),
        given("pending", (), ("a",)),
    ]
    told = scores.routing(rows, 1_000, can_discover=True)
    assert told["recall"] == round(1 / 3, 4)
    assert told["recall_after_discover"] == round(2 / 3, 4)
    assert told["tools_mean"] == 0.67
    assert told["tokens_mean"] == 200
    assert told["tokens_share"] == 0.2


def test_the_worst_category_is_one_with_enough_rows() -> None:
    many = [given("tool", (("a",),), ("a",), category="good")] * 19 + [given("tool", (("a",),), (), category="good")]
    few = [given("tool", (("a",),), (), category="rare")] * 19
    assert scores.routing(many + few, 1, can_discover=False)["worst_category_recall"] == 0.95


def test_a_row_counts_for_each_category_that_it_names() -> None:
    both = ScoredRow(
        row=Utterance(text="t", kind="tool"),
        needs=(("a",),),
        categories=frozenset({"one", "two"}),
        names=frozenset(),
        has_nonweb=False,
        tokens=1,
        ms=1.0,
    )
    met = [given("tool", (("a",),), ("a",), category="one")] * 20
    assert scores.routing([both] * 20 + met, 1, can_discover=False)["worst_category_recall"] == 0.0


def test_small_talk_and_writing_have_figures_of_their_own() -> None:
    rows = [
        given("chat", tokens=0),
        given("chat", (), ("web_search",), tokens=50),
        given("llm", (), ("web_search",)),
        given("llm", (), ("shell",), has_nonweb=True),
        given("llm"),
        given("llm"),
    ]
    told = scores.routing(rows, 1_000, can_discover=True)
    assert told["chat_any"] == 0.5
    assert told["chat_tokens_share"] == 0.025
    assert told["llm_nonweb"] == 0.25


def test_keys_that_do_not_apply_stay_out() -> None:
    assert set(scores.routing([given("open")], 1, can_discover=True)) == {"p50_ms", "p99_ms"}
    tool = scores.routing([given("tool", (("a",),))], 1, can_discover=False)
    assert set(tool) == {"recall", "tools_mean", "tokens_mean", "tokens_share", "p50_ms", "p99_ms"}


def test_retrieval_is_judged_by_groups() -> None:
    names = tuple("abcdefghijkl")
    told = scores.retrieval([((("a",), ("z", "f")), names), ((("l",),), names)])
    assert told["r5"] == 0.25
    assert told["r10"] == 0.5
    first = (1 + 1 / log2(7)) / (1 + 1 / log2(3))
    assert told["ndcg10"] == pytest.approx(first / 2, abs=1e-4)


def test_times_are_values_of_the_sample() -> None:
    assert scores.times([float(n) for n in range(1, 101)]) == {"p50_ms": 51.0, "p99_ms": 100.0}
