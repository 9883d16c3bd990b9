import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from cortex.selection.discover import rank
from cortex.selection.index import semantic_index
from cortex.selection.index.index import index_of
from cortex.selection.index.semantic_index import LikenessCurve
from cortex.selection.index.tool_words import worded
from cortex.selection.pipeline import plan
from cortex.selection.registry.snapshot import snapshot_of
from cortex.selection.types import Domain, Example, PlanInput, RoleView, Snapshot, ToolEntry, ToolPlan
from cortex.selection.votes.semantic_votes import in_time, prepared
from cortex.services.tools.edits import with_encoder
from cortex.toolkit.mcp import McpServer, McpTool, mcp_category
from cortex.toolkit.registry import Registry
from tests.bench.catalogues import joined
from tests.selection.baseline_house import sent, why
from tests.selection.made import HOUSE, NOW, asked, entry
from tests.small_encoder import SmallModel, brought

SOON_S = 0.02
NEW = (
    entry("hothouse_read", "plants", "Read the moisture of the greenhouse", ("bed",)),
    entry("parrot_log", "birds", "Keep the diary of a bird", ("text",)),
    entry("parrot_give", "birds", "Open the box", ("box",)),
)
SAID = Example(text="give the parrot its dinner", tools=("parrot_give",))
DAMP = "how soggy are the beds of the glasshouse"


@pytest.fixture(scope="module")
def grown(shipped: Snapshot) -> Snapshot:
    """The shipped tools and three that the fitted model has never seen."""
    own = tuple(each for each in shipped.entries if not each.is_meta)
    metas = tuple(each for each in shipped.entries if each.is_meta)
    birds = Domain(name="birds", summary="birds", tokens=4, examples=(SAID,))
    domains = (*shipped.domains, Domain(name="plants", summary="plants", tokens=4), birds)
    return replace(shipped, version=f"{shipped.version} and three", entries=(*own, *NEW, *metas), domains=domains)


@pytest.fixture
def model(request: pytest.FixtureRequest) -> SmallModel:
    """A key of its own for each test: what is known by the same key is kept."""
    return SmallModel(request.node.name)


@pytest.fixture
def snapshot(grown: Snapshot, model: SmallModel, tmp_path: Path) -> Iterator[Snapshot]:
    """The same with the small model at hand."""
    with brought(tmp_path, model):
        made = with_encoder(grown, model.key)
        assert prepared(made)
        yield made


def wanting(message: str, snapshot: Snapshot, **changes: Any) -> PlanInput:
    names = tuple(each.name for each in snapshot.entries)
    given = PlanInput(
        snapshot=snapshot,
        ready=names,
        role=RoleView(name="house", tools=tuple(each.name for each in snapshot.domains)),
        is_admin=True,
        message=message,
        now=NOW,
        turn="t1",
        model="m",
    )
    return replace(given, **changes)


def planned(message: str, snapshot: Snapshot, **changes: Any) -> ToolPlan:
    return plan(in_time(wanting(message, snapshot, **changes)))


@pytest.mark.parametrize("has_model", [False, True], ids=["by the table", "by a model"])
def test_a_tool_is_chosen_by_what_words_mean(grown: Snapshot, snapshot: Snapshot, has_model: bool) -> None:
    made = planned(DAMP, snapshot if has_model else grown)
    assert "hothouse_read" in sent(made)
    assert "in meaning" in why(made, "hothouse_read")


def test_a_tool_is_chosen_by_what_its_examples_mean(snapshot: Snapshot) -> None:
    made = planned("give the budgie its meal", snapshot)
    assert "parrot_give" in sent(made)
    assert len(index_of(snapshot).semantic.told) == 1


def test_another_model_than_that_of_the_fit_has_no_say_over_the_tools_that_ship(
    shipped: Snapshot, model: SmallModel, tmp_path: Path
) -> None:
    said = "add milk and eggs to my shopping list"
    with brought(tmp_path, model):
        snapshot = with_encoder(shipped, model.key)
        assert prepared(snapshot)
        model.asked.clear()
        made = planned(said, snapshot)
    assert replace(made, memory=planned(said, shipped).memory) == planned(said, shipped)
    assert model.asked == []


