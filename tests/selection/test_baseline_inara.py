import pytest

from cortex.selection.pipeline import plan
from cortex.selection.types import PastTurn, RoleView
from cortex.selection.ways import inara
from tests.selection.baseline_house import TOOLS, sent, why, wish

WEB = ["web_search", "web_read", "http_fetch"]
LAMPS = ["ha_get_state", "ha_get_states", "ha_call_service"]


def test_the_table_has_its_18_categories_of_tools_that_exist() -> None:
    assert len(inara.CATEGORIES) == 18
    assert {name for each in inara.CATEGORIES.values() for name in each["tools"]} <= set(TOOLS)


@pytest.mark.parametrize(
    ("message", "count", "homes"),
    [
        ("What's the weather?", 3, {"web"}),
        ("Good morning", 0, set()),
        ("Turn off kitchen lights", 3, {"ha"}),
        ("Search journals for X", 12, {"web", "aether"}),
        ("Create a task", 4, {"tasks"}),
        ("Run a SQL query", 3, {"aether_db"}),
        ("can you check something", 0, set()),
    ],
)
def test_its_example_messages_bring_as_many_tools_as_it_says(message: str, count: int, homes: set[str]) -> None:
    made = plan(wish("inara", message))
    assert len(made.sent) == count
    assert {decided.category for decided in made.decisions if decided.is_in} == homes
    assert made.calls_as_text is (count == 0)


@pytest.mark.parametrize(
    "each",
    [(name, word) for name, row in inara.CATEGORIES.items() for word in row["words"]],
    ids=lambda each: f"{each[0]}-{each[1]}",
)
def test_every_keyword_brings_its_whole_category(each: tuple[str, str]) -> None:
    home, word = each
    assert set(inara.CATEGORIES[home]["tools"]) <= set(sent(plan(wish("inara", f"xx {word.upper()} xx"))))


def test_keywords_are_found_inside_words_as_this_way_has_it() -> None:
    assert sent(plan(wish("inara", "my flight was late"))) == LAMPS


def test_the_assistants_last_turn_is_scanned_and_no_earlier_one() -> None:
    older = PastTurn(user="hm", assistant="Shall I add it to the notepad?")
    last = PastTurn(user="hm", assistant="Shall I look at the kitchen?")
    assert sent(plan(wish("inara", "yes", past=(older, last)))) == LAMPS


def test_the_union_is_cut_to_what_the_role_has() -> None:
    role = RoleView(name="house", tools=("ha",))
    assert sent(plan(wish("inara", "search the news and turn off the light", role=role))) == LAMPS


@pytest.mark.parametrize("tools", [(), ("tasks",)], ids=["no tools", "others"])
def test_an_empty_intersection_means_none(tools: tuple[str, ...]) -> None:
    made = plan(wish("inara", "turn off the light", role=RoleView(name="house", tools=tools)))
    assert made.sent == ()


def test_it_says_which_keyword_spoke_and_which_did_not() -> None:
    made = plan(wish("inara", "turn off the light"))
    assert '"light"' in why(made, "ha_get_state")
    assert "no keyword" in why(made, "git_log")
    assert "no category" in why(made, "memory_add")


def test_the_receipt_says_what_the_tools_take() -> None:
    assert [(name, label.split()[0]) for name, label in plan(wish("inara", "turn off the light")).labels] == [
        ("estimate", "420")
    ]


def test_a_tool_used_in_this_turn_stays_for_its_rounds() -> None:
    made = plan(wish("inara", "turn off the light", round=2, found=("web_read", "ha_get_state", "ghost")))
    assert sent(made) == [*LAMPS, "web_read"]


def test_each_message_is_chosen_anew() -> None:
    first = plan(wish("inara", "turn off the light"))
    second = plan(wish("inara", "thanks", memory=first.memory, turn="t2"))
    assert second.sent == ()
    assert second.epoch_number == first.epoch_number + 1
    assert second.boundary
