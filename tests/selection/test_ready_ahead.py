"""What is made ahead of the first message: what plans need and no more; the rest comes right with its first use."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from cortex.base import tokens
from cortex.base.memory import give_back, mapped
from cortex.selection.index.index import Index
from cortex.selection.registry.snapshot import SEPARATOR, described
from cortex.selection.types import Snapshot, ToolEntry
from tests.selection.made import entry

SEARCHED = {"tools", "table"}
LATER = {"tokens_stub", "tokens_compact", "tokens_signature"}


def uncounted(one: ToolEntry) -> set[str]:
    """Which of its counts it does not hold."""
    return LATER - one.__dict__.keys()


@pytest.fixture
def described_anew(shipped: Snapshot) -> ToolEntry:
    old = next(each for each in shipped.entries if each.name == "task_create")
    return described(old, "Polish the gasket.\nNever the flange.")


def test_short_forms_are_counted_at_their_first_use(described_anew: ToolEntry) -> None:
    one = described_anew
    assert uncounted(one) == LATER
    assert one.cost("stub") == tokens.count_schema(one.stub) + SEPARATOR
    assert one.cost("compact") == tokens.count_schema(one.schema("compact")) + SEPARATOR
    assert one.tokens_noted == tokens.count_once(f"- {one.signature}") + SEPARATOR
    assert uncounted(one) == set()


def test_a_tool_that_is_changed_in_another_way_keeps_its_counts(described_anew: ToolEntry) -> None:
    shy = replace(described_anew, is_shy=True)
    assert (shy.is_shy, shy.tokens_stub, shy.tokens_full) == (
        True,
        described_anew.tokens_stub,
        described_anew.tokens_full,
    )


@pytest.mark.parametrize("name", ["tokens_long"])
def test_what_no_tool_has_is_no_count(described_anew: ToolEntry, name: str) -> None:
    with pytest.raises(AttributeError, match="tokens_long"):
        getattr(described_anew, name)


def test_where_the_model_knows_every_tool_nothing_is_made_to_search_them(shipped: Snapshot) -> None:
    index = Index(shipped)
    index.build()
    assert SEARCHED.isdisjoint(index.__dict__)
    assert "task_create" in index.learned


def test_where_it_does_not_all_is_made_that_a_plan_asks_for(shipped: Snapshot) -> None:
    index = Index(replace(shipped, version="weld", entries=(*shipped.entries, entry("weld", "metal", "Weld a flange"))))
    index.build()
    assert index.__dict__.keys() >= SEARCHED


def test_what_was_given_back_of_a_mapped_file_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "words").write_bytes(b"lamp" * 4_096)
    found = mapped(tmp_path / "words")
    assert found[-4:] == b"lamp"
    give_back()
    assert found[:] == b"lamp" * 4_096
