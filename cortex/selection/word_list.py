"""Words with a number each, in arrays that are mapped (`packed.py`): of thousands hardly any becomes a Python value."""

from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from cortex.selection.packed import Arrays

FREE = 4  # slots of a word list for each of its words


class WordList:
    """Words with a number each, in the order in which they were given. A look-up is a CRC-32 and a glance."""

    def __init__(self, arrays: Arrays) -> None:
        """Read from what `word_arrays` made."""
        self._text, self._starts, self._slots = (arrays[name].data for name in ("text", "starts", "slots"))

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, number: int) -> str:
        return str(self._text[self._starts[number] : self._starts[number + 1]], "utf-8")

    def __iter__(self) -> Iterator[str]:
        return (self[number] for number in range(len(self)))

    def find(self, word: str) -> int:
        """The word's number; -1 where it is not in the list."""
        told = word.encode("utf-8", "surrogatepass")
        slots, starts = self._slots, self._starts
        at = crc32(told) % len(slots)
        while number := slots[at]:
            if self._text[starts[number - 1] : starts[number]] == told:
                return int(number) - 1
            at = (at + 1) % len(slots)
        return -1


def word_arrays(words: Sequence[str]) -> dict[str, NDArray[Any]]:
    """The arrays of a `WordList` of these words, no two of them the same."""
    told = [word.encode("utf-8", "surrogatepass") for word in words]
    slots = np.zeros(max(1, FREE * len(told)), dtype="<u4")
    for number, each in enumerate(told, start=1):
        at = crc32(each) % len(slots)
        while slots[at]:
            at = (at + 1) % len(slots)
        slots[at] = number
    starts = np.cumsum([0, *map(len, told)]).astype("<u4")
    return {"text": np.frombuffer(b"".join(told), dtype=np.uint8), "starts": starts, "slots": slots}
