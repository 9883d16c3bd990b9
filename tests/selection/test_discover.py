import pytest

from cortex.selection.discover import discover
from cortex.selection.lacks_tool import says_missing
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
    found = discover("xylophone", HOUSE, ALL)
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


@pytest.mark.parametrize(
    "answer",
    [
        "I don't have access to your shopping list.",
        "Sorry, I can't see the state of your lamps from here.",
        "I was not given a tool for that.",
        "I lack a tool for reading files.",
        "I'm unable to run commands.",
        "Ich habe leider keinen Zugriff auf deine Dateien.",
        "Je n'ai pas accès à vos fichiers.",
        "No tengo acceso a tus tareas.",
    ],
)
def test_an_answer_that_lacks_a_tool_is_known(answer: str) -> None:
    assert says_missing(answer)


@pytest.mark.parametrize(
    "answer",
    ["Done: milk is on the list.", "The capital of France is Paris.", "I can help with that. Which room?", "x" * 5_000],
)
def test_an_ordinary_answer_is_none(answer: str) -> None:
    assert not says_missing(answer)
