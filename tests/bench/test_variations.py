"""Sets made of our own cases and of unseen tools: the same for a seed, and each what its name says."""

import random
from collections import Counter
from pathlib import Path

import pytest

from cortex.base.errors import UserError
from cortex.integrations.sentences import ASKED_MAX
from cortex.selection.recipes import RECIPES
from cortex.selection.ways import ora
from cortex.selection.words.text import normal
from cortex.services.tools.edits import with_encoder
from cortex.tools import load
from tests.bench import frontiers, latency, routing, sources, unseen, variations
from tests.bench.files import CASES, RoutingSet, read
from tests.bench.ground import BenchGround
from tests.bench.ground import ground as shipped_ground
from tests.bench.rows import OfferedTool, Utterance
from tests.small_encoder import SmallModel, brought

SEED = 20261121


@pytest.fixture(scope="module")
def cases() -> tuple[RoutingSet, ...]:
    return read(CASES, lambda _: None).routing


@pytest.fixture(scope="module")
def made(cases: tuple[RoutingSet, ...]) -> dict[str, RoutingSet]:
    return {one.name: one for one in variations.made(cases, SEED)}


def test_a_seed_makes_the_same_sets_and_another_does_not(
    cases: tuple[RoutingSet, ...], made: dict[str, RoutingSet]
) -> None:
    assert {one.name: one for one in variations.made(cases, SEED)} == made
    assert {one.name: one for one in variations.made(cases, SEED + 1)}["several"] != made["several"]
    assert list(made) == ["several", "long", "typos1", "typos2", "typos4", "spoken"]


def test_what_is_added_beside_the_first_sets_leaves_the_made_ones_as_they_were(
    cases: tuple[RoutingSet, ...], made: dict[str, RoutingSet]
) -> None:
    first = tuple(one for one in cases if one.name in ("alone", "house"))
    assert len(cases) > len(first) == 2
    assert {one.name: one for one in variations.made(first, SEED)} == made


def test_several_needs_are_of_two_or_three_categories(made: dict[str, RoutingSet]) -> None:
    for row in made["several"].rows:
        parts = row.id.split("+")
        assert len(parts) in (2, 3)
        assert len(row.need_tools) >= len(parts)
        assert len({name for group in row.need_categories for name in group}) >= len(parts)


def test_a_long_request_holds_the_whole_request_between_three_others(
    cases: tuple[RoutingSet, ...], made: dict[str, RoutingSet]
) -> None:
    said = {row.id: row.text for one in cases for row in one.rows}
    chat = {row.text.strip() for one in cases for row in one.rows if row.kind == "chat"}
    for row in made["long"].rows:
        assert said[row.id].strip() in row.text
        assert sum(text in row.text for text in chat) >= variations.AROUND


@pytest.mark.parametrize("edits", variations.EDITS)
def test_typos_are_so_many_slips(edits: int) -> None:
    text = "put washing powder on the list for the drugstore"
    made = variations.slipped(text, edits, random.Random(f"{edits}"))  # noqa: S311 - a draw, no secret
    changed = sum((Counter(text) - Counter(made)).values()) + abs(len(made) - len(text))
    assert made != text
    assert changed <= 2 * edits


def test_a_text_without_letters_cannot_be_mistyped() -> None:
    assert variations.slipped("12:30?", 4, random.Random(1)) == "12:30?"  # noqa: S311 - a draw, no secret


def test_speech_has_neither_marks_nor_accents() -> None:
    assert variations.spoken("Don't touch Café, ok? It's 7 o\u2019clock!") == "dont touch cafe ok its 7 oclock"


# --- tools that nobody knows --------------------------------------------------------------------------------------


@pytest.mark.parametrize("server", unseen.servers(), ids=lambda one: one.name)
def test_a_server_has_thirty_tools_each_asked_for_three_times(server: unseen.UnseenServer) -> None:
    assert len(server.tools) == 30
    wanted = Counter(name for row in server.asked.rows for group in row.need_tools for name in group)
    assert wanted == {f"{server.name}_{tool.name}": 3 for tool in server.tools}
    assert sum(row.kind == "llm" for row in server.asked.rows) >= 10
    assert all(tool.description and tool.parameters["properties"] for tool in server.tools)


def test_what_is_asked_of_them_was_never_learned_and_stands_once() -> None:
    registry = load()
    learned = {normal(said) for category in registry.categories.values() for said, _ in category.examples}
    learned |= {normal(said) for said, _ in (*registry.several, *registry.none)}
    said = Counter(normal(row.text) for server in unseen.servers() for row in server.asked.rows)
    assert set(said.values()) == {1}
    assert said.keys() & learned == set()


def test_they_stand_beside_what_ships_and_can_be_sent() -> None:
    over = shipped_ground()
    server = unseen.servers()[0]
    beside = unseen.beside(over, server)
    assert len(beside.snapshot.entries) == len(over.snapshot.entries) + 30
    assert beside.snapshot.version != over.snapshot.version
    names = routing.known(server.asked.rows, beside)
    assert names.unknown == {}
    everything = beside.carried(beside.planned(beside.asked("x", "all")))
    assert {f"{server.name}_{tool.name}" for tool in server.tools} <= everything


