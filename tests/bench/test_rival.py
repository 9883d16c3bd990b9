"""The simple way that Cortex is held against learns what ships, and is judged by the same code at the same size."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from cortex.selection.types import Example
from tests.bench import routing, selection
from tests.bench.conftest import Write, row
from tests.bench.files import RoutingSet, read
from tests.bench.goals import OURS
from tests.bench.ground import BenchGround
from tests.bench.rival import BARE, Rival, RivalWay, fitted
from tests.bench.routing import JudgedSet
from tests.bench.selection import Extras
from tests.selection.made import HOUSE

TALK = ("hello there", "how are you today", "thanks a lot", "good night then", "you are funny")
WORDS = ("what is a prime number", "write a poem about rain", "explain gravity to a child")
TAUGHT = structs.replace(
    HOUSE,
    none=tuple(Example(text=text, tools=(kind,)) for kind, texts in (("chat", TALK), ("llm", WORDS)) for text in texts),
)
ROWS = [
    row("turn off the lights in the hall", "tool", ["lamp_set"]),
    row("add bread to my shopping list", "tool", ["task_add"]),
    row("hello you there", "chat"),
    row("write a poem about snow", "llm"),
]


@pytest.fixture(scope="module")
def rival() -> Rival:
    return fitted(TAUGHT)


@pytest.fixture(scope="module")
def bare(rival: Rival) -> RivalWay:
    return RivalWay(rival=rival, is_gated=False)


@pytest.fixture
def asked(write: Write) -> RoutingSet:
    return read(write("routing_home.jsonl", ROWS), lambda _: None).routing[0]


def test_the_same_utterances_give_the_same_chances(rival: Rival) -> None:
    texts = [row["text"] for row in ROWS]
    for first, again in zip(rival.chances(texts), fitted(TAUGHT).chances(texts), strict=True):
        assert np.array_equal(first, again)


def test_it_finds_what_is_said_like_what_ships(rival: Rival) -> None:
    chances, _ = rival.chances([row["text"] for row in ROWS])
    assert [names[0] for names in rival.chosen(chances[:2], 0.0)] == ["lamp_set", "task_add"]


def test_its_gates_only_take_and_most_from_talk(rival: Rival) -> None:
    chances, gated = rival.chances([row["text"] for row in ROWS])
    assert (gated <= chances).all()
    kept = gated.sum(axis=1) / chances.sum(axis=1)
    assert max(kept[2:]) < min(kept[:2])


def test_it_names_the_best_first_and_none_below_the_bar(rival: Rival) -> None:
    chances = np.zeros((1, len(rival.tools)))
    chances[0, :3] = (0.3, 0.9, 0.1)
    assert rival.chosen(chances, 0.2) == [(rival.tools[1], rival.tools[0])]


@pytest.mark.parametrize("sent", [1, 2, 5])
def test_it_sends_as_many_tools_as_are_sent_to_the_rows_that_need_some(
    bare: RivalWay, asked: RoutingSet, ground: BenchGround, sent: int
) -> None:
    names = routing.known(asked.rows, ground)
    rows = [
        replace(each, names=frozenset(str(number) for number in range(sent)))
        for each in routing.given(asked, names, ground, OURS)
    ]
    found = bare(asked, names, ground, {OURS: JudgedSet(scores={}, rows=tuple(rows))})
    needing = [each for each in found.rows if each.needs]
    assert sum(len(each.names) for each in needing) == sent * len(needing)


def test_a_set_without_a_need_is_judged_at_the_usual_bar(
    bare: RivalWay, asked: RoutingSet, ground: BenchGround
) -> None:
    talk = replace(asked, rows=asked.rows[2:])
    names = routing.known(talk.rows, ground)
    ours = JudgedSet(scores={}, rows=tuple(routing.given(talk, names, ground, OURS)))
    silent, open_to_all = (replace(bare, usual=bar)(talk, names, ground, {OURS: ours}) for bar in (1.0, 0.0))
    assert silent.scores["chat_any"] == 0.0
    assert open_to_all.scores["chat_any"] == 1.0


def test_it_stands_beside_the_recipes_with_the_same_figures(
    bare: RivalWay, write: Write, tmp_path: Path, ground: BenchGround
) -> None:
    write("routing_home.jsonl", ROWS)
    extras = Extras(ways={BARE: bare})
    (found,) = selection.measured((tmp_path,), ("all", OURS), ground, 1, lambda _: None, extras)
    assert list(found["recipes"]) == ["all", OURS, BARE]
    assert found["recipes"][BARE].keys() >= {"recall", "tools_mean", "tokens_mean", "chat_any", "llm_nonweb", "p50_ms"}
    assert found["intervals"].keys() == found["recipes"].keys()
