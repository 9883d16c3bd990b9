"""The README's section on choosing tools: every recipe on our own cases and on the folders of `CORTEX_BENCH_DATA`.

Runs what `cortex bench selection` and `cortex bench cost` run, and sets their figures as Markdown and as the one plot.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from cortex.bench import costs, goals, selection, verdicts
from cortex.bench.files import CASES
from cortex.bench.ground import DEFAULT_PROFILE
from cortex.commands.bench import ground
from tests.bench.plot import Mark, svg

FOLDERS = "CORTEX_BENCH_DATA"
ORDER = ("all", "inara", "ora", "punch", "repi", "vector", "cortex")
MEANS = {  # key -> head and digits
    "recall": ("recall", 3),
    "worst_category_recall": ("worst category", 3),
    "recall_after_discover": ("after one discovery", 3),
    "tools_mean": ("tools", 1),
    "tokens_mean": ("tokens", 0),
    "tokens_share": ("share of all", 3),
    "chat_any": ("small talk with a tool", 3),
    "chat_tokens_share": ("its share of all", 3),
    "llm_nonweb": ("writing, advice with one", 3),
    "p50_ms": ("p50 ms", 2),
    "p99_ms": ("p99 ms", 2),
}
FIRST_ONLY = frozenset({"chat_any", "chat_tokens_share", "llm_nonweb"})  # in a conversation the epoch stays
Sets = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What both commands said."""

    sets: Sets
    costs: Mapping[str, Mapping[str, Mapping[str, Any]]]


def take(seed: int, tell: Callable[[str], None]) -> Taken:
    """Run both commands under every recipe."""
    over = ground("admin", DEFAULT_PROFILE)
    named = [Path(folder) for folder in os.environ.get(FOLDERS, "").split(os.pathsep) if folder]
    sets = selection.measured((CASES, *named), ORDER, over, seed, tell)
    return Taken(sets=sets, costs=costs.measured((), ORDER, over, seed, tell))


def markdown(taken: Taken, head: str) -> str:
    """The section: means, recall by set, discovery, costs, and what does not hold."""
    routing = [one for one in taken.sets if one["kind"] in ("routing", "multiturn")]
    parts = [
        head,
        "Means over all sets (recall: the share of messages whose every needed tool was sent with the first request):",
        _means(routing),
        "Recall at the first request · tools sent, by set:",
        _by_set(routing),
    ]
    ranked = [one for one in taken.sets if one["kind"] == "retrieval"]
    if ranked:
        parts += ["Discovery over other catalogues, recall@10 · nDCG@10:", _retrieval(ranked)]
    timed = [one for one in taken.sets if one["kind"] == "latency"]
    if timed:
        parts += ["Over a catalogue of 10,000 tools, ms at the 99th percentile, plan · discovery:", _latency(timed)]
    parts += ["Cost of scripted conversations, sending all = 100:", _costs(taken)]
    failing = [
        line for line in (*verdicts.selection(taken.sets), *verdicts.costs(taken.costs)) if line != verdicts.KEPT
    ]
    parts.append("\n".join(f"- {line}" for line in failing) if failing else verdicts.KEPT)
    return "\n\n".join(parts)


def plot(taken: Taken) -> str:
    """The one plot: recall against tokens."""
    points: dict[str, list[tuple[float, float]]] = {name: [] for name in ORDER}
    for one in taken.sets:
        for name, found in one["recipes"].items():
            if one["kind"] in ("routing", "multiturn") and "recall" in found:
                points[name].append((found["tokens_share"], found["recall"]))
    drawn = [
        Mark(name=name, share=mean(x for x, _ in told), recall=mean(y for _, y in told), sets=told)
        for name, told in points.items()
        if told
    ]
    count = max(len(mark.sets) for mark in drawn)
    caption = f"Filled: cortex. Large: mean over {count} sets; small: each set. Shaded: the goal."
    return svg(drawn, caption, goal_recall=0.97, goal_share=0.10)


def _means(sets: Sets) -> str:
    rows = [["recipe", *(head for head, _ in MEANS.values())]]
    for name in ORDER:
        rows.append([name, *(_mean(sets, name, key) for key in MEANS)])
    aims = goals.SELECTION["routing"]
    rows.append(["*goal*", *(f"*{aims[key].shown}*" if key in aims else "" for key in MEANS)])
    return table(rows)


def _mean(sets: Sets, name: str, key: str) -> str:
    """The mean over the sets that have the figure; the worst of them for worst category and p99."""
    values = [
        one["recipes"][name][key]
        for one in sets
        if key in one["recipes"][name] and not (key in FIRST_ONLY and one["kind"] == "multiturn")
    ]
    if not values:
        return "-"
    value = min(values) if key == "worst_category_recall" else max(values) if key == "p99_ms" else mean(values)
    return f"{value:,.{MEANS[key][1]}f}"


def _by_set(sets: Sets) -> str:
    rows = [["set", "rows", *ORDER]]
    for one in sets:
        found = one["recipes"]
        if any("recall" in found[name] for name in ORDER):
            cells = [f"{found[name]['recall']:.3f} · {found[name]['tools_mean']:.1f}" for name in ORDER]
            rows.append([one["name"], f"{one['rows']:,}", *cells])
    return table(rows)


def _retrieval(sets: Sets) -> str:
    names = [name for name in ORDER if any(name in one["recipes"] for one in sets)]
    rows = [["catalogue", "queries", *names]]
    for one in sets:
        cells = [f"{one['recipes'][name]['r10']:.3f} · {one['recipes'][name]['ndcg10']:.3f}" for name in names]
        rows.append([one["name"], f"{one['rows']:,}", *cells])
    return table(rows)


def _latency(sets: Sets) -> str:
    rows = [["", *ORDER]]
    for one in sets:
        found = one["recipes"]
        cells = [
            f"{found[name]['p99_ms']:,.1f} · {found[name]['rank_p99_ms']:,.1f}"
            if "rank_p99_ms" in found[name]
            else f"{found[name]['p99_ms']:,.1f}"
            for name in ORDER
        ]
        rows.append([one["name"], *cells])
    return table(rows)


def _costs(taken: Taken) -> str:
    rows = [["regime", *ORDER, "goal"]]
    for regime, shares in taken.costs["regimes"].items():
        rows.append([regime, *(f"{shares[name]:.0f}" for name in ORDER), goals.COSTS[regime].shown])
    return table(rows)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as a Markdown table, the first column to the left."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, "|---|" + "--:|" * (len(rows[0]) - 1))
    return "\n".join(lines)
