"""`make bench`: takes every measure of the folder, prints the table, and with `--update-readme` writes it into README.

`make bench ARGS="start page --runs 3"` takes some of them.

A measure is a file in `measures/` with `measure(bench) -> list[Figure]`; its stem is its name on the command line.
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

from tests.bench.figure import Bench, Figure, Unmeasured

MEASURES = Path(__file__).parent / "measures"
README = Path(__file__).parents[2] / "README.md"
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
SEED, RUNS = 20261121, 5


def main() -> int:
    """Take them, print them; 1 when a measure could not be taken."""
    names = sorted(path.stem for path in MEASURES.glob("[a-z]*.py"))
    parser = argparse.ArgumentParser(prog="make bench", description="Every figure that README quotes.")
    parser.add_argument("names", nargs="*", metavar="measure", help=f"of {', '.join(names)}; none: all")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    parser.add_argument("--update-readme", action="store_true", help="write the table into README.md")
    parser.add_argument("--runs", type=int, default=RUNS, help="repetitions of which the median is taken")
    parser.add_argument("--seed", type=int, default=SEED, help="of made-up data")
    given = parser.parse_args()
    unknown = set(given.names) - set(names)
    if unknown:
        parser.error(f"no such measure: {', '.join(sorted(unknown))}")
    head = {"date": datetime.now(UTC).date().isoformat(), "seed": given.seed, "recipe": "cortex", "machine": machine()}
    figures: list[Figure] = []
    missed: dict[str, str] = {}
    for name in given.names or names:
        _tell(f"measuring {name} …")
        try:
            figures += _taken(name, given.seed, given.runs)
        except Unmeasured as error:
            missed[name] = str(error)
    if given.json:
        _say(json.dumps({**head, "figures": [asdict(one) for one in figures], "missed": missed}, indent=2))
    else:
        _say(table(head, figures, missed))
    if given.update_readme:
        update(README, table(head, figures, missed))
    return 1 if missed else 0


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


def update(readme: Path, text: str) -> None:
    """Put the table between the markers of the README."""
    before, rest = readme.read_text(encoding="utf-8").split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    readme.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def _taken(name: str, seed: int, runs: int) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="cortex-bench-") as folder:
        module = importlib.import_module(f"tests.bench.measures.{name}")
        found: list[Figure] = module.measure(Bench(folder=Path(folder), seed=seed, runs=runs))
        return found


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


def _tell(text: str) -> None:
    sys.stderr.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
