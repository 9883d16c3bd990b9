"""`cortex bench selection`: every set of a folder under every recipe. Hands back what the JSON says."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cortex.base.errors import UserError
from cortex.bench import files, latency, retrieval, routing
from cortex.bench.files import Data, RetrievalSet, RoutingSet
from cortex.bench.ground import BenchGround, Tell
from cortex.selection.discover import RANKINGS
from cortex.selection.edits import with_encoder
from cortex.selection.recipes import RECIPES, recipe

Sets = list[dict[str, Any]]  # Any: a set as the JSON has it


def measured(paths: Sequence[Path], recipes: Sequence[str], ground: BenchGround, seed: int, report: Tell) -> Sets:
    """The sets of these files and folders; UserError for a broken line, a path without rows, an unknown recipe."""
    names = recipes or sorted(RECIPES)
    for name in names:
        recipe(name)
    read = [files.read(path, report) for path in paths]
    found = [one for data in read for one in _sets(data, names, ground, report)]
    if not found:
        raise UserError("There is nothing to judge: a catalogue needs queries, or messages beside it.")
    return [*found, *_latency(read, names, ground, seed, report)]


def _sets(data: Data, recipes: Sequence[str], ground: BenchGround, report: Tell) -> Sets:
    found = [_routing(one, recipes, ground, report) for one in data.routing]
    for one in data.retrieval:
        found.append(_retrieval(one, recipes, ground, report, is_given=False))
        if one.examples:
            found.append(_retrieval(one, recipes, ground, report, is_given=True))
    return found


def _routing(one: RoutingSet, recipes: Sequence[str], ground: BenchGround, report: Tell) -> dict[str, Any]:
    names = routing.known(one.rows, ground)
    _tell_unknown(one.name, names.unknown, report)
    found = {}
    for name in recipes:
        report(f"{one.name}: {len(one.rows):,} rows, {name}")
        found[name] = routing.measured(one, names, ground, name, RANKINGS.get(name))
    kind = "multiturn" if one.is_multiturn else "routing"
    return _set(one.name, kind, len(one.rows), found, names.unknown)


def _retrieval(
    one: RetrievalSet, recipes: Sequence[str], ground: BenchGround, report: Tell, *, is_given: bool
) -> dict[str, Any]:
    name = f"{one.name}+examples" if is_given else one.name
    missing = retrieval.unknown(one)
    _tell_unknown(name, missing, report)
    snapshot = with_encoder(retrieval.with_examples(one, is_given=is_given), ground.snapshot.encoder)
    found = {}
    for each in recipes:
        if each in RANKINGS:
            report(f"{name}: {len(one.queries):,} queries over {len(one.tools):,} tools, {each}")
            found[each] = retrieval.measured(one.queries, snapshot, RANKINGS[each])
    return _set(name, "retrieval", len(one.queries), found, missing)


def _latency(read: Sequence[Data], recipes: Sequence[str], ground: BenchGround, seed: int, report: Tell) -> Sets:
    """The set that is made of a filler catalogue: plan and ranking over 10,000 tools."""
    filler = [tool for data in read for tool in data.filler]
    said = latency.messages(read, seed)
    if not (filler and said):
        return []
    others = [tool for data in read for one in data.retrieval for tool in one.tools]
    grown = latency.grown(ground.snapshot, [*filler, *others], latency.SIZE)
    over = ground.over(with_encoder(grown, ground.snapshot.encoder))
    found = {}
    for name in recipes:
        report(f"{latency.NAME}: {len(said):,} messages, {name}")
        found[name] = latency.measured(said, over, name)
    return [_set(latency.NAME, "latency", len(said), found, {})]


def _set(name: str, kind: str, rows: int, found: dict[str, Any], unknown: Any) -> dict[str, Any]:
    told = {"name": name, "kind": kind, "rows": rows, "recipes": found}
    return {**told, "unknown_tools": dict(unknown)} if unknown else told


def _tell_unknown(name: str, unknown: Any, report: Tell) -> None:
    if unknown:
        named = ", ".join(f"{tool} ({count})" for tool, count in unknown.items())
        report(f"{name}: tools that are not in the registry; rows that need one of them alone are not judged: {named}")
