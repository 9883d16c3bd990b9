"""Searches over three small catalogues of our own, in words that the tools do not use: how many are found.

`catalogues/` is in the bench's format (`make bench ARGS="selection --data tests/selection/catalogues"`). The
constants of the search were chosen by looking at it, beside the public catalogues: what it shows is no held-out figure.
"""

from functools import lru_cache
from pathlib import Path

import pytest

from cortex.selection.discover import rank
from tests.bench import files, retrieval
from tests.bench.files import RetrievalSet

FOLDER = Path(__file__).with_name("catalogues")
ALLOWED_MS = 200  # of a search among 40 tools, on a machine that is busy; quiet it is under 1


@lru_cache(maxsize=1)
def catalogues() -> dict[str, RetrievalSet]:
    return {one.name: one for one in files.read(FOLDER, lambda line: None).retrieval}


@pytest.mark.parametrize(("name", "least"), [("library", 0.64), ("clinic", 0.72), ("hobbies", 0.75)])
def test_most_wishes_find_their_tool_among_the_first_ten(name: str, least: float) -> None:
    one = catalogues()[name]
    found = retrieval.measured(one.queries, retrieval.with_examples(one, is_given=False), rank)
    assert len(one.tools) == 40
    assert len(one.queries) == 60
    assert found["r10"] >= least
    assert found["p50_ms"] < ALLOWED_MS


def test_every_wanted_tool_is_in_its_catalogue() -> None:
    assert {name: retrieval.unknown(one) for name, one in catalogues().items()} == {
        "library": {},
        "clinic": {},
        "hobbies": {},
    }
