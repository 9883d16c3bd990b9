import pytest

from cortex.selection.discover import discover, in_words
from tests.selection.made import HOUSE

ALL = tuple(entry.name for entry in HOUSE.entries if entry.name != "shell_run")


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("lamp_set", "lamp_set"),
        ("Lamp_Set", "lamp_set"),
        ("task_ad", "task_add"),
        ("repo log", "repo_log"),
        ("what did I comit", "repo_log"),
        ("put eggs on the shopping list", "task_add"),
    ],
    ids=["exact", "other case", "misspelt", "words", "typo", "wish"],
)
def test_finds_the_tool_that_is_meant(query: str, first: str) -> None:
    assert discover(query, HOUSE, ALL).names[0] == first


def test_shows_signatures() -> None:
    assert "- lamp_set(room?: string, state?: string): Turn a lamp on or off" in discover("lamp_set", HOUSE, ALL).text


def test_says_how_a_found_tool_is_called() -> None:
    assert "tool_call" in discover("lamp_set", HOUSE, ALL, is_bridged=True).text
    assert "tool_call" not in discover("lamp_set", HOUSE, ALL).text


def test_names_the_domains_when_nothing_fits() -> None:
    found = discover("zebra", HOUSE, ALL)
    assert found.hits == ()
    assert "- lamps: lamps in the house" in found.text
    assert "shell" not in found.text


def test_never_finds_what_is_not_permitted() -> None:
    found = discover("shell_run", HOUSE, ALL)
    assert "shell_run" not in found.names
    assert "shell_run" not in found.text
    assert discover("lamp_set", HOUSE, ()).names == ()


def test_at_most_five() -> None:
    assert len(discover("lamp repo task list commit shopping list light", HOUSE, ALL).hits) <= 5


SAID = ("yes please", "switch on the fan", "water the plants")


@pytest.mark.parametrize(
    "query", ["do that", "that tool", "use the other one", "yes", "mach das", "fais ça", "haz eso"]
)
def test_a_query_that_only_points_is_searched_with_what_was_said_last(query: str) -> None:
    assert in_words(query, SAID) == f"switch on the fan\n{query}"


@pytest.mark.parametrize("query", ["delete this file", "turn it off", "eine Lampe einschalten", "lamp_set"])
def test_a_query_that_says_something_stands_alone(query: str) -> None:
    assert in_words(query, SAID) == query


def test_where_nothing_was_said_the_query_stays() -> None:
    assert in_words("do that", ()) == "do that"
    assert in_words("do that", ("ok", "")) == "do that"
