"""The figures of a set by category: a message counts for each category that its needs name."""

from collections.abc import Sequence
from statistics import mean
from typing import Any

from cortex.bench import intervals
from cortex.bench.scores import ScoredRow, share


def by_category(rows: Sequence[ScoredRow], seed: int) -> dict[str, dict[str, Any]]:
    """Category -> messages, recall, tools and tokens with their 95 % intervals, by name."""
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
        "intervals": intervals.of_rows(rows, seed),
    }
