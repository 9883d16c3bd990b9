"""JSON that the protocol's package could not read whole, made readable: too deep, half a surrogate, an endless number.

One entry of a list must not cost the others, nor one odd sign a whole answer. Linear in its length, no recursion. Pure.
"""

import re
from typing import Any

from pydantic_core import from_json, to_json

DEPTH_MOST = 100
DIGITS_MOST = 300
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[][{}]')
_HALVES = re.compile(
    rb"(?<!\\)((?:\\\\)*)\\u(?:[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..\\u)[dD][c-fC-F][0-9a-fA-F]{2})"
)
_BOM = b"\xef\xbb\xbf"
_DIGITS = re.compile(rb"-?\d{%d,}" % DIGITS_MOST)


def readable(text: bytes) -> bytes:
    """The text itself where it can be read, else with what cannot be read left out; of no JSON at all some text."""
    try:
        from_json(text)
    except ValueError:
        text = text.removeprefix(_BOM).decode("utf-8", "replace").encode()
        return _shallow(_HALVES.sub(rb"\1\\ufffd", _DIGITS.sub(b"0", text)))
    return text


def messages_in(text: bytes, asked: Any, *, is_answer: bool) -> list[bytes]:
    """The protocol's messages in a text, in the form that its package takes; none for what holds none.

    asked: the id of the request that it came for. is_answer: it is the one answer to that.
    """
    text = readable(text)
    try:
        given = from_json(text)
    except ValueError:
        return []
    found = [_message(one, asked, is_answer) for one in (given if isinstance(given, list) else [given])]
    kept = [one for one in found if one is not None and not (is_answer and "method" in one)]
    is_plain = kept == [given] and not isinstance(given.get("id"), float)
    return [text] if is_plain else [to_json(one, inf_nan_mode="constants") for one in kept]


def _message(given: Any, asked: Any, is_answer: bool) -> dict[str, Any] | None:  # Any: JSON values
    if not isinstance(given, dict):
        return None
    if isinstance(given.get("method"), str):
        return {**given, "jsonrpc": "2.0"}
    has_own = not is_answer and isinstance(given.get("id"), str | int)
    made = {"jsonrpc": "2.0", "id": given["id"] if has_own else asked}
    if (error := given.get("error")) is not None:
        told = error if isinstance(error, dict) else {"message": error}
        code = told["code"] if type(told.get("code")) is int else -32603
        return {**made, "error": {**told, "code": code, "message": str(told.get("message", ""))}}
    if "result" not in given:
        return None
    result = given["result"]
    return {**made, "result": result if isinstance(result, dict) else {"content": result}}


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
