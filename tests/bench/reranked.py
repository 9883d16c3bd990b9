"""`python -m tests.bench.reranked [FOLDER …]`: the nearest N tools with every message, as AnythingLLM chooses them.

A stand-in, not that program: it ranks by a cross-encoder that comes from a model hub, this by the sentence model of the
tests, which is of the same family and knows a message and a tool apart from each other. What is read of a tool is built
as there: name, description, parameters, and sentences that people say to it, 1,000 characters of all. `docs/bench.md`
says what can be compared.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from cortex.base import tokens
from cortex.integrations.sentences import load
from cortex.selection.types import Snapshot, ToolEntry
from tests.bench import external, files, routing
from tests.bench.files import CASES, LANGUAGES, RoutingSet
from tests.bench.ground import BenchGround, ground
from tests.bench.recipes import table
from tests.bench.routing import JudgedSet, KnownNames
from tests.bench.selector import SelectorAnswer
from tests.bench.timing import timed
from tests.real_encoder import real_folder

TOP, EXAMPLES, CHARACTERS = 15, 3, 1_000
HEADS = ("set", "rows", "sentences a tool", "recall", "tools", "share of all", "small talk with a tool", "p50 ms")
FIGURES = ("recall", "tools_mean", "tokens_share", "chat_any", "p50_ms")
Vectors = NDArray[np.float32]
Read = Callable[[Sequence[str]], Vectors]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """A way that sends the nearest tools, always so many. `vectors`: a row for each of `names`, of length 1."""

    names: tuple[str, ...]
    vectors: Vectors
    read: Read
    top: int = TOP

    def __call__(
        self, one: RoutingSet, names: KnownNames, ground: BenchGround, others: Mapping[str, JudgedSet]
    ) -> JudgedSet:
        """Its figures on a set of messages."""
        return external.judged(one, names, ground, [self.answer(row.text) for row in one.rows])

    def answer(self, message: str) -> SelectorAnswer:
        """The nearest tools, the best first."""
        likeness, ms = timed(partial(self._likeness, message))
        best = np.argsort(-likeness, kind="stable")[: self.top]
        return SelectorAnswer(tools=tuple(self.names[at] for at in best), ms=ms)

    def _likeness(self, message: str) -> Vectors:
        return np.asarray(self.vectors @ self.read([message[:CHARACTERS]])[0], dtype=np.float32)


def nearest(snapshot: Snapshot, read: Read, examples: int, top: int = TOP) -> Nearest:
    """The way over the snapshot's tools, each read with so many of the sentences that people say to it."""
    entries = [entry for entry in snapshot.entries if not entry.is_meta]
    texts = [document(entry, said(snapshot, entry.name)[:examples]) for entry in entries]
    return Nearest(names=tuple(entry.name for entry in entries), vectors=read(texts), read=read, top=top)


def said(snapshot: Snapshot, tool: str) -> list[str]:
    """What people say to this tool alone, in the order in which it ships."""
    return [each.text for domain in snapshot.domains for each in domain.examples if each.tools == (tool,)]


def document(entry: ToolEntry, examples: Sequence[str]) -> str:
    """What is read of a tool."""
    properties = entry.full.parameters.get("properties", {})
    told = [f"{name}: {each['description']}" if "description" in each else name for name, each in properties.items()]
    parts = (entry.name, entry.full.description, ", ".join(told), "; ".join(examples))
    return "\n".join(part for part in parts if part)[:CHARACTERS]


def saved(snapshot: Snapshot, judged: JudgedSet, examples: int) -> float:
    """What share of the tokens it leaves out by that program's own count, which is of the documents."""
    sizes = {
        entry.name: tokens.count(document(entry, said(snapshot, entry.name)[:examples]))
        for entry in snapshot.entries
        if not entry.is_meta
    }
    return 1 - mean(sum(sizes[name] for name in row.names) for row in judged.rows) / sum(sizes.values())


def main(folders: Sequence[str]) -> None:
    """Judge it on our own cases, the languages and the folders; print a table."""
    over = ground()
    rows = [[*HEADS, "left out, as it counts"]]
    with TemporaryDirectory() as place:
        model = load(real_folder(Path(place) / "model"))
        for examples in (0, EXAMPLES):
            way = nearest(over.snapshot, lambda texts: np.array(model.encode(texts)), examples)
            for one in (one for path in (CASES, LANGUAGES, *map(Path, folders)) for one in _alone(path)):
                found = way(one, routing.known(one.rows, over), over, {})
                cells = [f"{found.scores[key]:.3f}" if key in found.scores else "-" for key in FIGURES]
                counted = f"{saved(over.snapshot, found, examples):.2f}"
                rows.append([one.name, f"{len(one.rows):,}", f"{examples}", *cells, counted])
    sys.stdout.write(table(rows) + "\n")


def _alone(path: Path) -> list[RoutingSet]:
    return [one for one in files.read(path, lambda _: None).routing if not one.is_multiturn]


if __name__ == "__main__":
    main(sys.argv[1:])