@pytest.mark.parametrize("said", ["hello there", "thanks!", ""])
def test_small_talk_is_not_judged(said: str, snapshot: Snapshot, model: SmallModel) -> None:
    model.asked.clear()
    made = planned(said, snapshot)
    assert not {each.name for each in NEW} & set(sent(made))
    assert model.asked == []


def test_what_the_gate_removed_is_not_brought_back(snapshot: Snapshot) -> None:
    role = RoleView(name="house", tools=("tasks", "birds"))
    made = planned(DAMP, snapshot, role=role)
    assert "hothouse_read" not in {decided.name for decided in made.decisions if decided.is_in}


def test_equal_input_gives_an_equal_plan(snapshot: Snapshot) -> None:
    assert planned(DAMP, snapshot) == planned(DAMP, snapshot)


def test_a_failure_leaves_a_label_and_the_plan_that_the_table_makes(
    grown: Snapshot, snapshot: Snapshot, model: SmallModel
) -> None:
    model.failure = RuntimeError("out of memory")
    made, without = planned(DAMP, snapshot), planned(DAMP, grown)
    assert "out of memory" in dict(made.labels)["sentence model"]
    assert (sent(made), made.catalog) == (sent(without), without.catalog)


def test_a_late_answer_leaves_a_label(grown: Snapshot, tmp_path: Path) -> None:
    model = SmallModel("late")
    with brought(tmp_path, model) as made:
        snapshot = with_encoder(grown, model.key)
        assert prepared(snapshot)
        made._limit_s = SOON_S
        model.is_free.clear()
        found = planned(DAMP, snapshot)
    assert "after 0.02 s" in dict(found.labels)["sentence model"]


def test_a_replay_leaves_out_what_was_left_out(snapshot: Snapshot, model: SmallModel) -> None:
    given = wanting(DAMP, snapshot, encoder_skipped="it was late")
    model.asked.clear()
    made = plan(in_time(given))
    assert "was late" in dict(made.labels)["sentence model"]
    assert model.asked == []


def test_a_snapshot_whose_model_went_away_says_so(grown: Snapshot) -> None:
    made = planned(DAMP, with_encoder(grown, "gone"))
    assert "'gone'" in dict(made.labels)["sentence model"]


def test_a_search_finds_by_meaning(grown: Snapshot, snapshot: Snapshot) -> None:
    names = [each.name for each in grown.entries]
    assert "parrot_give" in [hit.name for hit in rank("hungry cockatoo", snapshot, names, 5)]


def test_a_search_still_finds_when_the_model_fails(snapshot: Snapshot, model: SmallModel) -> None:
    names = [each.name for each in snapshot.entries]
    model.failure = RuntimeError("out of memory")
    assert rank("moisture of the greenhouse", snapshot, names, 5)[0].name == "hothouse_read"


def test_a_long_text_is_asked_once_and_cut(snapshot: Snapshot, model: SmallModel) -> None:
    model.asked.clear()
    planned(f"{DAMP}, and also " + "tell me everything about it; " * 40, snapshot)
    assert [len(each) for each in model.asked] == [160]


def test_a_changed_tool_is_the_only_one_read_again(snapshot: Snapshot, model: SmallModel, tmp_path: Path) -> None:
    changed = {"parrot_log": entry("parrot_log", "birds", "Keep the songs of a bird", ("text",))}
    entries = tuple(changed.get(each.name, each) for each in snapshot.entries)
    fresh = SmallModel(model.key)
    before = index_of(snapshot).semantic
    with brought(tmp_path / "fresh", fresh):
        after = index_of(replace(snapshot, version=f"{snapshot.version} sings", entries=entries)).semantic
    assert set(fresh.asked) == {"parrot log: Keep the songs of a bird\ntext The text\nbirds", SAID.text}
    slots = index_of(snapshot).tools.slots
    same = [slots[each.name] for each in snapshot.entries if each.name not in changed]
    with brought(tmp_path / "again", fresh):
        new, old = after.likeness(DAMP), before.likeness(DAMP)
    assert [new[slot] for slot in same] == [old[slot] for slot in same]
    assert new[slots["parrot_log"]] != old[slots["parrot_log"]]


def test_the_worth_of_a_likeness_is_learned_from_the_shipped_utterances(shipped: Snapshot) -> None:
    worth = index_of(shipped).table_curves
    assert worth is not None
    for curve in (worth.bare, worth.told):
        assert chance(curve, 0.9) > 5 * chance(curve, 0.1)
        assert chance(curve, 0.1) < 0.02
        assert chance(curve, 0.5, shared=0.5) > 2 * chance(curve, 0.5)  # wording is weighed beside meaning
        assert chance(curve, 0.5, best=0.9) < chance(curve, 0.5)  # another tool is liker


