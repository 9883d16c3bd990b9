import numpy as np
import pytest
from msgspec.structs import replace

from cortex.selection.pipeline import plan
from cortex.selection.types import Domain, Example, PastTurn, RoleView, Snapshot, ToolEntry
from cortex.selection.ways import centroid_index, vector
from cortex.selection.ways.centroid_index import encoded
from tests.selection.baseline_house import WORLD, sent, why, wish
from tests.selection.made import HOUSE, asked, entry

SCORES = {each.name: 0.0 for each in WORLD.entries}
BUSINESS = [each for each in WORLD.entries if not each.is_meta]


def taken(*among: ToolEntry, **scores: float) -> list[str]:
    return list(vector.choose({**SCORES, **scores}, among or BUSINESS).taken)


def lamps(message: str, **changes: object) -> list[str]:
    return sent(plan(asked(message, recipe="vector", **changes)))


def test_a_centroid_is_the_mean_of_a_tools_example_queries() -> None:
    names, rows = centroid_index.centroids_of(HOUSE)
    vectors = np.zeros((2, centroid_index.DIMENSIONS))
    for row, said in zip(vectors, ("turn off the kitchen lights", "it's too dark in here"), strict=True):
        told = encoded(said)
        row[[*told]] = [*told.values()]
    mean = vectors.mean(axis=0)
    mean /= np.linalg.norm(mean)
    own = rows.cosines(mean.tolist())
    assert own[names.index("lamp_set")] == pytest.approx(1.0, abs=1e-5)
    assert sum(each > 0.9999 for each in own) == 1


def test_centroids_are_computed_once_for_a_version() -> None:
    assert centroid_index.centroids_of(HOUSE) is centroid_index.centroids_of(replace(HOUSE))
    assert centroid_index.centroids_of(HOUSE) is not centroid_index.centroids_of(replace(HOUSE, version="house-2"))


def test_a_tool_without_examples_is_known_by_name_and_summary() -> None:
    scores = centroid_index.similarities(HOUSE, "show what changed in a repository")
    assert max(scores, key=lambda name: scores[name]) == "repo_diff"


def test_from_three_tenths_on_a_tool_is_taken() -> None:
    assert taken(ha_get_state=0.3, git_log=0.299) == ["ha_get_state"]


def test_fifteen_are_taken_best_first() -> None:
    names = [each.name for each in BUSINESS if each.category not in vector.NOISY][:20]
    scores = {name: 0.54 - at / 100 for at, name in enumerate(names)}
    assert taken(**scores) == names[:15]
    assert "15 tools" in vector.choose({**SCORES, **scores}, BUSINESS).out[names[15]]


@pytest.mark.parametrize("name", ["ae_journal_list", "session_read"])
def test_noisy_families_need_twice_as_much(name: str) -> None:
    alone = [each for each in BUSINESS if each.name == name]
    assert taken(*alone, **{name: 0.59}) == []
    assert taken(*alone, **{name: 0.6}) == [name]


@pytest.mark.parametrize(
    ("leader", "brought"),
    [
        ("task_create", ["task_list", "task_update", "task_complete"]),
        ("agent_notes_read", ["agent_notes_write", "agent_notes_append", "agent_notes_clear"]),
        ("web_search", ["web_read", "http_fetch"]),
        ("ae_db_query", ["ae_db_describe", "ae_db_show_view"]),
    ],
    ids=["prefix", "named group within a prefix", "named group over prefixes", "not the other ae_ tools"],
)
def test_a_strong_tool_brings_its_group(leader: str, brought: list[str]) -> None:
    assert taken(**{leader: 0.54}) == [leader]
    assert taken(**{leader: 0.55}) == [leader, *brought]


@pytest.mark.parametrize(
    ("top", "named"), [(0.8, "force"), (0.79, "optional"), (0.3, "optional"), (0.29, "none"), (0.0, "none")]
)
def test_the_best_likeness_says_how_strongly_a_call_is_asked_for(top: float, named: str) -> None:
    assert vector.choose({**SCORES, "git_log": top}, BUSINESS).strategy == named


def test_a_message_that_is_surely_a_call_requires_one_in_the_first_round() -> None:
    first = plan(asked("what's on my list", recipe="vector"))
    assert first.tool_choice == "required"
    assert dict(first.labels)["strategy"] == "force"
    second = plan(asked("what's on my list", recipe="vector", round=2, memory=first.memory))
    assert second.tool_choice == "auto"
    assert second.sent == first.sent


def test_the_last_round_asks_for_no_call_whatever_the_likeness() -> None:
    assert plan(asked("what's on my list", recipe="vector", is_last=True)).tool_choice == "auto"
    assert plan(asked("what's on my list", recipe="vector", is_last=True, round=2)).tool_choice == "none"


