"""The stand-in for a choice by ranking sends the nearest tools, always so many, and counts as its original does."""

from collections.abc import Sequence

import numpy as np
import pytest

from tests.bench import routing
from tests.bench.conftest import Write, row
from tests.bench.files import read
from tests.bench.ground import BenchGround
from tests.bench.reranked import Nearest, Vectors, document, nearest, said, saved
from tests.selection.made import HOUSE

WORDS = ("lamp", "commit", "list", "command")


def by_words(texts: Sequence[str]) -> Vectors:
    """A model that knows four words."""
    return np.array([[text.lower().count(word) for word in WORDS] for text in texts], dtype=np.float32)


@pytest.fixture
def two() -> Nearest:
    return nearest(HOUSE, by_words, 1, top=2)


def test_the_nearest_tools_are_sent_with_every_message(two: Nearest) -> None:
    assert set(two.answer("is the lamp on").tools) == {"lamp_set", "lamp_get"}
    assert len(two.answer("thank you").tools) == 2


def test_a_tool_is_read_with_its_parameters_and_what_people_say_to_it() -> None:
    entry = next(one for one in HOUSE.entries if one.name == "lamp_set")
    assert document(entry, said(HOUSE, "lamp_set")[:1]) == (
        "lamp_set\nTurn a lamp on or off\nroom: The room., state: The state.\nturn off the kitchen lights"
    )


def test_its_saving_is_the_share_of_the_texts_that_it_leaves_out(
    two: Nearest, write: Write, ground: BenchGround
) -> None:
    one = read(
        write("routing_x.jsonl", [row("lamp", "tool", ["lamp_set"]), row("hi", "chat")]), lambda _: None
    ).routing[0]
    names = routing.known(one.rows, ground)
    found = two(one, names, ground, {})
    assert found.scores["recall"] == found.scores["chat_any"] == 1.0
    assert 0.6 < saved(HOUSE, found, 1) < 0.8
    everything = nearest(HOUSE, by_words, 1, top=7)
    assert saved(HOUSE, everything(one, names, ground, {}), 1) == pytest.approx(0.0)
