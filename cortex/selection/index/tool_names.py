"""Tools by how their names are spelt: the same, a part of one another, nearly the same. For searches of a few words.

Loaded late: rapidfuzz is heavy. Ten thousand names are looked through in a millisecond.
"""

from collections.abc import Iterable

from cortex.selection.words import text
from cortex.selection.words.spelling import near


class ToolNames:
    """Names as they are compared, blanks as underscores, with the tools that have them."""

    def __init__(self, names: Iterable[str]) -> None:
        """Take the names in."""
        self._tools: dict[str, list[str]] = {}
        for name in names:
            self._tools.setdefault(text.normal(name), []).append(name)
        self._spelt = {name: name for name in self._tools}

    def same(self, asked: str) -> list[str]:
        """The tools of this name."""
        return self._tools.get(asked, [])

    def parts(self, asked: str) -> list[str]:
        """The tools whose name holds this, and those whose name of several words stands in it."""
        found = (name for name in self._tools if asked in name or (name in asked and "_" in name))
        return [tool for name in found for tool in self._tools[name]]

    def alike(self, asked: str, least: float) -> list[str]:
        """The tools whose name is like this by `least` (Jaro-Winkler)."""
        return [tool for name in near(asked, self._spelt, least) for tool in self._tools[name]]
