"""docs/models.md has what the table of servers says, and what the scenes found where that is known."""

import importlib.util
from types import ModuleType

import pytest

from cortex.providers.servers import OTHER, SERVERS
from tests.test_house import ROOT


@pytest.fixture(scope="module")
def models() -> ModuleType:
    spec = importlib.util.spec_from_file_location("models", ROOT / ".ci" / "models.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CELLS = [
    {"row": "mistral", "scene": "two_calls", "state": "passes", "why": ""},
    {"row": "mistral", "scene": "no_credit", "state": "fails", "why": "AssertionError"},
    {"row": "mistral", "scene": "picture", "state": "left out", "why": "it sees nothing"},
    {"row": "responses", "scene": "two_calls", "state": "passes", "why": ""},
]


def test_every_row_stands_there_with_its_sources_and_their_date(models: ModuleType) -> None:
    made = models.made([])
    for row in (*SERVERS, OTHER):
        assert f"### {row.label}\n" in made
        assert all(f"<{source}>" in made for source in row.sources)
        assert f"Read {row.read}" in made
    assert "scenes" not in made


def test_what_the_scenes_found_is_a_column_and_a_table_of_its_own(models: ModuleType) -> None:
    made = models.made(CELLS)
    (line,) = [line for line in made.splitlines() if line.startswith("| Mistral |")]
    assert line.endswith("| 1 of 2 |")
    assert "| two calls | ✓ | ✓ |" in made
    assert "| no credit | **no** | - |" in made
    assert "- it sees nothing: mistral (picture)" in made


def test_only_the_made_part_of_the_page_is_made_anew(models: ModuleType) -> None:
    page = models.page(f"# Ours\n{models.BEGIN}old\n{models.END}Also ours.\n")
    assert page.startswith("# Ours\n")
    assert page.endswith("Also ours.\n")
    assert "old\n" not in page
    assert models.page(page) == page
    with pytest.raises(ValueError, match="no part between"):
        models.page("# Ours\n")
