"""The cases in other languages: row by row what the English ones say, none of them learned."""

from collections import Counter
from itertools import chain
from pathlib import Path

import pytest

from cortex.bench.files import CASES, LANGUAGES, Data, RoutingSet, read
from cortex.bench.rows import Utterance
from cortex.selection.text import normal
from cortex.selection.types import META
from cortex.tools import load

SPOKEN = ["de", "en", "es", "fr", "it", "nl", "pt"]
ROWS = {"tool": 200, "chat": 25, "llm": 25}
LEAST_OF_A_CATEGORY = 6


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
def english(data: Data) -> RoutingSet:
    return next(one for one in data.routing if one.name == "en")


@pytest.fixture(scope="module")
def others() -> Data:
    return read(CASES, lambda line: None)


def test_each_language_says_what_the_english_rows_say(data: Data, english: RoutingSet) -> None:
    assert [one.name for one in data.routing] == SPOKEN
    for one in data.routing:
        assert [said(row) for row in one.rows] == [said(row) for row in english.rows]
        assert {row.id.partition("-")[0] for row in one.rows} == {one.name}


def test_there_are_enough_rows_of_each_kind_and_category(english: RoutingSet) -> None:
    assert Counter(row.kind for row in english.rows) == ROWS
    named = Counter(name for row in english.rows for group in row.need_categories for name in group)
    shipped = {tool.category for tool in load().tools.values() if tool.category != META}
    assert named.keys() == shipped
    assert min(named.values()) >= LEAST_OF_A_CATEGORY


def test_the_rows_say_what_the_registry_says(english: RoutingSet) -> None:
    tools = load().tools
    for row in english.rows:
        homes = tuple(tuple(sorted({tools[name].category for name in group})) for group in row.need_tools)
        assert homes == row.need_categories
        assert (row.kind == "tool") == bool(row.need_tools)


def test_the_rows_are_sentences_in_words(data: Data) -> None:
    odd = [row.text for one in data.routing for row in one.rows if not 3 <= len(row.text.split()) <= 20]
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
    assert texts.keys() & (learned | elsewhere) == set()
