"""`make bench`: takes every measure of the folder, prints the table, and with `--update` keeps it.

It stands in docs/benchmarks.md then.

`make bench ARGS="start page --runs 3"` takes some of them, `ARGS="messages --database processes --scale .1"` one on
PostgreSQL with several processes and a tenth of its size; `recipes` is the judgement of the ways to choose tools, over
our own cases and the folders that CORTEX_BENCH_DATA names; `prompts` the first requests by kind of model.

A measure is a file in `measures/` with `measure(bench) -> list[Figure]`; its stem is its name on the command line.
`selection`, `cost`, `recall` and `month` are no measures: they judge choosing, by words of their own (`commands.py`).
`weight` is what Cortex takes in a home where people live, held to what is committed (`weight/main.py`).
"""

import argparse
import importlib
import json
import os
import platform
import sys
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench import commands, houses, prompts, recipes
from tests.bench import table as tables
from tests.bench.commands import SEED
from tests.bench.figure import Bench, Figure, Unmeasured
from tests.bench.weight import main as weight

MEASURES = Path(__file__).parent / "measures"
PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
PLOT = PAGE.with_name("recall-tokens.svg")
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
RECIPES_BEGIN, RECIPES_END = "<!-- recipes:begin -->", "<!-- recipes:end -->"
TABLES_BEGIN, TABLES_END = "<!-- tables:begin -->", "<!-- tables:end -->"
PROMPTS_BEGIN, PROMPTS_END = "<!-- prompts:begin -->", "<!-- prompts:end -->"
RECIPES, PROMPTS = "recipes", "prompts"
RUNS = 5


def main() -> int:
    """Take them, print them; 1 when a measure could not be taken."""
    names = sorted([RECIPES, PROMPTS, *(path.stem for path in MEASURES.glob("[a-z]*.py"))])
    parser = argparse.ArgumentParser(
        prog="make bench",
        description="Every figure that docs/benchmarks.md quotes.",
        epilog=f"To judge a way of choosing tools begin with one of {', '.join(commands.NAMES)} (docs/bench.md); "
        "memory and processor of a home where people live: weight.",
    )
    parser.add_argument("names", nargs="*", metavar="measure", help=f"of {', '.join(names)}; none: all")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.add_argument("--update", action="store_true", help="write them into docs/benchmarks.md")
    parser.add_argument("--runs", type=int, default=RUNS, help="repetitions of which the median is taken")
    parser.add_argument("--seed", type=int, default=SEED, help="of made-up data")
    kinds = ", ".join(houses.KINDS)
    parser.add_argument("--database", action="append", choices=houses.KINDS, help=f"for measures of many: {kinds}")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full size, for measures of many")
    given = parser.parse_args()
    unknown = set(given.names) - set(names)
    if unknown:
        parser.error(f"no such measure: {', '.join(sorted(unknown))}")
    head = {"date": datetime.now(UTC).date().isoformat(), "seed": given.seed, "recipe": "cortex", "machine": machine()}
    wanted = given.names or names
    timed = [name for name in wanted if name not in (RECIPES, PROMPTS)]
    figures, missed = _performance(timed, given)
    sizes = _sizes(f"{head['date']}, o200k tokens") if PROMPTS in wanted else ""
    taken = recipes.take(given.seed, _tell) if RECIPES in wanted else None
    if given.json:
        judged = {"sets": taken.sets, "by_meaning": taken.by_meaning, **taken.costs} if taken else {}
        parts = {"figures": [asdict(one) for one in figures], "missed": missed, **keyed(figures), **judged}
        _say(json.dumps({**head, **parts}, indent=2))
    if not given.json and timed:
        _say(table(head, figures, missed))
    if not given.json and sizes:
        _say(sizes)
    if not given.json and taken:
        _say(f"\n{tables.selection(taken.sets)}\n\n{tables.costs(taken.costs)}")
        if taken.by_meaning:
            _say(f"\nBy a sentence model:\n\n{tables.selection(taken.by_meaning, is_by_meaning=True)}")
    if given.update and timed:
        update(PAGE, table(head, figures, missed))
    if given.update and sizes:
        update(PAGE, sizes, PROMPTS_BEGIN, PROMPTS_END)
    if given.update and taken:
        told = f"{head['date']} · {head['machine']} · seed {head['seed']}"
        update(PAGE, recipes.summary(taken, told), RECIPES_BEGIN, RECIPES_END)
        update(PAGE, recipes.markdown(taken, told), TABLES_BEGIN, TABLES_END)
        PLOT.write_text(recipes.plot(taken), encoding="utf-8")
    return 1 if missed else 0


def _sizes(told: str) -> str:
    with tempfile.TemporaryDirectory(prefix="cortex-bench-") as folder:
        return prompts.markdown(Path(folder) / "home", told)


def _performance(names: list[str], given: argparse.Namespace) -> tuple[list[Figure], dict[str, str]]:
    """These measures taken; what could not be, with the reason."""
    figures: list[Figure] = []
    missed: dict[str, str] = {}
    for name in names:
        _tell(f"measuring {name} …")
        try:
            figures += _taken(name, given)
        except Unmeasured as error:
            missed[name] = str(error)
    return figures, missed


def keyed(figures: list[Figure]) -> dict[str, dict[str, float]]:
    """The values that have a place of their own in the JSON."""
    found: dict[str, dict[str, float]] = {}
    for one in figures:
        if one.key:
            found.setdefault(one.key[0], {})[one.key[1]] = one.value
    return found


def machine() -> str:
    """The class of machine, without its name, and how busy it was with other things when the bench began."""
    memory_gb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    cores = len(os.sched_getaffinity(0))
    python = platform.python_version()
    load = os.getloadavg()[0]
    system = platform.system()
    return f"{cores} cores {platform.machine()}, {memory_gb:.0f} GB, {system}, Python {python}, load {load:.1f} before"


def table(head: dict[str, Any], figures: list[Figure], missed: dict[str, str]) -> str:
    """The figures as a Markdown table under one line that says when and where they were taken."""
    lines = [
        f"{head['date']} · {head['machine']} · recipe {head['recipe']} · seed {head['seed']}",
        "",
        "| what | figure | goal | how |",
        "|---|--:|---|---|",
    ]
    for one in figures:
        goal = one.aim if one.is_met else f"{one.aim}, missed"
        lines.append(f"| {one.what} | {one.shown} | {goal} | {one.how} |")
    lines += [f"| {name} | not measured | | {why} |" for name, why in missed.items()]
    return "\n".join(lines)


def update(page: Path, text: str, begin: str = BEGIN, end: str = END) -> None:
    """Put the text between these markers of the page."""
    before, rest = page.read_text(encoding="utf-8").split(begin, 1)
    after = rest.split(end, 1)[1]
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def _taken(name: str, given: argparse.Namespace) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="cortex-bench-") as folder:
        module = importlib.import_module(f"tests.bench.measures.{name}")
        databases = tuple(given.database or ("sqlite",))
        bench = Bench(folder=Path(folder), seed=given.seed, runs=given.runs, databases=databases, scale=given.scale)
        found: list[Figure] = module.measure(bench)
        return found


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


def _tell(text: str) -> None:
    sys.stderr.write(text + "\n")


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["weight"]:
        sys.exit(weight.main(words[1:], machine))
    sys.exit(commands.main(words) if words and words[0] in commands.NAMES else main())
