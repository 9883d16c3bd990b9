"""A search counts only where the request declares one; what a rescue round brings is a figure of its own."""

import pytest
from msgspec.structs import replace

from cortex.selection.discover import RANKINGS, rank
from tests.bench import routing, scores
from tests.bench.conftest import over_the_house
from tests.bench.files import RoutingSet
from tests.bench.ground import BenchGround
from tests.bench.rows import Utterance
from tests.selection.made import HOUSE

LIGHT = Utterance(text="turn off the light", kind="tool", need_tools=(("lamp_set",),))
BOTH = Utterance(text="show my shopping list, and turn off the light", kind="tool", need_tools=(("lamp_set",),))


@pytest.fixture
def shy() -> BenchGround:
    """The house with a lamp that is sent only where it is named or found."""
    entries = tuple(replace(each, is_shy=each.name == "lamp_set") for each in HOUSE.entries)
    return over_the_house().over(replace(HOUSE, entries=entries, version="house-shy"))


def given(row: Utterance, ground: BenchGround, recipe: str) -> scores.ScoredRow:
    one = RoutingSet(name="one", rows=(row,))
    found = routing.given(one, routing.known(one.rows, ground), ground, recipe, RANKINGS.get(recipe, rank))
    return found[0]


def test_where_no_search_is_declared_none_is_made_and_the_rescue_is_counted_apart(shy: BenchGround) -> None:
    found = given(LIGHT, shy, "cortex")
    assert found.found is None
    assert (found.is_met, found.is_met_after_discover, found.is_met_after_rescue) == (False, False, True)
    told = scores.routing([found], 100, can_discover=True, can_rescue=True)
    assert (told["recall_after_discover"], told["recall_after_rescue"]) == (0.0, 1.0)


def test_where_one_is_declared_it_is_made(shy: BenchGround) -> None:
    found = given(BOTH, shy, "cortex")
    assert (found.is_met, found.is_met_after_discover) == (False, True)


def test_with_another_tool_sent_the_rescue_is_counted_where_none_of_the_wanted_was(shy: BenchGround) -> None:
    lamp = given(BOTH, shy, "cortex")
    assert lamp.names
    assert lamp.is_met_after_rescue
    both = given(BOTH.model_copy(update={"need_tools": (("task_show",), ("lamp_set",))}), shy, "cortex")
    assert (both.is_met, both.rescued, both.is_met_after_rescue) == (False, None, False)  # a model with a tool uses it


def test_what_is_found_at_once_counts_as_rescued_and_only_cortex_rescues(ground: BenchGround) -> None:
    one = RoutingSet(name="one", rows=(LIGHT,))
    told = {
        name: routing.measured(one, routing.known(one.rows, ground), ground, name, rank).scores
        for name in ("cortex", "ora")
    }
    assert told["cortex"]["recall"] == told["cortex"]["recall_after_rescue"] == 1.0
    assert "recall_after_rescue" not in told["ora"]


def test_each_recipe_has_its_own_door(shy: BenchGround) -> None:
    assert given(LIGHT, shy, "ora").is_met_after_discover
    shut = given(Utterance(text="turn off the light", kind="tool", need_tools=(("shell_run",),)), shy, "inara")
    assert (shut.found, shut.rescued) == (None, None)
