"""A centroid a tool: the mean of the vectors of its example queries; in-process cosine. Numpy: loaded late.

Computed at the first use of a registry's version, in memory, so there is no index file to rebuild. A tool without
examples is known by its name and summary.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from cortex.base.errors import EncoderFailed
from cortex.selection import sentence_models
from cortex.selection.hashed_vectors import DIMENSIONS, encode
from cortex.selection.types import Snapshot
from cortex.selection.version_cache import once

Vectors = NDArray[np.float32]
DECIMALS = 4
TOOLS_KEPT = 16_384


class Centroids:
    """Names and rows: (n_tools, dim) float32, of unit length; a row of zeros where no word is known."""

    def __init__(self, snapshot: Snapshot) -> None:
        """By the n-grams of the default encoder."""
        said = _said(snapshot)
        self.names = tuple(said)
        self.rows = np.zeros((len(said), DIMENSIONS), dtype=np.float32)
        for row, examples in enumerate(said.values()):
            self.rows[row] = _centroid(examples)


class SemanticCentroids:
    """The same by the sentence model that the snapshot names, which keeps the vectors of the examples."""

    def __init__(self, snapshot: Snapshot) -> None:
        """EncoderFailed where the vectors are not at hand."""
        said = _said(snapshot)
        every = list(dict.fromkeys(text for examples in said.values() for text in examples))
        rows = sentence_models.named(snapshot.encoder).kept(every)
        place = {text: at for at, text in enumerate(every)}
        self.names = tuple(said)
        self.rows = np.zeros((len(said), rows.shape[1]), dtype=np.float32)
        for row, examples in enumerate(said.values()):
            self.rows[row] = _unit(rows[[place[text] for text in examples]].mean(axis=0))


def _said(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    """Tool -> its example queries; its name and summary where it has none."""
    said: dict[str, list[str]] = {entry.name: [] for entry in snapshot.entries if not entry.is_meta}
    for domain in snapshot.domains:
        for example in domain.examples:
            for name in example.tools:
                said.get(name, []).append(example.text)
    for entry in snapshot.entries:
        if entry.name in said and not said[entry.name]:
            said[entry.name].append(f"{entry.name.replace('_', ' ')} {entry.summary}")
    return {name: tuple(texts) for name, texts in said.items()}


@lru_cache(maxsize=TOOLS_KEPT)
def _centroid(examples: tuple[str, ...]) -> Vectors:
    """The mean direction of these queries; kept, so that a registry with one changed tool computes one."""
    return _unit(encode(examples).mean(axis=0))


centroids_of = once(Centroids)
semantic_centroids_of = once(SemanticCentroids)


def similarities(
    snapshot: Snapshot, said: str, embedding: Sequence[float] = (), *, is_semantic: bool = False
) -> dict[str, float]:
    """Tool -> cosine with the text, -1 to 1; with `embedding` in its place where the caller has it already.

    is_semantic: by the snapshot's sentence model; EncoderFailed where that fails. Raises ValueError for an embedding of
    another length than the encoder's.
    """
    kept: Centroids | SemanticCentroids = semantic_centroids_of(snapshot) if is_semantic else centroids_of(snapshot)
    if embedding and len(embedding) != kept.rows.shape[1]:
        raise ValueError(f"an embedding of {len(embedding)} numbers; this encoder's have {kept.rows.shape[1]}")
    if embedding:
        query = _unit(np.asarray(embedding, dtype=np.float32))
    else:
        query = sentence_models.named(snapshot.encoder).asked([said])[0] if is_semantic else encode([said])[0]
    found = np.round((kept.rows @ query).astype(np.float64), DECIMALS)
    return dict(zip(kept.names, found.tolist(), strict=True))


def failure(snapshot: Snapshot, texts: Sequence[str]) -> str:
    """Why the snapshot's sentence model cannot judge these texts now; "" where it can, and has."""
    try:
        semantic_centroids_of(snapshot)
        sentence_models.named(snapshot.encoder).asked([text for text in texts if text.strip()])
    except EncoderFailed as error:
        return error.message
    return ""


def _unit(row: Vectors) -> Vectors:
    size = float(np.sqrt(np.square(row).sum()))
    return row / np.float32(size) if size else row
