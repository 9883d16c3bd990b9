"""A sentence model with a time limit and a memory: what is asked is answered soon or not at all, tools are read once.

Two threads: one answers, one reads what comes again and keeps it in a file beside the server. Loads the model at the
first need. `services/tools/encoders.py` opens and closes it; selection knows it as `Encoder`.
"""

import hashlib
import logging
import math
import os
import struct
from array import array
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol, TypeVar

from cortex.base import packed, private, scan
from cortex.base.calm_pool import CalmPool
from cortex.base.errors import EncoderFailed
from cortex.ports.encoder import Vector

ASKED_MAX = 512
KEPT_MAX = 60_000
BATCH = 64
DIGEST_BYTES = 16
EXTRA = "the extra `semantic` is not installed (numpy, onnxruntime, tokenizers)"

T = TypeVar("T")
log = logging.getLogger(__name__)


class Model(Protocol):
    """A loaded sentence model: `integrations/sentence_model.py`, or a double of it."""

    key: str
    dimensions: int

    def encode(self, texts: Sequence[str]) -> Sequence[Vector]:
        """A vector a text, to the precision of two bytes a number."""
        ...


def load(folder: Path) -> Model:
    """The model in this folder; EncoderFailed without the extra."""
    try:
        made: Model = scan.load("cortex.integrations.sentence_model").SentenceModel(folder)
    except ModuleNotFoundError as error:
        raise EncoderFailed(EXTRA) from error
    return made


class Sentences:
    """Implements `Encoder`. `limit_s`: how long a caller waits, None = as long as it takes."""

    def __init__(
        self, folder: Path, kept_in: Path, *, limit_s: float | None, load: Callable[[Path], Model] = load
    ) -> None:
        """Load nothing yet. `kept_in`: the folder for vectors of texts that come again."""
        self._folder, self._kept_in, self._limit_s, self._load = folder, kept_in, limit_s, load
        self._answering = CalmPool(1, "sentences")
        self._reading = CalmPool(1, "sentences-reading")
        self._opening: Future[Model] | None = None
        self._late: dict[CalmPool, Future[None]] = {}
        self._asked: dict[str, Vector] = {}
        self._kept: dict[bytes, Vector] = {}
        self._is_closed = False

    @property
    def key(self) -> str:
        """Return what the model is known by; EncoderFailed while it is being loaded, and where it cannot be."""
        return self._model().key

    @property
    def dimensions(self) -> int:
        """Numbers of a vector; EncoderFailed like `key`."""
        return self._model().dimensions

    @property
    def n_kept(self) -> int:
        """Return how many vectors are kept."""
        return len(self._kept)

    def asked(self, texts: Sequence[str]) -> Sequence[Vector]:
        """See `Encoder`; the last few questions are remembered."""
        model = self._model()
        new = [text for text in dict.fromkeys(texts) if text not in self._asked]
        if new:
            self._run(self._answering, lambda: self._answer(model, new), "an answer")
        found = [self._asked.get(text) for text in texts]
        rows = [row for row in found if row is not None]
        if len(rows) < len(texts):
            raise EncoderFailed("too many questions at once")
        return rows

    def kept(self, texts: Sequence[str]) -> Sequence[Vector]:
        """See `Encoder`."""
        model = self._model()
        marks = [_mark(text) for text in texts]
        new = {mark: text for mark, text in zip(marks, texts, strict=True) if mark not in self._kept}
        if new:
            self._run(self._reading, lambda: self._read(model, new), f"{len(new):,} texts of tools")
        return [self._kept[mark] for mark in marks]

    def close(self) -> None:
        """Stop after the text at hand; what was read so far is kept in memory alone."""
        self._is_closed = True
        for each in (self._answering, self._reading):
            each.shutdown(wait=False, cancel_futures=True)

    def _model(self) -> Model:
        """The model, loaded; a load that failed is not tried again."""
        if self._opening is None:
            self._opening = self._reading.submit(self._open)
        return self._result(self._opening, "it is being loaded")

    def _open(self) -> Model:
        model = self._load(self._folder)
        self._kept.update(_stored(self._place(model), model.dimensions))
        return model

    def _run(self, pool: CalmPool, act: Callable[[], None], told: str) -> None:
        """Have it done within the time limit; EncoderFailed at once while the same thread is late with something."""
        if self._is_closed:
            raise EncoderFailed("it is closed")
        late = self._late.get(pool)
        if late is not None and not late.done():
            raise EncoderFailed(f"it is still at {told}")
        future = pool.submit(act)
        try:
            self._result(future, f"it is still at {told} after {self._limit_s} s")
        finally:
            if not future.done():
                self._late[pool] = future

    def _result(self, future: "Future[T]", late: str) -> T:
        """Return what came of it; whatever the model's libraries raised is a failure of the model."""
        try:
            error = future.exception(self._limit_s)
        except TimeoutError as slow:
            raise EncoderFailed(late) from slow
        if isinstance(error, EncoderFailed):
            raise error
        if error is not None:
            raise EncoderFailed(f"{type(error).__name__}: {error}") from error
        return future.result()

    def _answer(self, model: Model, texts: Sequence[str]) -> None:
        for text, row in zip(texts, _rows(model, texts), strict=True):
            self._asked[text] = row
        while len(self._asked) > max(ASKED_MAX, len(texts)):
            self._asked.pop(next(iter(self._asked)), None)

    def _read(self, model: Model, texts: dict[bytes, str]) -> None:
        """Encode them in small batches, so that a stop is heard; then write all that is kept."""
        waiting = list(texts.items())
        for start in range(0, len(waiting), BATCH):
            if self._is_closed:
                return
            part = waiting[start : start + BATCH]
            for (mark, _), row in zip(part, _rows(model, [text for _, text in part]), strict=True):
                self._kept[mark] = row
        _store(self._place(model), self._kept)

    def _place(self, model: Model) -> Path:
        return self._kept_in / f"{model.key}.bin"


