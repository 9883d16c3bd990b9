"""A centroid a tool: the mean of the vectors of its example queries; in-process cosine. Numpy: loaded late.

Computed at the first use of a registry's version, in memory, so there is no index file to rebuild. A tool without
examples is known by its name and summary.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cortex.selection.encoder import DIMENSIONS, encode
from cortex.selection.types import Snapshot
from cortex.selection.ways.once import once

Vectors = NDArray[np.float32]
DECIMALS = 4
TOOLS_KEPT = 16_384


class Centroids:
    """Names and rows: (n_tools, dim) float32, of unit length; a row of zeros where no word is known."""

    def __init__(self, snapshot: Snapshot) -> None:
        said: dict[str, list[str]] = {entry.name: [] for entry in snapshot.entries if not entry.is_meta}
        for domain in snapshot.domains:
            for example in domain.examples:
                for name in example.tools:
                    said.get(name, []).append(example.text)
        for entry in snapshot.entries:
            if entry.name in said and not said[entry.name]:
                said[entry.name].append(f"{entry.name.replace('_', ' ')} {entry.summary}")
        self.names = tuple(said)
        self.rows = np.zeros((len(said), DIMENSIONS), dtype=np.float32)
        for row, examples in enumerate(said.values()):
            self.rows[row] = _centroid(tuple(examples))


@lru_cache(maxsize=TOOLS_KEPT)
def _centroid(examples: tuple[str, ...]) -> Vectors:
    """The mean direction of these queries; kept, so that a registry with one changed tool computes one."""
    return _unit(encode(examples).mean(axis=0))


centroids_of = once(Centroids)


def similarities(snapshot: Snapshot, said: str, embedding: Sequence[float] = ()) -> dict[str, float]:
    """Tool -> cosine with the text, -1 to 1; with `embedding` in its place where the caller has it already.

    Raises ValueError for an embedding of another length than the encoder's.
    """
    kept = centroids_of(snapshot)
    query = _query(said, embedding)
    found = np.round((kept.rows @ query).astype(np.float64), DECIMALS)
    return dict(zip(kept.names, found.tolist(), strict=True))


def _query(said: str, embedding: Sequence[float]) -> Vectors:
    if not embedding:
        return np.asarray(encode([said])[0], dtype=np.float32)
    if len(embedding) != DIMENSIONS:
        raise ValueError(f"an embedding of {len(embedding)} numbers; this encoder's have {DIMENSIONS}")
    return _unit(np.asarray(embedding, dtype=np.float32))


def _unit(row: Vectors) -> Vectors:
    size = float(np.sqrt(np.square(row).sum()))
    return row / np.float32(size) if size else row
