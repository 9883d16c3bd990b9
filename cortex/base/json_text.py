"""Reads JSON that somebody else wrote: a model, a server, a program. What goes too deep is an error, not a crash."""

import re
from itertools import accumulate
from math import isinf
from typing import Any

from pydantic_core import from_json

LEVELS = 100
NUMBER_CHARACTERS = 400
# What is inside quotes, to its end; an open one ends with the text. Possessive: no way back, so one pass is all.
_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
# From where a number begins: begun again at each of its digits, these take seconds.
_LONG_NUMBER = re.compile(rb"(?<![0-9.eE+-])[0-9.eE+-]{%d}" % (NUMBER_CHARACTERS + 1))
_LARGE_NUMBER = re.compile(rb"(?<![0-9.])[0-9.]++[eE]\+?[0-9]{3,}")
_NO_NUMBERS = (b"NaN", b"Infinity")  # which some parsers take and JSON has not
_ALL = bytes(range(256))
_BRACKETS = b"[]{}"


def parsed(text: str | bytes) -> Any:  # Any: whatever the text says
    """The value; ValueError for what is no JSON, has half a surrogate, or is nested deeper than 200 levels.

    `json.loads` ends in a RecursionError there, which is no ValueError.
    """
    return from_json(text.encode() if isinstance(text, str) else text)  # half a surrogate in it: a ValueError here


def must_be_small(body: bytes, *, items: int, levels: int = LEVELS) -> None:
    """ValueError, in words, for JSON of more items or levels than that, or with numbers that no number can hold.

    Looks at the signs between the strings and builds nothing, so that a million empty lists cost no more than a million
    letters. Whether it is JSON at all is the parser's to say; all that passes here costs it little.
    """
    if b"\0" in body or body.startswith((b"\xff\xfe", b"\xfe\xff")):  # another encoding, with other signs
        raise ValueError("The body is not JSON in UTF-8.")
    signs, strings = _STRINGS.subn(b'"', body, items + 1)
    brackets = signs.translate(None, _ALL.translate(None, _BRACKETS))
    if strings > items or signs.count(b",") + signs.count(b":") + len(brackets) // 2 > items:
        raise ValueError(f"The body has too many items: at most {items:,} values, names and lists.")
    depth = max(accumulate(1 if sign in b"[{" else -1 for sign in brackets), default=0)
    if depth > levels:
        raise ValueError(f"The body is nested too deeply: at most {levels} levels.")
    is_long = _LONG_NUMBER.search(signs) is not None
    if (
        is_long
        or any(name in signs for name in _NO_NUMBERS)
        or any(_is_endless(found[0]) for found in _LARGE_NUMBER.finditer(signs))
    ):
        raise ValueError("The body contains a number that is too large or too long.")


def _is_endless(number: bytes) -> bool:
    try:
        return isinf(float(number))
    except ValueError:  # no number at all
        return False
