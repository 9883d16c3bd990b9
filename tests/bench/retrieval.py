"""Ranks a catalogue for each of its queries, as `tools_discover` would under each recipe."""

from collections.abc import Collection, Sequence
from functools import partial

from cortex.selection.discover import Ranking
from cortex.selection.types import Snapshot
from cortex.selection.words import talk
from tests.bench import scores
from tests.bench.catalogues import snapshot_of
from tests.bench.files import RetrievalSet
from tests.bench.rows import Groups, Query
from tests.bench.scores import Scores
from tests.bench.timing import settled, timed

MOST = 10


def with_examples(one: RetrievalSet, *, is_given: bool) -> Snapshot:
    """The set's catalogue, with or without what people say to its tools."""
    return snapshot_of(one.tools, one.examples if is_given else {})


def unknown(one: RetrievalSet) -> dict[str, int]:
    """How often each name is wanted that the catalogue lacks."""
    there = {tool.name for tool in one.tools}
    found: dict[str, int] = {}
    for name in (name for query in one.queries for group in query.groups for name in group):
        if name not in there:
            found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items()))


def known_groups(query: Query, there: Collection[str]) -> Groups:
    """What must be found, by the names of this catalogue alone; () when one of them has none."""
    groups = tuple(tuple(name for name in group if name in there) for group in query.groups)
    return groups if all(groups) else ()


def measured(queries: Sequence[Query], snapshot: Snapshot, rank: Ranking) -> Scores:
    """The figures of one way to rank; queries whose tools the catalogue lacks are left out."""
    names = tuple(entry.name for entry in snapshot.entries)
    there = frozenset(names)
    rank("warm up", snapshot, names, MOST)
    ranked: list[tuple[Groups, tuple[str, ...]]] = []
    taken_ms: list[float] = []
    with settled():
        for query in queries:
            groups = known_groups(query, there)
            hits, ms = timed(partial(rank, worded(query), snapshot, names, MOST))
            taken_ms.append(ms)
            if groups:
                ranked.append((groups, tuple(hit.name for hit in hits)))
    return {**(scores.retrieval(ranked) if ranked else {}), **scores.times(taken_ms)}


def worded(query: Query) -> str:
    """What is searched for: the query; one that leans on what was said ("and the other one?") together with that.

    More of the history loses: on 360 queries in conversations the last text in front of each query takes recall@10
    from .859 to .834, its ranking mixed in at .3 the nDCG from .714 to .689 (2026-11-21).
    """
    said = query.query
    if query.history and (talk.is_follow_up(said) or talk.is_assent(said)):
        return f"{query.history[-1][1]}\n{said}"
    return said
