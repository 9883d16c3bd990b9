"""Regularised one-sided least squares, a column a label: weights, and what each row scores when it is left out.

What lies beyond its target costs nothing (the squared hinge). By dual coordinate ascent (Hsieh et al. 2008): a step
moves one row's dual to where it is best while all others stand, so that no kernel is held and a row costs its own
features alone. Deterministic. Needs numpy, the extra `train`: loaded late.
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
    """Weights (n_features, n_columns) of these targets (n_rows, n_columns), none of them 0.

    `ridge` (n_rows, 1): the lower it is, the more the row counts. With more `passes` it comes nearer to the exact ones.
    """
    weights = np.zeros((n_features, targets.shape[1]), dtype=np.float32)
    dual = np.zeros_like(targets)
    lengths = np.array([np.square(values).sum() for _, values in rows], dtype=np.float32)
    drawn = np.random.default_rng(SEED)
    for _ in range(passes):
        for at in drawn.permutation(len(rows)).tolist():
            features, values = rows[at]
            part = weights[features]
            pull = targets[at] - values @ part + lengths[at] * dual[at]
            moved = np.where(pull * targets[at] > 0, pull / (lengths[at] + ridge[at]), 0)
            part += np.multiply.outer(values, moved - dual[at])
            weights[features], dual[at] = part, moved
    return weights


def left_out(rows: Sequence[Row], n_features: int, targets: Floats, ridge: Floats) -> Floats:
    """Return what every row scores by weights that were fitted without its fold: (n_rows, n_columns)."""
    folds = np.arange(len(rows)) % FOLDS
    found = np.empty_like(targets)
    for fold in range(FOLDS):
        others, own = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        weights = fitted([rows[at] for at in others.tolist()], n_features, targets[others], ridge[others])
        for at in own.tolist():
            features, values = rows[at]
            found[at] = values @ weights[features]
    return found
