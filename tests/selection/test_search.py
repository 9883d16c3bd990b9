"""BM25 against figures worked out by hand; a change of one document gives what a fresh build gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.selection.search import Bm25, best, highest, mask, scaled, share

# Three documents of 2, 2 and 3 terms: the mean length is 7/3. With k1 = 1.5 and b = .75 a document of length 2 has the
# norm 1.5 x (.25 + .75 x 6/7) = 1.3392857, one of length 3 has 1.5 x (.25 + .75 x 9/7) = 1.8214286.
# idf(lamp) = ln(1 + 1.5/2.5) = .4700036 (in two of three), idf(add) = ln(1 + 2.5/1.5) = .9808293 (in one).
BAGS = ({"lamp": 1.0, "on": 1.0}, {"lamp": 2.0}, {"task": 1.0, "list": 1.0, "add": 1.0})


def test_the_figures_are_those_of_the_formula() -> None:
    found = Bm25(BAGS)
    assert found.idf("lamp") == pytest.approx(0.4700036)
    assert found.idf("add") == pytest.approx(0.9808293)
    assert found.idf("ghost") == pytest.approx(np.log(1 + 3.5 / 0.5))
    assert found.scores({"lamp": 1.0}).tolist() == pytest.approx([0.5022943, 0.7037490, 0.0], abs=1e-6)
    assert found.scores({"add": 2.0}).tolist() == pytest.approx([0.0, 0.0, 1.7381792], abs=1e-6)
    assert found.ceiling({"lamp": 1.0, "add": 1.0}) == pytest.approx(2.5 * (0.4700036 + 0.9808293))
    assert found.ceiling({"ghost": 1.0}, 0.5) == pytest.approx(2.5 * 0.5 * np.log(8))


def test_a_term_twice_in_the_question_counts_twice_and_an_unknown_one_not_at_all() -> None:
    found = Bm25(BAGS)
    assert found.scores({"lamp": 2.0}).tolist() == pytest.approx((2 * found.scores({"lamp": 1.0})).tolist())
    assert found.scores({"ghost": 1.0}).tolist() == [0.0, 0.0, 0.0]


def test_a_document_scores_as_if_it_stood_among_the_others() -> None:
    found = Bm25(BAGS)
    asked: tuple[dict[str, float], ...] = ({"lamp": 1.0, "add": 1.0}, {"task": 2.0, "ghost": 1.0}, {})
    assert np.allclose(found.would_score(BAGS, asked), [found.scores(each) for each in asked])
    assert found.would_score([{"lamp": 1.0}], asked)[0, 0] > found.scores(asked[0])[0]  # a shorter one says it purer


def test_it_says_who_holds_what() -> None:
    found = Bm25(BAGS)
    assert list(found.holders("lamp")) == [0, 1]
    assert [found.holds("lamp", slot) for slot in range(4)] == [True, True, False, False]
    assert (found.has("add"), found.has("ghost"), list(found.holders("ghost"))) == (True, False, [])
    assert set(found.terms) == {"lamp", "on", "task", "list", "add"}
    assert found.size == 3


def test_nothing_to_search_gives_nothing() -> None:
    empty = Bm25(())
    assert empty.scores({"lamp": 1.0}).tolist() == []
    assert best(empty.scores({"lamp": 1.0}), 5) == []
    assert share(empty.scores({"lamp": 1.0}), empty, {"lamp": 1.0}) == 0.0


bags = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from((0.5, 1.0, 2.0)), max_size=4)


@given(before=st.lists(bags, max_size=6), changes=st.dictionaries(st.integers(0, 7), bags, max_size=5))
def test_changed_documents_score_as_if_they_had_always_been_so(
    before: list[dict[str, float]], changes: dict[int, dict[str, float]]
) -> None:
    size = max([len(before), *(slot + 1 for slot in changes)])
    there = [*before, *({} for _ in range(size - len(before)))]
    after = [changes.get(slot, bag) for slot, bag in enumerate(there)]
    found = Bm25(before).changed({slot: (there[slot], bag) for slot, bag in changes.items()})
    fresh = Bm25(after)
    asked = dict.fromkeys("abcdefg", 1.0)
    assert found.scores(asked).tolist() == fresh.scores(asked).tolist()
    assert found.ceiling(asked) == fresh.ceiling(asked)
    assert set(found.terms) == set(fresh.terms)
    assert [list(found.holders(term)) for term in asked] == [list(fresh.holders(term)) for term in asked]


def test_a_change_leaves_the_value_before_as_it_was() -> None:
    before = Bm25(BAGS)
    told = before.scores({"lamp": 1.0}).tolist()
    before.changed({0: (BAGS[0], {}), 5: ({}, {"lamp": 3.0})})
    assert before.scores({"lamp": 1.0}).tolist() == told
    assert before.size == 3


@pytest.mark.parametrize(
    ("scores", "most", "slots"),
    [
        ([0.1, 0.9, 0.5], 2, [1, 2]),
        ([0.5, 0.9, 0.5, 0.5], 3, [1, 0, 2]),
        ([0.0, 0.0, 0.2], 3, [2]),
        ([0.0, 0.0], 3, []),
        ([0.3, 0.4], 9, [1, 0]),
    ],
    ids=["best first", "equal ones in slot order", "nothing is no hit", "none", "fewer than asked for"],
)
def test_the_best_slots(scores: list[float], most: int, slots: list[int]) -> None:
    assert best(np.array(scores, dtype=np.float32), most) == slots


def test_scores_against_the_best_and_the_higher_of_two() -> None:
    scores = np.array([1.0, 4.0, 0.0], dtype=np.float32)
    assert scaled(scores).tolist() == [0.25, 1.0, 0.0]
    assert scaled(np.zeros(2, dtype=np.float32)).tolist() == [0.0, 0.0]
    assert highest(scores, np.array([2.0, 2.0, 2.0], dtype=np.float32)).tolist() == [2.0, 4.0, 2.0]


def test_a_mask_stands_at_the_named_slots_alone() -> None:
    assert mask(4, {"a": 0, "b": 2, "c": 3}, ["b", "c", "ghost"]).tolist() == [0.0, 0.0, 1.0, 1.0]


def test_a_document_full_of_the_question_has_the_largest_share_of_it() -> None:
    found = Bm25(({"lamp": 1.0}, {"lamp": 1.0, "on": 9.0}))
    asked = {"lamp": 1.0}
    assert 0 < share(found.scores(asked), found, asked) <= 1
    assert share(found.scores({"on": 1.0}), found, {"on": 1.0}) > share(found.scores(asked), found, asked)
