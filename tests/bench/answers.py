"""Fits what tells an answer from a refusal, for `selection/model/lacks_tool.py`: `python -m tests.bench.answers`.

`answers/fit.txt` holds own sentences by language: "-" for a refusal, "+" for an answer, "~" for what may follow either;
{a}, {n} and {q} stand for the section's doings, things and questions, so that no topic speaks for either side.
`answers/judge.txt` was written apart and is never fitted on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cortex.base import memory
from cortex.selection.model import lacks_tool

FOLDER = Path(__file__).parent / "answers"
FIT, JUDGE = FOLDER / "fit.txt", FOLDER / "judge.txt"
EACH = 3  # of the things that a frame is filled with, every third
FRAME_WEIGHT, RIDGE, STEPS = 0.35, 0.02, 10
LEAST = 0.3  # log odds: a false alarm costs the person a second answer
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """An answer as a model may give it. `weight`: how much it counts in the fit."""

    language: str
    text: str
    is_refusal: bool
    weight: float = 1.0


def sentences(path: Path) -> list[Sentence]:
    """The sentences of a file, its frames filled; what may follow either kind follows each once."""
    sections: dict[str, list[tuple[str, str]]] = {}
    language = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        mark, _, rest = line.partition(" ")
        if mark == "#":
            language = rest
        elif rest:
            sections.setdefault(language, []).append((mark, rest.replace("\\n", "\n")))
    return [each for language, lines in sections.items() for each in _filled(language, lines)]


def _filled(language: str, lines: Sequence[tuple[str, str]]) -> list[Sentence]:
    kinds = {kind: [said for mark, said in lines if mark == kind] for kind in "anq~"}
    found: list[Sentence] = []
    for number, (mark, said) in enumerate(line for line in lines if line[0] in "-+"):
        slot = next((kind for kind in "anq" if f"{{{kind}}}" in said), "")
        if slot:
            texts = [said.replace(f"{{{slot}}}", each) for each in kinds[slot][number % EACH :: EACH]]
        else:
            tails = kinds["~"]
            texts = [said, f"{said} {tails[number % len(tails)]}"] if tails else [said]
        weight = FRAME_WEIGHT if slot else 1.0
        found += [Sentence(language=language, text=each, is_refusal=mark == "-", weight=weight) for each in texts]
    return found


def fitted() -> bytes:
    """The line as its file has it: a logistic regression with a ridge, in its dual form, by Newton's steps."""
    rows = sentences(FIT)
    told = np.zeros((len(rows), lacks_tool.BUCKETS), dtype=np.float32)
    for at, row in enumerate(rows):
        buckets = sorted(lacks_tool.features(row.text))
        told[at, buckets] = len(buckets) ** -0.5
    truth = np.array([row.is_refusal for row in rows], dtype=np.float64)
    share = np.array([row.weight for row in rows])
    kernel = (told @ told.T).astype(np.float64) + 1  # the constant with it
    dual = _solved(kernel, truth, share)
    weights = told.T @ dual.astype(np.float32)
    scale = float(np.abs(weights).max()) / 127
    head = lacks_tool.HEAD.pack(scale, LEAST - float(dual.sum()), digest())
    rounded: bytes = np.rint(weights / scale).astype(np.int8).tobytes()
    return memory.sealed(head + rounded)


def _solved(kernel: Floats, truth: Floats, share: Floats) -> Floats:
    odds: Floats = np.zeros(len(truth))
    dual = odds
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-odds))
        curve = np.maximum(share * p * (1 - p), 1e-9)
        dual = np.asarray(np.linalg.solve(kernel + np.diag(RIDGE / curve), odds + share * (truth - p) / curve))
        odds = np.asarray(kernel @ dual)
    return dual


def digest() -> bytes:
    """What the line is fitted on, as it is noted in its file."""
    return blake2b(FIT.read_bytes(), digest_size=8).digest()


def judged(path: Path = JUDGE) -> dict[str, tuple[float, float]]:
    """By language and for all: the share of refusals that are told, and of real answers that are taken for one."""
    rows = sentences(path)
    found = {}
    for name in (*dict.fromkeys(row.language for row in rows), "all"):
        mine = [row for row in rows if name in (row.language, "all")]
        told = {
            kind: [lacks_tool.does_not_answer(r.text) for r in mine if r.is_refusal == kind] for kind in (True, False)
        }
        found[name] = (float(np.mean(told[True])), float(np.mean(told[False])))
    return found


if __name__ == "__main__":
    memory.replace(lacks_tool.FILE, fitted())
    for name, (recall, alarms) in judged().items():
        print(f"{name}: {recall:.3f} of refusals, {alarms:.3f} of answers")  # noqa: T201 - what it is started for
