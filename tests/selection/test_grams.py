"""A text as features: the same in every process, letters shared by what is spelt alike, order told by neighbours."""

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from cortex.selection.words.grams import BUCKETS, LONGEST_TERM, MOST_TERMS, WORD_BUCKETS, grams, words
from tests.patience import PATIENCE_S


@given(said=st.text(max_size=200))
def test_words_and_letters_never_share_a_bucket(said: str) -> None:
    assert all(0 <= bucket < WORD_BUCKETS for bucket in words(said))
    assert all(WORD_BUCKETS <= bucket < BUCKETS for bucket in grams(said))


def test_a_text_has_the_same_features_in_every_process() -> None:
    told = "turn off the kitchen lights"
    code = f"from cortex.selection.words.grams import grams, words; print([*words({told!r}), *grams({told!r})])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert done.stdout.strip() == str([*words(told), *grams(told)])


def test_a_slip_of_the_pen_keeps_most_letters_and_no_word() -> None:
    right, wrong, other = "thermostat", "termostat", "calendar"
    assert not set(words(right)) & set(words(wrong))
    shared = set(grams(right)) & set(grams(wrong))
    assert len(shared) > len(set(grams(wrong))) / 2
    assert len(set(grams(right)) & set(grams(other))) == 0


def test_the_order_of_words_counts_but_not_for_their_letters() -> None:
    assert set(words("dog bites man")) != set(words("man bites dog"))
    assert sorted(grams("dog bites man")) == sorted(grams("man bites dog"))


def test_case_and_endings_do_not_count() -> None:
    assert list(words("Turning LAMPS on")) == list(words("turn lamp on"))


def test_nothing_said_has_no_features() -> None:
    assert [*words(""), *grams(""), *words("?!"), *grams("?!")] == []


def test_a_long_text_and_a_long_word_are_cut() -> None:
    assert list(words("pump " * 10_000)) == list(words("pump " * MOST_TERMS))
    assert list(grams("x" * 10_000)) == list(grams("x" * LONGEST_TERM))
