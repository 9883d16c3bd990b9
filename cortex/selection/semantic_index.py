"""Tools by what their words mean: a vector a tool, one for each of its examples, and how much that is worth.

Vectors come from a sentence model, which keeps them (a changed tool is encoded alone), or from the table that ships. No
threshold is written down here, for none holds for two models: `fitted` finds this model's own. Loaded late: numpy.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from cortex.selection import bags, sentence_models, text
from cortex.selection.search import Bm25
from cortex.selection.tool_text import worded
from cortex.selection.types import Snapshot, ToolEntry

BEST = 3
TOLD, ASKED, TALK = 3, 3, 150
LEAST_TOOLS = 10
STEPS, RIDGE = 30, 1e-3
OUT_OF_REACH = 4.0  # more than two likenesses can differ by

Floats = NDArray[np.float32]
Around = tuple[float, float]  # how like the likest tool is, and the mean of all


@dataclass(frozen=True, slots=True, kw_only=True)
class LikenessCurve:
    """Evidence to chance, fitted for one model: 1 / (1 + exp(-sum)) of what was found, each times its weight.

    `like`: how like the text the tool is; `words`: what share of the text's weight the tool's words cover; `best`: how
    like the likest of all tools is; `usual`: the mean of all. A vague text is a little like everything.
    """

    like: float
    words: float
    best: float
    usual: float
    bias: float

    def sums(self, likeness: Floats, shares: Floats, around: Around) -> Floats:
        """The sums, slot by slot."""
        best, usual = around
        around_it = self.best * best + self.usual * usual + self.bias
        return np.asarray(self.like * likeness + self.words * shares + around_it, dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """One for tools known by their own words alone, one for tools with examples."""

    bare: LikenessCurve
    told: LikenessCurve


class SemanticIndex:
    """`rows` (n_slots, dim): the tools; `said` (n_examples, dim): what people say, by rising slot in `homes`."""

    def __init__(
        self,
        key: str,
        entries: Sequence[ToolEntry],
        told: Mapping[str, Sequence[str]],
        before: "SemanticIndex | None" = None,
    ) -> None:
        """EncoderFailed where the vectors are not at hand.

        `key`: of the sentence model; `entries`: the tools, by their slots; `told`: a tool's examples. What stood in an
        older index, `before`, and did not change is taken over.
        """
        self._key = key
        encoder = sentence_models.named(key)
        old = before if before and before._key == key and len(before.rows) else None
        self._places = {id(entry): slot for slot, entry in enumerate(entries)}
        self._entries = entries  # so that no other entry gets the id of one of these
        kept = [old._places.get(id(entry), -1) if old else -1 for entry in entries]
        new = [slot for slot, place in enumerate(kept) if place < 0]
        fresh = encoder.kept([worded(entries[slot]) for slot in new])
        self.rows: Floats = np.zeros((len(entries), fresh.shape[1]), dtype=np.float32)
        if old:
            self.rows[:] = old.rows[kept]
        self.rows[new] = fresh
        slots = {entry.name: slot for slot, entry in enumerate(entries)}
        pairs = sorted((slots[name], each) for name, texts in told.items() for each in texts)
        self.homes = np.array([slot for slot, _ in pairs], dtype=np.intp)
        self.said = encoder.kept([each for _, each in pairs])
        self.has_told = np.zeros(len(self.rows), dtype=np.bool_)
        self.has_told[self.homes] = True
        standing = np.array([not entry.is_meta for entry in entries], dtype=np.float32)
        self._standing = standing / max(1, int(standing.sum()))
        self._barred = np.where(standing > 0, 0, -OUT_OF_REACH).astype(np.float32)

    def likeness(self, said: str) -> Floats:
        """(n_slots,): the cosine with the tool; half that, half its best examples' where it has any."""
        asked = sentence_models.named(self._key).asked([said])[0]
        found = _cosines(self.rows, asked)
        if len(self.homes):
            near = _best(_cosines(self.said, asked), self.homes, len(self.rows))
            found[self.has_told] = 0.5 * (found + near)[self.has_told]
        return found

    def chances(self, likeness: Floats, shares: Floats, curves: Curves) -> Floats:
        """The probability that a tool is wanted, for each slot. `shares`: what its words cover of the text's weight."""
        return _chance(self._sums(likeness, shares, curves))

    def likely(
        self, likeness: Floats, shares: Floats, curves: Curves, mask: Floats, least: float, most: int
    ) -> list[tuple[int, float]]:
        """The slots that the mask leaves and that have this chance or more, with it: best first, `most` at most."""
        sums = self._sums(likeness, shares, curves)
        slots = np.flatnonzero(sums >= math.log(least / (1 - least)))
        slots = slots[mask[slots] > 0]
        if len(slots) > most:  # sorting thousands takes longer than all else here
            slots = slots[sums[slots] >= np.partition(sums[slots], -most)[-most]]
        best = slots[np.argsort(-sums[slots], kind="stable")[:most]]
        return list(zip(best.tolist(), _chance(sums[best]).tolist(), strict=True))

    def _sums(self, likeness: Floats, shares: Floats, curves: Curves) -> Floats:
        best = float((likeness + self._barred).max(initial=-1.0))
        around = best, float(np.vecdot(likeness, self._standing))
        bare = curves.bare.sums(likeness, shares, around)
        return np.where(self.has_told, curves.told.sums(likeness, shares, around), bare) if len(self.homes) else bare


