"""95 % intervals: Wilson's for a share of messages, drawn ones for means and conversations; figures by category.

A conversation is drawn as a whole, since its turns are alike. The numbers are drawn by a seed (Efron 1979).
"""

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import mean
from typing import Any

import numpy as np

from tests.bench.scores import ScoredRow, share

Interval = tuple[float, float]
Z = 1.96
DRAWS = 1_000
EDGES = (2.5, 97.5)


def wilson(share: float, count: int) -> Interval:
    """Of a share of `count` cases (Wilson 1927); from 0 to 1 where there is none."""
    if not count:
        return 0.0, 1.0
    middle = (share + Z * Z / (2 * count)) / (1 + Z * Z / count)
    half = Z / (1 + Z * Z / count) * sqrt(share * (1 - share) / count + Z * Z / (4 * count * count))
    return max(0.0, middle - half), min(1.0, middle + half)


def of_rows(rows: Sequence[ScoredRow], seed: int) -> dict[str, Interval]:
    """By key (recall, tools_mean, tokens_mean) of the rows that need tools and can be judged; empty without any."""
    tool = [one for one in rows if one.row.kind == "tool" and one.needs]
    if not tool:
        return {}
    groups: dict[str, list[ScoredRow]] = {}
    for number, one in enumerate(tool):
        talk = one.row.conversation
        groups.setdefault(f"c {talk}" if talk is not None else f"row {number}", []).append(one)
    kept = list(groups.values())
    sums = {
        "recall": [sum(one.is_met for one in each) for each in kept],
        "tools_mean": [sum(len(one.names) for one in each) for each in kept],
        "tokens_mean": [sum(one.tokens for one in each) for each in kept],
    }
    found = drawn(sums, [len(each) for each in kept], seed)
    if len(kept) == len(tool):
        found["recall"] = wilson(sum(sums["recall"]) / len(tool), len(tool))
    return {key: (round(low, 4), round(high, 4)) for key, (low, high) in found.items()}


def drawn(sums: Mapping[str, Sequence[float]], counts: Sequence[int], seed: int) -> dict[str, Interval]:
    """By key, the interval of the mean: `sums` of each group's values, `counts` how many values each group has.

    All keys see the same draws. A group is drawn whole.
    """
    dice = np.random.default_rng(seed)
    places = dice.integers(0, len(counts), size=(DRAWS, len(counts)))
    sizes = np.asarray(counts, dtype=np.float64)[places].sum(axis=1)
    found = {}
    for key, values in sums.items():
        means = np.asarray(values, dtype=np.float64)[places].sum(axis=1) / sizes
        low, high = np.percentile(means, EDGES)
        found[key] = (float(low), float(high))
    return found


def by_category(rows: Sequence[ScoredRow], seed: int) -> dict[str, dict[str, Any]]:
    """Category -> messages, recall, tools and tokens with their intervals, by name.

    A message counts for each category that its needs name.
    """
    homes: dict[str, list[ScoredRow]] = {}
    for one in rows:
        if one.row.kind == "tool" and one.needs:
            for category in one.categories:
                homes.setdefault(category, []).append(one)
    return {name: _figures(homes[name], seed) for name in sorted(homes)}


def _figures(rows: Sequence[ScoredRow], seed: int) -> dict[str, Any]:
    return {
        "rows": len(rows),
        "recall": share(one.is_met for one in rows),
        "tools_mean": round(mean(len(one.names) for one in rows), 2),
        "tokens_mean": round(mean(one.tokens for one in rows), 1),
        "intervals": of_rows(rows, seed),
    }
