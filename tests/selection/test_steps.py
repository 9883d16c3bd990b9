"""A recipe explained stage by stage: the explanation and the plan are of one run."""

import pytest

from cortex.base.errors import UserError
from cortex.selection.pipeline import plan
from cortex.selection.recipes import RECIPES
from cortex.services.workshop.steps import steps
from tests.selection.made import asked

MESSAGES = ("hello", "turn off the kitchen lights", "add milk to my list and show the repo log", "use lamp_get")


@pytest.mark.parametrize("recipe", sorted(RECIPES))
@pytest.mark.parametrize("message", MESSAGES)
def test_every_stage_says_something_and_what_goes_out_is_the_plan(recipe: str, message: str) -> None:
    given = asked(message, recipe=recipe)
    told = steps(given)
    assert [step.stage for step in told] == [stage.name for stage in RECIPES[recipe]]
    assert [step.label for step in told] == [stage.label for stage in RECIPES[recipe]]
    assert all(step.told for step in told)
    out = [step for step in told if "go out" in step.told]
    named = {mark.name for step in out[-1:] for mark in step.marks}
    assert named == {item.name for item in plan(given).sent}


def test_a_phrase_is_named_where_it_counted() -> None:
    told = {step.stage: step for step in steps(asked("turn off the kitchen lights"))}
    assert [(mark.name, mark.why) for mark in told["phrases"].marks] == [("lamp_set", 'you wrote "lights"')]
    assert "may be used" in told["gate"].told


def test_chat_only_says_so() -> None:
    assert any("chat only" in step.told for step in steps(asked("hello", mode="chat")))


def test_an_unknown_recipe_is_refused() -> None:
    with pytest.raises(UserError, match="known"):
        steps(asked("hello", recipe="soup"))
