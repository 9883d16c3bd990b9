"""What a recipe finds at other settings than its own: recall against tools as a line, not one point.

And what each stage of a recipe is worth: the same figures with that stage left out.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from cortex.ports.encoder import Encoder, Vector
from cortex.selection.index import sentence_models
from cortex.selection.recipes import recipe
from cortex.selection.stage import StageFunction
from cortex.selection.stages.epoch import epoch
from cortex.selection.stages.fuse import fuse
from cortex.selection.ways import punch
from cortex.selection.ways.ora import deferred
from cortex.selection.ways.punch import groups
from cortex.selection.ways.vector import centroids
from tests.bench import files, intervals, routing
from tests.bench.files import RoutingSet
from tests.bench.ground import BenchGround
from tests.bench.routing import KnownNames

STRICTNESS = (0.25, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)  # what the thresholds are multiplied by; 1 = the recipe as it is
# How many tools are sent with every message. The share of `ora`, 45 %, holds 39 if it is of the tokens of all schemas,
# and 40 beside the way to the others if it is of the tools.
CORES = {"ora": (40, 39, 20, 10, 5), "punch": (37, 24, 12, 4)}
DRAWN = ("ora", "punch", "vector", "cortex")
# Another reading of what `ora` uses on nearly every turn: five tools with reminders among them.
REMINDING = ("web_search", "task_list", "task_create", "reminders_add", "reminders_list")
_HELD = (fuse, epoch, centroids)
# Without gate, fuse and epoch nothing is sent; mode, skills and missing wait for what no row of a set has.
REMOVABLE = ("pins", "vectors", "learned", "context", "form", "budget")
Point = dict[str, Any]  # as the JSON has it
Stages = tuple[StageFunction, ...]


def settings(name: str) -> Mapping[str, Stages]:
    """What the recipe is drawn at: the setting in words -> its stages, what sends most first."""
    if name not in CORES:
        return {f"thresholds x {strictness:g}": stricter(name, strictness) for strictness in STRICTNESS}
    found = {f"core of {size}": with_core(name, most_needed()[:size]) for size in CORES[name]}
    told = {"its own core": punch.CORE} if name == "punch" else {"its own core": (), "reminders in its core": REMINDING}
    return {**found, **{words: with_core(name, core) for words, core in told.items()}}


def stricter(name: str, strictness: float) -> Stages:
    """The stages of the recipe, their thresholds multiplied."""
    return tuple(partial(stage, strictness=strictness) if stage in _HELD else stage for stage in recipe(name))


def with_core(name: str, core: tuple[str, ...]) -> Stages:
    """The stages of the recipe, with these tools as what every message carries."""
    return tuple(partial(stage, core=core) if stage in (deferred, groups) else stage for stage in recipe(name))


@lru_cache(maxsize=1)
def most_needed() -> tuple[str, ...]:
    """Every tool that our own cases need, the one that most of them need first: the best core in hindsight."""
    rows = [row for one in files.read(files.CASES, lambda _: None).routing for row in one.rows]
    counted = Counter(name for row in rows for group in row.need_tools for name in group)
    return tuple(name for name, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0])))


def without(name: str, left_out: str) -> Stages:
    """The stages of the recipe but this one."""
    return tuple(stage for stage in recipe(name) if stage.name != left_out)


def frontier(one: RoutingSet, names: KnownNames, ground: BenchGround, recipe_name: str, seed: int) -> list[Point]:
    """The recipe's figures at each of its settings; empty for a set that needs no tools."""
    found = []
    with _remembering(ground.snapshot.encoder):
        for words, stages in settings(recipe_name).items():
            point = _point(one, names, replace(ground, stages=stages), recipe_name, seed)
            found += [{"setting": words, **point}] if point else []
    return found


class _Remembering:
    """Implements `Encoder`: what was read at one setting is not read again at the next."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder, self.key = encoder, encoder.key
        self._read: dict[str, Vector] = {}

    def kept(self, texts: Sequence[str]) -> Sequence[Vector]:
        """See `Encoder`."""
        return self._encoder.kept(texts)

    def asked(self, texts: Sequence[str]) -> Sequence[Vector]:
        """See `Encoder`."""
        new = [text for text in dict.fromkeys(texts) if text not in self._read]
        self._read.update(zip(new, self._encoder.asked(new), strict=True))
        return [self._read[text] for text in texts]


@contextmanager
def _remembering(key: str) -> Iterator[None]:
    """The sentence model of this key with a memory, if one is judged."""
    if not key:
        yield
        return
    encoder = sentence_models.named(key)
    sentence_models.register(_Remembering(encoder))
    try:
        yield
    finally:
        sentence_models.register(encoder)


def ablation(one: RoutingSet, names: KnownNames, ground: BenchGround, recipe_name: str, seed: int) -> list[Point]:
    """The recipe's figures whole ("" left out), then without each stage that it can do without."""
    return list(_ablated(one, names, ground, recipe_name, seed))


def _ablated(one: RoutingSet, names: KnownNames, ground: BenchGround, recipe_name: str, seed: int) -> Iterator[Point]:
    there = {stage.name for stage in recipe(recipe_name)}
    for left_out in ("", *(each for each in REMOVABLE if each in there)):
        over = replace(ground, stages=without(recipe_name, left_out))
        yield {"left_out": left_out, **_point(one, names, over, recipe_name, seed)}


def _point(one: RoutingSet, names: KnownNames, ground: BenchGround, recipe_name: str, seed: int) -> Point:
    made = routing.measured(one, names, ground, recipe_name, None)
    kept = ("recall", "recall_own", "tools_mean", "tokens_mean", "tokens_share", "chat_any", "llm_nonweb")
    figures = {key: made.scores[key] for key in kept if key in made.scores}
    if not figures:
        return {}
    return {**figures, "intervals": intervals.of_rows(made.rows, seed)}
