from itertools import pairwise
from typing import Any

from tests.bench import goals, recipes, table, verdicts
from tests.bench.baseline import noise, regressions
from tests.bench.plot import Mark, svg

GOOD = {"recall": 0.98, "tools_mean": 4.0, "tokens_mean": 500.0, "tokens_share": 0.09, "p50_ms": 0.5, "p99_ms": 1.0}


def one(kind: str = "routing", **others: dict[str, float]) -> dict[str, Any]:
    return {"name": "house", "kind": kind, "rows": 1_200, "recipes": {"cortex": GOOD, **others}}


def test_columns_are_aligned_and_goals_stand_below() -> None:
    lines = table.selection([one(all={**GOOD, "recall": 1.0, "tokens_mean": 5_800.0})]).splitlines()
    assert lines[0] == "house · routing · 1,200 rows"
    assert [line.split() for line in lines[1:3]] == [
        ["recall", "tools", "tokens", "share", "p50", "ms", "p99", "ms"],
        ["cortex", "0.980", "4.0", "500", "0.090", "0.500", "1.000"],
    ]
    assert lines[-1].split() == ["goal", "≥0.97", "≤4", "≤0.1", "≤2"]
    assert len({len(line) for line in lines[2:4]}) == 1


def test_a_missed_goal_is_marked_for_our_recipe_alone() -> None:
    low = {**GOOD, "recall": 0.5}
    told = table.selection([{**one(inara=low), "recipes": {"cortex": low, "inara": low}}])
    assert told.count("0.500*") == 1


def test_what_is_made_is_held_against_its_own_goals() -> None:
    made = {"kind": "routing", "source": "made", "name": "several"}
    assert goals.of_set(made)["recall"].value == 0.97
    assert goals.of_set(made)["tools_mean"].value == 7
    assert "recall" not in goals.of_set({**made, "name": "typos4"})
    unseen = {"kind": "routing", "source": "unseen", "name": "unseen_shop"}
    assert [goals.of_set(unseen, is_by_meaning=told)["recall"].value for told in (False, True)] == [0.5, 0.85]
    assert goals.of_set({**made, "source": "ours"}) == goals.SELECTION["routing"]


def test_a_figure_that_a_recipe_lacks_is_a_dash() -> None:
    assert "-" in table.selection([one(inara={"recall": 0.3})]).splitlines()[3].split()


def costs(cortex: float, other: float, recall: float = 0.9) -> dict[str, Any]:
    detail = {"recall": recall, "rewrites": 2.0}
    return {
        "regimes": {"warm10": {"all": 100.0, "cortex": cortex, "ora": other}},
        "floors": {"warm10": 20.0},
        "above_floor": {"warm10": {"all": 100.0, "cortex": 51.2, "ora": 75.0}},
        "details": {
            "warm10": {
                "all": {"recall": 1.0, "rewrites": 0.0},
                "cortex": {"recall": 0.95, "rewrites": 0.1},
                "ora": detail,
            }
        },
    }


def test_costs_stand_beside_their_goal() -> None:
    told = table.costs(costs(61.0, 80.0))
    assert told.splitlines()[1].split() == ["warm10", "100.0", "61.0*", "80.0", "20.0", "≤56"]
    assert told.splitlines()[4].split() == ["warm10", "100.0", "51.2", "75.0"]
    assert told.splitlines()[-1].split() == ["warm10", "0", "0.1*", "2", "≤0"]


def test_it_is_said_where_another_recipe_is_better() -> None:
    more, fewer = {**GOOD, "recall": 0.99}, {**GOOD, "recall": 0.94, "tokens_mean": 400.0}
    weak = {**GOOD, "recall": 0.5, "tokens_mean": 10.0}
    told = verdicts.selection([one(vector=more, ora=fewer, inara=weak, all={**GOOD, "recall": 1.0})])
    assert told == ["house: vector finds 0.990, cortex 0.980.", "house: ora sends 400 tokens, cortex 500."]
    assert verdicts.selection([one(inara=weak)]) == [verdicts.KEPT_SETS]
    assert verdicts.selection([one(ora=fewer)], of_our_size=("ora",)) == [verdicts.KEPT_SETS]
    assert verdicts.selection([one(ora=more)], of_our_size=("ora",)) == ["house: ora finds 0.990, cortex 0.980."]


def test_a_recipe_that_sends_everything_is_no_finder() -> None:
    assert verdicts.selection([one(repi={**GOOD, "recall": 1.0, "tokens_mean": 5e3, "tokens_share": 1.0})]) == [
        verdicts.KEPT_SETS
    ]


