"""The bench's figures as tables for a terminal: columns aligned, the goals in the last line or column."""

from collections.abc import Mapping, Sequence
from typing import Any

from cortex.bench import goals

HEADS: Mapping[str, str] = {
    "recall": "recall",
    "recall_own": "own",
    "worst_category_recall": "worst",
    "recall_after_discover": "+discover",
    "tools_mean": "tools",
    "tokens_mean": "tokens",
    "tokens_share": "share",
    "chat_any": "chat any",
    "chat_tokens_share": "chat share",
    "llm_nonweb": "llm non-web",
    "r5": "r@5",
    "r10": "r@10",
    "ndcg10": "ndcg@10",
    "p50_ms": "p50 ms",
    "p99_ms": "p99 ms",
    "rank_p50_ms": "rank p50",
    "rank_p99_ms": "rank p99",
}
WHOLE = {"tokens_mean": 0, "tools_mean": 1}
DIGITS = 3


def selection(sets: Sequence[Mapping[str, Any]]) -> str:
    """A table for each set; an asterisk stands behind a figure of `cortex` that misses its goal."""
    return "\n\n".join(_set(one) for one in sets)


def costs(found: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Regimes down, recipes across, then the goal; under it the first-request recall behind each share."""
    names = list(next(iter(found["regimes"].values())))
    rows = [["all = 100", *names, "goal for cortex"]]
    for regime, shares in found["regimes"].items():
        rows.append([regime, *(_cost(regime, name, shares[name]) for name in names), goals.COSTS[regime].shown])
    under = [["tools there at once", *names]]
    for regime, details in found["details"].items():
        under.append([regime, *(f"{details[name]['recall']:.3f}" for name in names)])
    return f"{aligned(rows)}\n\n{aligned(under)}"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """The rows as lines, the first column to the left, all others to the right."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if not at else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _set(one: Mapping[str, Any]) -> str:
    recipes: Mapping[str, Mapping[str, float]] = one["recipes"]
    aims = goals.SELECTION[one["kind"]]
    keys = [key for key in HEADS if any(key in found for found in recipes.values())]
    rows = [["", *(HEADS[key] for key in keys)]]
    rows += [[name, *(_figure(name, key, found, aims) for key in keys)] for name, found in recipes.items()]
    if aims:
        rows.append(["goal", *(aims[key].shown if key in aims else "" for key in keys)])
    title = f"{one['name']} · {one['kind']} · {one['rows']:,} rows"
    return f"{title}\n{aligned(rows)}"


def _figure(name: str, key: str, found: Mapping[str, float], aims: Mapping[str, goals.Goal]) -> str:
    if key not in found:
        return "-"
    missed = name == "cortex" and key in aims and not aims[key].is_met(found[key])
    return f"{found[key]:,.{WHOLE.get(key, DIGITS)}f}{'*' if missed else ''}"


def _cost(regime: str, name: str, share: float) -> str:
    missed = name == "cortex" and not goals.COSTS[regime].is_met(share)
    return f"{share:.1f}{'*' if missed else ''}"
