"""Tools by what their words mean: a vector a tool, one for each of its examples, and how much that is worth.

It finds .70 of what is asked of tools nobody taught by the table that ships, .77 by a sentence model, which keeps its
vectors. No threshold is written down, for none holds for two models: `fitted` finds each one's own. Loaded late: numpy.
"""

import math
from collections.abc import Mapping, Sequence
from zlib import crc32

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from cortex.selection.index import sentence_models, tool_words
from cortex.selection.index.search import Bm25
from cortex.selection.types import Snapshot, ToolEntry
from cortex.selection.words import text

BEST = 3
TOLD, ASKED, TALK = 3, 3, 150
LEAST_TOOLS = 10
STEPS, RIDGE = 30, 1e-3

Floats = NDArray[np.float32]


class LikenessCurve(Struct, frozen=True, kw_only=True):
    """Evidence to chance, fitted for one model: 1 / (1 + exp(-sum)) of what was found, each times its weight.

    `like`: how like the text the tool is; `words`: what share of the text's weight the tool's words cover (without: .64
    for .70); `best`: how like the likest of all is; `usual`: the mean of all. A vague text is a little like everything.
    """

    like: float
    words: float
    best: float
    usual: float
    bias: float

    def sums(self, likeness: Floats, shares: Floats, best: float, usual: float) -> Floats:
        """The sums, slot by slot."""
        around = self.best * best + self.usual * usual + self.bias
        return np.asarray(self.like * likeness + self.words * shares + around, dtype=np.float32)


class Curves(Struct, frozen=True, kw_only=True):
    """One for tools known by their own words alone, one for tools with examples."""

    bare: LikenessCurve
    told: LikenessCurve


class SemanticIndex:
    """`rows` (n_slots, dim): the tools; `has_told` (n_slots,): which have examples, whose rows stand apart."""

    def __init__(
        self,
        key: str,
        entries: Sequence[ToolEntry],
        told: Mapping[str, Sequence[str]],
        before: "SemanticIndex | None" = None,
    ) -> None:
        """EncoderFailed where the vectors are not at hand.

        `key`: of the sentence model; `entries`: the tools, by their slots; `told`: a tool's examples. What stood in an
        older index, `before`, and did not change is taken over: of 10,000 tools that saves .5 s.
        """
        encoder = sentence_models.named(key)
        self._key, self._entries = key, entries  # kept, so that no other entry gets the id of one of these
        self._known: dict[int, Floats] = before._known if before and before._key == key else {}
        new = [entry for entry in entries if id(entry) not in self._known]
        fresh = encoder.kept([tool_words.worded(entry) for entry in new])
        known = {**self._known, **dict(zip(map(id, new), fresh, strict=True))}
        self.rows: Floats = np.array([known[id(entry)] for entry in entries]).reshape(-1, fresh.shape[1])
        self._known = dict(zip(map(id, entries), self.rows, strict=True))
        slots = {entry.name: slot for slot, entry in enumerate(entries)}
        self._told = {slots[name]: encoder.kept(texts) for name, texts in told.items()}
        self.has_told = np.isin(np.arange(len(entries)), list(self._told))
        self._standing = np.array([not entry.is_meta for entry in entries], dtype=np.bool_)

    def likeness(self, said: str) -> Floats:
        """(n_slots,): the cosine with the tool; half that, half its best examples' where it has any."""
        asked = sentence_models.named(self._key).asked([said])[0]
        found: Floats = np.vecdot(self.rows, asked)  # BLAS waits up to 16 ms for a second core that is busy
        for slot, rows in self._told.items():
            found[slot] = 0.5 * (found[slot] + np.sort(np.vecdot(rows, asked))[-BEST:].mean())
        return found

    def likely(
        self, likeness: Floats, shares: Floats, curves: Curves, mask: Floats, least: float, most: int
    ) -> list[tuple[int, float]]:
        """The slots that the mask leaves and that have this chance or more, with it: best first, `most` at most.

        `shares`: what each tool's words cover of the text's weight.
        """
        standing = likeness[self._standing]
        around = float(standing.max(initial=-1.0)), float(standing.sum() / max(1, len(standing)))
        bare, told = (curve.sums(likeness, shares, *around) for curve in (curves.bare, curves.told))
        sums = np.where(self.has_told, told, bare)
        slots = np.flatnonzero((sums >= math.log(least / (1 - least))) & (mask > 0))
        if len(slots) > most:  # sorting thousands takes longer than all else here
            slots = slots[sums[slots] >= np.partition(sums[slots], -most)[-most]]
        best = slots[np.argsort(-sums[slots], kind="stable")[:most]]
        return list(zip(best.tolist(), (1 / (1 + np.exp(-sums[best]))).tolist(), strict=True))


