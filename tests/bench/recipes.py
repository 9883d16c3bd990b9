"""What is measured of the ways to choose tools: on our own cases and on the folders of `CORTEX_BENCH_DATA`.

Sets the figures of `selection` and `cost` as Markdown, short and whole for docs/benchmarks.md,
and as its plot. `CORTEX_BENCH_HELD_OUT` names
files that nothing was ever chosen by, `name:name`, without their endings; `CORTEX_BENCH_ENCODER` a folder with a
sentence model, by which what can use one is judged once more: without it that of the tests, where it is installed.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

from cortex.services.tools.edits import with_encoder
from tests.bench import by_language, costs, goals, selection, sources, verdicts
from tests.bench.commands import sentence_model
from tests.bench.files import CASES, LANGUAGES
from tests.bench.frontiers import DRAWN
from tests.bench.goals import Goal
from tests.bench.ground import ground
from tests.bench.plot import NO_SPAN, Mark, Span, svg
from tests.bench.rival import BARE, GATED, fitted, ways
from tests.bench.scores import LEAST_ROWS
from tests.bench.selection import Extras
from tests.bench.table import between, risky
from tests.real_encoder import installed_folder

FOLDERS, HELD_OUT = "CORTEX_BENCH_DATA", "CORTEX_BENCH_HELD_OUT"
ENCODER = "CORTEX_BENCH_ENCODER"
BY_MEANING = ("vector", "cortex")
MADE = ("made", "unseen")
APART = (*MADE, "languages")  # in tables of their own, and in no mean
ORDER = ("all", "inara", "ora", "punch", "repi", "vector", "cortex")
JUDGED = (*ORDER[:-1], BARE, GATED, "cortex")  # on messages: the simple way too (`rival.py`), which is no recipe
NEAREST = ("cortex", BARE, GATED)
MEANS = {  # key -> head and digits
    "recall": ("recall", 3),
    "worst_category_recall": ("worst category", 3),
    "recall_after_discover": ("after one discovery", 3),
    "recall_after_rescue": ("after a rescue", 3),
    "tools_mean": ("tools", 1),
    "tokens_mean": ("tokens", 0),
    "tokens_share": ("share of all", 3),
    "chat_any": ("small talk with a tool", 3),
    "chat_tokens_share": ("its share of all", 3),
    "llm_nonweb": ("writing, advice beyond the web", 3),
    "p50_ms": ("p50 ms", 2),
    "p99_ms": ("p99 ms", 2),
}
SHORT = ("recall", "recall_after_discover", "tools_mean", "tokens_mean", "chat_any", "llm_nonweb")  # the short table
SIZES = ("tools_mean", "tokens_mean", "tokens_share")
FIRST_ONLY = frozenset({"chat_any", "chat_tokens_share", "llm_nonweb"})  # in a conversation the epoch stays
Sets = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What both commands said. `by_meaning`: the sets by a sentence model, of the recipes that can use one."""

    sets: Sets
    costs: Mapping[str, Any]
    by_meaning: Sets = ()


def take(seed: int, tell: Callable[[str], None]) -> Taken:
    """Run both commands under every recipe."""
    over = ground()
    named = [Path(folder) for folder in _named(FOLDERS)]
    tell("fitting the simple way …")
    rivals = Extras(ways=ways(fitted(over.snapshot), over))
    extras = replace(rivals, drawn=DRAWN, has_ablation=True, held_out=_named(HELD_OUT))
    paths, made = (CASES, *named), replace(rivals, has_made=True, has_ablation=True)
    sets = selection.measured(paths, ORDER, over, seed, tell, extras)
    sets += selection.measured((), ORDER, over, seed, tell, made)
    sets += selection.measured((LANGUAGES,), ORDER, over, seed, tell, rivals)
    by_meaning: list[dict[str, Any]] = []
    with TemporaryDirectory() as place:
        folder = os.environ.get(ENCODER) or installed_folder(Path(place) / "model")
        if folder:
            meant = over.over(with_encoder(over.snapshot, sentence_model(Path(folder))))
            less = replace(extras, drawn=("vector",), has_ablation=False, has_latency=False, ways={})
            by_meaning = selection.measured(paths, BY_MEANING, meant, seed, tell, less)
            less = replace(made, has_ablation=False, ways={})
            by_meaning += selection.measured((), BY_MEANING, meant, seed, tell, less)
    return Taken(sets=sets, costs=costs.measured((), ORDER, over, seed, tell), by_meaning=by_meaning)