def documents_of(snapshot: Snapshot, names: frozenset[str], learned: frozenset[str]) -> dict[str, list[str]]:
    """What people say for tools that the fitted model does not know, and what this server taught for any."""
    found: dict[str, list[str]] = {}
    for domain in snapshot.domains:
        for example in domain.examples:
            for name in example.tools:
                if name in names and (example.is_own or name not in learned):
                    found.setdefault(name, []).append(example.text)
    return found


def fitted(snapshot: Snapshot, learned: frozenset[str], key: str, words: Bm25) -> Curves | None:
    """What a likeness is worth under the model of this key: fitted on what people say for the tools that Cortex knows.

    Each stands in for a tool of somebody else's: known by its words, or by a few of its examples. Messages that need
    no tool count too. None where there is too little to learn from.
    """
    tools = [entry for entry in snapshot.entries if entry.name in learned and not entry.is_meta]
    samples = {entry.name: _sample(snapshot, entry.name) for entry in tools}
    tools = [entry for entry in tools if len(samples[entry.name]) >= TOLD + ASKED]
    if len(tools) < LEAST_TOOLS:
        return None
    wants = {example.text: example.tools for domain in snapshot.domains for example in domain.examples}
    asked = [each for entry in tools for each in samples[entry.name][TOLD : TOLD + ASKED]]
    talk = sorted({example.text for example in snapshot.none}, key=_draw)[:TALK]
    encoder = sentence_models.named(key)
    said = encoder.kept([*asked, *talk])
    bare: Floats = said @ encoder.kept([worded(entry) for entry in tools]).T
    told = [samples[entry.name][:TOLD] for entry in tools]
    examples = encoder.kept([each for texts in told for each in texts])
    near = (said @ examples.T).reshape(len(said), len(tools), TOLD).mean(axis=2)
    wanted = np.zeros(bare.shape, dtype=np.float32)
    for row, each in enumerate(asked):
        wanted[row] = [entry.name in wants[each] for entry in tools]
    shares = [_shares(tools, texts, [*asked, *talk], words) for texts in ([()] * len(tools), told)]
    return Curves(bare=_curve(bare, shares[0], wanted), told=_curve(0.5 * (bare + near), shares[1], wanted))


def _shares(tools: Sequence[ToolEntry], told: Sequence[Sequence[str]], said: Sequence[str], words: Bm25) -> Floats:
    """(n_said, n_tools): what the words of each tool would cover of each text's weight, had it these examples alone."""
    made = [bags.words(entry, texts) for entry, texts in zip(tools, told, strict=True)]
    asked = [dict.fromkeys(text.terms(each), 1.0) for each in said]
    ceilings = [[words.ceiling(each, bags.UNKNOWN_WORTH)] for each in asked]
    return np.asarray(words.would_score(made, asked) / np.array(ceilings), dtype=np.float32)


def _sample(snapshot: Snapshot, name: str) -> list[str]:
    """Shipped examples of the tool, drawn so that a change of one leaves the others."""
    texts = {
        example.text
        for domain in snapshot.domains
        for example in domain.examples
        if name in example.tools and not example.is_own
    }
    return sorted(texts, key=_draw)[: TOLD + ASKED]


def _cosines(rows: Floats, asked: Floats) -> Floats:
    """(n_rows,), by one thread: BLAS waits up to 16 ms for a second core that is busy (2026-11-21)."""
    found: Floats = np.vecdot(rows, asked)
    return found


def _draw(said: str) -> tuple[int, str]:
    return crc32(said.encode()), said


def _best(near: Floats, homes: NDArray[np.intp], n_slots: int) -> Floats:
    """(n_slots,): the mean of each slot's best BEST; of all where it has fewer, 0 where none."""
    order = np.lexsort((-near, homes))
    rank = np.arange(len(homes)) - np.searchsorted(homes, homes)
    best = order[rank < BEST]
    counts = np.bincount(homes[best], minlength=n_slots)
    sums = np.bincount(homes[best], weights=near[best], minlength=n_slots)
    return (sums / np.maximum(counts, 1)).astype(np.float32)


def _chance(sums: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-sums)), dtype=np.float32)


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
