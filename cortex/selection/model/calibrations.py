"""What scores are worth: chances of tools and of two gates, by logistic regressions over a few features of the scores.

`fit.py` makes them. Loaded late through `scan.load`: numpy is heavy.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from cortex.selection.words import text

KINDS = ("chat", "llm", "open")
TOPS, LEAST = 2, 1e-4
SHARPNESS = 6.0  # the higher, the more of a crowd is its best

Floats = NDArray[np.float32]


class TextChances(Struct, frozen=True, kw_only=True):
    """Chances of texts.

    `tools` (n_texts, n_tools); `wish` that anything is wanted at all, `work` that it is more than words or the web,
    both (n_texts,).
    """

    tools: Floats
    wish: Floats
    work: Floats


class Calibrations(Struct, frozen=True, kw_only=True):
    """Three lines, a factor a feature and the constant last.

    `tool`: that a tool is wanted; `wish`: that anything is; `work`: that it is more than words or the web.
    """

    tool: Floats
    wish: Floats
    work: Floats

    def judged(self, texts: Sequence[str], scores: Floats, home: NDArray[np.int32], n_categories: int) -> TextChances:
        """The chances of texts by their scores, (n_texts, n_columns)."""
        tools = chance(self.tool, tool_features(scores, home, n_categories))
        gates = gate_features(texts, scores, tools, n_categories)
        return TextChances(tools=tools, wish=chance(self.wish, gates), work=chance(self.work, gates))

    def arrays(self) -> dict[str, Any]:
        """To be stored by these names; `of` reads them."""
        return {"gate0": self.tool, "gate1": self.wish, "gate2": self.work}

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "Calibrations":
        """Return what `arrays` gave; KeyError where one is missing."""
        return cls(tool=stored["gate0"], wish=stored["gate1"], work=stored["gate2"])


def chance(line: Floats, features: Floats) -> Floats:
    """Probabilities of rows (..., n_features)."""
    score = np.vecdot(features, line[:-1]) + line[-1]  # what a matmul makes of a row depends on how many there are
    return np.asarray(1 / (1 + np.exp(-score)), dtype=np.float32)


def tool_features(scores: Floats, home: NDArray[np.int32], n_categories: int) -> Floats:
    """(n_texts, n_tools, 8): a tool's score, its category's, what speaks for none, and the crowd it stands in.

    The crowd is of all tools, of those of its category, and of the categories. `home` rises: the tools of a category
    stand together.
    """
    n_tools = len(home)
    own, categories = scores[:, :n_tools], scores[:, n_tools : n_tools + n_categories]
    kinds = scores[:, n_tools + n_categories :][:, : len(KINDS)]
    tools, homes = np.exp(SHARPNESS * own), np.exp(SHARPNESS * categories)
    siblings = np.add.reduceat(tools, np.searchsorted(home, np.arange(n_categories)), axis=1)
    crowd = [np.log(each) for each in (tools.sum(axis=1)[:, None], siblings[:, home], homes.sum(axis=1)[:, None])]
    parts = (own, categories[:, home], kinds.max(axis=1)[:, None], kinds[:, :1], kinds[:, 1:2], *crowd)
    return np.stack([np.broadcast_to(part, own.shape) for part in parts], axis=-1, dtype=np.float32)


def gate_features(texts: Sequence[str], scores: Floats, chances: Floats, n_categories: int) -> Floats:
    """(n_texts, 9): the two best categories, the kinds of no tool, the need of any, the two best chances, length."""
    n_tools = chances.shape[1]
    homes = np.sort(scores[:, n_tools : n_tools + n_categories], axis=1)[:, -TOPS:]
    kinds = scores[:, n_tools + n_categories :]
    best = np.log(np.sort(chances, axis=1)[:, -TOPS:] + LEAST)
    length = np.log1p([[len(text.words(said))] for said in texts])  # small talk is short
    return np.concatenate([homes, kinds, best, length], axis=1, dtype=np.float32)
