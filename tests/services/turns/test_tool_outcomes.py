from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from cortex.services.turns.tool_outcomes import came, lesson
from cortex.storage.calls import CallRow, Came
from cortex.storage.plans import PlanRow

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def planned(number: int, *tools: tuple[str, str], added: tuple[str, ...] = (), mode: str = "auto") -> PlanRow:
    """A round that sends these tools, each with the stage that brought it."""
    sent = [{"name": name, "stage": stage, "category": "x"} for name, stage in tools]
    known = {name: stage for name, stage in tools}
    decisions = [
        {"name": name, "is_in": name in known, "stage": known.get(name, "fuse")}
        for name in dict.fromkeys([*known, "note_list", "note_add", "task_create"])
    ]
    receipt: dict[str, Any] = {"mode": mode, "sent": sent, "decisions": decisions, "added": list(added)}
    return PlanRow(turn_id="t1", round=number, receipt=receipt, given={}, created_at=NOON)


def made(name: str, *, how: Came = "", state: Any = "done", text: str = "ok") -> CallRow:
    return CallRow(
        id=name,
        turn_id="t1",
        conversation_id="c1",
        round=1,
        name=name,
        arguments="{}",
        arguments_hash="",
        risk="low",
        state=state,
        text=text,
        came=how,
    )


FIRST = planned(1, ("task_create", "fuse"), added=("task_create",))
SEARCH = made("tools_discover", text="- note_list(): Your notes.\nThey can be called by name from now on.")


@pytest.mark.parametrize(
    ("plans", "earlier", "name", "how"),
    [
        ([FIRST], [], "task_create", ""),
        ([FIRST], [], "note_list", "rescued"),
        ([FIRST], [SEARCH], "note_list", "discovered"),
        ([FIRST], [SEARCH], "note_add", "rescued"),
        ([FIRST, planned(2, ("note_list", "context"))], [SEARCH], "note_list", "discovered"),
        ([FIRST, planned(2, ("note_list", "missing"))], [], "note_list", "missing"),
        ([FIRST, planned(2, ("note_list", "context"))], [made("note_list", how="rescued")], "note_list", ""),
        ([], [], "note_list", ""),
        ([planned(1, mode="chat")], [], "note_list", ""),
    ],
    ids=[
        "sent at first",
        "called though not sent",
        "found, called behind the bridge",
        "another one was found",
        "found and sent",
        "sent after an answer that lacked it",
        "its second call",
        "no plan was kept",
        "a model that takes no tools",
    ],
)
def test_how_a_called_tool_was_had(plans: list[PlanRow], earlier: list[CallRow], name: str, how: str) -> None:
    assert came(plans, len(plans), earlier, name) == how


def test_a_turn_whose_first_request_fitted_teaches_nothing() -> None:
    assert lesson([FIRST], [made("task_create")]) is None


def test_what_was_needed_and_what_was_sent_for_nothing_are_told() -> None:
    found = lesson([FIRST], [made("note_list", how="rescued")])
    assert found is not None
    assert (dict(found.needed), found.called, found.unused) == (
        {"note_list": "rescued"},
        ("note_list",),
        ("task_create",),
    )


@pytest.mark.parametrize(
    "first",
    [
        planned(1, ("task_create", "pins"), added=("task_create",)),
        planned(1, ("task_create", "fuse")),
    ],
    ids=["a pin", "sent for an earlier message"],
)
def test_what_the_message_did_not_bring_in_was_not_sent_for_nothing(first: PlanRow) -> None:
    assert lesson([first], []) is None


def test_what_was_told_after_the_message_for_nothing_is_told_too() -> None:
    first = planned(1, added=("task_create",))
    first.receipt["noted"] = [{"name": "task_create", "stage": "fuse", "category": "x"}]
    found = lesson([first], [])
    assert found is not None
    assert found.unused == ("task_create",)


def test_a_call_that_was_refused_needed_nothing() -> None:
    refused = replace(made("note_list", how="rescued"), state="refused")
    assert lesson([planned(1)], [refused]) is None
