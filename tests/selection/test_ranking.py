"""Discovery's ranking: how a tool is found, what is never found, and that a changed index ranks like a fresh one."""

import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cortex.selection.discover import rank
from cortex.selection.index.index import Index, index_of
from cortex.selection.types import Domain, Example, Snapshot, ToolEntry, Trigger
from cortex.selection.votes.ranking import ToolHit, ranked
from tests.selection.garden import GARDEN, garden
from tests.selection.made import HOUSE, entry

NAMES = frozenset(each.name for each in HOUSE.entries)
FRESH = Index(HOUSE)


def found(query: str, most: int = 5) -> dict[str, ToolHit]:
    return {hit.name: hit for hit in ranked(FRESH, query, NAMES, most)}


@pytest.mark.parametrize(
    ("query", "name", "how"),
    [
        ("repo_diff", "repo_diff", "its name"),
        ("Repo Diff", "repo_diff", "its name"),
        ("diff", "repo_diff", "part of its name"),
        ("repo_dfif", "repo_diff", "spelt alike"),
        ("show the log of my repo please", "repo_log", "its words"),
        ("see which commits there are", "repo_log", "its words"),
        ("burning lamp", "lamp_get", "its words"),
        ("comits", "repo_log", "its words"),
    ],
    ids=["name", "name in words", "part", "spelling", "all words", "summary", "utterance", "slip of the pen"],
)
def test_a_tool_is_found(query: str, name: str, how: str) -> None:
    hit = next(iter(found(query).values()))
    assert (hit.name, hit.how) == (name, how)


def test_each_clause_of_a_long_request_finds_its_tool() -> None:
    asked = "please look at what has changed in the repository of the garden, and then turn every lamp in the hall off"
    assert {"repo_diff", "lamp_set"} <= set(found(asked))


@pytest.mark.parametrize(
    ("query", "name"), [("purchase", "shop_buy"), ("flights", "trip_plane"), ("how expensive is it", "shop_price")]
)
def test_a_word_that_means_the_same_finds_a_tool(query: str, name: str) -> None:
    shop = Snapshot(
        version="shop",
        entries=(
            entry("shop_buy", "shop", "Buy what lies in the basket"),
            entry("trip_plane", "trips", "Airline seats"),
            entry("shop_price", "shop", "What something costs"),
            entry("pot_boil", "pots", "Boil water in a pot"),
        ),
        domains=(),
    )
    hits = ranked(Index(shop), query, frozenset(each.name for each in shop.entries), 5)
    assert [hit.name for hit in hits][:1] == [name]


OFFICE = Snapshot(
    version="office",
    entries=(
        entry("op_1", "desk", "Records a value", ("drug", "dose")),
        entry("op_2", "desk", "Records a value", ("invoice", "sum")),
        entry("op_3", "birds", "Records a value", ("number",)),
        entry("op_4", "desk", "Records a value", ("number",)),
        entry("chair_move", "desk", "Moves something within the room", ("number",)),
        entry("chair", "desk", "Moves something within the room", ("number",)),
    ),
    domains=(),
)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("the doctor gave me new tablets", "op_1"),
        ("how much did the supplier bill us", "op_2"),
        ("feed the parrot", "op_3"),
        ("can you move that chair", "chair_move"),
    ],
    ids=["argument", "another argument", "category", "name"],
)
def test_what_a_tool_takes_and_where_it_belongs_finds_it(query: str, name: str) -> None:
    hits = ranked(Index(OFFICE), query, frozenset(each.name for each in OFFICE.entries), 5)
    assert hits[0].name == name


def test_a_wish_that_shares_no_word_with_any_tool_finds_what_comes_near() -> None:
    assert next(iter(found("it is too dark to read here"))).startswith("lamp")


def test_the_way_a_tool_is_found_ranks_it() -> None:
    exact, part, spelt = (found(query)["repo_diff"].score for query in ("repo_diff", "diff", "repo_dfif"))
    assert exact == 1.0
    assert exact > part > spelt > found("see what changed lately in here")["repo_diff"].score


def test_a_phrase_of_the_house_finds_its_tool() -> None:
    lamps, *others = HOUSE.domains
    own = Trigger(text="cosy hour", tools=("lamp_set",))
    taught = replace(HOUSE, version="cosy", domains=(replace(lamps, triggers=(*lamps.triggers, own)), *others))
    hits = ranked(Index(taught), "it is cosy hour", NAMES, 5)
    assert (hits[0].name, "a phrase" in hits[0].how) == ("lamp_set", True)
    assert {hit.how for hit in ranked(FRESH, "it is cosy hour", NAMES, 5)} <= {"its words"}


