"""Whether the headline figures of `cortex` on our own cases are as good as they were: a part of `make check`.

`python -m tests.bench.baseline` compares with `baseline.json` beside it; `--update` writes today's figures there, to be
read in the diff. The figures are deterministic: their noise is what a few cases more or less would change.
"""

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bench import costs, files, selection
from tests.bench.commands import SEED
from tests.bench.files import CASES
from tests.bench.ground import BenchGround, ground
from tests.bench.scores import LEAST_ROWS

BASELINE = Path(__file__).parent / "baseline.json"
RECIPES = ("all", "cortex")
BETTER_HIGH = frozenset({"recall", "recall_own", "worst_category_recall", "recall_after_discover"})
BETTER_LOW = frozenset({"chat_any", "llm_nonweb", "tools_mean", "tokens_share", "chat_tokens_share"})
SIZES = frozenset({"tools_mean", "tokens_share", "chat_tokens_share"})
KINDS = {"chat_any": "chat", "llm_nonweb": "llm"}
SIZE_NOISE, COST_NOISE = 0.05, 0.02
ROW_SHARE = 0.05  # of all tools' tokens: what one message of small talk carries that carries any
Figures = dict[str, dict[str, float]]  # set or "cost" -> key -> figure of `cortex`
Rows = dict[str, dict[str, int]]  # set -> kind -> rows


def main() -> int:
    """Measure, compare or update; 1 when a figure became worse."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.baseline", description="Keep the headline figures.")
    parser.add_argument("--update", action="store_true", help="take today's figures as the ones to keep")
    given = parser.parse_args()
    rows, now = headline(ground())
    if given.update:
        BASELINE.write_text(json.dumps({"rows": rows, "figures": now}, indent=2) + "\n", encoding="utf-8")
        return 0
    kept = json.loads(BASELINE.read_text(encoding="utf-8"))
    worse = list(regressions(kept["rows"], kept["figures"], now))
    for line in worse:
        sys.stderr.write(f"{line}\n")
    if worse:
        sys.stderr.write("If that is meant: python -m tests.bench.baseline --update, and say why in the commit.\n")
    return 1 if worse else 0


def headline(over: BenchGround) -> tuple[Rows, Figures]:
    """How many rows of each kind each set has, and the figures of `cortex` that are kept."""
    sets = selection.measured((CASES,), RECIPES, over, SEED, _quiet)
    shares = costs.measured((), RECIPES, over, SEED, _quiet)["regimes"]
    found = {one["name"]: _kept(one["kind"], one["recipes"]["cortex"]) for one in sets}
    rows = {one.name: dict(Counter(str(row.kind) for row in one.rows)) for one in files.read(CASES, _quiet).routing}
    return rows, {**found, "cost": {regime: each["cortex"] for regime, each in shares.items()}}


def regressions(rows: Rows, kept: Figures, now: Figures) -> Iterator[str]:
    """A line for each figure that became worse by more than its noise, or is gone."""
    for name, figures in kept.items():
        for key, before in figures.items():
            after = now.get(name, {}).get(key)
            if after is None:
                yield f"{name}, {key}: not measured any more (was {before:g})"
                continue
            loss = before - after if key in BETTER_HIGH else after - before
            if loss > noise(name, key, before, rows.get(name, {}).get(KINDS.get(key, "tool"), 1)):
                yield f"{name}, {key}: {after:g}, was {before:g}"


def noise(name: str, key: str, value: float, rows: int) -> float:
    """What may change without a word: a standard error of a share, a twentieth of a size, a fiftieth of a cost.

    Of small talk at least what one more message with tools costs.
    """
    if name == "cost":
        return COST_NOISE * value
    if key in SIZES:
        return max(SIZE_NOISE * value, ROW_SHARE / rows if key == "chat_tokens_share" else 0.0)
    counted = LEAST_ROWS if key == "worst_category_recall" else rows
    return max(math.sqrt(value * (1 - value) / counted), 1.5 / counted)


def _kept(kind: str, found: dict[str, Any]) -> dict[str, float]:
    """Those that are kept; what a chat turn of a conversation carries is its epoch's matter."""
    kept = BETTER_HIGH | (BETTER_LOW if kind == "routing" else frozenset({"tools_mean", "tokens_share"}))
    return {key: value for key, value in found.items() if key in kept}


def _quiet(line: str) -> None:
    """Progress is of no use in a check."""


if __name__ == "__main__":
    sys.exit(main())
