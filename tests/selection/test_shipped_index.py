"""What is worked out of the shipped tools ahead: current, the same as worked out anew, and not needed to be right."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from cortex.base import packed
from cortex.selection.index import shipped_index
from cortex.selection.index.index import Index
from cortex.selection.types import Snapshot
from cortex.selection.votes.ranking import ranked
from tests.bench import index_table
from tests.selection.made import entry

QUERIES = ("add milk to the list", "wether tomorrow", "task", "remind me to call the dentist")


@pytest.fixture(scope="module")
def made() -> index_table.Content:
    return index_table.made()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the file is looked for, in place of the shipped one."""
    monkeypatch.setattr(shipped_index, "SHIPPED", tmp_path / "index.bin")
    shipped_index.shipped.cache_clear()
    yield tmp_path / "index.bin"
    shipped_index.shipped.cache_clear()


def found(snapshot: Snapshot) -> list[list[tuple[str, float]]]:
    index = Index(snapshot)
    return [[(hit.name, hit.score) for hit in ranked(index, query, index.names, 9)] for query in QUERIES]


def test_the_file_is_what_make_train_would_write(made: index_table.Content, tmp_path: Path) -> None:
    (tmp_path / "index.bin").write_bytes(packed.to_bytes(*made))
    old = "shipped_index.bin is old: run `python -m tests.bench.index_table`, which `make train` does too"
    assert (tmp_path / "index.bin").read_bytes() == shipped_index.SHIPPED.read_bytes(), old


@pytest.mark.parametrize("data", [None, b"", b"no index" * 40], ids=["missing", "empty", "damaged"])
def test_without_the_file_searches_find_the_same_and_the_log_says_why(
    data: bytes | None,
    made: index_table.Content,
    place: Path,
    shipped: Snapshot,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if data is not None:
        place.write_bytes(data)
    with caplog.at_level(logging.WARNING):
        without = found(shipped)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "make train" in caplog.text
    shipped_index.shipped.cache_clear()
    place.write_bytes(packed.to_bytes(*made))
    assert found(shipped) == without


def test_a_tool_that_is_not_as_it_shipped_is_read_as_it_is_now(shipped: Snapshot) -> None:
    old = next(each for each in shipped.entries if each.name == "task_create")
    other = replace(old, full=replace(old.full, description="Polish the gasket of the boiler"))
    entries = tuple(other if each is old else each for each in shipped.entries)
    index = Index(replace(shipped, version="polished", entries=(*entries, entry("weld", "tasks", "Weld a flange"))))
    assert "task_create" in [hit.name for hit in ranked(index, "polish a gasket", index.names, 3)]
    assert "weld" in [hit.name for hit in ranked(index, "weld the flange", index.names, 3)]


def test_nothing_of_the_shipped_tools_is_cut_into_words_at_a_start(shipped: Snapshot) -> None:
    assert Index(shipped).tools.terms == {}


def test_a_rare_word_is_rarer_than_one_that_many_say() -> None:
    rarity = shipped_index.shipped().rarity
    assert rarity.idf("list") < rarity.idf("dentist") < rarity.idf("xylograph") == rarity.idf("")
