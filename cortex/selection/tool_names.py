"""Tools by how their names are spelt: the same, a part of one another, nearly the same. For searches of a few words.

Of ten thousand names hardly one is compared letter by letter. Loaded late: numpy and rapidfuzz are heavy.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate

import numpy as np

from cortex.selection import text
from cortex.selection.spelling import bits, letters, likeness

END = "\n"
MOST_COMMON = 0.4  # of the way to 1 is what Jaro-Winkler gives for the longest beginning in common


class ToolNames:
    """Names as they are compared, blanks as underscores, with the tools that have them."""

    def __init__(self, names: Iterable[str]) -> None:
        """Take the names in."""
        self._tools: dict[str, list[str]] = {}
        for name in names:
            self._tools.setdefault(text.normal(name), []).append(name)
        self._spelt = tuple(self._tools)
        self._joined = END.join(self._spelt)
        self._starts = list(accumulate((len(name) + len(END) for name in self._spelt), initial=0))
        self._long_sizes = sorted({len(name) for name in self._spelt if "_" in name})
        self._sizes = np.fromiter(map(len, self._spelt), dtype=np.int64, count=len(self._spelt))
        self._held = letters(self._spelt)

    def same(self, asked: str) -> list[str]:
        """The tools of this name."""
        return self._tools.get(asked, [])

    def parts(self, asked: str) -> list[str]:
        """The tools whose name holds this, and those whose name of several words stands in it."""
        found = dict.fromkeys((*self._holding(asked), *self._within(asked)))
        return [tool for name in found for tool in self._tools[name]]

    def alike(self, asked: str, least: float) -> list[str]:
        """The tools whose name is like this by `least` (Jaro-Winkler)."""
        return [
            tool for name in self._near(asked, least) if likeness(asked, name) >= least for tool in self._tools[name]
        ]

    def _holding(self, asked: str) -> Iterator[str]:
        at = self._joined.find(asked)
        while at >= 0:
            place = bisect_right(self._starts, at)
            yield self._spelt[place - 1]
            at = self._joined.find(asked, self._starts[place])

    def _within(self, asked: str) -> Iterator[str]:
        for size in self._long_sizes if "_" in asked else ():
            for at in range(len(asked) - size + 1):
                name = asked[at : at + size]
                if name in self._tools and "_" in name:
                    yield name

    def _near(self, asked: str, least: float) -> Iterator[str]:
        """The names that enough letters can meet in, going by how many there are and which."""
        held, size = bits(asked), len(asked)
        met = np.minimum(
            size - np.bitwise_count(held & ~self._held).astype(np.int64),
            self._sizes - np.bitwise_count(self._held & ~held),
        )
        jaro = (met / size + met / np.maximum(self._sizes, 1) + 1) / 3
        near = np.flatnonzero(jaro + MOST_COMMON * (1 - jaro) >= least - 1e-6)
        return (self._spelt[at] for at in near)
