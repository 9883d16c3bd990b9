"""The second fitted model: what a text's vector by a sentence model says about each tool. Loads and scores.

Least squares over the vector and random features of it (Rahimi & Recht 2007), beside the first model and calibrated
together with it: valid with that very model, and by the sentence model that it was fitted by. `sentence_fit.py` makes
it. Loaded late: numpy.
"""

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cortex.base.errors import EncoderFailed
from cortex.selection.calibrations import Calibrations, Floats, TextChances
from cortex.selection.weights import DAMAGE, Weights

SHIPPED = Path(__file__).with_name("sentence_weights.npz")
RANDOM, BEND, LENGTH = 2048, 0.5, 2.0
PROBES = (
    "put milk on my shopping list",
    "it is too dark in the kitchen",
    "erinnere mich morgen an den Zahnarzt",
    "how are you today?",
    "SELECT count(*) FROM orders",
    "write a short poem about autumn",
)
SAME = 0.97


@dataclass(frozen=True, eq=False, kw_only=True)
class SentenceWeights:
    """The model: columns as in `Weights`.

    `matrix` (n_features, n_columns) int8 with a `scale` a column: rows of the vector, then of its random features.
    `calibrations` read both models. `probes` (n_probes, dim): the vectors of PROBES by the sentence model of the fit.
    Of the first model: `examples`, the hash of what both were fitted on; `tools` and `categories`, its columns;
    `first`, the hash of its file. `model`: name, version and licence of the sentence model.
    """

    matrix: NDArray[np.int8]
    scale: Floats
    bias: Floats
    calibrations: Calibrations
    probes: Floats
    examples: str
    tools: tuple[str, ...]
    categories: tuple[str, ...]
    first: str
    model: Mapping[str, str]

    def fits(self, weights: Weights, probes: Floats) -> bool:
        """Whether it may be used beside these weights, by the sentence model that makes this of PROBES.

        A server's refit of the first model will do, and the sentence model of the fit in another precision.
        """
        theirs = (weights.examples, weights.tools, weights.categories)
        if theirs != (self.examples, self.tools, self.categories) or probes.shape != self.probes.shape:
            return False
        return bool(np.einsum("nd,nd->n", probes, self.probes).min() >= SAME)

    def judged(self, weights: Weights, texts: Sequence[str], vectors: Floats) -> TextChances:
        """The chances of the texts by both models. `vectors` (n_texts, dim): theirs, by the sentence model."""
        scores = (weights.scores(texts), self.scores(vectors))
        return self.calibrations.judged(texts, scores, weights.home, len(weights.categories))

    def scores(self, vectors: Floats) -> Floats:
        """(n_texts, n_columns): about -1 for "not at all" to 1 for "surely"."""
        found = np.stack([np.einsum("f,fc->c", row, self._dense) for row in features(vectors)])
        return np.asarray(found + self.bias, dtype=np.float32)

    @cached_property
    def _dense(self) -> Floats:
        return self.matrix.astype(np.float32) * self.scale


def features(vectors: Floats) -> Floats:
    """(n_texts, dim + RANDOM): the vectors, then max(0, R v - BEND) at LENGTH, R of random signs."""
    # A row at a time: what is made of a text must not depend on how many are multiplied with it.
    turned = np.stack([np.einsum("d,df->f", row, _signs(len(row))) for row in vectors])
    bent = np.maximum(0, turned - np.float32(BEND))
    length = np.sqrt(np.square(bent).sum(axis=1, keepdims=True))
    return np.concatenate([vectors, LENGTH * bent / np.where(length > 0, length, 1)], axis=1, dtype=np.float32)


@lru_cache(maxsize=1)
def _signs(dim: int) -> Floats:
    """(dim, RANDOM) of -1 and 1, the same ones everywhere."""
    drawn = np.frombuffer(hashlib.shake_256(b"random features").digest(dim * RANDOM // 8), dtype=np.uint8)
    return (np.unpackbits(drawn).astype(np.float32) * 2 - 1).reshape(dim, RANDOM)


def to_bytes(made: SentenceWeights) -> bytes:
    """The model as a compressed `.npz`, the same bytes for the same model."""
    out = io.BytesIO()
    facts = {
        "examples": made.examples,
        "tools": made.tools,
        "categories": made.categories,
        "first": made.first,
        "model": dict(made.model),
    }
    np.savez_compressed(
        out,
        facts=np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8),
        matrix=made.matrix,
        scale=made.scale,
        bias=made.bias,
        probes=made.probes.astype(np.float16),
        **made.calibrations.arrays(),
    )
    return out.getvalue()


def from_bytes(data: bytes) -> SentenceWeights:
    """The model that `to_bytes` wrote; ValueError for anything else."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as found:
            facts = json.loads(found["facts"].tobytes().decode())
            return SentenceWeights(
                matrix=found["matrix"],
                scale=found["scale"],
                bias=found["bias"],
                calibrations=Calibrations.of(found),
                probes=found["probes"].astype(np.float32),
                examples=facts["examples"],
                tools=tuple(facts["tools"]),
                categories=tuple(facts["categories"]),
                first=facts["first"],
                model=facts["model"],
            )
    except DAMAGE as error:
        raise ValueError(f"these bytes are no sentence weights: {error}") from error


def digest(first: bytes) -> str:
    """The hash of the first model's file."""
    return hashlib.sha256(first).hexdigest()[:16]


@lru_cache(maxsize=1)
def shipped() -> SentenceWeights:
    """The model that came with Cortex, read once."""
    return from_bytes(SHIPPED.read_bytes())


def at_hand() -> SentenceWeights:
    """The same; EncoderFailed where it cannot be read, for the first model does without it."""
    try:
        return shipped()
    except (OSError, ValueError) as error:
        raise EncoderFailed(f"{SHIPPED.name} cannot be read: {error}") from error