def documents_of(snapshot: Snapshot, names: frozenset[str], learned: frozenset[str]) -> dict[str, list[str]]:
    """Return what people say for tools that the fitted model does not know, and what this server taught for any."""
    found: dict[str, list[str]] = {}
    for domain in snapshot.domains:
        for example in domain.examples:
            for name in example.tools:
                if name in names and (example.is_own or name not in learned):
                    found.setdefault(name, []).append(example.text)
    return found


def fitted(snapshot: Snapshot, learned: frozenset[str], key: str, words: Bm25) -> Curves | None:
    """Return what a likeness is worth under the model of this key, by what people say for the tools that Cortex knows.

    Each stands in for a tool of somebody else's: known by its words, or by a few of its examples. Messages that need
    no tool count too. None where there is too little to learn from.
    """
    every = [example for domain in snapshot.domains for example in domain.examples]
    wants = {example.text: example.tools for example in every}
    drawn: dict[str, list[str]] = {}  # so that a change of one example leaves the others
    for said in sorted({example.text for example in every if not example.is_own}, key=_draw):
        for name in wants[said]:
            drawn.setdefault(name, []).append(said)
    own = [entry for entry in snapshot.entries if entry.name in learned and not entry.is_meta]
    tools = [entry for entry in own if len(drawn.get(entry.name, ())) >= TOLD + ASKED]
    if len(tools) < LEAST_TOOLS:
        return None
    told = [drawn[entry.name][:TOLD] for entry in tools]
    asked = [each for entry in tools for each in drawn[entry.name][TOLD : TOLD + ASKED]]
    texts = [*asked, *sorted({example.text for example in snapshot.none}, key=_draw)[:TALK]]
    encoder = sentence_models.named(key)
    rows = encoder.kept(texts)
    bare: Floats = rows @ encoder.kept([tool_words.worded(entry) for entry in tools]).T
    near = (rows @ encoder.kept([each for some in told for each in some]).T).reshape(*bare.shape, TOLD).mean(axis=2)
    wanted = np.array([[entry.name in wants.get(each, ()) for entry in tools] for each in texts])
    wanted[len(asked) :] = False
    shares = [_shares(tools, some, texts, words) for some in ([()] * len(tools), told)]
    return Curves(bare=_curve(bare, shares[0], wanted), told=_curve(0.5 * (bare + near), shares[1], wanted))


def _shares(tools: Sequence[ToolEntry], told: Sequence[Sequence[str]], said: Sequence[str], words: Bm25) -> Floats:
    """(n_said, n_tools): what the words of each tool would cover of each text's weight, had it these examples alone."""
    made = [tool_words.words(entry, texts) for entry, texts in zip(tools, told, strict=True)]
    asked = [dict.fromkeys(text.terms(each), 1.0) for each in said]
    ceilings = [[words.ceiling(each, tool_words.UNKNOWN_WORTH)] for each in asked]
    return np.asarray(words.would_score(made, asked) / np.array(ceilings), dtype=np.float32)


def _draw(said: str) -> tuple[int, str]:
    return crc32(said.encode()), said


def _curve(likeness: Floats, shares: Floats, wanted: Floats) -> LikenessCurve:
    """The curve through these, (n_texts, n_tools), by Newton's steps."""
    best, usual = likeness.max(axis=1, keepdims=True), likeness.mean(axis=1, keepdims=True)
    parts = np.broadcast_arrays(likeness, shares, best, usual, np.float32(1))
    features = np.stack([each.ravel() for each in parts], axis=1).astype(np.float64)
    labels = wanted.ravel().astype(np.float64)
    found = np.zeros(features.shape[1])
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-(features @ found)))
        slope = features.T @ (labels - p) - RIDGE * found
        bend = (features * (p * (1 - p))[:, None]).T @ features + RIDGE * np.eye(len(found))
        found = found + np.linalg.solve(bend, slope)
    like, words, best_of, mean, bias = np.round(found, 4).tolist()
    return LikenessCurve(like=like, words=words, best=best_of, usual=mean, bias=bias)
