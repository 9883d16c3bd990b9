"""Regularised least squares over sparse rows: the weights, and what each row scores when it is left out.

In its dual form, solved in place: the kernel of n texts takes n x n floats and half as much beside it, once. Loaded
late: numpy is heavy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RARE_ROWS = 200
SMALL = 256

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparse:
    """A matrix (n_rows, n_features) by its entries, sorted by feature and then by row.

    `starts` (n_features + 1,): where the entries of each feature begin in `rows` and `values`.
    """

    n_rows: int
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    values: Floats

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return len(self.starts) - 1

    def kernel(self) -> Floats:
        """The matrix times itself turned over, (n_rows, n_rows): common features as arrays, rare ones by entry."""
        counts = np.diff(self.starts)
        common = np.flatnonzero(counts > RARE_ROWS)
        dense = np.zeros((self.n_rows, len(common)), dtype=np.float32)
        for at, feature in enumerate(common.tolist()):
            rows, values = self._entries(feature)
            dense[rows, at] = values
        found: Floats = dense @ dense.T
        for feature in np.flatnonzero((counts > 0) & (counts <= RARE_ROWS)).tolist():
            rows, values = self._entries(feature)
            found[rows[:, None], rows] += values[:, None] * values
        return found

    def turned(self, columns: Floats) -> Floats:
        """The matrix turned over times (n_rows, n_columns): (n_features, n_columns)."""
        feature = np.repeat(np.arange(self.n_features), np.diff(self.starts))
        found = np.empty((self.n_features, columns.shape[1]), dtype=np.float32)
        for at in range(columns.shape[1]):
            weights = self.values * columns[self.rows, at]
            found[:, at] = np.bincount(feature, weights=weights, minlength=self.n_features)
        return found

    def _entries(self, feature: int) -> tuple[NDArray[np.int32], Floats]:
        part = slice(self.starts[feature], self.starts[feature + 1])
        return self.rows[part], self.values[part]


def sparse(entries: Sequence[tuple[NDArray[np.int32], Floats]], n_features: int) -> Sparse:
    """The matrix with these rows, each as its features and their values."""
    feature = np.concatenate([features for features, _ in entries]) if entries else np.zeros(0, dtype=np.int32)
    values = np.concatenate([values for _, values in entries]) if entries else np.zeros(0, dtype=np.float32)
    rows = np.repeat(np.arange(len(entries), dtype=np.int32), [len(features) for features, _ in entries])
    order = np.argsort(feature, kind="stable")
    starts = np.searchsorted(feature[order], np.arange(n_features + 1))
    return Sparse(n_rows=len(entries), starts=starts, rows=rows[order], values=values[order].astype(np.float32))


def fitted(matrix: Sparse, targets: Floats, ridge: float | Floats) -> tuple[Floats, Floats, Floats]:
    """Weights (n_features, n_columns), bias (n_columns,), and the score of every row when it is left out.

    `ridge`: one for all rows, or one a row: the lower it is, the more the row counts. With K the kernel and the ridge
    on its diagonal, a row's residual when left out is its dual over the diagonal of
    K's inverse (Rifkin & Lippert 2007).
    """
    kernel = matrix.kernel()
    kernel[np.diag_indices_from(kernel)] += ridge
    root = _inverse_root(kernel)
    bias = targets.mean(axis=0)
    dual = root.T @ (root @ (targets - bias))
    unseen = targets - dual / np.einsum("ij,ij->j", root, root)[:, None]
    return matrix.turned(dual), bias, unseen.astype(np.float32)


def _inverse_root(kernel: Floats) -> Floats:
    """W with W' W = the inverse of the kernel, lower triangular, written over the kernel: Cholesky by halves.

    7/6 n^3 operations where a general inverse takes 8/3 n^3, and no second matrix.
    """
    size = len(kernel)
    if size <= SMALL:
        kernel[:] = np.tril(np.linalg.inv(np.linalg.cholesky(kernel)))
        return kernel
    half = size // 2
    upper = _inverse_root(kernel[:half, :half])
    below = kernel[half:, :half] @ upper.T
    kernel[half:, half:] -= below @ below.T
    lower = _inverse_root(kernel[half:, half:])
    kernel[half:, :half] = -(lower @ (below @ upper))
    kernel[:half, half:] = 0
    return kernel
