"""A permitted tool can be had: the way to tools is open where something seems to be wanted, and an answer that is none
brings what the message speaks for."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from cortex.base.model import Profile
from cortex.selection.index.index import Index
from cortex.selection.pipeline import plan
from cortex.selection.plan.draft import ModelChances, PlanDraft
from cortex.selection.recipes import RECIPES
from cortex.selection.stage import StageFunction
from cortex.selection.stages.basics import learned
from cortex.selection.stages.epoch import DOOR_WISH
from cortex.selection.stages.missing import GRAVE_P, LEAST_P, LIKELIER, MOST
from cortex.selection.types import PastTurn, PlanInput, Snapshot, ToolPlan
from tests.selection.made import BRIDGED, CACHED, HOUSE, ROLE, WEAK, asked, business

WAY = ["tools_discover"]
PLAIN = Profile()
SAID = "could somebody see to that"


def planned(given: PlanInput, wish: float = DOOR_WISH, chances: Mapping[str, float] | None = None) -> ToolPlan:
    """The plan where the fitted model makes this of the message."""

    def judged(given: PlanInput, index: Index, draft: PlanDraft) -> PlanDraft:
        found = {"repo_diff": 0.01} if chances is None else chances
        return replace(draft, learned=ModelChances(chances=found, wish=wish, work=1.0))

    stages: list[StageFunction] = [judged if stage is learned else stage for stage in RECIPES["cortex"]]
    return plan(given, stages)


def sent(made: ToolPlan) -> list[str]:
    return [item.name for item in made.sent]


def rescue(before: ToolPlan, given: PlanInput, words: str = "I can't do that.", **changes: Any) -> PlanInput:
    return replace(given, missing=words, round=2, memory=before.memory, **changes)


@pytest.mark.parametrize("profile", [PLAIN, CACHED, BRIDGED, WEAK], ids=["none", "rewrites", "bridge", "weak"])
def test_a_wish_that_no_tool_is_likely_for_opens_the_way_to_all_of_them(profile: Profile) -> None:
    made = planned(asked(SAID, profile=profile, fixed_tokens=300))
    assert business(sent(made)) == []
    assert sent(made)[:1] == WAY
    assert made.boundary == "a new conversation"
    assert "lamp" in made.catalog


@pytest.mark.parametrize(
    ("wish", "changes"),
    [
        (DOOR_WISH - 0.01, {}),
        (1.0, {"message": "thank you"}),
        (1.0, {"message": ""}),
        (1.0, {"is_last": True}),
        (1.0, {"mode": "chat"}),
        (1.0, {"role": replace(ROLE, tools=())}),
    ],
    ids=["no wish", "thanks", "nothing said", "the last round", "chat only", "nothing permitted"],
)
def test_where_nothing_is_wanted_or_may_be_had_nothing_is_sent(wish: float, changes: dict[str, Any]) -> None:
    assert sent(planned(replace(asked(SAID, fixed_tokens=300), **changes), wish)) == []


def test_a_yes_after_a_refusal_opens_the_way_that_the_wish_before_it_had_not() -> None:
    shy = _shy(HOUSE, "lamp_set")
    past = (PastTurn(user="turn off the light", assistant="I can't do that here. Shall I say how it is done?"),)
    for said in ("yes please", "and the one in the hall?"):
        given = asked(said, snapshot=shy, past=past, profile=BRIDGED, fixed_tokens=300, turn="t2")
        assert sent(planned(given, 0.1))[:1] == WAY
    assert planned(replace(given, message="thank you"), 0.1).sent == ()
    used = (PastTurn(user="turn off the light", assistant="Done.", called=("lamp_set",)),)
    assert planned(replace(given, message="lovely", past=used), 0.1).sent == (), "what was used is not asked for again"


def test_after_chat_only_the_way_opens_with_the_next_wish() -> None:
    shut = planned(asked(SAID, mode="chat", profile=BRIDGED, fixed_tokens=300))
    made = planned(asked(SAID, profile=BRIDGED, fixed_tokens=400, turn="t2", memory=shut.memory))
    assert sent(made)[:1] == WAY


def test_the_first_need_of_a_short_chat_is_declared_although_the_way_was_open() -> None:
    first = planned(asked(SAID, profile=BRIDGED, fixed_tokens=300))
    made = planned(asked("turn off the light", profile=BRIDGED, fixed_tokens=400, turn="t2", memory=first.memory))
    assert "too short" in made.boundary
    assert "lamp_set" in sent(made)


def test_a_weak_model_is_declared_its_first_tools_though_its_slot_holds_the_way() -> None:
    first = planned(asked(SAID, profile=WEAK, fixed_tokens=1_500))
    assert business(sent(first)) == []
    made = planned(asked("turn off the light", profile=WEAK, fixed_tokens=1_600, turn="t2", memory=first.memory))
    assert ("first need" in made.boundary, made.notes) == (True, "")
    assert "lamp_set" in sent(made)
    later = planned(asked("what's on my list", profile=WEAK, fixed_tokens=1_700, turn="t3", memory=made.memory))
    assert (later.boundary, later.schemas[: len(made.schemas)]) == ("", made.schemas), "from then on it only grows"


def test_what_a_weak_models_slot_holds_is_not_read_again_for_a_wish_alone() -> None:
    first = planned(asked("hello", profile=WEAK, fixed_tokens=1_500), 0.0)
    assert first.sent == ()
    assert planned(asked(SAID, profile=WEAK, fixed_tokens=1_600, turn="t2", memory=first.memory)).sent == ()


def test_an_open_way_is_kept_by_the_last_round_and_by_small_talk() -> None:
    first = planned(asked(SAID, profile=WEAK, fixed_tokens=1_500))
    for changes in ({"is_last": True, "message": "turn off the light"}, {"message": "thank you"}):
        given = asked(SAID, profile=WEAK, fixed_tokens=1_600, turn="t2", memory=first.memory)
        later = planned(replace(given, **changes))
        assert (later.schemas, later.catalog) == (first.schemas, first.catalog)


# --- the rescue round -----------------------------------------------------------------------------------------------


def test_an_answer_that_is_none_brings_the_best_of_the_message_with_the_way_to_the_rest() -> None:
    given = asked(SAID, profile=BRIDGED, fixed_tokens=300)
    chances = {"lamp_set": LEAST_P, "repo_log": LEAST_P / 2}
    before = planned(given, 0.1, chances)
    assert before.sent == ()
    made = planned(rescue(before, given), 0.1, chances)
    assert made.added[0] == "lamp_set"
    assert "repo_log" not in made.added, "neither likely enough nor found"
    assert sent(made)[:1] == WAY
    assert {each.name: each.stage for each in made.decisions}["lamp_set"] == "missing"


def test_nothing_is_brought_where_no_tool_is_likely_whatever_the_answer_names() -> None:
    given = asked(SAID, profile=BRIDGED, fixed_tokens=300)
    chances = {"lamp_set": LEAST_P - 0.01}
    before = planned(given, 0.1, chances)
    made = planned(
        rescue(before, given, "I lack lamp_set, `repo_log` and shell_run to turn off the light."), 0.1, chances
    )
    assert made.added == ()
    assert made.sent == ()


def test_a_tool_that_does_harm_comes_in_a_rescue_only_as_the_best_of_the_message_and_by_a_higher_bar() -> None:
    grave = tuple(replace(each, is_grave=each.name == "task_add") for each in HOUSE.entries)
    snapshot = replace(HOUSE, entries=grave, version="grave")
    given = asked("add an item, please", snapshot=snapshot, profile=BRIDGED, fixed_tokens=300)

    def brought(**chances: float) -> tuple[str, ...]:
        before = planned(given, 0.1, chances)
        return planned(rescue(before, given), 0.1, chances).added

    assert "task_add" in brought(task_add=GRAVE_P)
    assert brought(task_add=GRAVE_P - 0.01) == ()
    assert "task_add" not in brought(task_add=GRAVE_P - 0.01, lamp_set=LEAST_P)
    assert "task_add" not in brought(task_add=0.07, lamp_set=0.08), "not the best, though found by its words too"


def test_a_rescue_names_the_likelier_tool_that_was_sent_and_left_unused() -> None:
    given = asked(SAID, profile=BRIDGED, fixed_tokens=300)
    chances = {"lamp_set": 0.9, "repo_log": LEAST_P}
    before = planned(given, 1.0, chances)
    made = planned(rescue(before, given), 1.0, chances)
    assert ("lamp_set" in sent(before), "lamp_set" in made.added, "repo_log" in made.added) == (True, False, True)
    assert dict(made.labels) == {LIKELIER: "lamp_set"}
    assert dict(planned(rescue(before, given), 1.0, {"lamp_set": 0.02, "repo_log": LEAST_P}).labels) == {}
    alone = planned(rescue(before, given), 1.0, {"lamp_set": 0.9})
    assert (alone.added, alone.labels) == ((), ())


def test_the_search_on_the_persons_words_fills_up_what_the_model_ranks() -> None:
    given = asked("what is on my list", never=("task_add",), profile=BRIDGED, fixed_tokens=300)
    shy = replace(given, snapshot=_shy(HOUSE, "task_show", "lamp_set"))
    chances = {"lamp_set": 0.2}
    before = planned(shy, 0.1, chances)
    made = planned(rescue(before, shy), 0.1, chances)
    assert {"lamp_set", "task_show"} <= set(made.added), "an admin's “only when named or found” is no dead end"
    assert {"task_add", "shell_run"}.isdisjoint(made.added)
    assert len(made.added) <= MOST


def test_a_role_of_shy_tools_alone_has_the_way_and_the_rescue() -> None:
    snapshot = _shy(HOUSE, *(entry.name for entry in HOUSE.entries if not entry.is_meta))
    given = asked("turn off the light", snapshot=snapshot, profile=BRIDGED, fixed_tokens=300)
    open_ = planned(given, 1.0)
    assert (business(sent(open_)), sent(open_)[:1]) == ([], WAY)
    shut = planned(given, 0.1)
    assert shut.sent == ()
    assert "lamp_set" in planned(rescue(shut, given), 0.1).added


def test_in_an_open_epoch_the_rescue_leaves_the_prefix_as_it_is() -> None:
    first = planned(asked("what's on my list", profile=BRIDGED, fixed_tokens=4_000))
    given = asked(SAID, profile=BRIDGED, fixed_tokens=4_100, turn="t2", memory=first.memory)
    chances = {"lamp_set": 0.1}
    before = planned(given, 0.1, chances)
    made = planned(rescue(before, given), 0.1, chances)
    assert made.schemas == first.schemas
    assert "lamp_set(" in made.notes
    assert "lamp_set" in made.added


def test_where_there_is_hardly_room_the_likeliest_tool_is_brought_alone() -> None:
    given = asked(SAID, profile=BRIDGED, fixed_tokens=300, role=replace(ROLE, budget_tokens=0))
    chances = {"lamp_set": 0.09, "repo_log": 0.12, "task_add": 0.117}
    before = planned(given, 0.0, chances)
    made = planned(rescue(before, given), 0.0, chances)
    assert before.sent == ()
    assert business(list(made.added)) == ["repo_log"]


def _shy(snapshot: Snapshot, *names: str) -> Snapshot:
    entries = tuple(replace(each, is_shy=each.name in names) for each in snapshot.entries)
    return replace(snapshot, entries=entries, version=f"{snapshot.version} {' '.join(names)}")
