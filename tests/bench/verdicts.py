"""What must hold of `cortex` against the other recipes, in sentences: on each set and in each regime.

A recipe that sends (nearly) everything in its first request finds all by that: only `cortex`'s tokens are held
against it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tests.bench.goals import OURS

CONTROL = "all"
NEAR_RECALL, NEAR_COST, EVERYTHING = 0.05, 1.05, 0.95
KEPT_SETS = (
    "No other recipe finds more on any set without sending nearly everything, or comes within .05 of it with fewer "
    "tokens."
)
KEPT_REGIMES = (
    "In no regime does it cost more than sending all, or over 5 % more than another recipe that has the tools at once "
    "nearly as often (.05 less)."
)


def selection(sets: Sequence[Mapping[str, Any]], of_our_size: Collection[str] = ()) -> list[str]:
    """Where another recipe finds more, or finds about as much with fewer tokens; else one line that says it holds.

    `of_our_size`: ways that send as many tools as ours by their making, and so are judged by what they find.
    """
    found = [line for one in sets for line in _set(one["name"], one["recipes"], of_our_size)]
    return found or [KEPT_SETS]


def costs(found: Mapping[str, Any]) -> list[str]:
    """Where `cortex` costs more than `all`, or over 5 % more than the cheapest recipe that finds about as much."""
    lines: list[str] = []
    for regime, shares in found["regimes"].items():
        details = found["details"][regime]
        if OURS not in shares:
            continue
        ours, recall = shares[OURS], details[OURS]["recall"]
        if ours > 100:
            lines.append(f"{regime}: cortex costs {ours:.1f}, more than sending all.")
        near = {name: share for name, share in shares.items() if details[name]["recall"] >= recall - NEAR_RECALL}
        best = min(near, key=lambda name: near[name])
        if ours > NEAR_COST * near[best]:
            lines.append(
                f"{regime}: cortex costs {ours:.1f}, {best} {near[best]:.1f} at recall {details[best]['recall']:.2f}."
            )
    return lines or [KEPT_REGIMES]


def _set(name: str, recipes: Mapping[str, Mapping[str, float]], of_our_size: Collection[str]) -> list[str]:
    ours = recipes.get(OURS, {})
    if "recall" not in ours:
        return []
    lines: list[str] = []
    for other, theirs in recipes.items():
        if other in (OURS, CONTROL):
            continue
        if theirs["recall"] > ours["recall"] and theirs["tokens_share"] < EVERYTHING:
            lines.append(f"{name}: {other} finds {theirs['recall']:.3f}, cortex {ours['recall']:.3f}.")
        is_near = other not in of_our_size and theirs["recall"] >= ours["recall"] - NEAR_RECALL
        if is_near and theirs["tokens_mean"] < ours["tokens_mean"]:
            lines.append(f"{name}: {other} sends {theirs['tokens_mean']:.0f} tokens, cortex {ours['tokens_mean']:.0f}.")
    return lines
