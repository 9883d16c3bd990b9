"""What the person chose for a conversation: "always" sends and permits nothing, "never" holds and rewrites nothing."""

from typing import Any

import pytest
from msgspec.structs import replace

from cortex.selection.pipeline import plan
from cortex.selection.recipes import RECIPES
from cortex.selection.types import PlanInput, ToolPlan
from tests.selection.made import BRIDGED, CACHED, ROLE, WEAK, asked

LIGHT = "turn off the light"


def sent(made: ToolPlan) -> list[str]:
    return [item.name for item in made.sent if item.name not in ("tools_discover", "tool_call")]


def next_one(before: ToolPlan, message: str, **changes: Any) -> PlanInput:
    return asked(message, profile=BRIDGED, fixed_tokens=4_000, turn="t2", memory=before.memory, **changes)


@pytest.mark.parametrize("recipe", sorted(RECIPES))
def test_always_is_sent_and_never_is_not_under_every_recipe(recipe: str) -> None:
    made = plan(asked("what's on my list", recipe=recipe, always=("repo_log",), never=("task_show",)))
    assert "repo_log" in sent(made)
    assert "task_show" not in sent(made)


def test_always_is_there_for_a_greeting_too_and_says_why() -> None:
    made = plan(asked("hello", always=("repo_log",)))
    ((form, reason),) = [(item.form, item.reason) for item in made.sent if item.name == "repo_log"]
    assert (form, "“always”" in reason) == ("full", True)
    assert plan(asked("hello", always=("repo_log",), mode="chat")).sent == ()
    assert "repo_log" not in dict(made.hints)  # to be there is no wish to be called


@pytest.mark.parametrize("budget", [None, 10])
def test_always_permits_nothing_and_no_budget_drops_it(budget: int | None) -> None:
    made = plan(asked(LIGHT, always=("repo_log", "shell_run", "ghost"), role=replace(ROLE, budget_tokens=budget)))
    assert "repo_log" in sent(made)
    assert {"shell_run", "ghost"}.isdisjoint(sent(made))


@pytest.mark.parametrize("message", [LIGHT, "please use `lamp_set` now"])
def test_never_holds_against_words_names_and_searches(message: str) -> None:
    made = plan(asked(message, profile=WEAK, never=("lamp_set",), found=("lamp_set",), fixed_tokens=1_500))
    assert "lamp_set" not in (*sent(made), *made.reachable, *made.noted, *dict(made.hints))
    assert "lamp_set" not in made.catalog
    assert "“never”" in {each.name: each.reason for each in made.decisions}["lamp_set"]


def test_a_choice_in_an_open_epoch_leaves_the_cached_prefix_as_it_is() -> None:
    first = plan(asked(LIGHT, profile=BRIDGED, fixed_tokens=4_000))
    later = plan(next_one(first, "thank you", always=("task_add",), never=("lamp_set", "repo_log")))
    assert (later.schemas, later.catalog, later.boundary) == (first.schemas, first.catalog, "")
    assert later.noted == ("task_add",)  # comes as a late tool does
    reasons = {each.name: each.reason for each in later.decisions}
    assert ("“never”" in reasons["lamp_set"], "any more" in reasons["lamp_set"]) == (True, True)
    assert ("“never”" in reasons["repo_log"], "any more" in reasons["repo_log"]) == (True, False)
    back = plan(next_one(later, "turn on the light"))
    assert (back.schemas, back.catalog) == (first.schemas, first.catalog)


def test_a_new_epoch_leaves_out_what_is_never_wanted() -> None:
    first = plan(asked(LIGHT, profile=CACHED, fixed_tokens=4_000))
    cold = "2026-11-21T12:00:00+00:00"
    later = plan(replace(next_one(first, LIGHT, never=("lamp_set",)), profile=CACHED, now=cold))
    assert "run out" in later.boundary
    assert "lamp_set" not in (*sent(later), *later.catalog.split())
