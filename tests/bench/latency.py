"""How long plan and discovery take over 10,000 tools: the registry, grown with those of other catalogues."""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count

from cortex.selection.discover import RANKINGS
from cortex.selection.pipeline import plan
from cortex.selection.types import Snapshot
from tests.bench.catalogues import joined, snapshot_of
from tests.bench.files import Data
from tests.bench.ground import BenchGround
from tests.bench.rows import OfferedTool
from tests.bench.scores import Scores, times
from tests.bench.timing import settled, timed

SIZE, MESSAGES, MOST = 10_000, 200, 10
LEAST, PATIENCE_MS = 10, 10_000
NAME = "catalogue of 10,000"


def messages(data: Sequence[Data], seed: int) -> tuple[str, ...]:
    """Some of the texts and queries of the data, the same for a seed."""
    told = [row.text for one in data for each in one.routing for row in each.rows]
    told += [query.query for one in data for each in one.retrieval for query in each.queries]
    dice = random.Random(seed)  # noqa: S311 - a draw, no secret
    return tuple(dice.sample(told, min(MESSAGES, len(told))))


def grown(snapshot: Snapshot, tools: Sequence[OfferedTool], size: int) -> Snapshot:
    """The snapshot with these tools, and numbered copies of them, until it has `size` in all."""
    taken = {entry.name for entry in snapshot.entries}
    own, more = len(taken), dict[str, OfferedTool]()
    for tool in _numbered(tools):
        if own + len(more) >= size:
            break
        if tool.name not in taken:
            more.setdefault(tool.name, tool)
    return joined(snapshot, snapshot_of(tuple(more.values()), {}))


def measured(said: Sequence[str], ground: BenchGround, recipe: str) -> Scores:
    """Milliseconds of `plan()`, and of the recipe's ranking where it has one; what is searched stands built."""
    asked = [ground.asked(text, recipe) for text in said]
    plan(asked[0])
    with settled():
        found = times(_taken([partial(plan, given) for given in asked]))
    if recipe in RANKINGS:
        rank = RANKINGS[recipe]
        rank(said[0], ground.snapshot, ground.ready, MOST)
        with settled():
            ranked = times(_taken([partial(rank, text, ground.snapshot, ground.ready, MOST) for text in said]))
        found |= {f"rank_{key}": value for key, value in ranked.items()}
    return found


def _taken(acts: Sequence[Callable[[], object]]) -> list[float]:
    """Milliseconds of each; no more are taken once enough are and the patience is spent."""
    taken: list[float] = []
    for act in acts:
        if len(taken) >= LEAST and sum(taken) > PATIENCE_MS:
            break
        taken.append(timed(act)[1])
    return taken


def _numbered(tools: Sequence[OfferedTool]) -> Iterator[OfferedTool]:
    """The tools, then the same again with a number behind their names, without end; none of none."""
    yield from tools
    for number in count(2) if tools else ():
        yield from (tool.model_copy(update={"name": f"{tool.name}_{number}"}) for tool in tools)
