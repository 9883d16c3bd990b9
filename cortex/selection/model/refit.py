"""Fits the shipped model to a server: a ridge regression of its own cases on what the shipped weights leave over.

`W' = W + X^T (K + ridge I)^-1 (Y - scores(X))`, X the cases' vectors, K = X X^T: the smallest change that brings the
cases near their labels, so that what no case speaks of stays as it is. Solved case by case until none moves any more
(Gauss-Seidel), all columns at once as lanes. `services/workshop/refits.py` gathers the cases, judges and stores.
"""

import random
from array import array
from collections.abc import Mapping, Sequence
from operator import mul

from msgspec import Struct
from msgspec.structs import replace

from cortex.base.lanes import Lanes
from cortex.base.packed import View
from cortex.selection.model.calibrations import KINDS
from cortex.selection.model.weights import MOST_WEIGHT, Weights

RIDGE = 1.5
PASSES, STILL = 60, 5e-4  # of a label
FINE, FINE_STEP = 1 << 16, 1 << 20  # parts of a feature's weight, of a step
LEAST_SCALE = 1e-9

Moves = Mapping[int, Sequence[float]]  # row of the matrix -> what is added to its columns


class OwnCase(Struct, frozen=True, kw_only=True):
    """A message of this server: the tools that it wants, and those that it was given for nothing."""

    text: str
    tools: tuple[str, ...] = ()
    not_tools: tuple[str, ...] = ()


def known(weights: Weights, cases: Sequence[OwnCase]) -> tuple[OwnCase, ...]:
    """The cases that this model can learn from: those that speak of a tool it has a column for."""
    names = frozenset(weights.tools)
    return tuple(case for case in cases if names.intersection((*case.tools, *case.not_tools)))


def refitted(weights: Weights, cases: Sequence[OwnCase], made: str = "") -> Weights:
    """The weights moved towards the cases; the same ones where no case can be learned from. Gates stay as they are."""
    rows = known(weights, cases)
    if not rows:
        return weights
    matrix, scale = _moved(weights, _moves(weights, rows))
    words = weights.known.with_words([case.text for case in rows])
    return replace(weights, matrix=matrix, scale=scale, known=words, made=made or weights.made)


class _Case(Struct, frozen=True, kw_only=True, eq=False):
    """A case while it is fitted: its features, the squares of their weights, what is wanted beyond the shipped scores.

    `steps`: how far it has moved each column.
    """

    rows: tuple[int, ...]
    weights: tuple[int, ...]
    size: float
    short: list[float]
    steps: list[int]


def _moves(weights: Weights, cases: Sequence[OwnCase]) -> Moves:
    lanes = Lanes(8, len(weights.bias))
    told = [_case(weights, case) for case in cases]
    sums = dict.fromkeys((row for case in told for row in case.rows), 0)
    for _ in range(PASSES):
        most = max([_step(case, sums, lanes) for case in told])
        if most <= STILL * FINE_STEP:
            break
    part = FINE * FINE_STEP
    return {row: [each / part for each in lanes.unpack(found)] for row, found in sums.items()}


def _case(weights: Weights, case: OwnCase) -> _Case:
    features, scores = weights.features(case.text), weights.scores(case.text)
    fine = tuple(round(FINE * weight) for weight in features.values())
    return _Case(
        rows=tuple(features),
        weights=fine,
        size=sum(map(mul, fine, fine)) / FINE**2,
        short=[wanted - score for wanted, score in zip(_targets(weights, case, scores), scores, strict=True)],
        steps=[0] * len(scores),
    )


def _step(case: _Case, sums: dict[int, int], lanes: Lanes) -> int:
    """Move one case to where it is best while all others stand; how far it went at most."""
    found = lanes.unpack(sum(map(mul, case.weights, map(sums.__getitem__, case.rows))))
    part, share = FINE * FINE, FINE_STEP / (case.size + RIDGE)
    steps = [
        round(share * (short - (at / part + RIDGE * step) / FINE_STEP))
        for short, at, step in zip(case.short, found, case.steps, strict=True)
    ]
    case.steps[:] = map(sum, zip(case.steps, steps, strict=True))
    packed = lanes.pack(steps)
    for row, weight in zip(case.rows, case.weights, strict=True):
        sums[row] += weight * packed
    return max(map(abs, steps))


def _targets(weights: Weights, case: OwnCase, scores: Sequence[float]) -> list[float]:
    """A number a column: 1 for what a case wants, -1 for what it does not; where it says nothing, the score."""
    columns = {name: at for at, name in enumerate(weights.tools)}
    first_kind = len(columns) + len(weights.categories)
    targets = list(scores)
    for at in (columns[name] for name in case.not_tools if name in columns):
        targets[at] = min(-1.0, scores[at])
    wanted = [columns[name] for name in case.tools if name in columns]
    if wanted:
        need = first_kind + len(KINDS)  # of any tool
        for at in (*wanted, *(len(columns) + weights.home[each] for each in wanted), need):
            targets[at] = max(1.0, scores[at])
        for at in range(first_kind, need):
            targets[at] = min(-1.0, scores[at])
    return targets


_SIGNED = tuple(range(128)) + tuple(range(-128, 0))  # what a byte says


def _moved(weights: Weights, moves: Moves) -> tuple[View, View]:
    """Matrix and scale with these moves: columns that outgrow their scale get another, and all that stands in them."""
    width, scale = len(weights.bias), weights.scale
    flat = bytearray(weights.matrix.cast("B"))
    dense: dict[int, list[float]] = {}
    for row, more in moves.items():
        own = slice(row * width, (row + 1) * width)
        before = [_SIGNED[each] * part for each, part in zip(flat[own], scale, strict=True)]
        dense[row] = [one + other for one, other in zip(before, more, strict=True)]
        flat[own] = bytes(width)
    made = array("f")
    for at in range(width):
        column = flat[at::width]
        held = max(abs(_SIGNED[each]) for each in set(column)) * scale[at]
        made.append(max(held, *(abs(row[at]) for row in dense.values()), MOST_WEIGHT * LEAST_SCALE) / MOST_WEIGHT)
        flat[at::width] = column.translate(bytes(round(each * scale[at] / made[at]) & 0xFF for each in _SIGNED))
    for row, values in dense.items():
        told = (round(value / part) & 0xFF for value, part in zip(values, made, strict=True))
        flat[row * width : (row + 1) * width] = bytes(told)
    return memoryview(bytes(flat)).cast("b", (len(flat) // width, width)), memoryview(made)


def held_back(cases: Sequence[OwnCase], share: int = 4) -> tuple[tuple[OwnCase, ...], tuple[OwnCase, ...]]:
    """The cases to fit and those to judge by: every fourth in the order of their texts, the same for the same cases."""
    ordered = sorted(cases, key=lambda case: (case.text, case.tools))
    return tuple(case for at, case in enumerate(ordered, 1) if at % share), tuple(ordered[share - 1 :: share])


def sample(size: int, most: int, seed: int = 7) -> list[int]:
    """Return which of `size` rows to judge by: at most this many, spread, in order, the same for the same seed."""
    return sorted(random.Random(seed).sample(range(size), min(size, most)))  # noqa: S311 - a draw, no secret
