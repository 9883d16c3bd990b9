"""Times beside appointments as people write them; each is read again from its own words."""

import pytest

from cortex.base.errors import ToolFailed
from cortex.schedule.appointment_words import beside_of, by_appointments


@pytest.mark.parametrize(
    ("words", "expression"),
    [
        ("an hour before each appointment named dentist", "-3600 start dentist"),
        ("An hour before each appointment named “Dentist”.", "-3600 start Dentist"),
        ("30 minutes before every appointment", "-1800 start"),
        ("an hour and a half before my meetings with Ben", "-5400 start Ben"),
        ("10 min before each event starts", "-600 start"),
        ("half an hour before the end of every meeting", "-1800 end"),
        ("15 minutes after the end of each appointment named school run", "900 end school run"),
        ("2 hours after each appointment about yoga", "7200 end yoga"),
        ("5 minutes after each appointment starts", "300 start"),
        ("a week before each appointment called MOT", "-604800 start MOT"),
        ("at the start of each appointment", "0 start"),
        ("when an appointment named dentist ends", "0 end dentist"),
    ],
)
def test_words_say_how_far_from_which_edge(words: str, expression: str) -> None:
    timing = by_appointments(words, "Europe/Berlin")
    assert timing is not None
    assert (timing.kind, timing.expression, timing.time_zone) == ("appointment", expression, "Europe/Berlin")
    again = by_appointments(timing.words, "Europe/Berlin")
    assert again is not None
    assert again.expression == expression


@pytest.mark.parametrize("words", ["every weekday at 7", "an hour before noon", "in an hour", "the day after tomorrow"])
def test_other_words_are_left_to_others(words: str) -> None:
    assert by_appointments(words, "UTC") is None


@pytest.mark.parametrize(
    ("words", "why"),
    [("a bit before each appointment", "as a length"), ("90 days before each appointment", "at most 60 days")],
)
def test_what_cannot_be_is_said_in_words(words: str, why: str) -> None:
    with pytest.raises(ToolFailed, match=why):
        by_appointments(words, "UTC")


@pytest.mark.parametrize(
    ("named", "title", "fits"),
    [
        ("dentist", "Dentist, Mia", True),
        ("zahn", "Zahnarzt", True),
        ("mia dentist", "Dentist: Mia", True),
        ("art", "Party", False),
        ("dentist", "Lunch", False),
        ("überweisung", "ÜBERWEISUNG prüfen", True),
        ("", "", True),
    ],
)
def test_each_word_begins_a_word_of_the_title_whatever_its_case(named: str, title: str, fits: bool) -> None:
    assert beside_of(f"0 start {named}".strip()).fits(title) is fits
