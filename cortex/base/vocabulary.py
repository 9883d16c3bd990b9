"""The o200k tokenizer: counts tokens as tiktoken does. `tests/bench/token_table.py` writes its table.

Loaded by `tokens.py` at the first count: 3 MB with the patterns' library, 12 ms.
"""

import re
import sys
from array import array
from functools import lru_cache
from pathlib import Path
from zlib import crc32

import regex

from cortex.base.memory import give_back, mapped, shipped
from cortex.base.tokens import VOCABULARY_CRC

# The table: FACTS_BYTES of JSON, where it is from; SLOTS numbers of 32 bits; the bytes of all tokens, the most frequent
# first. A token's slot is the first free one from its CRC-32 on: 256 times where it begins, plus its length. 0: free.
# It is mapped: all processes share it, and only what is looked at is in memory.
SHIPPED = Path(__file__).with_name("o200k.bin")
FACTS_BYTES, SLOTS = 512, 1 << 19
_TOKENS = FACTS_BYTES + 4 * SLOTS

with shipped(SHIPPED):
    _table = mapped(SHIPPED)
    if crc32(_table) != VOCABULARY_CRC:  # a garbled table may be searched without end
        raise ValueError("its checksum is wrong")
_slots: "memoryview | array[int]" = memoryview(_table)[FACTS_BYTES:_TOKENS].cast("I")
if sys.byteorder == "big":
    _slots = array("I", _slots)
    _slots.byteswap()
_NO_TOKEN = 1 << 32
# The pattern of o200k_base in tiktoken 0.12: a text's words, of which each becomes tokens by itself.
_UPPER, _LOWER, _SHORT = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}", "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_WORDS = regex.compile(
    rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+{_SHORT}|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*{_SHORT}"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# More than one sign of ASCII between letters or digits is a word of its own: a text can be cut there, and most parts of
# a schema are those of others, whose tokens are known.
_SIGNS = r"!-/:-@\[-`{-~"
_CUTS = re.compile(rf"((?<=[A-Za-z0-9])(?!')[{_SIGNS}]{{2,}}(?=[A-Za-z0-9]))")
_SHORT_PART = 48
LONG_WORD_BYTES, _SAMPLE = 1_000, 256

give_back()  # the start took and gave back 4 MB


def count(text: str) -> int:
    """Return how many o200k tokens the text has; a word over LONG_WORD_BYTES is estimated from its beginning."""
    return sum([_of_short(part) if len(part) <= _SHORT_PART else _of_text(part) for part in _CUTS.split(text)])


def _of_text(text: str) -> int:
    words = _WORDS.findall(text)
    if len(text) > _SAMPLE and max(map(len, words)) > _SAMPLE:
        return sum(map(_of_long, words))
    return sum(map(_of_word, words))


_of_short = lru_cache(maxsize=20_000)(_of_text)


def _of_long(word: str) -> int:
    """As `_of_word`, whose time grows with the square of a word's length."""
    size_bytes = len(word.encode())
    if size_bytes <= LONG_WORD_BYTES:
        return _of_word(word)
    sample = word[:_SAMPLE]
    return round(_of_word(sample) * size_bytes / len(sample.encode()))


@lru_cache(maxsize=10_000)
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
        start = slot >> 8
        if slot & 255 == size and _table[_TOKENS + start : _TOKENS + start + size] == token:
            return start
        at = (at + 1) % SLOTS
    return _NO_TOKEN
