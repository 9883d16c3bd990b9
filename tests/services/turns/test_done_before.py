"""The sentence at a turn that was cut off is made from what the table knows of each call."""

import pytest

from cortex.services.turns.done_before import CHECK, NO_CALL, done_so_far, ending_of
from cortex.storage.calls import CallRow, CallState


def call(state: CallState) -> CallRow:
    return CallRow(
        id=state,
        turn_id="turn:1",
        conversation_id="c",
        round=1,
        name="task_create",
        arguments="{}",
        arguments_hash="",
        risk="low",
        state=state,
    )


@pytest.mark.parametrize(
    ("states", "says"),
    [
        ([], NO_CALL),
        (["done"], "1 tool call: 1 done."),
        (["done", "intended"], f"2 tool calls: 1 done, 1 with unknown outcome. {CHECK}"),
        (["unknown"], f"1 tool call: 1 with unknown outcome. {CHECK}"),
        (["decided", "refused", "failed"], "3 tool calls: 1 failed, 2 not run."),
    ],
    ids=["none", "done", "in doubt", "unknown", "not run"],
)
def test_calls_are_counted_by_what_became_of_them(states: list[CallState], says: str) -> None:
    assert done_so_far([call(state) for state in states]) == says


def test_a_call_that_never_began_is_not_of_unknown_outcome() -> None:
    endings = [ending_of(call(state)) for state in ("decided", "intended", "done")]
    assert [row and row[1]["state"] for row in endings] == ["refused", "unknown", None]
