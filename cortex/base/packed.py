"""Arrays in a file that can be mapped: a line of JSON with names, types and shapes, then the arrays as they are.

What nobody reads of it takes no memory, and several processes share the pages that they read; words are kept so, too:
of thousands hardly any becomes a Python value. Loaded late: numpy.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from mmap import MADV_DONTNEED, mmap
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cortex.base import memory

ALIGNED = 64
FREE = 4  # slots of a word list for each of its words
Buffer = bytes | mmap
T = TypeVar("T")
Arrays = Mapping[str, NDArray[Any]]


def to_bytes(facts: Mapping[str, Any], arrays: Arrays) -> bytes:
    """One file of both, the same bytes for the same content. `facts`: what JSON holds."""
    ordered = dict(sorted(arrays.items()))
    body = b"".join(_padded(np.ascontiguousarray(each).tobytes()) for each in ordered.values())
    told = {name: [each.dtype.str, list(each.shape)] for name, each in ordered.items()}
    head = {"facts": dict(facts), "arrays": told, "crc": zlib.crc32(body)}
    return _padded(json.dumps(head, sort_keys=True, ensure_ascii=False).encode() + b"\n", b" ") + body


def read(data: Buffer) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The facts, and the arrays as views of these bytes; ValueError where anything is damaged."""
    try:
        end = data.find(b"\n") + 1
        head = json.loads(data[:end])
        start = end + -end % ALIGNED
        if zlib.crc32(memoryview(data)[start:]) != head["crc"]:
            raise ValueError("its checksum is wrong")
        found = {}
        for name in head["arrays"]:
            kind, shape = head["arrays"][name]
            found[name] = np.frombuffer(data, dtype=kind, count=int(np.prod(shape)), offset=start).reshape(shape)
            start += found[name].nbytes + -found[name].nbytes % ALIGNED
        return head["facts"], found
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it is no such file ({error})") from error


def mapped(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The same of a file of this version, mapped; DamagedFile where it cannot be read."""
    with memory.shipped(path):
        data = memory.mapped(path)
        found = read(data)
    data.madvise(MADV_DONTNEED)  # the look through it brought all of it into memory
    return found


def loaded(path: Path, made: Callable[[dict[str, Any], dict[str, NDArray[Any]]], T]) -> T:
    """Return what is made of a file of this version; DamagedFile also where the file holds something else."""
    with memory.shipped(path):
        return made(*mapped(path))


def _padded(data: bytes, by: bytes = b"\0") -> bytes:
    return data + by * (-len(data) % ALIGNED)


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
        at = zlib.crc32(told) % len(slots)
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
        at = zlib.crc32(each) % len(slots)
        while slots[at]:
            at = (at + 1) % len(slots)
        slots[at] = number
    starts = np.cumsum([0, *map(len, told)]).astype("<u4")
    return {"text": np.frombuffer(b"".join(told), dtype=np.uint8), "starts": starts, "slots": slots}
