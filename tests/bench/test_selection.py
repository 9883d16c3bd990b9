import json
from pathlib import Path

import pytest

from cortex.base.errors import UserError
from cortex.selection.discover import RANKINGS
from cortex.services.tools.edits import with_encoder
from tests.bench import routing, selection
from tests.bench.conftest import Write, over_the_house, row
from tests.bench.files import RoutingSet
from tests.bench.ground import BenchGround
from tests.bench.rows import Utterance
from tests.small_encoder import SmallModel, brought

SEED = 3
told: list[str] = []


def sets(path: Path, ground: BenchGround, *recipes: str) -> dict[str, dict[str, object]]:
    told.clear()
    return {one["name"]: one for one in selection.measured((path,), recipes, ground, SEED, told.append)}


def figures(one: dict[str, object], recipe: str) -> dict[str, float]:
    recipes = one["recipes"]
    assert isinstance(recipes, dict)
    found: dict[str, float] = recipes[recipe]
    return found


def test_what_is_known_of_a_set_is_told_as_the_json_has_it(write: Write, ground: BenchGround) -> None:
    path = write(
        "routing_home.jsonl",
        [
            row("turn off the kitchen lights", "tool", ["lamp_set"]),
            row("hello", "chat"),
            row("write a poem", "llm"),
            row("hm", "pending"),
        ],
    )
    one = sets(path, ground, "all")["home"]
    assert (one["kind"], one["rows"], "unknown_tools" in one) == ("routing", 4, False)
    found = figures(one, "all")
    whole = sum(entry.tokens_full for entry in ground.snapshot.entries if not entry.is_meta)
    assert found["recall"] == 1.0
    assert (found["tools_mean"], found["tokens_mean"], found["tokens_share"]) == (7, whole, 1.0)
    assert (found["chat_any"], found["llm_nonweb"]) == (1.0, 1.0)
    assert "recall_after_discover" not in found
    assert "worst_category_recall" not in found


def test_the_role_decides_what_can_be_met(write: Write) -> None:
    path = write("x.jsonl", [row("a", "tool", ["lamp_set"]), row("b", "tool", ["repo_log"], ["lamp_get"])])
    assert figures(sets(path, over_the_house(("lamps",)), "all")["x"], "all")["recall"] == 0.5


def test_unknown_tools_are_counted_told_and_not_held_against_anyone(write: Write, ground: BenchGround) -> None:
    path = write(
        "x.jsonl",
        [row("a", "tool", ["lamp_set", "sun_set"]), row("b", "tool", ["sun_set"]), row("c", "tool", ["repo_log"])],
    )
    one = sets(path, ground, "all")["x"]
    assert one["unknown_tools"] == {"sun_set": 2}
    assert figures(one, "all")["recall"] == 1.0
    assert any("sun_set (2)" in line for line in told)


def test_a_missed_tool_may_come_by_one_discovery(write: Write, ground: BenchGround) -> None:
    path = write("x.jsonl", [row("task_show", "chat"), row("tell me if the lamp burns", "tool", ["lamp_get"])])
    one = sets(path, ground, *RANKINGS)["x"]
    for name in RANKINGS:
        found = figures(one, name)
        assert found["recall_after_discover"] >= found["recall"]


def conversation() -> list[object]:
    past = [{"user": "is the lamp in the hall still burning"}, {"assistant": "It is."}]
    return [
        row("thanks", "chat", conversation="c", turn=2, history=[*past, {"user": "off"}, {"assistant": "Done."}]),
        row("is the lamp in the hall still burning", "tool", ["lamp_get"], conversation="c", turn=0, history=[]),
        row("off", "tool", ["lamp_set"], conversation="c", turn=1, history=past),
    ]


def test_a_conversation_is_judged_in_order_with_a_figure_for_the_own_calls(write: Write, ground: BenchGround) -> None:
    one = sets(write("talks.jsonl", conversation()), ground, "all", "cortex")["talks"]
    assert one["kind"] == "multiturn"
    assert figures(one, "all")["recall"] == figures(one, "all")["recall_own"] == 1.0
    assert "recall_own" in figures(one, "cortex")


def test_turns_come_in_their_order_whatever_the_file_says() -> None:
    rows = [Utterance.model_validate(one) for one in conversation()]
    assert [[each.turn for each in talk] for talk in routing.conversations(rows)] == [[0, 1, 2]]
    alone = [Utterance(text="a", kind="chat"), Utterance(text="b", kind="chat")]
    assert len(routing.conversations(alone)) == 2


