"""Whether an answer does not answer: it says that it cannot, does not know, or has no access. By a fit, not a list.

A logistic regression over hashed words, their neighbours and their letters, fitted by `tests/bench/answers.py` on own
sentences in seven languages. It only opens the rescue round (`stages/missing.py`), once a message.
"""

import math
import re
import struct
from array import array
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from cortex.base import memory
from cortex.selection.words import text

FILE = Path(__file__).with_suffix(".bin")
HEAD = struct.Struct("<ff8s")
BUCKETS = 1 << 14
MOST_WORDS = 40  # who cannot do it says so at the beginning
RUN = 5
LENGTHS = (3, 6, 12, 25, 60, 120, 250)
_QUOTED = re.compile(  # others' words; none is looked for beyond where the next of its kind begins
    r'```.*?(?:```|$)|`[^`]*`|"[^"]*"|“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»', re.DOTALL
)


def does_not_answer(answer: str) -> bool:
    """Tell whether the answer leaves what was asked undone or unsaid; never without own words or without the file."""
    found, line = features(answer), _line()
    if line is None:
        return False
    told = line.scale * sum(line.weights[each] for each in found) / math.sqrt(len(found) or 1)
    return bool(found) and told > line.least


def features(answer: str) -> frozenset[int]:
    """The buckets of a text's own words, neighbours, runs of letters and length; none without a word."""
    said = text.words(text.bare(_QUOTED.sub(" ", answer)))
    if not said:
        return frozenset()
    words = said[:MOST_WORDS]
    told = [f"w {word}" for word in words]
    told += [f"p {one} {two}" for one, two in pairwise(("", *words))]
    told += [f"k {one} {two}" for one, two in zip(words, words[2:], strict=False)]
    for word in words:
        edged = f"<{word}>"
        told += [f"g {edged[at : at + RUN]}" for at in range(max(1, len(edged) - RUN + 1))]
    told.append(f"n {sum(len(said) > most for most in LENGTHS)}")
    return frozenset(crc32(each.encode()) % BUCKETS for each in told)


class RefusalLine(NamedTuple):
    """The fitted line: an answer is none where its weights, scaled, come to more than `least`. `fitted_on`: a hash."""

    scale: float
    least: float
    fitted_on: bytes
    weights: "array[int]"


@lru_cache(maxsize=1)
def _line() -> RefusalLine | None:
    means = "Until then no answer that cannot help gets a second try."
    return memory.spared(FILE, lambda: read(FILE.read_bytes()), means)


def read(data: bytes) -> RefusalLine:
    """The line of a file: its head, then a byte a bucket. ValueError where the file is damaged."""
    told = memory.unsealed(data)
    scale, least, fitted_on = HEAD.unpack_from(told)
    return RefusalLine(scale=scale, least=least, fitted_on=fitted_on, weights=array("b", told[HEAD.size :]))
