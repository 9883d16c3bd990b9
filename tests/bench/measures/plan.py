"""How long a plan takes: over the shipped registry, and over made-up ones of 64, 1,000 and 10,000 tools."""

import random
from collections.abc import Callable

from cortex.selection.pipeline import plan
from cortex.selection.registry import snapshot as shipping
from cortex.selection.types import PlanInput, RoleView, Snapshot
from cortex.tools import load
from tests.bench.catalogues import snapshot_of
from tests.bench.figure import Bench, Figure, percentile
from tests.bench.rows import OfferedTool
from tests.bench.timing import timed

SIZES = (64, 1_000, 10_000)
PLANS = 300
MESSAGES = (
    "hello",
    "add milk and eggs to my shopping list",
    "what did I commit yesterday, and is anything still open in the notes about the boiler?",
    "run `df -h` in the shell",
    "thanks, that was all for today",
)
VERBS = ("show", "list", "add", "change", "remove", "open", "close", "count", "find", "compare")
SYLLABLES = ("bar", "den", "fil", "gor", "han", "jes", "kol", "lum", "mir", "nos", "pal", "qui", "ras", "tov", "wen")


def measure(bench: Bench) -> list[Figure]:
    """Median and 99th percentile for each registry, with the index warm."""
    shipped = shipping.snapshot_of(load())
    count = sum(not entry.is_meta for entry in shipped.entries)
    figures = _timed(f"the shipped {count} tools", shipped)
    for size in SIZES:
        figures += _timed(f"{size:,} tools", _made(size, bench.dice()))
    return figures


def _timed(name: str, snapshot: Snapshot) -> list[Figure]:
    ready = tuple(entry.name for entry in snapshot.entries)
    role = RoleView(name="bench", tools=tuple(domain.name for domain in snapshot.domains))

    def ask(message: str) -> Callable[[], object]:
        given = PlanInput(snapshot=snapshot, ready=ready, role=role, is_admin=True, message=message)
        return lambda: plan(given)

    for message in MESSAGES:
        ask(message)()  # builds the index
    # Each text is a new one, by its number: what was read of a message is kept for the next plan over it.
    asks = [ask(f"{MESSAGES[number % len(MESSAGES)]} {number}") for number in range(PLANS)]
    taken = [timed(each)[1] for each in (asks if len(ready) < 5_000 else asks[: PLANS // 10])]
    how = f"`plan()` over {len(MESSAGES)} messages, numbered, {len(taken)} plans, CPU time, index built"
    return [
        Figure(what=f"plan, {name}, median", value=percentile(taken, 0.5), unit="ms", how=how),
        Figure(what=f"plan, {name}, 99th percentile", value=percentile(taken, 0.99), unit="ms", how=how),
    ]


def _made(size: int, dice: random.Random) -> Snapshot:
    """Ten tools a category, each about a thing of its own; words are made of syllables."""
    tools: list[OfferedTool] = []
    said: dict[str, tuple[str, ...]] = {}
    for number in range(0, size, len(VERBS)):
        thing = "".join(dice.choices(SYLLABLES, k=3))
        names = {verb: f"{thing}{number}_{verb}" for verb in VERBS[: size - number]}
        said[names[VERBS[0]]] = tuple(f"please {verb} the {thing}" for verb in VERBS[:4])
        for verb, name in names.items():
            summary = f"{verb.capitalize()} a {thing} by its name"
            tools.append(OfferedTool(name=name, description=summary, group=f"{thing}{number}"))
    return snapshot_of(tools, said)