def _named(variable: str) -> tuple[str, ...]:
    """What a variable of the environment lists."""
    return tuple(each for each in os.environ.get(variable, "").split(os.pathsep) if each)


def summary(taken: Taken, head: str) -> str:
    """The short table: the means over all sets, the other languages beside English, the costs of `cortex` in a line."""
    judged = [one for one in taken.sets if one["kind"] in ("routing", "multiturn")]
    told = [f"{regime} {shares['cortex']:.0f}" for regime, shares in taken.costs["regimes"].items()]
    return "\n\n".join(
        [
            head,
            _means([one for one in judged if one["source"] not in APART], SHORT),
            _of_english([one for one in judged if one["source"] == "languages"]),
            f"Cost of scripted conversations with `cortex` by regime, sending all = 100: {', '.join(told)}.",
        ]
    )


def markdown(taken: Taken, head: str) -> str:
    """The page: means, recall by set, what is made, what a stage is worth, discovery, costs, what does not hold."""
    judged = [one for one in taken.sets if one["kind"] in ("routing", "multiturn")]
    made = [one for one in judged if one["source"] in MADE]
    spoken = [one for one in judged if one["source"] == "languages"]
    routing = [one for one in judged if one["source"] not in APART]
    held_out = [one for one in routing if one["source"] == "held out"]
    parts = [
        head,
        "A figure of `cortex` with an asterisk misses its goal.",
        "Means over all sets; worst category and p99: the worst of any set (recall: the share of messages whose every "
        "needed tool was sent with the first request):",
        _means(routing),
    ]
    if held_out:
        parts += ["Means over what is held out, by which nothing was ever chosen:", _means(held_out)]
    parts += [
        "Recall at the first request with its 95 % interval · tools sent, by set:",
        _by_set(routing),
        "At other settings, means over the same sets (thresholds multiplied; for `ora` and `punch` the tools that our "
        "own cases need most as their core, which is the best choice in hindsight):",
        _settings(routing),
    ]
    if made:
        parts += [
            "Sets made of our own cases by the seed, and three servers of 30 unknown tools:",
            _by_set(made),
        ]
    if spoken:
        parts += [
            "In seven languages: the same requests row by row, and what is said every day, in each one's own words:",
            _by_set(spoken),
            _of_english(spoken),
            "By language, over all of its sets (home sentences: recall of what is said to the house):",
            table(by_language.rows(spoken, NEAREST)),
        ]
    risks = risky([*routing, *spoken], NEAREST)
    if risks:
        parts += ["Of messages that ask for no such tool, the share that carries one that can do harm:", table(risks)]
    meant = [one for one in taken.by_meaning if one["kind"] in ("routing", "multiturn")]
    if meant:
        own = [one for one in meant if one["source"] not in MADE]
        parts += ["By a sentence model, the recipes that can use one:", _by_set(meant, BY_MEANING, is_by_meaning=True)]
        parts += ["`vector` by that model at other settings, means without what is made:", _settings(own, ("vector",))]
    parts += _of_ours(judged)
    ranked = [one for one in taken.sets if one["kind"] == "retrieval"]
    if ranked:
        parts += ["Discovery over other catalogues, recall@10 · nDCG@10 · median ms:", _retrieval(ranked)]
    meant = [one for one in taken.by_meaning if one["kind"] == "retrieval"]
    if meant:
        parts += ["The same by the sentence model:", _retrieval(meant)]
    timed = [one for one in taken.sets if one["kind"] == "latency"]
    if timed:
        parts += ["Over a catalogue of 10,000 tools, ms at the 99th percentile, plan · discovery:", _latency(timed)]
    parts += [
        "Cost of scripted conversations, sending all = 100 · of what lies above *no tool*, the same talk with no tool "
        "declared at all, the percentage that is paid; at the end how often a conversation `cortex` rewrites a prefix "
        "while it is warm:",
        _costs(taken),
        "Against the other ways:",
        "\n".join(
            f"- {line}" for line in (*verdicts.selection(taken.sets, (BARE, GATED)), *verdicts.costs(taken.costs))
        ),
    ]
    return "\n\n".join(parts)


