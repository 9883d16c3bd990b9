"""Words from outside as they stand in a message: marked as such, fenced, what hides written out, cut. Pure."""

import re

from cortex.base.hidden import show_hidden

_FENCES = re.compile(r"`{3,}")


def quoted(text: str, about: str, most: int) -> str:
    """The text behind a line that says what it is; the fence is longer than any in it, so that it cannot end it."""
    shown = show_hidden(text[:most])
    rest = len(text) - most
    more = f"\n[{rest:,} more characters were left out]" if rest > 0 else ""
    fence = "`" * max([3, *(len(run) + 1 for run in _FENCES.findall(shown))])
    return f"{about}\n{fence}\n{shown or '(nothing)'}{more}\n{fence}"
