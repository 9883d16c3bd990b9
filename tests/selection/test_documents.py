"""Texts with slots: whatever way they came in they score the same, and a change cuts only what changed."""

import pytest
from msgspec.structs import replace

from cortex.selection.index.documents import Documents, Texts, tools_as_documents
from cortex.selection.index.index import Index
from cortex.selection.types import Snapshot, ToolEntry
from cortex.selection.words import text
from tests.selection.made import entry

MANY = 10_000


def said(*wordings: str) -> Texts:
    return {wording: (entry(wording.replace(" ", "_"), "pets", wording), ()) for wording in wordings}


def scores(found: Documents, *asked: str) -> dict[str, float]:
    values = found.words.scores(dict.fromkeys(asked, 1.0))
    return {key: values.get(slot, 0.0) for key, slot in found.slots.items()}


def test_what_comes_later_scores_as_if_it_had_been_there() -> None:
    before = tools_as_documents(said("feed the cat", "walk the dog", "call the vet"), None)
    wanted = said("walk the dog", "call the vet", "brush the dog", "comb the cat")
    derived, fresh = tools_as_documents(wanted, before), tools_as_documents(wanted, None)
    assert scores(derived, "dog", "cat", "the") == scores(fresh, "dog", "cat", "the")
    assert "feed the cat" not in derived.slots
    assert [derived.keys[slot] for slot in derived.slots.values()] == list(wanted)


def test_what_was_there_before_stays_as_it_was() -> None:
    before = tools_as_documents(said("feed the cat", "walk the dog"), None)
    told = scores(before, "cat", "dog")
    tools_as_documents(said("walk the dog", "sell the cat"), before)
    assert scores(before, "cat", "dog") == told
    assert set(before.slots) == {"feed the cat", "walk the dog"}


def test_a_tool_is_searched_by_its_name_its_arguments_and_what_people_say() -> None:
    tool = entry("lamp_set", "lamps", "Turn a lamp on", ("room",))
    found = tools_as_documents({"lamp_set": (tool, ("it is gloomy",))}, None)
    assert all(found.words.has(term) for term in ("lamp", "turn", "room", "gloomy"))


@pytest.fixture(scope="module")
def many() -> Snapshot:
    return Snapshot(version="many", entries=tuple(tool(at) for at in range(MANY)), domains=())


def tool(at: int) -> ToolEntry:
    return entry(f"part{at}_get", f"shelf{at % 50}", f"Fetch part {at} from the store", ("count",))


def test_of_ten_thousand_tools_only_the_changed_one_is_cut_again(many: Snapshot) -> None:
    before = Index(many)
    old = before.tools
    changed = entry("part7_get", "shelf7", "Polish the seventh gasket", ("count",))
    entries = (*many.entries[:7], changed, *many.entries[8:], entry("part_new", "shelf1", "Weld a flange"))
    cut = text.terms.cache_info().misses
    new = Index(replace(many, version="more", entries=entries), before).tools
    assert text.terms.cache_info().misses - cut <= 6
    assert new.terms is old.terms
    same = [name for name in new.slots if name not in ("part7_get", "part_new")]
    assert all(new.rows[new.slots[name]] is old.rows[old.slots[name]] for name in same)
    assert new.words.has("gasket")
    assert not old.words.has("gasket")