def plot(taken: Taken) -> str:
    """The one plot: recall against tokens, with the frontiers of what holds chances against thresholds."""
    sets = [
        one
        for one in taken.sets
        if one["kind"] in ("routing", "multiturn") and one["source"] not in APART and "intervals" in one
    ]
    drawn = []
    for name in JUDGED:
        told = [(found["tokens_share"], found["recall"]) for one in sets if (found := one["recipes"].get(name))]
        if told:
            spans = [one["intervals"][name]["recall"] for one in sets]
            share, recall = (mean(values) for values in zip(*told, strict=True))
            drawn.append(
                Mark(
                    name=name,
                    share=share,
                    recall=recall,
                    sets=told,
                    span=_span(recall, spans),
                    frontier=_line(sets, name),
                )
            )
    caption = f"Large: mean over {len(sets)} sets, bars 95 %; small: each set; lines: other settings. Shaded: the goal."
    return svg(drawn, caption, goal_recall=0.97, goal_share=0.10)


def _span(recall: float, spans: Sequence[Sequence[float]]) -> Span:
    """The interval of a mean over sets, each of which has its own; the sets are independent of each other."""
    if not spans:
        return NO_SPAN
    half = sqrt(sum(((high - low) / 2) ** 2 for low, high in spans)) / len(spans)
    return max(0.0, recall - half), min(1.0, recall + half)


def _points(sets: Sets, name: str) -> list[tuple[Mapping[str, Any], ...]]:
    """By setting of the recipe, its point on each set that has one."""
    return list(zip(*(one["frontiers"][name] for one in sets if one.get("frontiers", {}).get(name)), strict=True))


def _line(sets: Sets, name: str) -> list[tuple[float, float, Span]]:
    """A recipe's frontier as means over the sets, by tokens: share of the tokens, recall, its interval.

    A setting that finds no more than a cheaper one is not on it.
    """
    found: list[tuple[float, float, Span]] = []
    for points in _points(sets, name):
        recall = mean(point["recall"] for point in points)
        span = _span(recall, [point["intervals"]["recall"] for point in points])
        found.append((mean(point["tokens_share"] for point in points), recall, span))
    best = [point for point in found if all(point[1] > other[1] for other in found if other[0] < point[0])]
    return sorted(best)


def _settings(sets: Sets, names: Sequence[str] = DRAWN) -> str:
    """Each drawn recipe at each of its settings, as means over the sets."""
    rows = [["recipe", "setting", "recall", "95 %", "tools", "tokens", "share of all"]]
    for name in names:
        for points in _points(sets, name):
            recall = mean(point["recall"] for point in points)
            span = _span(recall, [point["intervals"]["recall"] for point in points])
            tools, tokens, share = (mean(point[key] for point in points) for key in SIZES)
            cells = [f"{recall:.3f}", between(span, 3), f"{tools:.1f}", f"{tokens:,.0f}", f"{share:.3f}"]
            rows.append([name, points[0]["setting"], *cells])
    return table(rows)


def _of_ours(sets: Sets) -> list[str]:
    """What stands for `cortex` alone: each of its stages left out, and each category of our own cases."""
    parts: list[str] = []
    cut = [one for one in sets if "ablation" in one]
    if cut:
        rows = [["`cortex` without", *(one["name"] for one in cut)]]
        for points in zip(*(one["ablation"] for one in cut), strict=True):
            name = points[0]["left_out"] or "*nothing*"
            rows.append([name, *(f"{point['recall']:.3f} · {point['tools_mean']:.1f}" for point in points)])
        parts += ["Recall · tools with one stage left out:", table(rows)]
    worst = goals.SELECTION["routing"]["worst_category_recall"]
    homes = [one for one in sets if one["name"] == "house" and "categories" in one]
    for one in homes:
        rows = [["category", "messages", "recall", "95 %", "tools", "95 %", "tokens", "95 %"]]
        for name, found in one["categories"]["cortex"].items():
            spans = found["intervals"]
            rows.append(
                [
                    name,
                    f"{found['rows']}",
                    _marked("cortex", found["recall"], 3, worst if found["rows"] >= LEAST_ROWS else None),
                    between(spans["recall"], 3),
                    f"{found['tools_mean']:.1f}",
                    between(spans["tools_mean"], 1),
                    f"{found['tokens_mean']:,.0f}",
                    between(spans["tokens_mean"], 0),
                ]
            )
        parts += [f"`cortex` by category, set `{one['name']}`:", table(rows)]
    return parts


