"""Words from outside as they stand in a message: marked as such, fenced, what hides written out. Pure."""

import re

from cortex.base.hidden import show_hidden

_FENCES = re.compile(r"`{3,}")


def quoted(text: str, about: str) -> str:
    """The text behind a line that says what it is; the fence is longer than any in it, so that it cannot end it."""
    shown = show_hidden(text)
    fence = "`" * max([3, *(len(run) + 1 for run in _FENCES.findall(shown))])
    return f"{about}\n{fence}\n{shown or '(nothing)'}\n{fence}"


def cut(text: str, most: int) -> str:
    """At most so many characters of the text, and a line that says how many were left out."""
    rest = len(text) - most
    return text if rest <= 0 else f"{text[:most]}\n[{rest:,} more characters were left out]"
