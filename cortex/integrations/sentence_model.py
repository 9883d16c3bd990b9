"""Runs a sentence model from a folder: `model.onnx` and `tokenizer.json`, mean pooling, rows of unit length.

Needs the extra `semantic`. Loaded late through `scan.load`, by `integrations/sentences.py` alone: onnxruntime is heavy.
Both libraries raise kinds of their own; whoever calls takes any of them for a failure of the model.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from cortex.base.errors import EncoderFailed

MODEL, TOKENIZER = "model.onnx", "tokenizer.json"
TOKENS_MAX = 128
FATAL = 4

Vectors = NDArray[np.float32]


class SentenceModel:
    """A loaded model. `key`: a digest of its two files."""

    def __init__(self, folder: Path) -> None:
        """Load it, and try it."""
        self.key = hashlib.sha256(_digest(folder / MODEL) + _digest(folder / TOKENIZER)).hexdigest()[:16]
        self._tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        # A tokenizer's file may ask for padding to a fixed length, with which each text costs as much as the longest.
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(TOKENS_MAX)
        # By its path, not its bytes: these would stay in memory beside what is made of them (34 MB, 2026-11-21).
        self._session = onnxruntime.InferenceSession(
            str(folder / MODEL), _options(), providers=["CPUExecutionProvider"]
        )
        self._inputs = frozenset(each.name for each in self._session.get_inputs())
        self.dimensions = len(self.encode(["what does it give?"])[0])

    def encode(self, texts: Sequence[str]) -> "list[memoryview[Any]]":
        """A vector of float32 a text, of length 1, to the precision of float16, as they are stored.

        One text at a time: int8 scales depend on all that is in a batch, and a text must have one vector.
        """
        return [self._encoded(text).data for text in texts]

    def _encoded(self, text: str) -> Vectors:
        """The mean over the tokens, since what a model pools by itself differs; EncoderFailed where it gives none."""
        ids = np.array([self._tokenizer.encode(text).ids], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        out = self._session.run(None, {name: each for name, each in given.items() if name in self._inputs})[0]
        if out.ndim != 3 or out.shape[:2] != ids.shape:
            raise EncoderFailed(f"its first output is {out.shape}, not a vector for each of {ids.shape[1]} tokens")
        row = out[0].mean(axis=0, dtype=np.float32)
        size = float(np.sqrt(np.square(row).sum()))
        return np.asarray((row / (size or 1.0)).astype(np.float16), dtype=np.float32)


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _options() -> onnxruntime.SessionOptions:
    """One thread, asleep when there is nothing to do; no arena that would keep the memory of the longest text."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = FATAL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options
