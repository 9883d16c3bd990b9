"""What scores are worth: chances of tools and of two gates, by logistic regressions over a few features of the scores.

`fit.py` makes them, over thousands of texts at once; here is one text.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import mul
from typing import Any

from msgspec import Struct

from cortex.selection.words import text

KINDS = ("chat", "llm", "open")
TOPS, LEAST = 2, 1e-4
SHARPNESS = 6.0  # the higher, the more of a crowd is its best

Floats = Sequence[float]


class TextChances(Struct, frozen=True, kw_only=True):
    """Chances of a text.

    `tools`: a chance each; `wish` that anything is wanted at all, `work` that it is more than words or the web.
    """

    tools: Floats
    wish: float
    work: float


class Calibrations(Struct, frozen=True, kw_only=True, eq=False):
    """Three lines, a factor a feature and the constant last.

    `tool`: that a tool is wanted; `wish`: that anything is; `work`: that it is more than words or the web.
    """

    tool: Floats
    wish: Floats
    work: Floats

    def judged(self, said: str, scores: Floats, home: Floats, n_categories: int) -> TextChances:
        """The chances of a text by its scores. `home`: the category of each tool by its number, rising."""
        n_tools = len(home)
        own, homes = scores[:n_tools], scores[n_tools : n_tools + n_categories]
        kinds = scores[n_tools + n_categories :]
        tools = self._tools(own, homes, kinds, home)
        best = [math.log(each + LEAST) for each in sorted(tools)[-TOPS:]]
        length = math.log1p(len(text.words(said)))  # small talk is short
        gates = (*sorted(homes)[-TOPS:], *kinds, *best, length)
        return TextChances(tools=tools, wish=chance(self.wish, gates), work=chance(self.work, gates))

    def _tools(self, own: Floats, homes: Floats, kinds: Floats, home: Iterable[Any]) -> list[float]:
        """A chance a tool: by its score, its category's, what speaks for none, and the crowd it stands in.

        The crowd is of all tools, of those of its category, and of the categories; what is the same for a whole
        category is summed up once.
        """
        by_own, by_home, by_kinds, by_chat, by_llm, by_all, by_siblings, by_homes, constant = self.tool
        crowd = [math.exp(SHARPNESS * score) for score in own]
        siblings = [0.0] * len(homes)
        for at, one in zip(home, crowd, strict=True):
            siblings[at] += one
        same = constant + by_kinds * max(kinds[: len(KINDS)]) + by_chat * kinds[0] + by_llm * kinds[1]
        same += by_all * math.log(sum(crowd)) + by_homes * math.log(sum(math.exp(SHARPNESS * score) for score in homes))
        around = [
            same + by_home * score + by_siblings * math.log(beside)
            for score, beside in zip(homes, siblings, strict=True)
        ]
        return [1 / (1 + math.exp(-by_own * score - around[at])) for at, score in zip(home, own, strict=True)]

    def arrays(self) -> dict[str, Any]:
        """To be stored by these names; `of` reads them."""
        return {"gate0": self.tool, "gate1": self.wish, "gate2": self.work}

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> "Calibrations":
        """Return what `arrays` gave; KeyError where one is missing."""
        return cls(tool=stored["gate0"], wish=stored["gate1"], work=stored["gate2"])


def chance(line: Floats, features: Iterable[float]) -> float:
    """The probability that a line gives to these features."""
    return 1 / (1 + math.exp(-sum(map(mul, line, chain(features, (1.0,))))))
