"""A house's changes laid over the shipped snapshot."""

from typing import Any

import pytest
from msgspec.structs import replace

from cortex.selection.pipeline import plan
from cortex.selection.types import Example, PlanInput, RoleView, Snapshot, Trigger
from cortex.services.tools.edits import NO_EDITS, Edits, Sending, WordEdits, edited, sending_of
from tests.selection.made import HOUSE, asked

OWN = WordEdits(
    phrases=(Trigger(text="groceries", tools=("task_add",)),),
    examples=(Example(text="we are out of bread", tools=("task_add",), is_own=True),),
)


def domain(snapshot: Snapshot, name: str) -> Any:
    return next(each for each in snapshot.domains if each.name == name)


@pytest.mark.parametrize(
    "edits",
    [
        NO_EDITS,
        Edits(sending={"lamp_set": "needed"}),
        Edits(sending={"gone_tool": "always"}),
        Edits(words={"gone": OWN}),
        Edits(words={"tasks": WordEdits(phrases=(Trigger(text="bread", tools=("gone_tool",)),))}),
        Edits(words={"tasks": WordEdits(no_examples=("never said",))}),
    ],
    ids=["none", "as it ships", "unknown tool", "unknown category", "words for a tool that is gone", "no such example"],
)
def test_what_changes_nothing_gives_the_same_snapshot(edits: Edits) -> None:
    assert edited(HOUSE, edits) is HOUSE


def test_only_what_was_changed_is_another_value() -> None:
    made = edited(HOUSE, Edits(sending={"lamp_get": "always", "task_show": "never"}, words={"tasks": OWN}))
    other = [new.name for new, old in zip(made.entries, HOUSE.entries, strict=True) if new is not old]
    assert other == ["lamp_get", "task_show"]
    assert [sending_of(entry) for entry in made.entries if entry.name in other] == ["always", "never"]
    assert [new.name for new, old in zip(made.domains, HOUSE.domains, strict=True) if new is not old] == ["tasks"]
    assert made.several is HOUSE.several


def test_a_version_stands_for_the_content() -> None:
    one = Edits(sending={"lamp_get": "always", "task_show": "never"}, words={"tasks": OWN})
    two = Edits(sending={"task_show": "never", "lamp_get": "always"}, words={"tasks": OWN})
    versions = {
        edited(HOUSE, edits).version
        for edits in (NO_EDITS, one, Edits(sending={"lamp_get": "always"}), Edits(words={"tasks": OWN}))
    }
    assert edited(HOUSE, one).version == edited(HOUSE, two).version
    assert len(versions) == 4
    assert edited(replace(HOUSE, version="house-2"), one).version != edited(HOUSE, one).version


def test_own_words_come_behind_the_shipped_and_left_out_ones_are_gone() -> None:
    words = replace(OWN, no_examples=("what's on my list",))
    made = domain(edited(HOUSE, Edits(words={"tasks": words})), "tasks")
    assert [each.text for each in made.triggers] == ["shopping list", "todo", "groceries"]
    assert [(each.text, each.is_own) for each in made.examples] == [
        ("add milk and eggs to my shopping list", True),
        ("we are out of bread", True),
    ]


def test_a_tool_that_is_always_sent_stands_in_any_request_and_one_never_sent_in_none() -> None:
    assert "repo_diff" not in names("turn off the kitchen lights")
    always = edited(HOUSE, Edits(sending={"repo_diff": "always"}))
    assert "repo_diff" in names("turn off the kitchen lights", always)
    assert "lamp_set" in names("turn off the kitchen lights")
    never = edited(HOUSE, Edits(sending={"lamp_set": "never"}))
    assert "lamp_set" not in names("turn off the kitchen lights", never)
    assert "lamp_set" in names("use lamp_set in the hall", never), "named, it is sent all the same"
    assert "lamp_set" in plan(asked("turn off the kitchen lights", snapshot=never)).reachable


MILK = "add milk to my shopping list"
WAYS = ["cortex", "inara", "punch", "vector"]


def chosen(shipped: Snapshot, recipe: str, sending: dict[str, Sending], message: str = MILK) -> set[str]:
    snapshot = edited(shipped, Edits(sending=sending))
    ready = tuple(entry.name for entry in snapshot.entries)
    role = RoleView(name="admin", tools=("all",))
    given = PlanInput(snapshot=snapshot, ready=ready, role=role, is_admin=True, message=message, recipe=recipe)
    return {item.name for item in plan(given).sent}


@pytest.mark.parametrize("recipe", [*WAYS, "ora"])
def test_always_and_never_hold_under_every_way_that_chooses(recipe: str, shipped: Snapshot) -> None:
    plain = chosen(shipped, recipe, {}) - {"tools_discover"}
    assert not plain & chosen(shipped, recipe, dict.fromkeys(plain, "never"))
    assert "ha_get_states" in chosen(shipped, recipe, {"ha_get_states": "always"})


@pytest.mark.parametrize("recipe", WAYS)
def test_small_talk_carries_no_tool_for_being_always_sent(recipe: str, shipped: Snapshot) -> None:
    assert "ha_get_states" not in chosen(shipped, recipe, {"ha_get_states": "always"}, "hello")


def test_an_own_phrase_brings_its_tool() -> None:
    assert "task_add" not in names("groceries: flour and yeast")
    assert "task_add" in names("groceries: flour and yeast", edited(HOUSE, Edits(words={"tasks": OWN})))


def names(message: str, snapshot: Snapshot = HOUSE) -> set[str]:
    return {item.name for item in plan(asked(message, snapshot=snapshot)).sent}
