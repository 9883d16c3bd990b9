import pytest
from msgspec.structs import replace

from cortex.selection.pipeline import plan
from cortex.selection.types import PlannerMemory, RoleView, Snapshot, ToolPlan
from tests.selection.baseline_house import TOOLS, sent, wish
from tests.selection.made import CACHED


def forms(made: ToolPlan) -> dict[str, str]:
    return {item.name: item.form for item in made.sent}


def rounds(count: int, message: str = "hello", memory: PlannerMemory | None = None, turn: str = "t1") -> list[ToolPlan]:
    made: list[ToolPlan] = []
    for number in range(1, count + 1):
        known = made[-1].memory if made else memory or PlannerMemory()
        made.append(plan(wish("repi", message, round=number, turn=turn, memory=known, profile=CACHED)))
    return made


def test_the_first_round_carries_everything_permitted_in_full() -> None:
    made = rounds(1)[0]
    assert tuple(sent(made)) == TOOLS
    assert set(forms(made).values()) == {"full"}
    assert made.catalog == ""


@pytest.mark.parametrize("number", [2, 3, 4, 5])
def test_later_rounds_carry_names_arguments_and_types_alone(number: int) -> None:
    made = rounds(number)[-1]
    assert tuple(sent(made)) == TOOLS
    assert set(forms(made).values()) == {"compact"}
    for schema in made.schemas:
        assert schema.description == ""
        assert schema.parameters == {"type": "object", "properties": {"text": {"type": "string"}}}


def test_a_tool_that_appears_later_comes_in_full_once() -> None:
    narrow = RoleView(name="admin", tools=("git",))
    first = plan(wish("repi", "hello", role=narrow))
    wide = replace(narrow, tools=("git", "ha"))
    second = plan(wish("repi", "hello", role=wide, round=2, memory=first.memory))
    third = plan(wish("repi", "hello", role=wide, round=3, memory=second.memory))
    assert forms(second) == {
        **dict.fromkeys(("git_status", "git_log", "git_diff"), "compact"),
        **dict.fromkeys(("ha_get_state", "ha_get_states", "ha_call_service"), "full"),
    }
    assert set(forms(third).values()) == {"compact"}


def test_the_next_message_begins_in_full_again() -> None:
    last = rounds(3)[-1]
    again = rounds(2, "and now", last.memory, "t2")
    assert set(forms(again[0]).values()) == {"full"}
    assert set(forms(again[1]).values()) == {"compact"}


def test_a_round_that_lost_its_memory_is_in_full() -> None:
    assert set(forms(plan(wish("repi", "hello", round=3))).values()) == {"full"}


def test_a_compacted_history_does_not_bring_the_prose_back() -> None:
    first = rounds(1)[0]
    second = plan(wish("repi", "hello", round=2, memory=first.memory, summary="s1"))
    assert set(forms(second).values()) == {"compact"}


def test_all_by_the_users_own_switch_stays_whole() -> None:
    first = plan(wish("repi", "hello", mode="all"))
    second = plan(wish("repi", "hello", mode="all", round=2, memory=first.memory))
    assert set(forms(second).values()) == {"full"}


def test_compact_is_counted_below_the_stub(shipped: Snapshot) -> None:
    for entry in shipped.entries:
        assert 0 < entry.cost("compact") < entry.cost("stub") <= entry.cost("full")
        assert set(entry.schema("compact").parameters["properties"]) == set(entry.full.parameters["properties"])


def test_each_change_of_forms_is_told_as_a_rewritten_prefix() -> None:
    plans = rounds(3)
    assert [made.epoch_number for made in plans] == [1, 2, 2]
    assert [bool(made.boundary) for made in plans] == [True, True, False]
