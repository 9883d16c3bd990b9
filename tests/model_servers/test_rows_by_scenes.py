"""Every row of model servers runs every scene that its server supports, over the product's own wire."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.model_servers.rows import ROWS, row_of
from tests.model_servers.scenes import BY_NAME, SCENES, why_not
from tests.model_servers.server import Double
from tests.model_servers.table import RESULTS, Result, as_json, doubles, play, summary
from tests.share import a_quarter_daily


def cells(number: int, scene: str) -> list[Any]:
    """The rows that run this scene, from another on for each: a day's quarter has every row and every scene."""
    found = [pytest.param(row.id, scene, id=f"{row.id}-{scene}") for row in ROWS if not why_not(row, scene)]
    return found[number % len(found) :] + found[: number % len(found)]


CELLS = [one for number, scene in enumerate(SCENES) for one in a_quarter_daily(cells(number, scene.__name__))]


@pytest.fixture(scope="module")
def running() -> Iterator[dict[str, Double]]:
    with doubles() as found:
        yield found


@pytest.mark.parametrize(("row", "scene"), CELLS)
async def test_the_scene_plays_on_this_row(row: str, scene: str, running: dict[str, Double]) -> None:
    await play(row_of(row), BY_NAME[scene], running)


def test_every_row_runs_at_least_forty_scenes_and_says_why_it_leaves_others_out() -> None:
    for row in ROWS:
        left_out = {name: why_not(row, name) for name in BY_NAME if why_not(row, name)}
        assert len(BY_NAME) - len(left_out) >= 40, row.id
        assert all(len(why.split()) >= 3 for why in left_out.values()), left_out
        assert set(row.without) <= set(BY_NAME), f"{row.id} leaves out what is no scene"


def test_the_table_of_the_guide_has_each_row_and_scene_as_they_are_now() -> None:
    played = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert list(played) == [scene.__name__ for scene in SCENES], "run `make docs`"
    for name, states in played.items():
        left_out = {row.id: why for row in ROWS if (why := why_not(row, name))}
        assert states.get("left out", {}) == left_out
        assert states.get("passes", {}) == {row.id: "" for row in ROWS if row.id not in left_out}
        assert states.keys() <= {"passes", "left out"}


def test_the_table_says_what_fails_and_what_is_left_out() -> None:
    results = [
        Result(row="openai", scene="chat", state="passes", cpu_ms=900),
        Result(row="openai", scene="stop", state="fails", why="it went on", cpu_ms=100),
        Result(row="openai", scene="thinking_answer", state="left out", why="it tells none"),
    ]
    assert json.loads(as_json(results))["stop"] == {"fails": {"openai": "it went on"}}
    assert "1 of   2  stop" in summary(results)
    assert "1 of 2 pass; 1.0 s of processor" in summary(results)
