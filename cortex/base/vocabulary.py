"""The o200k tokenizer: counts tokens as tiktoken does. `tests/bench/token_table.py` writes its table.

Loaded by `tokens.py` at the first count: 6 MB with the patterns' library, 15 ms.
"""

import ctypes
import sys
from array import array
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from zlib import crc32

import regex

# The table: FACTS_BYTES of JSON, where it is from; SLOTS numbers of 32 bits; the bytes of all tokens, the most frequent
# first. A token's slot is the first free one from its CRC-32 on: 256 times where it begins, plus its length. 0: free.
SHIPPED = Path(__file__).with_name("o200k.bin")
FACTS_BYTES, SLOTS = 512, 1 << 19

_table = SHIPPED.read_bytes()
_tokens = _table[FACTS_BYTES + 4 * SLOTS :]
_slots = array("I", _table[FACTS_BYTES : FACTS_BYTES + 4 * SLOTS])
del _table
if sys.byteorder == "big":
    _slots.byteswap()
_NO_TOKEN = 1 << 32
# The pattern of o200k_base in tiktoken 0.12: a text's words, of which each becomes tokens by itself.
_UPPER, _LOWER, _SHORT = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}", "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_WORDS = regex.compile(
    rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+{_SHORT}|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*{_SHORT}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

with suppress(OSError, AttributeError):  # glibc keeps 4 MB that the start took and gave back
    ctypes.CDLL(None).malloc_trim(0)


def count(text: str) -> int:
    """How many o200k tokens the text has. Quadratic in its longest word: the caller cuts long ones."""
    return sum(map(_of_word, _WORDS.findall(text)))


@lru_cache(maxsize=20_000)
def _of_word(text: str) -> int:
    """Byte-pair encoding: of two neighbours the most frequent token is joined first, until none is one together."""
    word = text.encode()
    if _place(word) != _NO_TOKEN:
        return 1
    cuts = list(range(len(word) + 1))
    joined = [_place(word[at : at + 2]) for at in range(len(word) - 1)]
    while (first := min(joined, default=_NO_TOKEN)) != _NO_TOKEN:
        at = joined.index(first)
        del cuts[at + 1], joined[at]
        if at < len(joined):
            joined[at] = _place(word[cuts[at] : cuts[at + 2]])
        if at:
            joined[at - 1] = _place(word[cuts[at - 1] : cuts[at + 1]])
    return len(cuts) - 1


def _place(token: bytes) -> int:
    """Where it begins in the table: the lower, the more frequent it is."""
    at, size = crc32(token) % SLOTS, len(token)
    while slot := _slots[at]:
        if slot & 255 == size and _tokens.startswith(token, slot >> 8):
            return slot >> 8
        at = (at + 1) % SLOTS
    return _NO_TOKEN