def test_catalogues_of_one_size_have_versions_of_their_own(ground: BenchGround) -> None:
    one, other = (
        latency.grown(ground.snapshot, [OfferedTool(name="mow", description=words)], 20) for words in ("Mow", "Cut")
    )
    assert len(one.entries) == len(other.entries)
    assert one.version != other.version
    assert one.version == latency.grown(ground.snapshot, [OfferedTool(name="mow", description="Mow")], 20).version


# --- frontiers and stages -----------------------------------------------------------------------------------------

HOUSE_ROWS = RoutingSet(
    name="house",
    rows=tuple(
        Utterance(text=text, kind="tool", need_tools=((tool,),))
        for text, tool in (
            ("turn off the kitchen lights", "lamp_set"),
            ("is the lamp still on", "lamp_get"),
            ("what did I commit yesterday", "repo_log"),
            ("put milk on my list", "task_add"),
        )
    ),
)


@pytest.mark.parametrize("name", ["vector", "cortex"])
def test_stricter_thresholds_never_send_more(cases: tuple[RoutingSet, ...], name: str) -> None:
    over = shipped_ground()
    some = RoutingSet(name="some", rows=next(one for one in cases if one.name == "house").rows[::10])
    found = frontiers.frontier(some, routing.known(some.rows, over), over, name, 1)
    assert [point["setting"] for point in found] == [f"thresholds x {each:g}" for each in frontiers.STRICTNESS]
    tools = [point["tools_mean"] for point in found]
    recalls = [point["recall"] for point in found]
    assert tools == sorted(tools, reverse=True)
    assert recalls == sorted(recalls, reverse=True)
    assert tools[0] > tools[-1]
    assert recalls[0] > recalls[-1]


def test_the_middle_of_the_frontier_is_the_recipe_itself(ground: BenchGround) -> None:
    names = routing.known(HOUSE_ROWS.rows, ground)
    found = frontiers.frontier(HOUSE_ROWS, names, ground, "cortex", 1)
    plain = routing.measured(HOUSE_ROWS, names, ground, "cortex", None).scores
    middle = next(point for point in found if point["setting"] == "thresholds x 1")
    assert (middle["recall"], middle["tokens_mean"]) == (plain["recall"], plain["tokens_mean"])


@pytest.mark.parametrize("name", frontiers.CORES)
def test_a_larger_core_finds_more_and_the_own_one_is_the_recipe(cases: tuple[RoutingSet, ...], name: str) -> None:
    over = shipped_ground()
    some = RoutingSet(name="some", rows=next(one for one in cases if one.name == "house").rows[::20])
    names = routing.known(some.rows, over)
    found = {point["setting"]: point for point in frontiers.frontier(some, names, over, name, 1)}
    recalls = [found[f"core of {size}"]["recall"] for size in frontiers.CORES[name]]
    assert recalls == sorted(recalls, reverse=True)
    assert recalls[0] > recalls[-1]
    plain = routing.measured(some, names, over, name, None).scores
    assert found["its own core"]["tokens_mean"] == plain["tokens_mean"]


def test_a_sentence_model_reads_a_text_once_for_all_settings(tmp_path: Path, ground: BenchGround) -> None:
    said = [f"turn off lamp {number}" for number in range(ASKED_MAX + 1)]
    rows = tuple(Utterance(text=text, kind="tool", need_tools=(("lamp_set",),)) for text in said)
    model = SmallModel("drawn")
    with brought(tmp_path / "kept", model):
        meant = ground.over(with_encoder(ground.snapshot, model.key))
        some = RoutingSet(name="some", rows=rows)
        found = frontiers.frontier(some, routing.known(rows, meant), meant, "vector", 1)
    assert len(found) == len(frontiers.STRICTNESS)
    assert {Counter(model.asked)[text] for text in said} == {1}


def test_ora_has_a_core_for_each_reading_of_its_share() -> None:
    tools = {entry.name: entry for entry in shipped_ground().snapshot.entries}
    business = [entry for entry in tools.values() if not entry.is_meta]
    way = tools[ora.DISCOVERY].tokens_full
    room = ora.FIRST_BLOCK_SHARE * sum(entry.tokens_full for entry in business)
    sizes = [way + sum(tools[name].tokens_full for name in frontiers.most_needed()[:count]) for count in (39, 40)]
    assert sizes[0] <= room < sizes[1]
    assert {39, int(ora.FIRST_BLOCK_SHARE * (len(business) + 1)) - 1} <= set(frontiers.CORES["ora"])


def test_each_stage_that_can_go_is_left_out_once(ground: BenchGround) -> None:
    found = frontiers.ablation(HOUSE_ROWS, routing.known(HOUSE_ROWS.rows, ground), ground, "cortex", 1)
    assert [point["left_out"] for point in found] == ["", *frontiers.REMOVABLE]
    assert len(frontiers.without("cortex", "vectors")) == len(RECIPES["cortex"]) - 1
    assert any(point["recall"] != found[0]["recall"] for point in found[1:])


def test_what_nothing_was_chosen_by_is_named_by_its_file() -> None:
    assert sources.names_of(("routing_x", "y"), {"x", "y"}) == ("x", "y")
    assert [sources.source_of(name, ("y",)) for name in ("clinc_test", "y", "z")] == ["chosen on", "held out", "other"]
    with pytest.raises(UserError, match="No file is called 'zz'"):
        sources.names_of(("zz",), {"x"})