def test_earlier_turns_come_with_their_calls() -> None:
    last = Utterance.model_validate(conversation()[0])
    past = routing.past_turns(last, {"off": ("lamp_set",)})
    assert [(turn.user, turn.assistant, turn.called) for turn in past] == [
        ("is the lamp in the hall still burning", "It is.", ()),
        ("off", "Done.", ("lamp_set",)),
    ]


def test_a_catalogue_is_ranked_by_the_recipes_that_can(tmp_path: Path, write: Write, ground: BenchGround) -> None:
    write(
        "retrieval_zoo_catalog.jsonl",
        [{"name": f"{name}_feed", "description": f"Feed the {name}"} for name in ("lion", "seal", "crane")],
    )
    write(
        "retrieval_zoo_queries.jsonl",
        [{"query": "feed the seal", "gold": ["seal_feed"]}, {"query": "x", "gold": ["ox_feed"]}],
    )
    (tmp_path / "retrieval_zoo_examples.json").write_text(
        json.dumps({"crane_feed": ["the bird is hungry"]}), encoding="utf-8"
    )
    found = sets(tmp_path, ground, "all", "cortex", "ora")
    assert list(found) == ["zoo", "zoo+examples"]
    assert found["zoo"]["unknown_tools"] == {"ox_feed": 1}
    assert set(found["zoo"]["recipes"]) == {"cortex", "ora"}  # type: ignore[call-overload]
    assert figures(found["zoo"], "cortex")["r5"] == 1.0
    assert set(figures(found["zoo"], "cortex")) == {"r5", "r10", "ndcg10", "p50_ms", "p99_ms"}


def test_a_sentence_model_is_judged_with_what_it_finds(tmp_path: Path, write: Write, ground: BenchGround) -> None:
    catalog = [{"name": "parrot_feed", "description": "Feed the parrot"}, {"name": "rug_wash", "description": "Wash"}]
    write("retrieval_zoo_catalog.jsonl", catalog)
    write("retrieval_zoo_queries.jsonl", [{"query": "hungry cockatoo", "gold": ["parrot_feed"]}])
    model = SmallModel("judged")
    with brought(tmp_path / "kept", model):
        by_meaning = ground.over(with_encoder(ground.snapshot, model.key))
        found = sets(tmp_path, by_meaning, "cortex")
    assert model.asked
    assert figures(found["zoo"], "cortex")["r5"] == 1.0


def test_a_filler_catalogue_brings_a_set_of_latencies(tmp_path: Path, write: Write, ground: BenchGround) -> None:
    write("filler_catalog.jsonl", [{"name": f"tool_{n}", "description": f"Do thing {n}"} for n in range(40)])
    write("rows.jsonl", [row("turn off the lights", "tool", ["lamp_set"])])
    one = sets(tmp_path, ground, "inara", "ora")["catalogue of 10,000"]
    assert one["kind"] == "latency"
    assert set(figures(one, "inara")) == {"p50_ms", "p99_ms"}
    assert set(figures(one, "ora")) == {"p50_ms", "p99_ms", "rank_p50_ms", "rank_p99_ms"}


def test_all_but_the_times_is_the_same_for_a_seed(write: Write, ground: BenchGround) -> None:
    path = write("talks.jsonl", [*conversation(), row("what did I commit yesterday", "tool", ["repo_log"])])

    def timeless() -> object:
        found = figures(sets(path, ground, "cortex")["talks"], "cortex")
        return {key: value for key, value in found.items() if not key.endswith("_ms")}

    assert timeless() == timeless()


def test_an_unknown_recipe_is_refused_before_anything_is_measured(write: Write, ground: BenchGround) -> None:
    path = write("x.jsonl", [row("hello", "chat")])
    with pytest.raises(UserError, match="There is no recipe 'best'"):
        sets(path, ground, "best")


def test_a_catalogue_alone_is_nothing_to_judge(write: Write, ground: BenchGround) -> None:
    path = write("some_catalog.jsonl", [{"name": "mow", "description": None, "parameters": [1]}])
    with pytest.raises(UserError, match="nothing to judge"):
        sets(path, ground, "all")


def test_a_set_is_multiturn_by_its_rows() -> None:
    rows = (Utterance(text="a", kind="chat"), Utterance(text="b", kind="chat", conversation="c"))
    assert RoutingSet(name="x", rows=rows).is_multiturn
    assert not RoutingSet(name="x", rows=rows[:1]).is_multiturn
