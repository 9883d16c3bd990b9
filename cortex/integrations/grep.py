"""Finds lines by a regular expression that a stranger may have written; time-limited. Loaded late (`regex` is heavy).

Nothing that is searched can hang the server: the lock is let go while it searches.
"""

import asyncio

import regex
from msgspec import Struct

from cortex.base.clock import ticks_s
from cortex.base.errors import ToolFailed

PATTERN_CHARACTERS = 500
LINE_CHARACTERS = 20_000
LINE_TIMEOUT_S = 0.25
FILE_BYTES = 2_000_000
TOTAL_S = 10.0


class MatchedLine(Struct, frozen=True, kw_only=True):
    """A line that matched; `number` counts from 1."""

    number: int
    text: str


def compiled(pattern: str, *, ignore_case: bool) -> "regex.Pattern[str]":
    """The pattern; ToolFailed says what is wrong with it."""
    if not 0 < len(pattern) <= PATTERN_CHARACTERS:
        raise ToolFailed(f"A pattern has 1 to {PATTERN_CHARACTERS} characters.")
    try:
        return regex.compile(pattern, regex.IGNORECASE if ignore_case else 0)
    except (regex.error, RecursionError, OverflowError) as error:
        raise ToolFailed(f"The pattern {pattern!r} is not a regular expression: {error}.") from error


async def found(pattern: "regex.Pattern[str]", text: str, most: int) -> list[MatchedLine]:
    """The first `most` matching lines of a text; ToolFailed when the pattern takes too long on one line."""
    return await asyncio.to_thread(_found, pattern, text, most)


def _found(pattern: "regex.Pattern[str]", text: str, most: int) -> list[MatchedLine]:
    lines: list[MatchedLine] = []
    deadline_s = ticks_s() + TOTAL_S
    for number, line in enumerate(text.splitlines(), 1):
        try:
            match = pattern.search(line[:LINE_CHARACTERS], timeout=LINE_TIMEOUT_S, concurrent=True)
        except TimeoutError as error:
            raise ToolFailed("The pattern takes too long: write a simpler one, without nested repeats.") from error
        if match:
            lines.append(MatchedLine(number=number, text=line))
        if len(lines) > most or ticks_s() > deadline_s:
            break
    return lines