def test_the_model_finds_what_shares_no_word_with_the_tool() -> None:
    snapshot = garden(version="garden-ranked")
    names = [each.name for each in snapshot.entries]
    assert rank("please fire it up", snapshot, names, 3)[0].name == "pump_start"


@pytest.mark.parametrize(
    "query", ["tools_discover", "tool_call", "find a tool", "call a tool by name", "discover tools"]
)
def test_meta_tools_are_never_found(query: str) -> None:
    assert {"tools_discover", "tool_call"}.isdisjoint(found(query, most=50))


@pytest.mark.parametrize(
    "query", ["shell_run", "run a command", "shell", "run df in the shell", "lamp_set and shell_run"]
)
def test_what_may_not_be_found_is_not(query: str) -> None:
    allowed = NAMES - {"shell_run"}
    assert "shell_run" in {hit.name for hit in ranked(FRESH, query, NAMES, 50)}
    assert "shell_run" not in {hit.name for hit in ranked(FRESH, query, allowed, 50)}
    assert ranked(FRESH, query, (), 50) == ()


@pytest.mark.parametrize("query", ["", "   ", "?!", "the and of it", "zebra", "penguin"])
def test_nothing_fits_what_says_nothing_or_is_far_from_all(query: str) -> None:
    assert found(query) == {}


def test_no_more_than_asked_for_best_first() -> None:
    hits = ranked(FRESH, "lamp repo task list shopping", NAMES, 3)
    assert len(hits) == 3
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


# --- one index derived from another -------------------------------------------------------------------------------

QUERIES = (
    "turn off the lamp",
    "show repository",
    "list",
    "comit log",
    "polish the brass",
    "repo_diff",
    "what do I need",
)
wordings = st.sampled_from(
    ("polish the brass", "list what I need", "is it dark", "show me", "turn the lamp", "a repository")
)
tools = st.builds(
    lambda at, summary, category: entry(f"made_{at}", category, summary, ("path",)),
    st.integers(0, 4),
    wordings,
    st.sampled_from(("lamps", "repos", "brass")),
)
examples = st.lists(st.tuples(wordings, st.sampled_from(sorted(NAMES - {"tools_discover", "tool_call"}))), max_size=4)
changes = st.tuples(st.sets(st.sampled_from(sorted(NAMES)), max_size=5), st.lists(tools, max_size=3), examples)
Change = tuple[set[str], list[ToolEntry], list[tuple[str, str]]]


def changed(snapshot: Snapshot, number: int, change: Change) -> Snapshot:
    """The snapshot without some tools, with others, and with utterances and phrases that this house taught."""
    gone, new, told = change
    kept = {each.name: each for each in snapshot.entries if each.name not in gone}
    entries = tuple({**kept, **{each.name: each for each in new}}.values())
    there = {each.name for each in entries}
    taught = [(said, name) for said, name in told if name in there]
    words = Domain(
        name="brass",
        summary="what this house taught",
        examples=tuple(Example(text=said, tools=(name,), is_own=True) for said, name in taught),
        triggers=tuple(Trigger(text=said, tools=(name,)) for said, name in taught[:1]),
    )
    domains = tuple(domain for domain in snapshot.domains if domain.name != "brass")
    return replace(snapshot, version=f"changed-{number}", entries=entries, domains=(*domains, words))


@given(steps=st.lists(changes, min_size=1, max_size=3))
def test_a_derived_index_ranks_to_the_byte_like_a_fresh_one(steps: list[Change]) -> None:
    snapshot, index = HOUSE, Index(HOUSE)
    ranked(index, QUERIES[0], NAMES, 9)
    for number, step in enumerate(steps):
        snapshot = changed(snapshot, number, step)
        index = Index(snapshot, index)
        fresh = Index(snapshot)
        names = frozenset(fresh.names)
        for query in QUERIES:
            assert repr(ranked(index, query, names, 20)) == repr(ranked(fresh, query, names, 20))
            assert index.nearest_taught(query, names) == fresh.nearest_taught(query, names)


def test_an_index_outlives_nothing_that_it_was_derived_from() -> None:
    first = Index(HOUSE)
    first.tools  # noqa: B018  (is built when it is read)
    second = Index(replace(HOUSE, version="second"), first)
    third = Index(replace(HOUSE, version="third"), second)
    gone = [weakref.ref(first), weakref.ref(second)]
    assert third.tools.terms is first.tools.terms
    del first, second
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_an_index_is_built_once_for_a_version() -> None:
    assert index_of(HOUSE) is index_of(replace(HOUSE))
    assert index_of(HOUSE) is not index_of(GARDEN)