def _rows(model: Model, texts: Sequence[str]) -> Sequence[Vector]:
    """Give what the model makes of them; EncoderFailed for vectors that would spoil whatever they are compared with."""
    rows = model.encode(texts)
    if not all(map(math.isfinite, map(sum, rows))):
        raise EncoderFailed("its vectors are not made of numbers")
    return rows


def _mark(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).digest()


def _stored(path: Path, dimensions: int) -> dict[bytes, Vector]:
    """Return what was kept; nothing, with a line in the log, where the file cannot be read: it is worked out again."""
    try:
        found = packed.read(path.read_bytes())[1]
        marks, rows = found["marks"].tobytes(), found["rows"]
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError) as error:
        log.warning("sentence model: cannot read cached vectors in %s (%s), computing them again", path.name, error)
        return {}
    form = struct.Struct(f"<{dimensions}e")
    if len(rows) * DIGEST_BYTES != len(marks) * form.size:
        log.warning("sentence model: cached vectors in %s have another shape, computing them again", path.name)
        return {}
    starts = range(0, len(marks), DIGEST_BYTES)
    return {
        marks[at : at + DIGEST_BYTES]: array("f", row) for at, row in zip(starts, form.iter_unpack(rows), strict=True)
    }


def _store(path: Path, kept: dict[bytes, Vector]) -> None:
    """The newest of them, as a whole file or as it was; a folder that cannot be written costs another reading."""
    kept = dict(list(kept.items())[-KEPT_MAX:])
    rows = b"".join(struct.pack(f"<{len(row)}e", *row) for row in kept.values())
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        private.make_folder(path.parent)
        private.write_beside(beside, packed.to_bytes({}, {"marks": b"".join(kept), "rows": rows}))
        beside.replace(path)
        path.with_suffix(".npz").unlink(missing_ok=True)  # the same, as it was kept until November 2026
    except OSError as error:
        log.warning("sentence model: cannot cache vectors in %s: %s", path.parent, error)
