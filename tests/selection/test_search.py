"""BM25 against figures worked out by hand."""

import math
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.base.packed import WordList, word_arrays
from cortex.selection.index.search import Bm25, WordRarity, best, highest, rarity

# Three documents of 2, 2 and 3 terms: the mean length is 7/3. With k1 = 1.5 and b = .75 a document of length 2 has the
# norm 1.5 x (.25 + .75 x 6/7) = 1.3392857, one of length 3 has 1.5 x (.25 + .75 x 9/7) = 1.8214286.
# idf(lamp) = ln(1 + 1.5/2.5) = .4700036 (in two of three), idf(add) = ln(1 + 2.5/1.5) = .9808293 (in one).
BAGS = ({"lamp": 1.0, "on": 1.0}, {"lamp": 2.0}, {"task": 1.0, "list": 1.0, "add": 1.0})


def test_the_figures_are_those_of_the_formula() -> None:
    found = Bm25.of(BAGS)
    assert found.idf("lamp") == pytest.approx(0.4700036)
    assert found.idf("add") == pytest.approx(0.9808293)
    assert found.idf("ghost") == pytest.approx(math.log(1 + 3.5 / 0.5))
    assert found.scores({"lamp": 1.0}) == pytest.approx({0: 0.5022943, 1: 0.7037490}, abs=1e-6)
    assert found.scores({"add": 2.0}) == pytest.approx({2: 1.7381792}, abs=1e-6)
    assert found.ceiling({"lamp": 1.0, "add": 1.0}) == pytest.approx(2.5 * (0.4700036 + 0.9808293))
    assert found.ceiling({"ghost": 1.0}, 0.5) == pytest.approx(2.5 * 0.5 * math.log(8))


def test_a_term_twice_in_the_question_counts_twice_and_an_unknown_one_not_at_all() -> None:
    found = Bm25.of(BAGS)
    once, twice = (found.scores({"lamp": weight}) for weight in (1.0, 2.0))
    assert twice == pytest.approx({slot: 2 * score for slot, score in once.items()})
    assert found.scores({"ghost": 1.0}) == {}


def test_a_document_scores_as_if_it_stood_among_the_others() -> None:
    found = Bm25.of(BAGS)
    asked: tuple[dict[str, float], ...] = ({"lamp": 1.0, "add": 1.0}, {"task": 2.0, "ghost": 1.0}, {})
    for would, does in zip(found.would_score(BAGS, asked), map(found.scores, asked), strict=True):
        assert would == pytest.approx(does)
    assert found.would_score([{"lamp": 1.0}], asked)[0][0] > found.scores(asked[0])[0]  # a shorter one says it purer


def test_it_says_who_holds_what() -> None:
    found = Bm25.of(BAGS)
    assert (found.has("add"), found.has("ghost")) == (True, False)
    assert list(found.numbers) == [0, 1, 2, 3, 4]


def test_nothing_to_search_gives_nothing() -> None:
    empty = Bm25.of(())
    assert empty.scores({"lamp": 1.0}) == {}
    assert best(empty.scores({"lamp": 1.0}), 5) == []


bags = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from((0.5, 1.0, 2.0)), max_size=4)


@given(texts=st.lists(bags, max_size=6), beside=st.lists(bags, max_size=3))
def test_a_text_scores_the_same_wherever_it_stands(
    texts: list[dict[str, float]], beside: list[dict[str, float]]
) -> None:
    asked = dict.fromkeys("abcdefg", 1.0)
    there = [*texts, *beside]
    forth, back = Bm25.of(there).scores(asked), Bm25.of([*reversed(there)]).scores(asked)
    assert forth == pytest.approx({len(there) - 1 - slot: score for slot, score in back.items()})


def test_a_word_that_more_texts_hold_is_less_rare() -> None:
    words = WordRarity(count=3, words=WordList(word_arrays(["on"])), held=memoryview(array("I", [3])))
    assert words.idf("on") == rarity(3, 3) < words.idf("ghost") == rarity(3, 0)


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
    assert best(dict(enumerate(scores)), most) == slots


def test_the_highest_of_several() -> None:
    assert highest([{0: 1.0, 1: 4.0}]) == {0: 1.0, 1: 4.0}
    assert highest([{0: 1.0, 1: 4.0}, {0: 2.0, 2: 2.0}, {1: 3.0}]) == {0: 2.0, 1: 4.0, 2: 2.0}
