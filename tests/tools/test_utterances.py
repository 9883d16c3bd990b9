"""The utterances that the model learns from: enough of each kind, each wording once, short enough to be said."""

from collections import Counter
from pathlib import Path

import pytest

from cortex.selection.model.calibrations import KINDS
from cortex.selection.words import text
from cortex.toolkit.examples import read
from cortex.tools import UTTERANCES, load

LEAST_A_CATEGORY, LEAST_A_TOOL, LEAST_OF_NONE, LONGEST = 40, 12, 300, 400
FILES = sorted(UTTERANCES.glob("*.txt"))
NONE, SEVERAL = UTTERANCES / "none.txt", UTTERANCES / "several.txt"
REGISTRY = load()
BUSINESS = {name: tool for name, tool in REGISTRY.tools.items() if tool.category != "meta"}


def stem(path: Path) -> str:
    return path.stem


def test_every_category_has_enough() -> None:
    counts = {
        category: len(read(UTTERANCES / f"{category}.txt"))
        for category in {tool.category for tool in BUSINESS.values()}
    }
    assert {name: count for name, count in counts.items() if count < LEAST_A_CATEGORY} == {}


def test_every_tool_has_enough() -> None:
    counts = Counter(name for path in FILES if path != NONE for _, names in read(path) for name in names)
    assert {name: counts[name] for name in BUSINESS if counts[name] < LEAST_A_TOOL} == {}


def test_what_needs_no_tool_is_told_in_each_of_its_kinds() -> None:
    counts = Counter(names for _, names in read(NONE))
    assert set(counts) == {(kind,) for kind in KINDS}
    assert counts.total() >= LEAST_OF_NONE
    assert min(counts.values()) >= LEAST_OF_NONE / 3


def test_no_wording_stands_twice() -> None:
    places: dict[str, list[str]] = {}
    for path in FILES:
        for said, _ in read(path):
            places.setdefault(text.normal(said), []).append(path.stem)
    assert {said: where for said, where in places.items() if len(where) > 1} == {}


@pytest.mark.parametrize("path", FILES, ids=stem)
def test_every_line_is_short_enough_and_of_a_known_tool(path: Path) -> None:
    known = set(KINDS) if path == NONE else set(BUSINESS)
    assert [said for said, _ in read(path) if len(said) > LONGEST] == []
    assert {name for _, names in read(path) for name in names} <= known


@pytest.mark.parametrize("path", [path for path in FILES if path not in (NONE, SEVERAL)], ids=stem)
def test_a_category_speaks_of_its_own_tools(path: Path) -> None:
    assert [said for said, names in read(path) if path.stem not in {BUSINESS[name].category for name in names}] == []


def test_requests_with_several_needs_have_more_than_one() -> None:
    told = read(SEVERAL)
    assert len(told) >= LEAST_A_CATEGORY
    assert [said for said, names in told if len(set(names)) < 2] == []
