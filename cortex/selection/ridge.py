"""Regularised least squares over sparse rows, a column a label: weights, and what each row scores when it is left out.

By dual coordinate ascent (Shalev-Shwartz & Zhang 2013): a step moves one row's dual to where it is best while all
others stand, so that no kernel is held and a row costs its own features alone. Deterministic. Loaded late: numpy.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

PASSES = 8
FOLDS = 5
SEED = 7

Floats = NDArray[np.float32]
Row = tuple[NDArray[np.int32], Floats]  # the features where it is not 0, and what stands there


def fitted(rows: Sequence[Row], n_features: int, targets: Floats, ridge: Floats, passes: int = PASSES) -> Floats:
    """Weights (n_features, n_columns) of these targets (n_rows, n_columns).

    `ridge`: one a row: the lower it is, the more the row counts. With more `passes` it comes nearer to the exact ones.
    """
    weights = np.zeros((n_features, targets.shape[1]), dtype=np.float32)
    dual = np.zeros_like(targets)
    lengths = np.array([np.square(values).sum() for _, values in rows], dtype=np.float32)
    drawn = np.random.default_rng(SEED)
    for _ in range(passes):
        for at in drawn.permutation(len(rows)).tolist():
            features, values = rows[at]
            part = weights[features]
            step = (targets[at] - values @ part - ridge[at] * dual[at]) / (lengths[at] + ridge[at])
            dual[at] += step
            part += np.multiply.outer(values, step)
            weights[features] = part
    return weights


def left_out(rows: Sequence[Row], n_features: int, targets: Floats, ridge: Floats) -> Floats:
    """What every row scores by weights that were fitted without its fold: (n_rows, n_columns)."""
    folds = np.arange(len(rows)) % FOLDS
    found = np.empty_like(targets)
    for fold in range(FOLDS):
        others, own = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        weights = fitted([rows[at] for at in others.tolist()], n_features, targets[others], ridge[others])
        found[own] = scores([rows[at] for at in own.tolist()], weights)
    return found


def scores(rows: Sequence[Row], weights: Floats) -> Floats:
    """What the rows score by these weights: (n_rows, n_columns)."""
    found = np.empty((len(rows), weights.shape[1]), dtype=np.float32)
    for at, (features, values) in enumerate(rows):
        found[at] = values @ weights[features]
    return found
