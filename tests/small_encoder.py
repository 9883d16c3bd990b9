"""A sentence model small enough to read: words are taken for what they mean by a table, and summed; no file, no wait.

Faithful to the real one where it counts: unit rows of float16's precision, one vector a text whatever it comes with.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Event
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from cortex.integrations.sentences import Sentences
from cortex.selection.index import sentence_models
from cortex.selection.words import text

DIMENSIONS = 96
ALIKE = (
    "moisture damp humidity soggy",
    "greenhouse hothouse glasshouse",
    "parrot budgie cockatoo bird",
    "feed meal dinner hungry",
)
MEANS = {word: group.split()[0] for group in ALIKE for word in group.split()}


class SmallModel:
    """`asked`: all that it was ever given. Without `is_free` it waits with all but `quick`; raises its `failure`."""

    def __init__(self, key: str = "small", failure: Exception | None = None) -> None:
        self.key, self.dimensions, self.failure = key, DIMENSIONS, failure
        self.asked: list[str] = []
        self.quick: frozenset[str] = frozenset()
        self.is_free = Event()
        self.is_free.set()

    def encode(self, texts: Sequence[str]) -> "Sequence[memoryview[Any]]":
        if not self.quick.issuperset(texts):
            self.is_free.wait()
        if self.failure is not None:
            raise self.failure
        self.asked += texts
        return [_row(each).data for each in texts]


def _row(said: str) -> NDArray[np.float32]:
    total = np.sum([_word(MEANS.get(word, word)) for word in text.words(said) or [""]], axis=0)
    return np.asarray((total / np.linalg.norm(total)).astype(np.float16), dtype=np.float32)


@cache
def _word(word: str) -> NDArray[np.float64]:
    return np.random.default_rng(crc32(word.encode())).normal(size=DIMENSIONS)


def sentences(
    kept_in: Path,
    model: SmallModel | None = None,
    *,
    limit_s: float | None = None,
    load: Callable[[Path], SmallModel] | None = None,
) -> Sentences:
    """The real time limit and the real memory over the small model."""
    return Sentences(Path("nowhere"), kept_in, limit_s=limit_s, load=load or (lambda _: model or SmallModel()))


@contextmanager
def brought(kept_in: Path, model: SmallModel, *, limit_s: float | None = None) -> Iterator[Sentences]:
    """Have it at hand for selection, and take it away again."""
    made = sentences(kept_in, model, limit_s=limit_s)
    sentence_models.register(made)
    try:
        yield made
    finally:
        sentence_models.unregister(made)
        model.is_free.set()
        made.close()
