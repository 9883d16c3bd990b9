"""Judges somebody else's selector (`selector.py`) on our sets, by the same figures as the recipes.

It has no memory of ours: each message comes with its history. A tool that it names counts with its whole schema.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cortex.selection.pipeline import plan
from tests.bench import retrieval, scores
from tests.bench.files import RetrievalSet, RoutingSet
from tests.bench.ground import BenchGround
from tests.bench.routing import JudgedSet, KnownNames, is_beyond_web, whole_tokens
from tests.bench.rows import Utterance
from tests.bench.scores import ScoredRow, Scores
from tests.bench.selector import SelectorAnswer, SelectorLimits, SelectorQuestion, answers

NAME = "selector"
# Another way to choose, judged on a set once the recipes are: what those were judged by stands at its hand.
Judge = Callable[[RoutingSet, KnownNames, BenchGround, Mapping[str, JudgedSet]], JudgedSet]


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherSelector:
    """The program and its arguments, with the time that it gets."""

    command: tuple[str, ...]
    limits: SelectorLimits = field(default_factory=SelectorLimits)


def routed(one: RoutingSet, names: KnownNames, ground: BenchGround, other: OtherSelector) -> JudgedSet:
    """Its figures on a set of messages; UserError where it ends, is late or answers wrong."""
    offered = _offered(ground)
    asked = [SelectorQuestion(message=row.text, history=row.history) for row in one.rows]
    return judged(one, names, ground, answers(other.command, offered, asked, other.limits))


def judged(one: RoutingSet, names: KnownNames, ground: BenchGround, given: Sequence[SelectorAnswer]) -> JudgedSet:
    """The figures of these answers, one for each row."""
    sizes = {entry.name: entry.tokens_full for entry in ground.snapshot.entries}
    rows = [_scored(row, names, answer, sizes) for row, answer in zip(one.rows, given, strict=True)]
    return JudgedSet(scores=scores.routing(rows, whole_tokens(ground), can_discover=False), rows=tuple(rows))


def ranked(one: RetrievalSet, other: OtherSelector) -> Scores:
    """Its figures on a catalogue: its answers are read as a ranking, the best first."""
    there = {tool.name for tool in one.tools}
    offered = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters or {}} for tool in one.tools
    ]
    asked = [SelectorQuestion(message=query.query, history=query.history) for query in one.queries]
    given = answers(other.command, offered, asked, other.limits)
    found = [
        (groups, answer.tools)
        for query, answer in zip(one.queries, given, strict=True)
        if (groups := retrieval.known_groups(query, there))
    ]
    return {**(scores.retrieval(found) if found else {}), **scores.times([answer.ms for answer in given])}


def _offered(ground: BenchGround) -> Sequence[dict[str, Any]]:
    """What the role may use, as a model would be sent it."""
    return [
        {"name": schema.name, "description": schema.description, "parameters": dict(schema.parameters)}
        for schema in plan(ground.asked("everything", "all")).schemas
        if schema.name not in ground.metas
    ]


def _scored(row: Utterance, names: KnownNames, answer: SelectorAnswer, sizes: dict[str, int]) -> ScoredRow:
    needs = names.needs(row)
    return ScoredRow(
        row=row,
        needs=needs,
        categories=names.homes(row, needs),
        names=frozenset(answer.tools),
        has_nonweb=is_beyond_web(names, answer.tools),
        tokens=sum(sizes[name] for name in answer.tools),
        ms=answer.ms,
    )