def test_it_is_said_where_ours_costs_too_much() -> None:
    assert verdicts.costs(costs(61.0, 50.0)) == ["warm10: cortex costs 61.0, ora 50.0 at recall 0.90."]
    assert verdicts.costs(costs(52.0, 50.0)) == [verdicts.KEPT_REGIMES]
    assert verdicts.costs(costs(61.0, 50.0, recall=0.5)) == [verdicts.KEPT_REGIMES]
    assert verdicts.costs(costs(101.0, 150.0))[0] == "warm10: cortex costs 101.0, more than sending all."


KEPT = {"house": {"recall": 0.9, "tools_mean": 5.0}, "cost": {"warm10": 60.0}}
ROWS = {"house": {"tool": 400}}


def test_a_loss_beyond_the_noise_is_a_regression() -> None:
    now = {"house": {"recall": 0.87, "tools_mean": 5.3}, "cost": {"warm10": 62.0}}
    assert list(regressions(ROWS, KEPT, now)) == [
        "house, recall: 0.87, was 0.9",
        "house, tools_mean: 5.3, was 5",
        "cost, warm10: 62, was 60",
    ]


def test_noise_and_gains_are_none() -> None:
    assert list(regressions(ROWS, KEPT, KEPT)) == []
    better = {"house": {"recall": 0.95, "tools_mean": 4.0}, "cost": {"warm10": 40.0}}
    assert list(regressions(ROWS, KEPT, better)) == []
    near = {"house": {"recall": 0.89, "tools_mean": 5.2}, "cost": {"warm10": 61.0}}
    assert list(regressions(ROWS, KEPT, near)) == []


def test_a_figure_that_is_gone_is_a_regression() -> None:
    assert list(regressions(ROWS, KEPT, {**KEPT, "cost": {}})) == ["cost, warm10: not measured any more (was 60)"]


def test_a_perfect_share_may_lose_a_row_and_not_two() -> None:
    assert 1 / 400 < noise("house", "recall", 1.0, 400) < 2 / 400


def taken() -> recipes.Taken:
    found = {name: {**GOOD, "recall_after_discover": 0.99, "recall_after_rescue": 0.985} for name in recipes.JUDGED}
    chat = {name: {"chat_any": 0.04, "p50_ms": 0.5, "p99_ms": 3.0} for name in recipes.JUDGED}
    ranked = {name: {"r5": 0.7, "r10": 0.8, "ndcg10": 0.6, "p50_ms": 1.0, "p99_ms": 2.0} for name in ("ora", "cortex")}
    spans = {name: {"recall": (0.9, 0.99), "tools_mean": (4.0, 6.0), "tokens_mean": (400.0, 600.0)} for name in found}
    point = {**GOOD, "setting": "thresholds x 1", "left_out": "", "intervals": spans["cortex"]}
    line = [{**point, "setting": "thresholds x 0.5", "recall": 0.99, "tokens_share": 0.12}, point]
    category = {**GOOD, "rows": 7, "intervals": spans["cortex"]}
    judged = {
        "kind": "routing",
        "rows": 10,
        "kinds": {"tool": 6, "chat": 3, "llm": 1},
        "recipes": found,
        "intervals": spans,
        "frontiers": {"cortex": line},
        "ablation": [point, {**point, "left_out": "context", "recall": 0.7}],
        "categories": {"cortex": {"lamps": category}},
    }
    sets = [
        {**judged, "name": "house", "source": "ours"},
        {**judged, "name": "typos1", "source": "made"},
        {**judged, "name": "beyond", "source": "held out"},
        {**judged, "name": "en", "source": "languages"},
        {
            **judged,
            "name": "de",
            "source": "languages",
            "recipes": {**found, "cortex": {**found["cortex"], "recall": 0.9}},
        },
        {"name": "alone", "kind": "routing", "rows": 10, "recipes": chat, "source": "ours"},
        {"name": "zoo", "kind": "retrieval", "rows": 10, "recipes": ranked},
    ]
    shares = {name: 50.0 for name in recipes.ORDER}
    details = {name: {"recall": 0.9, "rewrites": 0.25} for name in recipes.ORDER}
    above = {name: 40.0 for name in recipes.ORDER}
    told = {
        "regimes": {"cold": shares, "local_slot": shares},
        "floors": {"cold": 17.0, "local_slot": 17.0},
        "above_floor": {"cold": above, "local_slot": above},
        "details": {"cold": details, "local_slot": details},
    }
    return recipes.Taken(sets=sets, costs=told, by_meaning=[*sets[:2], sets[-1]])


