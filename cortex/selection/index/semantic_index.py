"""Tools by what their words mean: a vector a tool, one for each of its examples, and how much that is worth.

It finds .70 of what is asked of tools nobody taught by the table that ships, .77 by a sentence model, which keeps its
vectors. No threshold is written down, for none holds for two models: `fitted` finds each one's own.
"""

import math
from array import array
from collections.abc import Mapping, Sequence
from itertools import chain
from operator import add, mul, sub
from zlib import crc32

from msgspec import Struct

from cortex.selection.index import sentence_models, tool_words
from cortex.selection.index.search import Bm25, Scores
from cortex.selection.index.vectors import Vectors
from cortex.selection.types import Snapshot, ToolEntry
from cortex.selection.words import text

BEST = 3
TOLD, ASKED, TALK = 3, 3, 150
LEAST_TOOLS = 10
STEPS, RIDGE, STILL = 30, 1e-3, 1e-9

Floats = Sequence[float]


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

    def around(self, best: float, usual: float) -> float:
        """Sum up what is the same for every tool of a text."""
        return self.best * best + self.usual * usual + self.bias


class Curves(Struct, frozen=True, kw_only=True):
    """One for tools known by their own words alone, one for tools with examples."""

    bare: LikenessCurve
    told: LikenessCurve


class SemanticIndex:
    """The tools by their slots, as vectors, and behind them the examples of those that have any."""

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
        older = before._vectors if before and before._key == key else None
        known = {id(entry): slot for slot, entry in enumerate(before._entries)} if before and older else {}
        new = [entry for entry in entries if id(entry) not in known]
        first = older.count if older else 0
        known |= {id(entry): first + at for at, entry in enumerate(new)}
        fresh = [*encoder.kept([tool_words.worded(entry) for entry in new])]
        order = [known[id(entry)] for entry in entries]
        slots = {entry.name: slot for slot, entry in enumerate(entries)}
        self.told: dict[int, slice] = {}
        for name, texts in told.items():
            self.told[slots[name]] = slice(len(order), len(order) + len(texts))
            order += range(first + len(fresh), first + len(fresh) + len(texts))
            fresh += encoder.kept(texts)
        self._vectors: Vectors = Vectors(fresh, older, order)
        self._metas = [slot for slot, entry in enumerate(entries) if entry.is_meta]

    def likeness(self, said: str) -> Floats:
        """By slot the cosine with the tool; half that, half its best examples' where it has any; -1 for meta tools."""
        every = self._vectors.cosines(sentence_models.named(self._key).asked([said])[0])
        found = every[: len(self._entries)]
        for slot, told in self.told.items():
            best = sorted(every[told])[-BEST:]
            found[slot] = 0.5 * (found[slot] + sum(best) / len(best))
        for slot in self._metas:
            found[slot] = -1.0
        return array("f", found)  # an eighth of a list's bytes, and some are kept

    def likely(
        self, likeness: Floats, shares: Scores, curves: Curves, names: frozenset[str], least: float, most: int
    ) -> list[tuple[int, float]]:
        """The slots of these names that have this chance or more, with it: best first, `most` at most.

        `shares`: what the words of a tool cover of the text's weight.
        """
        standing = len(likeness) - len(self._metas)
        best, usual = max(likeness, default=-1.0), (sum(likeness) + len(self._metas)) / max(1, standing)
        bar, bare = math.log(least / (1 - least)), curves.bare
        around, told = bare.around(best, usual), curves.told.around(best, usual)
        enough = (bar - around) / bare.like if bare.like > 0 else -1.0
        sums = {slot: bare.like * like for slot, like in enumerate(likeness) if like >= enough}
        sums |= {slot: bare.like * likeness[slot] + bare.words * share for slot, share in shares.items()}
        sums = {slot: around + each for slot, each in sums.items()}
        for slot in self.told:
            sums[slot] = told + curves.told.like * likeness[slot] + curves.told.words * shares.get(slot, 0.0)
        found = [slot for slot, each in sums.items() if each >= bar and self._entries[slot].name in names]
        found.sort(key=lambda slot: (-sums[slot], slot))
        return [(slot, 1 / (1 + math.exp(-sums[slot]))) for slot in found[:most]]


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
    vectors = Vectors(encoder.kept([*map(tool_words.worded, tools), *chain.from_iterable(told)]))
    bare, both = [], []
    for row in map(vectors.cosines, encoder.kept(texts)):
        alone, near = row[: len(tools)], row[len(tools) :]
        bare.append(alone)
        both.append([0.5 * (one + sum(near[TOLD * at :][:TOLD]) / TOLD) for at, one in enumerate(alone)])
    wants |= dict.fromkeys(texts[len(asked) :], ())
    wanted = [[entry.name in wants[each] for entry in tools] for each in texts]
    shares = [_shares(tools, some, texts, words) for some in ([()] * len(tools), told)]
    return Curves(bare=_curve(bare, shares[0], wanted), told=_curve(both, shares[1], wanted))


