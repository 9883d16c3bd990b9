"""`python -m tests.bench.beside_rival [FOLDER …]`: Cortex and the simple way on the same sets, by the same code.

Own cases, languages and what is made of them, then the folders that are named. The rival is judged at the bar where it
sends as many tools for a message that needs some as Cortex does, without a gate and behind soft ones, and at a fixed
bar. Only messages that stand alone: the rival has no memory. README's tables have it too (`recipes.py`).
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cortex.bench import files, routing, variations
from cortex.bench.files import CASES, LANGUAGES, RoutingSet
from cortex.bench.ground import DEFAULT_PROFILE, BenchGround
from cortex.bench.routing import JudgedSet, whole_tokens
from cortex.bench.scores import routing as scored
from cortex.commands.bench import SEED, ground
from tests.bench.recipes import table
from tests.bench.rival import OURS, RivalWay, fitted, ways

HEADS = ("set", "rows", "way", "recall", "tools", "small talk with a tool", "writing, advice beyond the web")
FIGURES = ("recall", "tools_mean", "chat_any", "llm_nonweb")
FIXED = 0.2


def main(folders: Sequence[str]) -> None:
    """Fit the rival, judge both, print a table."""
    over = ground("admin", DEFAULT_PROFILE)
    rivals = ways(fitted(over.snapshot), over)
    rows = [list(HEADS)]
    for one in sets([Path(folder) for folder in folders]):
        for way, found in figures(rivals, one, over):
            cells = [f"{found.scores[key]:.3f}" if key in found.scores else "-" for key in FIGURES]
            rows.append([one.name, f"{len(one.rows):,}", way, *cells])
    sys.stdout.write(table(rows) + "\n")


def figures(rivals: Mapping[str, RivalWay], one: RoutingSet, over: BenchGround) -> Iterator[tuple[str, JudgedSet]]:
    """Cortex as it is, then the rival as many, then from the fixed bar up."""
    names = routing.known(one.rows, over)
    rows = routing.given(one, names, over, OURS)
    ours = JudgedSet(scores=scored(rows, whole_tokens(over), can_discover=False), rows=tuple(rows))
    yield OURS, ours
    for name, way in rivals.items():
        yield f"{name}, as many ({way.bar(one, ours):.3f})", way(one, names, over, {OURS: ours})
        yield f"{name}, from {FIXED:g}", way.fixed(one, names, over, FIXED)


def sets(folders: Sequence[Path]) -> list[RoutingSet]:
    """What stands alone of our own cases, of the languages, of what is made, and of the folders."""
    cases = files.read(CASES, _quiet).routing
    others = [one for folder in (LANGUAGES, *folders) for one in files.read(folder, _quiet).routing]
    return [one for one in (*cases, *variations.made(cases, SEED), *others) if not one.is_multiturn]


def _quiet(line: str) -> None:
    """The bench itself tells what it passes over."""


if __name__ == "__main__":
    main(sys.argv[1:])