def _means(sets: Sets, keys: Sequence[str] = tuple(MEANS)) -> str:
    rows = [["recipe", *(MEANS[key][0] for key in keys)]]
    for name in JUDGED:
        rows.append([name, *(_mean(sets, name, key) for key in keys)])
    aims = goals.SELECTION["routing"]
    rows.append(["*goal*", *(f"*{aims[key].shown}*" if key in aims else "" for key in keys)])
    return table(rows)


def _mean(sets: Sets, name: str, key: str) -> str:
    """The mean over the sets that have the figure; the worst of them for worst category and p99."""
    values = [
        one["recipes"][name][key]
        for one in sets
        if key in one["recipes"].get(name, {}) and not (key in FIRST_ONLY and one["kind"] == "multiturn")
    ]
    if not values:
        return "-"
    value = min(values) if key == "worst_category_recall" else max(values) if key == "p99_ms" else mean(values)
    return _marked(name, value, MEANS[key][1], goals.SELECTION["routing"].get(key))


def _marked(name: str, value: float, digits: int, aim: Goal | None) -> str:
    """A figure as a table has it, with an asterisk where ours misses its goal."""
    return f"{value:,.{digits}f}{'*' if name == 'cortex' and aim and not aim.is_met(value) else ''}"


def _by_set(sets: Sets, names: Sequence[str] = JUDGED, *, is_by_meaning: bool = False) -> str:
    rows = [["set", "source", "rows", *names]]
    for one in sets:
        found = one["recipes"]
        if any("recall" in found[name] for name in names):
            aims = goals.of_set(one, is_by_meaning=is_by_meaning)
            cells = [
                f"{_marked(name, found[name]['recall'], 3, aims.get('recall'))} "
                f"({between(one['intervals'][name]['recall'], 3)}) · "
                f"{_marked(name, found[name]['tools_mean'], 1, aims.get('tools_mean'))}"
                for name in names
            ]
            rows.append([one["name"], sources.HEADS[one["source"]], f"{one['rows']:,}", *cells])
    return table(rows)


def _of_english(sets: Sets) -> str:
    """What `cortex` finds in each language, of what it finds in English."""
    shares = by_language.of_english(sets, "cortex")
    told = ", ".join(f"{name} {_marked('cortex', each, 3, goals.OF_ENGLISH)}" for name, each in shares.items())
    return f"Recall of `cortex` as a share of that in English: {told}; goal: {goals.OF_ENGLISH.shown}."


def _retrieval(sets: Sets) -> str:
    names = [name for name in ORDER if any(name in one["recipes"] for one in sets)]
    rows = [["catalogue", "queries", *names]]
    for one in sets:
        cells = [
            f"{found['r10']:.3f} · {found['ndcg10']:.3f} · {found['p50_ms']:.1f}"
            for found in (one["recipes"][name] for name in names)
        ]
        rows.append([one["name"], f"{one['rows']:,}", *cells])
    return table(rows)


def _latency(sets: Sets) -> str:
    aims = goals.SELECTION["latency"]
    rows = [["", *ORDER, "goal"]]
    for one in sets:
        found = one["recipes"]
        cells = [
            " · ".join(_marked(name, found[name][key], 1, aim) for key, aim in aims.items() if key in found[name])
            for name in ORDER
        ]
        rows.append([one["name"], *cells, " · ".join(aim.shown for aim in aims.values())])
    return table(rows)


def _costs(taken: Taken) -> str:
    rows = [["regime", *ORDER, "no tool", "goal", "rewritten", "goal"]]
    for regime, shares in taken.costs["regimes"].items():
        above = taken.costs["above_floor"][regime]
        aim, anew = goals.COSTS[regime], goals.REWRITES.get(regime)
        cells = [f"{_marked(name, shares[name], 0, aim)} · {above[name]:.0f}" for name in ORDER]
        rewrites = _marked("cortex", taken.costs["details"][regime]["cortex"]["rewrites"], 1, anew)
        floor = f"{taken.costs['floors'][regime]:.0f}"
        rows.append([regime, *cells, floor, aim.shown, rewrites, anew.shown if anew else ""])
    return table(rows)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a Markdown table, the first column to the left."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, "|---|" + "--:|" * (len(rows[0]) - 1))
    return "\n".join(lines)
