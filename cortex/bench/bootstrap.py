"""Means over groups drawn anew with a seed: between which values 95 % of them lie (Efron 1979). Numpy: loaded late."""

from collections.abc import Mapping, Sequence

import numpy as np

DRAWS = 1_000
EDGES = (2.5, 97.5)


def intervals(sums: Mapping[str, Sequence[float]], counts: Sequence[int], seed: int) -> dict[str, tuple[float, float]]:
    """By key, the interval of the mean: `sums` of each group's values, `counts` how many values each group has.

    All keys see the same draws. A group is drawn whole.
    """
    dice = np.random.default_rng(seed)
    places = dice.integers(0, len(counts), size=(DRAWS, len(counts)))
    sizes = np.asarray(counts, dtype=np.float64)[places].sum(axis=1)
    found = {}
    for key, values in sums.items():
        means = np.asarray(values, dtype=np.float64)[places].sum(axis=1) / sizes
        low, high = np.percentile(means, EDGES)
        found[key] = (float(low), float(high))
    return found
