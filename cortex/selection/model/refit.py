"""Fits the shipped model to a server: a ridge regression of its own cases on what the shipped weights leave over.

`W' = W + X^T (K + ridge I)^-1 (Y - scores(X))`, X the cases' vectors, K = X X^T: the smallest change that brings the
cases near their labels, so that what no case speaks of stays as it is. Milliseconds for hundreds of cases. Loaded
late through `scan.load`: numpy is heavy. `services/workshop/refits.py` gathers the cases, judges and stores.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from cortex.selection.model.calibrations import KINDS, Floats
from cortex.selection.model.weights import Weights, quantised

RIDGE = 1.5


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
    texts = [case.text for case in rows]
    touched, said = weights.vectors(texts)
    scores = weights.scores(texts)
    kernel = said @ said.T + RIDGE * np.eye(len(rows), dtype=np.float32)
    dense = weights.matrix.astype(np.float32) * weights.scale
    dense[touched] += said.T @ np.linalg.solve(kernel, _targets(weights, rows, scores) - scores)
    matrix, scale = quantised(dense)
    words = weights.known.with_words(texts)
    return replace(weights, matrix=matrix, scale=scale, known=words, made=made or weights.made)


def _targets(weights: Weights, cases: Sequence[OwnCase], scores: Floats) -> Floats:
    """(n_cases, n_columns): 1 for what a case wants, -1 for what it does not; where it says nothing, the score."""
    columns = {name: at for at, name in enumerate(weights.tools)}
    first_kind = len(columns) + len(weights.categories)
    kinds = slice(first_kind, first_kind + len(KINDS))
    targets = scores.copy()
    for at, case in enumerate(cases):
        unwanted = [columns[name] for name in case.not_tools if name in columns]
        targets[at, unwanted] = np.minimum(-1.0, scores[at, unwanted])
        wanted = [columns[name] for name in case.tools if name in columns]
        if wanted:
            up = [*wanted, *(len(columns) + weights.home[wanted]), kinds.stop]  # the last is the need of any
            targets[at, up] = np.maximum(1.0, scores[at, up])
            targets[at, kinds] = np.minimum(-1.0, scores[at, kinds])
    return targets


def held_back(cases: Sequence[OwnCase], share: int = 4) -> tuple[tuple[OwnCase, ...], tuple[OwnCase, ...]]:
    """The cases to fit and those to judge by: every fourth in the order of their texts, the same for the same cases."""
    ordered = sorted(cases, key=lambda case: (case.text, case.tools))
    return tuple(case for at, case in enumerate(ordered, 1) if at % share), tuple(ordered[share - 1 :: share])


def sample(size: int, most: int, seed: int = 7) -> NDArray[np.int64]:
    """Return which of `size` rows to judge by: at most this many, spread, in order, the same for the same seed."""
    return np.sort(np.random.default_rng(seed).permutation(size)[:most])
