"""How alike words are, against figures worked out by others: Damerau 1964, Winkler 1990, and rapidfuzz 3.14's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.base import spelling

WORDS = st.text("abcd ", max_size=12)


@pytest.mark.parametrize(
    ("one", "other", "slips"),
    [
        ("", "", 0),
        ("milk", "milk", 0),
        ("milk", "mikl", 1),
        ("milk", "milks", 1),
        ("milk", "ilk", 1),
        ("milk", "silk", 1),
        ("ca", "abc", 2),
        ("kitten", "sitting", 3),
        ("reminder", "remidnre", 2),
        ("abc", "", 3),
    ],
)
def test_slips_of_the_keys_are_counted(one: str, other: str, slips: int) -> None:
    assert spelling.slips(one, other) == spelling.slips(other, one) == slips


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("martha", "marhta", 0.961111),
        ("dwayne", "duane", 0.84),
        ("dixon", "dicksonx", 0.813333),
        ("dunningham", "cunnigham", 0.896296),
        ("task_add", "task_add", 1.0),
        ("a", "b", 0.0),
        ("", "a", 0.0),
        ("", "", 1.0),
    ],
)
def test_likeness_is_that_of_jaro_and_winkler(one: str, other: str, alike: float) -> None:
    assert spelling.likeness(one, other) == pytest.approx(alike, abs=1e-6)


@pytest.mark.parametrize(
    ("one", "other", "score"),
    [
        ("fuzzy was a bear", "fuzzy fuzzy was a bear", 100.0),
        ("kitchen light", "light in the kitchen", 100.0),
        ("kitchn light", "kitchen light", 96.0),
        ("lamp", "kitchen light", 11.764706),
        ("", "kitchen", 0.0),
    ],
)
def test_words_count_in_any_order(one: str, other: str, score: float) -> None:
    assert spelling.shared_words(one, other) == pytest.approx(score)


def test_the_first_of_those_with_the_fewest_slips_is_meant() -> None:
    assert spelling.first_slip("mikl", ["mild", "milk", "mike", "silk"]) == "milk"
    assert spelling.first_slip("milk", ["silk", "milks"]) == "silk"
    assert spelling.first_slip("milk", ["bread"]) == ""
    assert spelling.first_slip("remidnre", ["reminders", "reminder"], most=2) == "reminder"
    assert spelling.closest("remindr", ["list", "reminder", "remind"], 0.9) == "reminder"
    assert spelling.closest("xyz", ["list"], 0.9) == spelling.closest("xyz", [], 0.9) == ""


def test_the_best_come_first_and_equals_in_their_order() -> None:
    assert spelling.best_of([(1.0, "a"), (3.0, "b"), (2.0, "c"), (3.0, "d")], 3, 2.0) == ("b", "d", "c")


@given(one=WORDS, other=WORDS)
def test_likeness_has_no_sides_and_stays_within_its_range(one: str, other: str) -> None:
    assert spelling.slips(one, other) == spelling.slips(other, one) <= max(len(one), len(other))
    assert spelling.shared_words(one, other) == pytest.approx(spelling.shared_words(other, one))
    assert 0.0 <= spelling.likeness(one, other) <= 1.0
    assert (spelling.slips(one, other) == 0) == (one == other)


@given(one=WORDS, others=st.lists(WORDS, max_size=8), least=st.sampled_from([0.0, 0.5, 0.7, 0.85, 0.93, 1.0]))
def test_those_that_are_alike_are_found_as_if_each_was_compared(one: str, others: list[str], least: float) -> None:
    others += [one, one[1:], f"{one}s", one[::-1]]
    assert [*spelling.alike(one, others, least)] == [each for each in others if spelling.likeness(one, each) >= least]
