"""Why each tool is in or out: a sequence like any other, made when somebody looks."""

import pytest
from msgspec.structs import replace

from cortex.base import portable
from cortex.selection.pipeline import plan
from cortex.selection.types import PlanInput
from tests.selection.made import CACHED, asked

MESSAGE = "add milk to my shopping list"


def test_decisions_are_equal_to_a_tuple_of_the_same_and_hash_like_it() -> None:
    made, again = plan(asked(MESSAGE)).decisions, plan(asked(MESSAGE)).decisions
    assert made == tuple(made)
    assert tuple(made) == made
    assert made == again
    assert hash(made) == hash(again) == hash(tuple(made))
    assert made != tuple(made)[1:]
    assert made != plan(asked("turn off the lights")).decisions


def test_they_are_a_sequence_in_registry_order() -> None:
    made = plan(asked(MESSAGE)).decisions
    names = [each.name for each in made]
    assert names == ["lamp_set", "lamp_get", "repo_log", "repo_diff", "task_add", "task_show"]
    assert len(made) == len(names)
    assert made[4] == list(made)[4]
    assert made[-1].name == "task_show"
    assert [each.name for each in made[1:3]] == names[1:3]
    assert made[4] in made


def test_they_are_written_down_like_a_tuple() -> None:
    made = plan(asked(MESSAGE))
    plain = replace(made, decisions=tuple(made.decisions))
    assert portable.dumps(made) == portable.dumps(plain)
    assert made == plain


@pytest.mark.parametrize(
    ("given", "tool", "stage", "reason"),
    [
        (asked("is there a todo"), "task_add", "phrases", 'you wrote "todo"'),
        (asked(MESSAGE), "repo_log", "fuse", "nothing in the message speaks for it"),
        (asked(MESSAGE, mode="chat"), "task_add", "mode", "Chat only"),
        (asked("use lamp_get now"), "lamp_get", "pins", "you named it"),
    ],
    ids=["in by a phrase", "nothing speaks for it", "chat only", "named"],
)
def test_each_has_its_stage_and_its_reason(given: PlanInput, tool: str, stage: str, reason: str) -> None:
    found = {each.name: each for each in plan(given).decisions}[tool]
    assert found.stage == stage
    assert reason in found.reason


def test_what_was_sent_earlier_in_the_epoch_is_in_for_what_it_came_for() -> None:
    first = plan(asked(MESSAGE, profile=CACHED, fixed_tokens=4_000))
    second = plan(asked("thanks", profile=CACHED, fixed_tokens=4_000, memory=first.memory, turn="t2"))
    before, after = ({each.name: each for each in made.decisions}["task_add"] for made in (first, second))
    assert before.is_in
    assert after.is_in
    assert (after.stage, after.reason) == (before.stage, before.reason)
    assert after.score < after.threshold <= before.score


def test_scores_and_thresholds_say_why() -> None:
    for each in plan(asked("is the lamp burning")).decisions:
        assert each.is_in == (each.score >= each.threshold)
