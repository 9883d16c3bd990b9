"""95 % intervals: Wilson's for a share of messages, drawn ones for means and for what comes in conversations.

A conversation is drawn as a whole, since its turns are alike. The numbers are drawn by a seed (`bootstrap.py`).
"""

from collections.abc import Sequence
from math import sqrt

from cortex.base import scan
from cortex.bench.scores import ScoredRow

Interval = tuple[float, float]
Z = 1.96


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
    drawn: dict[str, Interval] = scan.load("cortex.bench.bootstrap").intervals(sums, [len(each) for each in kept], seed)
    if len(kept) == len(tool):
        drawn["recall"] = wilson(sum(sums["recall"]) / len(tool), len(tool))
    return {key: (round(low, 4), round(high, 4)) for key, (low, high) in drawn.items()}