def test_readme_has_the_means_the_languages_and_the_costs() -> None:
    told = recipes.summary(taken(), "today")
    assert told.startswith("today\n\n| recipe | recall | after one discovery | tools |")
    assert "| cortex | 0.980 | 0.990 | 4.0 | 500 | 0.040 | - |" in told
    assert "that in English: de 0.918*; goal: ≥0.965." in told
    assert told.endswith("sending all = 100: cold 50, local_slot 50.")


def test_the_page_has_means_sets_discovery_and_costs() -> None:
    told = recipes.markdown(taken(), "today")
    assert told.startswith("today\n\n")
    assert "| cortex | 0.980 | - | 0.990 | 0.985 | 4.0 | 500 | 0.090 | 0.040 | - | - | 0.50 | 3.00* |" in told
    assert f"| house | ours, constants chosen on it | 10 |{' 0.980 (0.900-0.990) · 4.0 |' * 9}" in told
    assert "Means over what is held out" in told
    assert f"| beyond | held out | 10 |{' 0.980 (0.900-0.990) · 4.0 |' * 9}" in told
    assert f"| typos1 | made of ours | 10 |{' 0.980 (0.900-0.990) · 4.0 |' * 9}" in told
    assert "| cortex | thresholds x 0.5 | 0.990 | 0.958-1.000 | 4.0 | 500 | 0.120 |" in told
    assert "| typos1 | made of ours | 10 | 0.980 (0.900-0.990) · 4.0 | 0.980 (0.900-0.990) · 4.0 |\n" in told
    assert "| context | 0.700 · 4.0 | 0.700 · 4.0 | 0.700 · 4.0 |" in told
    assert "| lamps | 7 | 0.980 | 0.900-0.990 | 4.0 | 4.0-6.0 | 500 | 400-600 |" in told
    assert told.count("| zoo | 10 | 0.800 · 0.600 · 1.0 | 0.800 · 0.600 · 1.0 |") == 2
    assert "| de | ours, constants chosen on it | 10 |" in told
    assert "that in English: de 0.918*; goal: ≥0.965." in told
    assert f"| cold |{' 50 · 40 |' * 6} 50* · 40 | 17 | ≤48 | 0.2 |  |" in told
    assert f"| local_slot |{' 50 · 40 |' * 7} 17 | ≤70 | 0.2* | ≤0 |" in told


def test_the_plot_shows_frontiers_with_intervals_of_what_is_not_made() -> None:
    drawn = recipes.plot(taken())
    assert drawn.count("<polyline") == 1
    assert drawn.count('class="sure"') == len(recipes.JUDGED) + 2
    assert "mean over 2 sets" in drawn
    assert "cortex at other settings: 0.98 at 9 %, 0.99 at 12 %" in drawn


def test_a_setting_that_finds_no_more_than_a_cheaper_one_is_not_on_the_frontier() -> None:
    judged = taken()
    for one in judged.sets[:1]:
        worse = {**one["frontiers"]["cortex"][0], "recall": 0.97, "tokens_share": 0.2}
        one["frontiers"]["cortex"].append(worse)
    assert "0.97 at 20 %" not in recipes.plot(judged)
    assert "0.98 at 9 %, 0.99 at 12 %" in recipes.plot(judged)


def test_the_plot_names_each_recipe_and_tells_itself_in_words() -> None:
    drawn = svg(
        [Mark(name="cortex", share=0.1, recall=0.9), Mark(name="<all>", share=1.0, recall=1.0)],
        "c & d",
        goal_recall=0.97,
        goal_share=0.1,
    )
    assert drawn.count('class="ours"') == 1
    assert "&lt;all&gt;" in drawn
    assert "cortex: recall 0.90 at 10 % of the tokens" in drawn
    assert "prefers-color-scheme: dark" in drawn
    assert "c &amp; d" in drawn
    assert recipes.plot(taken()) == recipes.plot(taken())


def test_names_of_marks_that_lie_together_stand_below_each_other() -> None:
    drawn = svg(
        [
            Mark(name=name, share=0.05, recall=recall)
            for name, recall in (("one", 0.99), ("two", 0.97), ("three", 0.99))
        ],
        "",
        goal_recall=0.97,
        goal_share=0.1,
    )
    heights = [
        float(line.partition(' y="')[2].partition('"')[0]) for line in drawn.splitlines() if 'class="name"' in line
    ]
    assert [later - before >= 16 for before, later in pairwise(heights)] == [True, True]
