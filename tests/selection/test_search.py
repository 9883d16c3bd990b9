"""BM25 against figures worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.base.packed import WordList, word_arrays
from cortex.selection.index.search import Bm25, WordRarity, best, highest, mask

# Three documents of 2, 2 and 3 terms: the mean length is 7/3. With k1 = 1.5 and b = .75 a document of length 2 has the
# norm 1.5 x (.25 + .75 x 6/7) = 1.3392857, one of length 3 has 1.5 x (.25 + .75 x 9/7) = 1.8214286.
# idf(lamp) = ln(1 + 1.5/2.5) = .4700036 (in two of three), idf(add) = ln(1 + 2.5/1.5) = .9808293 (in one).
BAGS = ({"lamp": 1.0, "on": 1.0}, {"lamp": 2.0}, {"task": 1.0, "list": 1.0, "add": 1.0})


def test_the_figures_are_those_of_the_formula() -> None:
    found = Bm25.of(BAGS)
    assert found.idf("lamp") == pytest.approx(0.4700036)
    assert found.idf("add") == pytest.approx(0.9808293)
    assert found.idf("ghost") == pytest.approx(np.log(1 + 3.5 / 0.5))
    assert found.scores({"lamp": 1.0}).tolist() == pytest.approx([0.5022943, 0.7037490, 0.0], abs=1e-6)
    assert found.scores({"add": 2.0}).tolist() == pytest.approx([0.0, 0.0, 1.7381792], abs=1e-6)
    assert found.ceiling({"lamp": 1.0, "add": 1.0}) == pytest.approx(2.5 * (0.4700036 + 0.9808293))
    assert found.ceiling({"ghost": 1.0}, 0.5) == pytest.approx(2.5 * 0.5 * np.log(8))


def test_a_term_twice_in_the_question_counts_twice_and_an_unknown_one_not_at_all() -> None:
    found = Bm25.of(BAGS)
    assert found.scores({"lamp": 2.0}).tolist() == pytest.approx((2 * found.scores({"lamp": 1.0})).tolist())
    assert found.scores({"ghost": 1.0}).tolist() == [0.0, 0.0, 0.0]


def test_a_document_scores_as_if_it_stood_among_the_others() -> None:
    found = Bm25.of(BAGS)
    asked: tuple[dict[str, float], ...] = ({"lamp": 1.0, "add": 1.0}, {"task": 2.0, "ghost": 1.0}, {})
    assert np.allclose(found.would_score(BAGS, asked), [found.scores(each) for each in asked])
    assert found.would_score([{"lamp": 1.0}], asked)[0, 0] > found.scores(asked[0])[0]  # a shorter one says it purer


def test_it_says_who_holds_what() -> None:
    found = Bm25.of(BAGS)
    assert [found.holds("lamp", slot) for slot in range(4)] == [True, True, False, False]
    assert (found.has("add"), found.has("ghost"), found.holds("ghost", 0)) == (True, False, False)
    assert list(found.numbers) == [0, 1, 2, 3, 4]
    assert found.size == 3


def test_nothing_to_search_gives_nothing() -> None:
    empty = Bm25.of(())
    assert empty.scores({"lamp": 1.0}).tolist() == []
    assert best(empty.scores({"lamp": 1.0}), 5) == []


bags = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from((0.5, 1.0, 2.0)), max_size=4)


@given(texts=st.lists(bags, max_size=6), beside=st.lists(bags, max_size=3))
def test_a_text_scores_the_same_wherever_it_stands(
    texts: list[dict[str, float]], beside: list[dict[str, float]]
) -> None:
    asked = dict.fromkeys("abcdefg", 1.0)
    there = [*texts, *beside]
    forth, back = Bm25.of(there).scores(asked), Bm25.of([*reversed(there)]).scores(asked)
    assert forth.tolist() == pytest.approx(back[::-1].tolist(), rel=1e-5)


# Three texts of two terms each; all of them say "on".
OTHERS = WordRarity(count=3, terms=6.0, words=WordList(word_arrays(["on"])), held=np.array([3], dtype=np.uint32))


def test_other_texts_count_where_rarity_is_judged_and_are_not_found() -> None:
    alone, among = Bm25.of(BAGS), Bm25.of(BAGS, among=OTHERS)
    everyone = Bm25.of((*BAGS, *({"on": 1.0, f"other{number}": 1.0} for number in range(3))))
    asked = {"on": 1.0, "lamp": 1.0}
    assert among.size == alone.size == 3
    assert among.scores(asked).tolist() == pytest.approx(everyone.scores(asked)[:3].tolist())
    assert among.ceiling(asked) == pytest.approx(everyone.ceiling(asked))
    assert (among.has("on"), [among.holds("on", slot) for slot in range(3)]) == (True, [True, False, False])


def test_what_is_told_of_a_term_twice_adds_up() -> None:
    def find(term: str) -> int:
        return 0 if term == "lamp" else -1

    here = np.array([0, 0, 0])
    twice = Bm25(find, here, np.array([0, 1, 0]), np.array([2, 2, 3]), 2)
    assert (
        twice.scores({"lamp": 1.0}).tolist() == Bm25.of(({"lamp": 2.5}, {"lamp": 1.0})).scores({"lamp": 1.0}).tolist()
    )


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


def test_the_higher_of_two() -> None:
    scores = np.array([1.0, 4.0, 0.0], dtype=np.float32)
    assert highest(scores, np.array([2.0, 2.0, 2.0], dtype=np.float32)).tolist() == [2.0, 4.0, 2.0]


def test_a_mask_stands_at_the_named_slots_alone() -> None:
    assert mask(4, {"a": 0, "b": 2, "c": 3}, ["b", "c", "ghost"]).tolist() == [0.0, 0.0, 1.0, 1.0]
