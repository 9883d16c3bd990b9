"""The bench's figures as tables for a terminal: columns aligned, the goals in the last line or column."""

from collections.abc import Mapping, Sequence
from typing import Any

from cortex.commands.training import aligned
from tests.bench import by_language, goals, sources

HEADS: Mapping[str, str] = {
    "recall": "recall",
    "recall_own": "own",
    "worst_category_recall": "worst",
    "recall_after_discover": "+discover",
    "recall_after_rescue": "+rescue",
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
SPANNED, SPAN = ("recall", "tools_mean", "tokens_mean"), "95 %"
WORDS = {"setting": "setting", "left_out": "left out"}
DIGITS = 3
RISK_SETS = ("risk", "everyday", "daily_")  # the beginnings of their names


def selection(sets: Sequence[Mapping[str, Any]], *, has_categories: bool = False, is_by_meaning: bool = False) -> str:
    """A table for each set; an asterisk stands behind a figure of `cortex` that misses its goal.

    `has_categories`: under it each recipe's figures by category. `is_by_meaning`: a sentence model was used.
    """
    parts: list[str] = []
    for one in sets:
        parts.append(_set(one, goals.of_set(one, is_by_meaning=is_by_meaning)))
        for name, points in one.get("frontiers", {}).items():
            parts.append(f"{one['name']} · {name} at other settings\n{points_of(points, 'setting')}")
        if "ablation" in one:
            parts.append(f"{one['name']} · cortex without a stage\n{points_of(one['ablation'], 'left_out')}")
        if has_categories:
            parts += [f"{one['name']} · {name}\n{categories(each)}" for name, each in one.get("categories", {}).items()]
    spoken = by_language.rows(sets, list(dict.fromkeys(name for one in sets for name in one["recipes"])))
    parts += [f"by language\n{aligned(spoken)}"] if spoken else []
    risks = risky(sets)
    parts += [f"with a tool that can do harm, though nothing asks for it\n{aligned(risks)}"] if risks else []
    return "\n\n".join(parts)


def risky(sets: Sequence[Mapping[str, Any]], ways: Sequence[str] = ()) -> list[list[str]]:
    """By set and way, the share of messages that carry such a tool and ask for none; [] where nothing was counted.

    The tool that has a goal, then any such tool, then by what the tools do.
    """
    told = [one for one in sets if "risk" in one and one["name"].startswith(RISK_SETS)]
    kinds = list(dict.fromkeys(kind for one in told for found in one["risk"].values() for kind in found["risks"]))
    rows: list[list[str]] = []
    for one in told:
        for way, found in one["risk"].items():
            if ways and way not in ways:
                continue
            aimed = [_risk(way, found["tools"].get(tool, 0.0), aim) for tool, aim in goals.RISK.items()]
            others = (found["any"], *(found["risks"].get(kind) for kind in kinds))
            rows.append([one["name"], way, *aimed, *("-" if value is None else f"{value:.3f}" for value in others)])
    aims = ["goal", "", *(aim.shown for aim in goals.RISK.values()), *("" for _ in ("any", *kinds))]
    return [["set", "way", *goals.RISK, "any", *kinds], *rows, aims] if rows else []


def categories(found: Mapping[str, Mapping[str, Any]]) -> str:
    """A line for each category, with 95 % intervals."""
    rows = [["category", "rows", *(head for key in SPANNED for head in (HEADS[key], SPAN))]]
    rows += [[name, f"{each['rows']:,}", *_spanned(each, each["intervals"])] for name, each in found.items()]
    return aligned(rows)


def points_of(points: Sequence[Mapping[str, Any]], key: str) -> str:
    """A line for each point of a frontier or an ablation; `key`: what sets it apart."""
    others = [other for other in ("recall_own", "chat_any", "llm_nonweb") if any(other in one for one in points)]
    rows = [
        [WORDS[key], *(head for each in SPANNED for head in (HEADS[each], SPAN)), *(HEADS[each] for each in others)]
    ]
    for one in points:
        more = [f"{one[other]:.3f}" if other in one else "-" for other in others]
        rows.append([f"{one[key]}" or "nothing", *_spanned(one, one["intervals"]), *more])
    return aligned(rows)


def between(interval: Sequence[float], digits: int) -> str:
    """An interval as a table has it."""
    return "-".join(f"{edge:,.{digits}f}" for edge in interval)


def _spanned(found: Mapping[str, Any], spans: Mapping[str, Sequence[float]]) -> list[str]:
    """Each figure that has an interval, and the interval."""
    cells: list[str] = []
    for key in SPANNED:
        digits = WHOLE.get(key, DIGITS)
        cells += [f"{found[key]:,.{digits}f}", between(spans[key], digits)] if key in found else ["-", "-"]
    return cells


def costs(found: Mapping[str, Any]) -> str:
    """Regimes down, recipes across, then floor and goal; under it what is above the floor, the recall, the rewrites."""
    names = list(next(iter(found["regimes"].values())))
    rows = [["all = 100", *names, "no tool at all", "goal for cortex"]]
    for regime, shares in found["regimes"].items():
        floor, aim = f"{found['floors'][regime]:.1f}", goals.COSTS[regime].shown
        rows.append([regime, *(_cost(regime, name, shares[name]) for name in names), floor, aim])
    above = [["no tool = 0, all = 100", *names]]
    for regime, shares in found["above_floor"].items():
        above.append([regime, *(f"{shares[name]:.1f}" for name in names)])
    under = [["tools there at once", *names]]
    for regime, details in found["details"].items():
        under.append([regime, *(f"{details[name]['recall']:.3f}" for name in names)])
    anew = [["prefixes rewritten while warm", *names, "goal for cortex"]]
    for regime, goal in goals.REWRITES.items():
        if regime in found["details"]:
            details = found["details"][regime]
            anew.append([regime, *(_rewrites(name, details[name]["rewrites"], goal) for name in names), goal.shown])
    return "\n\n".join(aligned(each) for each in (rows, above, under, anew))


def _set(one: Mapping[str, Any], aims: Mapping[str, goals.Goal]) -> str:
    recipes: Mapping[str, Mapping[str, float]] = one["recipes"]
    spans: Mapping[str, Mapping[str, Sequence[float]]] = one.get("intervals", {})
    keys = [key for key in HEADS if any(key in found for found in recipes.values())]
    spanned = [key for key in SPANNED if any(key in each for each in spans.values())]
    rows = [["", *(head for key in keys for head in (HEADS[key], *([SPAN] if key in spanned else [])))]]
    for name, found in recipes.items():
        row = [name]
        for key in keys:
            row.append(_figure(name, key, found, aims))
            if key in spanned:
                span = spans.get(name, {}).get(key)
                row.append(between(span, WHOLE.get(key, DIGITS)) if span else "-")
        rows.append(row)
    if aims:
        rows.append(
            ["goal", *(c for k in keys for c in (aims[k].shown if k in aims else "", *([""] if k in spanned else [])))]
        )
    source = f" · {sources.HEADS[one['source']]}" if "source" in one else ""
    return f"{one['name']} · {one['kind']} · {one['rows']:,} rows{source}\n{aligned(rows)}"


def _figure(name: str, key: str, found: Mapping[str, float], aims: Mapping[str, goals.Goal]) -> str:
    if key not in found:
        return "-"
    missed = name == goals.OURS and key in aims and not aims[key].is_met(found[key])
    return f"{found[key]:,.{WHOLE.get(key, DIGITS)}f}{'*' if missed else ''}"


def _risk(name: str, value: float, aim: goals.Goal) -> str:
    return f"{value:.3f}{'*' if name == goals.OURS and not aim.is_met(value) else ''}"


def _cost(regime: str, name: str, share: float) -> str:
    missed = name == goals.OURS and not goals.COSTS[regime].is_met(share)
    return f"{share:.1f}{'*' if missed else ''}"


def _rewrites(name: str, count: float, aim: goals.Goal) -> str:
    return f"{count:g}{'*' if name == 'cortex' and not aim.is_met(count) else ''}"
