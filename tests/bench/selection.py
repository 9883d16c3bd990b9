"""`make bench ARGS=selection`: every set of a folder under every recipe. Hands back what the JSON says."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cortex.base.errors import UserError
from cortex.selection.discover import RANKINGS
from cortex.selection.recipes import RECIPES, recipe
from cortex.services.tools.edits import with_encoder
from tests.bench import (
    external,
    files,
    frontiers,
    intervals,
    latency,
    retrieval,
    risk,
    routing,
    sources,
    unseen,
    variations,
)
from tests.bench.external import Judge, OtherSelector
from tests.bench.files import CASES, LANGUAGES, Data, RetrievalSet, RoutingSet
from tests.bench.ground import BenchGround, Tell
from tests.bench.sources import Source

Sets = list[dict[str, Any]]  # Any: a set as the JSON has it
ABLATED = "cortex"


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What is measured besides. `has_made`: sets made of our cases, and unseen tools. `held_out`: stems of files.

    `drawn`: the recipes that are also judged at other settings. `has_latency`: also over 10,000 tools, where there are
    any. `other`: a program that is judged beside the recipes. `ways`: by name, other ways that are, on messages alone.
    """

    has_made: bool = False
    drawn: Sequence[str] = ()
    has_ablation: bool = False
    has_latency: bool = True
    held_out: tuple[str, ...] = ()
    other: OtherSelector | None = None
    ways: Mapping[str, Judge] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What every set is judged with."""

    recipes: Sequence[str]
    seed: int
    report: Tell
    extras: Extras = field(default_factory=Extras)


def measured(
    paths: Sequence[Path],
    recipes: Sequence[str],
    ground: BenchGround,
    seed: int,
    report: Tell,
    extras: Extras | None = None,
) -> Sets:
    """The sets of these files and folders; UserError for a broken line, a path without rows, an unknown recipe."""
    names = recipes or sorted(RECIPES)
    for name in names:
        recipe(name)
    run = _Run(recipes=names, seed=seed, report=report, extras=extras or Extras())
    read = [files.read(path, report) for path in paths]
    held_out = sources.names_of(run.extras.held_out, {one.name for data in read for one in data.routing})
    found: Sets = []
    for path, data in zip(paths, read, strict=True):
        for one in data.routing:
            found.append(_routing(one, _source(path.resolve(), one.name, held_out), ground, run))
        for each in data.retrieval:
            found += _retrievals(each, ground, run)
    if run.extras.has_made:
        found += _made(ground, run)
    if not found:
        raise UserError("There is nothing to judge: a catalogue needs queries, or messages beside it.")
    return [*found, *(_latency(read, ground, run) if run.extras.has_latency else ())]


def _source(path: Path, name: str, held_out: Collection[str]) -> Source:
    if path.is_relative_to(LANGUAGES):
        return "languages"
    return "ours" if path.is_relative_to(CASES) else sources.source_of(name, held_out)


def _made(ground: BenchGround, run: _Run) -> Sets:
    """The sets that a seed makes of our own cases, then the servers that nobody was trained on."""
    cases = files.read(CASES, run.report).routing
    made = [_routing(one, "made", ground, run) for one in variations.made(cases, run.seed)]
    servers = unseen.servers()
    return [*made, *(_routing(each.asked, "unseen", unseen.beside(ground, each), run) for each in servers)]


def _routing(one: RoutingSet, source: Source, ground: BenchGround, run: _Run) -> dict[str, Any]:
    names = routing.known(one.rows, ground)
    _tell_unknown(one.name, names.unknown, run.report)
    judged = {}
    for name in run.recipes:
        run.report(f"{one.name}: {len(one.rows):,} rows, {name}")
        judged[name] = routing.measured(one, names, ground, name, RANKINGS.get(name))
    if run.extras.other:
        run.report(f"{one.name}: {len(one.rows):,} rows, {external.NAME}")
        judged[external.NAME] = external.routed(one, names, ground, run.extras.other)
    for name, way in run.extras.ways.items():
        run.report(f"{one.name}: {len(one.rows):,} rows, {name}")
        judged[name] = way(one, names, ground, judged)
    found = {name: each.scores for name, each in judged.items()}
    kind = "multiturn" if one.is_multiturn else "routing"
    kinds = Counter(row.kind for row in one.rows)
    told = {**_set(one.name, kind, len(one.rows), found, names.unknown), "source": source, "kinds": dict(kinds)}
    told["risk"] = {name: asdict(risk.shares(each.rows)) for name, each in judged.items()}
    spans = {name: intervals.of_rows(each.rows, run.seed) for name, each in judged.items()}
    if not any(spans.values()):
        return told
    told["intervals"] = spans
    told["categories"] = {name: intervals.by_category(each.rows, run.seed) for name, each in judged.items()}
    if run.extras.drawn:
        drawn = [name for name in run.extras.drawn if name in run.recipes]
        run.report(f"{one.name}: other settings of {', '.join(drawn) or 'none'}")
        told["frontiers"] = {name: frontiers.frontier(one, names, ground, name, run.seed) for name in drawn}
    if run.extras.has_ablation and ABLATED in run.recipes and source in ("ours", "made", "unseen"):
        run.report(f"{one.name}: {ABLATED} without each of its stages")
        told["ablation"] = frontiers.ablation(one, names, ground, ABLATED, run.seed)
    return told


def _retrievals(one: RetrievalSet, ground: BenchGround, run: _Run) -> Sets:
    """The catalogue without what people say to its tools, then with it."""
    return [_retrieval(one, ground, run, is_given=is_given) for is_given in (False, *([True] if one.examples else []))]


def _retrieval(one: RetrievalSet, ground: BenchGround, run: _Run, *, is_given: bool) -> dict[str, Any]:
    name = f"{one.name}+examples" if is_given else one.name
    missing = retrieval.unknown(one)
    _tell_unknown(name, missing, run.report)
    snapshot = with_encoder(retrieval.with_examples(one, is_given=is_given), ground.snapshot.encoder)
    found = {}
    for each in run.recipes:
        if each in RANKINGS:
            run.report(f"{name}: {len(one.queries):,} queries over {len(one.tools):,} tools, {each}")
            found[each] = retrieval.measured(one.queries, snapshot, RANKINGS[each])
    if run.extras.other and not is_given:
        run.report(f"{name}: {len(one.queries):,} queries over {len(one.tools):,} tools, {external.NAME}")
        found[external.NAME] = external.ranked(one, run.extras.other)
    return _set(name, "retrieval", len(one.queries), found, missing)


def _latency(read: Sequence[Data], ground: BenchGround, run: _Run) -> Sets:
    """The set that is made of a filler catalogue: plan and ranking over 10,000 tools."""
    filler = [tool for data in read for tool in data.filler]
    said = latency.messages(read, run.seed)
    if not (filler and said):
        return []
    others = [tool for data in read for one in data.retrieval for tool in one.tools]
    grown = latency.grown(ground.snapshot, [*filler, *others], latency.SIZE)
    over = ground.over(with_encoder(grown, ground.snapshot.encoder))
    found = {}
    for name in run.recipes:
        run.report(f"{latency.NAME}: {len(said):,} messages, {name}")
        found[name] = latency.measured(said, over, name)
    return [_set(latency.NAME, "latency", len(said), found, {})]


def _set(name: str, kind: str, rows: int, found: Mapping[str, Any], unknown: Mapping[str, int]) -> dict[str, Any]:
    told = {"name": name, "kind": kind, "rows": rows, "recipes": dict(found)}
    return {**told, "unknown_tools": dict(unknown)} if unknown else told


def _tell_unknown(name: str, unknown: Mapping[str, int], report: Tell) -> None:
    if unknown:
        named = ", ".join(f"{tool} ({count})" for tool, count in unknown.items())
        report(f"{name}: tools that are not in the registry; rows that need one of them alone are not judged: {named}")
