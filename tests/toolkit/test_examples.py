"""Utterances are written many to a line."""

from cortex.toolkit.examples import said


def test_bars_and_line_ends_part_what_is_said() -> None:
    made = said("a_one a_two", "\n  first  thing | second\n  third\n\n")
    assert made == (
        ("first thing", ("a_one", "a_two")),
        ("second", ("a_one", "a_two")),
        ("third", ("a_one", "a_two")),
    )