def _shares(
    tools: Sequence[ToolEntry], told: Sequence[Sequence[str]], said: Sequence[str], words: Bm25
) -> list[Floats]:
    """By text what the words of each tool would cover of its weight, had the tool these examples alone."""
    made = [tool_words.words(entry, texts) for entry, texts in zip(tools, told, strict=True)]
    asked = [dict.fromkeys(text.terms(each), 1.0) for each in said]
    scores = words.would_score(made, asked)
    ceilings = [words.ceiling(each, tool_words.UNKNOWN_WORTH) for each in asked]
    return [[row.get(at, 0.0) / most for at in range(len(tools))] for row, most in zip(scores, ceilings, strict=True)]


def _draw(said: str) -> tuple[int, str]:
    return crc32(said.encode()), said


def _curve(likeness: Sequence[Floats], shares: Sequence[Floats], wanted: Sequence[Sequence[bool]]) -> LikenessCurve:
    """The curve through these, a row a text and a column a tool, by Newton's steps."""
    found = [0.0] * 5
    for _ in range(STEPS):
        slope = [-RIDGE * each for each in found]
        bend = [[RIDGE * (at == other) for other in range(5)] for at in range(5)]
        for like, share, want in zip(likeness, shares, wanted, strict=True):
            _add(slope, bend, found, like, share, want)
        step = _solved(bend, slope)
        found = list(map(add, found, step))
        if max(map(abs, step)) < STILL:
            break
    by_like, by_words, by_best, by_usual, bias = (round(each, 4) for each in found)
    return LikenessCurve(like=by_like, words=by_words, best=by_best, usual=by_usual, bias=bias)


def _add(
    slope: list[float], bend: list[list[float]], line: Floats, like: Floats, share: Floats, want: Sequence[bool]
) -> None:
    """Add what one text says of the line. Three figures are the same for all of its tools, and summed up once."""
    same = (max(like), sum(like) / len(like), 1.0)
    around = sum(map(mul, line[2:], same))
    p = [1 / (1 + math.exp(-line[0] * one - line[1] * other - around)) for one, other in zip(like, share, strict=True)]
    left, weight = list(map(sub, want, p)), [each * (1 - each) for each in p]
    likes, words = list(map(mul, weight, like)), list(map(mul, weight, share))
    whole, more, crossed = sum(weight), sum(left), sum(map(mul, likes, share))
    of_like, of_words = ([sum(each) * one for one in same] for each in (likes, words))
    rows = [[sum(map(mul, likes, like)), crossed, *of_like], [crossed, sum(map(mul, words, share)), *of_words]]
    rows += [[of_like[at], of_words[at], *(whole * one * other for other in same)] for at, one in enumerate(same)]
    for row, each in zip(bend, rows, strict=True):
        row[:] = map(add, row, each)
    slope[:] = map(add, slope, [sum(map(mul, left, like)), sum(map(mul, left, share)), *(more * one for one in same)])


def _solved(matrix: Sequence[Floats], right: Floats) -> list[float]:
    """Solve a few equations whose matrix is positive definite (Gauss)."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for at, pivot in enumerate(rows):
        for row in rows:
            if row is not pivot:
                share = row[at] / pivot[at]
                row[:] = [one - share * other for one, other in zip(row, pivot, strict=True)]
    return [row[-1] / row[at] for at, row in enumerate(rows)]
