"""JSON that the protocol's package could not read whole, made readable: too deep, half a surrogate, an endless number.

Of a list of tools one entry must not cost the others. Linear in its length, no recursion, no value is built. Pure.
"""

import re

from pydantic_core import from_json

DEPTH_MOST = 100
DIGITS_MOST = 300
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[][{}]')
_HALVES = re.compile(
    rb"(?<!\\)((?:\\\\)*)\\u(?:[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..\\u)[dD][c-fC-F][0-9a-fA-F]{2})"
)
_DIGITS = re.compile(rb"-?\d{%d,}" % DIGITS_MOST)


def readable(text: bytes) -> bytes:
    """The text itself where it can be read, else with what cannot be read left out; of no JSON at all some text."""
    try:
        from_json(text)
    except ValueError:
        return _shallow(_HALVES.sub(rb"\1\\ufffd", _DIGITS.sub(b"0", text)))
    return text


def _shallow(text: bytes) -> bytes:
    """With `{}` in place of all that stands deeper than `DEPTH_MOST` levels."""
    kept, begin, depth = [], 0, 0
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in (b"{", b"["):
            depth += 1
            if depth == DEPTH_MOST + 1:
                kept += [text[begin : token.start()], b"{}"]
        elif mark in (b"}", b"]"):
            if depth == DEPTH_MOST + 1:
                begin = token.end()
            depth -= 1
    return b"".join(kept) + (text[begin:] if depth <= DEPTH_MOST else b"")
