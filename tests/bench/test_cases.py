"""Our own cases: enough of them, in the names of the registry; none was learned but turns of a word or two."""

from collections import Counter

import pytest

from cortex.selection.types import META, Snapshot
from cortex.selection.words.text import normal
from cortex.tools import load
from tests.bench import talks
from tests.bench.files import CASES, Data, read
from tests.bench.rows import Utterance

LEAST_ROWS, LEAST_ALONE, LEAST_TALKS = 500, 120, 25
SHORT_WORDS = 2  # "ok", "thanks", "bitcoin price": what everybody says so
EVERYDAY = 60


@pytest.fixture(scope="module")
def data() -> Data:
    told: list[str] = []
    found = read(CASES, told.append)
    assert told == []
    return found


@pytest.fixture(scope="module")
def rows(data: Data) -> list[Utterance]:
    return [row for one in data.routing for row in one.rows]


def test_there_are_enough_rows_alone_and_in_conversations(rows: list[Utterance]) -> None:
    single = [row for row in rows if row.conversation is None]
    assert len(single) >= LEAST_ROWS
    assert sum(row.kind in ("chat", "llm", "open") for row in single) >= LEAST_ALONE
    turns = Counter(row.conversation for row in rows if row.conversation is not None)
    assert len(turns) >= LEAST_TALKS
    assert set(turns.values()) <= {3, 4, 5, 6}


def test_what_a_household_and_a_developer_would_type_today_is_there(data: Data) -> None:
    rows = next(one.rows for one in data.routing if one.name == "everyday")
    assert len(rows) == EVERYDAY
    assert {row.kind for row in rows} == {"tool", "chat", "llm"}


def test_every_tool_is_wanted_and_every_category_often_enough_to_be_judged(data: Data, rows: list[Utterance]) -> None:
    tools = {tool.name: tool.category for tool in load().tools.values() if tool.category != META}
    single = [row for row in rows if row.conversation is None]
    assert {name for row in single for group in row.need_tools for name in group} == set(tools)
    categories = Counter(name for row in single for group in row.need_categories for name in group)
    of_files = {one.name for one in data.routing} & set(tools.values())
    assert min(categories[category] for category in set(tools.values()) - of_files) >= 20
    assert all(categories[category] >= 2 for category in of_files)  # beside its utterances: what a new one brings


def test_the_rows_say_what_the_registry_says(rows: list[Utterance]) -> None:
    tools = load().tools
    for row in rows:
        homes = tuple(tuple(sorted({tools[name].category for name in group})) for group in row.need_tools)
        assert homes == row.need_categories
        assert (row.kind == "tool") == bool(row.need_tools)


def test_no_row_stands_twice_and_none_was_learned(rows: list[Utterance]) -> None:
    assert max(Counter(row.id for row in rows).values()) == 1
    single = Counter(normal(row.text) for row in rows if row.conversation is None)
    assert max(single.values()) == 1
    registry = load()
    learned = {normal(said) for category in registry.categories.values() for said, _ in category.examples}
    learned |= {normal(said) for said, _ in (*registry.several, *registry.none)}
    usual = {normal(row.text) for row in rows if len(row.text.split()) <= SHORT_WORDS and _is_talk(row)}
    assert {normal(row.text) for row in rows} & learned <= usual


def _is_talk(row: Utterance) -> bool:
    """Said in a conversation, or typed as everybody would; the other sets have not even a word of what was learned."""
    return row.conversation is not None or row.id.startswith("everyday")


@pytest.mark.parametrize(("stem", "least", "longest"), [("chats", 10, 10), ("tasks", 6, 1), ("jobs", 8, 1)])
def test_the_scripts_need_only_tools_that_there_are(stem: str, least: int, longest: int, shipped: Snapshot) -> None:
    known = {entry.name for entry in shipped.entries if not entry.is_meta}
    read_talks = talks.read(talks.FOLDER / f"{stem}.jsonl")
    assert len(read_talks) >= least
    assert {len(talk) for talk in read_talks} == {longest}
    wanted = {call.tool for talk in read_talks for turn in talk for calls in turn.rounds for call in calls}
    assert wanted <= known
