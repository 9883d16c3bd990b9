"""Sentences to what is told and when: `partings.txt` holds what was looked at line by line."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from cortex.base.errors import UserError
from cortex.schedule.parting import parted
from cortex.schedule.reading import Reader

BERLIN = "Europe/Berlin"
NOW = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)  # a Friday, 10:00 in Berlin
ROWS = (Path(__file__).parent / "partings.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(("said", "text", "words"), [row.split(" => ") for row in ROWS], ids=lambda one: one[:40])
def test_a_sentence_is_parted_as_the_table_says(said: str, text: str, words: str) -> None:
    told, timing = parted(said, Reader(), NOW, BERLIN)
    assert (told, timing.words) == (text, words)
    assert Reader().following(timing, NOW, 1)


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ("lunch with May", "no time in the future"),
        ("in March call June", "no time in the future"),
        ("may I", "no time in the future"),
        ("take pills morning and evening", "no time in the future"),
        ("Friday, Friday", "only a time"),
        ("call May on 2020-01-01", "has passed"),
        ("call the dentist yesterday at 9", "'yesterday' has passed"),
        ("Call the dentist Yesterday morning, at 9", "'yesterday morning' has passed"),
        ("at 9 yesterday call the dentist", "'yesterday' has passed"),
    ],
    ids=[
        "a name",
        "a month without a day",
        "a question",
        "several times of one day",
        "days alone",
        "past",
        "past day",
        "and part",
        "in front",
    ],
)
def test_what_lacks_a_part_says_which(said: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        parted(said, Reader(), NOW, BERLIN)