def chance(curve: LikenessCurve, like: float, shared: float = 0.0, best: float = 0.0) -> float:
    """Of a tool that is so like the text, where all are a little like it."""
    told = curve.like * like + curve.words * shared + curve.around(max(like, best), 0.05)
    return 1 / (1 + math.exp(-told))


def test_a_servers_tool_is_read_by_its_description_not_by_its_name_twice(shipped: Snapshot) -> None:
    tools = [
        McpTool(name="op_17", description="Read the moisture of the greenhouse.", schema={}),
        McpTool(name="op_18", description="Keep the diary of a bird.", schema={}),
    ]
    made = joined(shipped, snapshot_of(Registry((mcp_category(McpServer(name="acme"), tools),))))
    read = next(each for each in made.entries if each.name == "acme_op_17")
    assert worded(read) == "acme op 17: Read the moisture of the greenhouse.\nmcp acme"
    found = sent(planned("how damp is the greenhouse", made))
    assert "acme_op_17" in found
    assert "acme_op_18" not in found


def test_a_phrase_that_an_admin_gave_counts_at_once_even_where_it_reads_like_talk(shipped: Snapshot) -> None:
    said = "how do you say hello in French"
    mine = entry("tongue", "words", "Another tongue", ("text",))
    told = Example(text=said, tools=("tongue",), is_own=True)
    domain = Domain(name="words", summary="words", tokens=4)
    bare = replace(shipped, version="tongue", entries=(mine, *shipped.entries), domains=(*shipped.domains, domain))
    taught = replace(bare, version="taught", domains=(*shipped.domains, replace(domain, examples=(told,))))
    assert "tongue" not in sent(planned(said, bare))
    assert "tongue" in sent(planned(said, taught))


def test_where_nothing_tells_what_a_likeness_is_worth_it_has_no_vote(model: SmallModel, tmp_path: Path) -> None:
    with brought(tmp_path, model):
        made = planned(DAMP, with_encoder(HOUSE, model.key))
    assert "left out" in dict(made.labels)["sentence model"]


def test_the_best_examples_of_a_tool_count_not_all(tmp_path: Path, model: SmallModel) -> None:
    told = {"parrot_give": ["feed the bird", "feed the bird now", "feed it", *("about something else " * 3).split()]}
    entries: tuple[ToolEntry, ...] = (NEW[2], NEW[1])
    with brought(tmp_path, model) as encoder:
        made = semantic_index.SemanticIndex(model.key, entries, told)
        row = encoder.asked(["feed the budgie"])[0]
        best = np.sort(np.array(encoder.kept(told["parrot_give"])) @ row)[-3:].mean()
        own = np.array(encoder.kept([worded(NEW[2]), worded(NEW[1])])) @ row
        found = made.likeness("feed the budgie")
    assert np.allclose(found, [0.5 * (own[0] + best), own[1]], atol=1e-6)


def test_vector_compares_meanings_where_it_can(model: SmallModel, tmp_path: Path) -> None:
    message = "is the hothouse soggy"
    said = Example(text="moisture of the greenhouse", tools=("lamp_get",))
    lamps = replace(HOUSE.domains[0], examples=(said,))
    house = replace(HOUSE, version="damp-1", domains=(lamps, *HOUSE.domains[1:]))
    with brought(tmp_path, model):
        made = plan(in_time(asked(message, snapshot=with_encoder(house, model.key), recipe="vector")))
    assert "lamp_get" in sent(made)
    assert "lamp_get" not in sent(plan(asked(message, snapshot=house, recipe="vector")))


def test_vector_goes_by_letters_where_the_model_fails(tmp_path: Path) -> None:
    model = SmallModel("broken", failure=RuntimeError("out of memory"))
    message = "turn off the kitchen lights"
    with brought(tmp_path, model):
        made = plan(in_time(asked(message, snapshot=with_encoder(HOUSE, "broken"), recipe="vector")))
    without = plan(asked(message, recipe="vector"))
    assert sent(made) == sent(without)
    assert "out of memory" in dict(made.labels)["sentence model"]
