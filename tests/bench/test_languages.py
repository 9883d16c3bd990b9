"""The cases in other languages: row by row what the English ones say, none of them learned."""

from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from cortex.selection.types import META
from cortex.selection.words.text import normal
from cortex.tools import load
from tests.bench.files import CASES, LANGUAGES, Data, RoutingSet, read
from tests.bench.rows import Utterance

SPOKEN = ["de", "en", "es", "fr", "it", "nl", "pt"]
ROWS = {"tool": 220, "chat": 25, "llm": 25}
LEAST_OF_A_CATEGORY = 6
DAILY = "daily_"  # what people would type today, each language in its own words: the same kinds and needs, in order
DAILY_ROWS = {"tool": 90, "chat": 50, "llm": 50}
CALLED_OFF = 10
SHORT_WORDS = 2  # "laisse tomber", "bitcoin price": what everybody says so


def said(row: Utterance) -> tuple[object, ...]:
    """What is the same in every language."""
    return row.id.partition("-")[2], row.kind, row.need_tools, row.need_categories


@pytest.fixture(scope="module")
def data() -> Data:
    told: list[str] = []
    found = read(LANGUAGES, told.append)
    assert told == []
    return found


@pytest.fixture(scope="module")
def spoken(data: Data) -> list[RoutingSet]:
    """The sets that say row by row the same."""
    return [one for one in data.routing if not one.name.startswith(DAILY)]


@pytest.fixture(scope="module")
def daily(data: Data) -> list[RoutingSet]:
    """The sets that are of the same kinds, and no translations of each other."""
    return [one for one in data.routing if one.name.startswith(DAILY)]


@pytest.fixture(scope="module")
def english(spoken: list[RoutingSet]) -> RoutingSet:
    return next(one for one in spoken if one.name == "en")


@pytest.fixture(scope="module")
def others() -> Data:
    return read(CASES, lambda line: None)


def test_each_language_says_what_the_english_rows_say(spoken: list[RoutingSet], english: RoutingSet) -> None:
    assert [one.name for one in spoken] == SPOKEN
    for one in spoken:
        assert [said(row) for row in one.rows] == [said(row) for row in english.rows]
        assert {row.id.partition("-")[0] for row in one.rows} == {one.name}


def test_there_are_enough_rows_of_each_kind_and_category(english: RoutingSet) -> None:
    assert Counter(row.kind for row in english.rows) == ROWS
    named = Counter(name for row in english.rows for group in row.need_categories for name in group)
    shipped = {tool.category for tool in load().tools.values() if tool.category != META}
    assert named.keys() == shipped
    assert min(named.values()) >= LEAST_OF_A_CATEGORY


def test_each_language_has_the_same_kinds_of_what_is_typed_daily(daily: list[RoutingSet]) -> None:
    assert [one.name.removeprefix(DAILY) for one in daily] == SPOKEN
    for one in daily:
        kinds = Counter(row.kind for row in one.rows)
        parts = Counter(row.id.split("-")[2] for row in one.rows)
        assert kinds == DAILY_ROWS
        assert parts == Counter(row.id.split("-")[2] for row in daily[0].rows)
        assert (parts["off"], parts["house"], parts["web"], parts["commands"]) == (CALLED_OFF, 30, 20, 40)
        assert {tuple(row.id.split("-")[:2]) for row in one.rows} == {tuple(one.name.split("_"))}


def test_the_rows_say_what_the_registry_says(english: RoutingSet, daily: list[RoutingSet]) -> None:
    tools = load().tools
    for row in chain(english.rows, *(one.rows for one in daily)):
        homes = tuple(tuple(sorted({tools[name].category for name in group})) for group in row.need_tools)
        assert homes == row.need_categories
        assert (row.kind == "tool") == bool(row.need_tools)


def test_the_rows_are_sentences_in_words(spoken: list[RoutingSet]) -> None:
    odd = [row.text for one in spoken for row in one.rows if not 3 <= len(row.text.split()) <= 20]
    assert odd == []


def test_the_default_cases_leave_them_out_by_any_path(
    data: Data, others: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {one.name for one in others.routing}.isdisjoint(one.name for one in data.routing)
    monkeypatch.chdir(CASES.parent)
    assert read(Path(CASES.name), lambda line: None) == others


def test_no_row_stands_twice_and_none_was_learned(data: Data, others: Data) -> None:
    rows = [row for one in (*data.routing, *others.routing) for row in one.rows]
    assert max(Counter(row.id for row in rows).values()) == 1
    texts = Counter(normal(row.text) for one in data.routing for row in one.rows)
    assert max(texts.values()) == 1
    registry = load()
    examples = chain.from_iterable(category.examples for category in registry.categories.values())
    learned = {normal(text) for text, _ in (*examples, *registry.several, *registry.none)}
    elsewhere = {normal(row.text) for one in others.routing for row in one.rows}
    assert texts.keys() & elsewhere == set()
    assert {text for text in texts if len(text.split()) > SHORT_WORDS} & learned == set()