def test_a_likely_message_leaves_the_call_to_the_model() -> None:
    made = plan(asked("the lights in my kitchen, off please", recipe="vector"))
    assert made.tool_choice == "auto"
    assert dict(made.labels)["strategy"] == "optional"


def test_an_unlike_message_sends_nothing() -> None:
    made = plan(asked("qqq zzz", recipe="vector"))
    assert made.sent == ()
    assert made.calls_as_text
    assert dict(made.labels)["strategy"] == "none"


@pytest.mark.parametrize("message", ["", "  ", "\n\t"])
def test_a_blank_message_brings_nothing(message: str) -> None:
    made = plan(asked(message, recipe="vector"))
    assert made.sent == ()
    assert {"blank" in decided.reason for decided in made.decisions} == {True}


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ("qqq repo_diff zzz", ["repo_diff"]),
        ("zzz `lamp_get`, then repo_diff and lamp_get", ["lamp_get", "repo_diff"]),
        ("xrepo_diff repo_diffs", []),
        ("qqq repo-diff", []),
    ],
    ids=["whole token", "order of first mention, once", "no whole token", "another name"],
)
def test_tools_named_by_the_user_come_first(message: str, named: list[str]) -> None:
    made = plan(asked(message, recipe="vector"))
    assert [item.name for item in made.sent if item.reason == "you named it"] == named
    assert sent(made)[: len(named)] == named


def test_a_name_with_hyphens_counts_in_backticks() -> None:
    house = replace(HOUSE, version="hyphens", entries=(*HOUSE.entries, entry("my-own-tool", "lamps", "Something else")))
    names = tuple(each.name for each in house.entries)
    for message, is_named in (("qqq `my-own-tool`", True), ("qqq my-own-tool zzz", False)):
        made = plan(asked(message, recipe="vector", snapshot=house, ready=names))
        assert ("you named it" in {item.reason for item in made.sent}) is is_named


def test_names_in_other_peoples_words_do_not_count() -> None:
    loud = PastTurn(user="hm", assistant="use `repo_diff`", untrusted="use `repo_diff`", results=("`repo_diff`",))
    assert "repo_diff" not in lamps("qqq zzz", past=(loud,))


def test_a_named_tool_that_is_not_permitted_stays_out() -> None:
    assert "shell_run" not in lamps("run df in the shell with shell_run")


def test_an_answer_that_lacks_a_tool_is_matched_against_the_unsent() -> None:
    given = asked("qqq zzz", recipe="vector")
    first = plan(given)
    lacks = replace(given, round=2, memory=first.memory, missing="is the lamp in the hall still burning")
    second = plan(lacks)
    assert second.added == ("lamp_get",)
    assert second.sent[0].stage == "missing"
    third = plan(replace(given, round=3, memory=second.memory))
    assert sent(third) == sent(second)
    assert plan(replace(given, turn="t2", memory=third.memory)).sent == ()


def test_an_answer_that_fits_no_tool_well_changes_nothing() -> None:
    given = asked("qqq zzz", recipe="vector")
    first = plan(given)
    second = plan(replace(given, round=2, memory=first.memory, missing="I can't see whether the lamp is on."))
    assert second.added == ()


@pytest.mark.parametrize(
    ("message", "label"),
    [
        ("turn off the light", "simple"),
        ("turn off the light and then show my list", "moderate"),
        ("first look it up, then write it down, after that tell me, and finally close it", "complex"),
        (" ".join(["word"] * 41), "complex"),
    ],
    ids=["short", "two steps", "many steps", "long"],
)
def test_the_receipt_carries_a_label_of_complexity(message: str, label: str) -> None:
    assert dict(plan(asked(message, recipe="vector")).labels)["complexity"] == label


@pytest.mark.parametrize(
    ("message", "label"),
    [("show my list", "ordinary"), ("delete that", "destructive"), ("what was my password", "sensitive")],
)
def test_the_receipt_carries_a_label_of_safety(message: str, label: str) -> None:
    assert dict(plan(asked(message, recipe="vector")).labels)["safety"] == label


def test_every_tool_has_its_figure_as_reason() -> None:
    made = plan(wish("vector", "git log", role=RoleView(name="x", tools=("git", "session"))))
    assert why(made, "session_read").endswith("of 0.60)")
    assert "example queries" in why(made, "git_log")
    assert {decided.threshold for decided in made.decisions} == {0.3}


def test_one_example_alike_is_blurred_by_the_others_of_its_tool() -> None:
    told = ("open the garden gate", "sing me a song", "water for the roses", "close the shutters")
    many = Domain(name="x", summary="x", examples=tuple(Example(text=each, tools=("x_do",)) for each in told))
    house = Snapshot(version="blurred", entries=(entry("x_do", "x", "Do"),), domains=(many,))
    assert centroid_index.similarities(house, told[1])["x_do"] < 0.8
