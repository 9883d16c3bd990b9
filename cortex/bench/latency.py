"""How long plan and discovery take over 10,000 tools: the registry, grown with those of other catalogues."""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from itertools import count

from cortex.bench.catalogues import entry_of
from cortex.bench.files import Data
from cortex.bench.ground import BenchGround
from cortex.bench.rows import OfferedTool
from cortex.bench.scores import Scores, times
from cortex.bench.timing import settled, timed
from cortex.selection.discover import RANKINGS
from cortex.selection.pipeline import plan
from cortex.selection.types import Domain, Snapshot, ToolEntry

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
    own = [entry for entry in snapshot.entries if not entry.is_meta]
    metas = [entry for entry in snapshot.entries if entry.is_meta]
    more: list[ToolEntry] = []
    for tool in _numbered(tools):
        if len(own) + len(more) + len(metas) >= size:
            break
        if tool.name not in taken:
            taken.add(tool.name)
            more.append(entry_of(tool))
    homes = {entry.category for entry in more} - {domain.name for domain in snapshot.domains}
    domains = tuple(Domain(name=home, summary=home, tokens=5) for home in sorted(homes))
    told = repr([snapshot.version, [(entry.category, entry.full) for entry in more]])
    return Snapshot(
        version=blake2b(told.encode(), digest_size=8).hexdigest(),
        entries=(*own, *more, *metas),
        domains=(*snapshot.domains, *domains),
        several=snapshot.several,
        none=snapshot.none,
    )


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
