"""Slips of the pen: a word that nobody knows is read as the known one that is a letter away, all else as it stands."""

import pytest

from cortex.selection.model import refit, weights
from cortex.selection.model.refit import OwnCase
from cortex.selection.types import Snapshot
from cortex.selection.words import known_words
from tests.selection.test_shipped import names

TEXTS = (
    "turn off the lamp",
    "turn on the lamp",
    "remind me to water the plants",
    "Müll und Lampe, erinnere mich an Müll",
)
KNOWN = known_words.of_texts([*TEXTS, "my lamp, my plants and the Müll"])


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("turn off the lmap", "turn off the lamp"),
        ("turn off the lamq", "turn off the lamp"),
        ("PLANST", "plants"),
        ("the mülll", "the mull"),
        ("turn off the lamp", "turn off the lamp"),
        ("ask Lamqe about it", "ask Lamqe about it"),
        ("qqq", "qqq"),
        ("open lmap.txt", "open lmap.txt"),
        ("run `lmap`", "run `lmap`"),
        ("zorblax", "zorblax"),
        ("", ""),
    ],
    ids=["swapped", "changed", "capitals", "accents", "right", "a name", "short", "a file", "code", "far", "nothing"],
)
def test_a_slip_is_read_as_what_was_meant(said: str, read: str) -> None:
    assert KNOWN.mended(said) == read


def test_a_word_that_was_met_once_is_known_and_mends_nothing() -> None:
    known = known_words.of_texts(["gromble", "turn it"])
    assert known.mended("gromble") == "gromble"
    assert known.mended("gromblq") == "gromblq"


def test_what_this_house_taught_is_no_slip() -> None:
    word = "remindr"
    shipped = weights.shipped()
    assert shipped.known.mended(f"the {word}") != f"the {word}"
    own = refit.refitted(shipped, [OwnCase(text=f"feed the {word}", tools=("task_create",))])
    assert own.known.mended(f"the {word}") == f"the {word}"


@pytest.mark.parametrize(
    ("said", "tool"),
    [
        ("remnid me at nine to call mum", "reminders_add"),
        ("add bread to my shoping lits", "task_create"),
        ("trun off the kithcen ligths", "ha_call_service"),
    ],
)
def test_a_message_with_slips_finds_its_tool(shipped: Snapshot, said: str, tool: str) -> None:
    assert tool in names(shipped, said)


def test_accents_may_be_left_out(shipped: Snapshot) -> None:
    said = "añade leche a la lista de la compra"
    assert names(shipped, said) == names(shipped, said.replace("ñ", "n"))
