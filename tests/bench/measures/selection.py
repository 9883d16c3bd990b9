"""How long a plan takes: over the shipped registry, and over made-up ones of 64, 1,000 and 10,000 tools."""

import random
import time
from collections.abc import Callable

from cortex.base.messages import ToolSchema
from cortex.selection.pipeline import plan
from cortex.selection.snapshot import snapshot_of
from cortex.selection.types import Domain, Example, PlanInput, RoleView, Snapshot, ToolEntry, Trigger
from cortex.tools import load
from tests.bench.figure import Bench, Figure, percentile

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
    shipped = snapshot_of(load())
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
    taken = [_ms(each) for each in (asks if len(ready) < 5_000 else asks[: PLANS // 10])]
    how = f"`plan()` over {len(MESSAGES)} messages, numbered, {len(taken)} plans, CPU time, index built"
    return [
        Figure(what=f"plan, {name}, median", value=percentile(taken, 0.5), unit="ms", how=how),
        Figure(what=f"plan, {name}, 99th percentile", value=percentile(taken, 0.99), unit="ms", how=how),
    ]


def _ms(act: Callable[[], object]) -> float:
    start_s = time.thread_time()
    act()
    return (time.thread_time() - start_s) * 1000


def _made(size: int, dice: random.Random) -> Snapshot:
    """Ten tools a category, each about a thing of its own; words are made of syllables."""
    entries: list[ToolEntry] = []
    domains: list[Domain] = []
    for number in range(size // 10 + bool(size % 10)):
        thing = "".join(dice.choices(SYLLABLES, k=3))
        category = f"{thing}{number}"
        names = [f"{category}_{verb}" for verb in VERBS][: size - len(entries)]
        domains.append(
            Domain(
                name=category,
                summary=f"what there is to do with a {thing}",
                triggers=(Trigger(text=thing),),
                examples=tuple(Example(text=f"please {verb} the {thing}", tools=(names[0],)) for verb in VERBS[:4]),
                tokens=8,
            )
        )
        entries += [_entry(name, category, verb, thing) for name, verb in zip(names, VERBS, strict=False)]
    return Snapshot(version=f"made-{size}", entries=tuple(entries), domains=tuple(domains))


def _entry(name: str, category: str, verb: str, thing: str) -> ToolEntry:
    summary = f"{verb.capitalize()} a {thing} by its name"
    schema = ToolSchema(name=name, description=summary, parameters={"type": "object", "properties": {}})
    return ToolEntry(
        name=name,
        category=category,
        summary=summary,
        line=f"{name}: {summary}",
        full=schema,
        stub=schema,
        tokens_full=140,
        tokens_stub=70,
        tokens_line=12,
        tokens_name=4,
    )
