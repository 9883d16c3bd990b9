"""What scores are worth: chances of tools and of two gates, by logistic regressions over a few features of the scores.

`fit.py` makes them. Loaded late through `scan.load`: numpy is heavy.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cortex.selection import text

KINDS = ("chat", "llm", "open")
SHORT_WORDS, LONG_WORDS = 2, 15
SHAPE = 4
TOPS = 2

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A logistic regression over a few features: `scale` for each, and a bias."""

    scale: Floats
    bias: float

    def chance(self, features: Floats) -> Floats:
        """Probabilities of rows (..., n_features)."""
        # No matmul: what it makes of a row depends on how many are multiplied with it.
        score = np.vecdot(features, self.scale) + self.bias
        return np.asarray(1 / (1 + np.exp(-score)), dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextChances:
    """Chances of texts.

    `tools` (n_texts, n_tools); `wish` that anything is wanted at all, `work` that it is more than words or the web,
    both (n_texts,).
    """

    tools: Floats
    wish: Floats
    work: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrations:
    """`tool`: that a tool is wanted; `wish`: that anything is; `work`: that it is more than words or the web."""

    tool: Calibration
    wish: Calibration
    work: Calibration

    def judged(self, texts: Sequence[str], scores: Floats, home: NDArray[np.int32], n_categories: int) -> TextChances:
        """The chances of texts by their scores, (n_texts, n_columns)."""
        tools = self.tool.chance(tool_features(scores, home, n_categories))
        gates = gate_features(texts, scores, tools, n_categories)
        return TextChances(tools=tools, wish=self.wish.chance(gates), work=self.work.chance(gates))

    def arrays(self) -> dict[str, Any]:
        """To be stored by these names; `of` reads them."""
        each = (self.tool, self.wish, self.work)
        return {f"gate{at}": np.append(one.scale, np.float32(one.bias)) for at, one in enumerate(each)}

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "Calibrations":
        """What `arrays` gave; KeyError where one is missing."""
        gates = [stored[f"gate{at}"].astype(np.float32) for at in range(3)]
        tool, wish, work = (Calibration(scale=each[:-1], bias=float(each[-1])) for each in gates)
        return cls(tool=tool, wish=wish, work=work)


def tool_features(scores: Floats, home: NDArray[np.int32], n_categories: int) -> Floats:
    """(n_texts, n_tools, 8): a tool's own score and its category's, how far both lead, and what speaks for none.

    `home` rises: the tools of a category stand together.
    """
    n_tools = len(home)
    own, categories = scores[:, :n_tools], scores[:, n_tools : n_tools + n_categories]
    kinds = scores[:, n_tools + n_categories :][:, : len(KINDS)]
    of_category = categories[:, home]
    ranked = np.sort(categories, axis=1)
    rival = np.where(of_category >= ranked[:, -1:], ranked[:, -2:-1], ranked[:, -1:])
    best = np.maximum.reduceat(own, np.searchsorted(home, np.arange(n_categories)), axis=1)[:, home]
    none = kinds.max(axis=1, keepdims=True)
    chat, words = kinds[:, :1], kinds[:, 1:2]
    parts = (own, of_category, own - best, of_category - rival, none, of_category - none, words, chat)
    found = np.empty((*own.shape, len(parts)), dtype=np.float32)
    for at, part in enumerate(parts):
        found[..., at] = part
    return found


def gate_features(texts: Sequence[str], scores: Floats, chances: Floats, n_categories: int) -> Floats:
    """(n_texts, 12): the two best categories, the kinds of no tool, the need of any, the best chances, the shape.

    Its shape is how long a text is and whether it asks: small talk is short.
    """
    n_tools = chances.shape[1]
    ranked = np.sort(scores[:, n_tools : n_tools + n_categories], axis=1)
    kinds = scores[:, n_tools + n_categories :]
    least = 1e-4
    best = np.sort(chances, axis=1)
    tops = [np.log(best[:, -at] + least) for at in range(1, TOPS + 1)]
    shape = np.array([_shape(said) for said in texts], dtype=np.float32).reshape(-1, SHAPE)
    return np.concatenate([ranked[:, -1:], ranked[:, -2:-1], kinds, np.stack(tops, axis=1), shape], axis=1)


def _shape(said: str) -> tuple[float, ...]:
    count = len(text.words(said))
    return math.log1p(count), float(count <= SHORT_WORDS), float(count > LONG_WORDS), float(said.rstrip().endswith("?"))
