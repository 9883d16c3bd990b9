"""Arrays in a file that can be mapped: a line of JSON with names, types and shapes, then the arrays as they are.

What nobody reads of it takes no memory, and several processes share the pages that they read; words are kept so, too:
of thousands hardly any becomes a Python value. An array is a memoryview in its shape.
"""

import json
import math
import struct
import sys
import zlib
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from mmap import MADV_DONTNEED, mmap
from pathlib import Path
from typing import Any, TypeVar

from cortex.base import memory

ALIGNED = 64
FREE = 4  # slots of a word list for each of its words
HALF = "<f2"
# How numpy calls what a memoryview calls by a letter: these files are as numpy wrote them before.
TYPES = {"<f4": "f", "<f8": "d", "|i1": "b", "|u1": "B", "<i4": "i", "<u4": "I", "<i8": "q", "<u8": "Q"}
_NAMES = {letter: name for name, letter in TYPES.items()} | {"l": "<i8", "L": "<u8"}
Buffer = bytes | mmap
T = TypeVar("T")


View = memoryview  # of any letter in TYPES: its items are what the letter says
Arrays = Mapping[str, Any]  # views; to be written, whatever shows its bytes, its type and its shape


def to_bytes(facts: Mapping[str, Any], arrays: Arrays, *, halves: Collection[str] = ()) -> bytes:
    """One file of both, the same bytes for the same content; TypeError for arrays of other types.

    `facts`: what JSON holds; `halves`: the arrays of floats that are written in two bytes each.
    """
    ordered = {name: _described(each, is_half=name in halves) for name, each in sorted(arrays.items())}
    body = b"".join(_padded(data) for _, _, data in ordered.values())
    told = {name: [kind, shape] for name, (kind, shape, _) in ordered.items()}
    head = {"facts": dict(facts), "arrays": told, "crc": zlib.crc32(body)}
    return _padded(json.dumps(head, sort_keys=True, ensure_ascii=False).encode() + b"\n", b" ") + body


def _described(each: Any, *, is_half: bool) -> tuple[str, list[int], bytes]:
    """The type of an array, its shape, its bytes."""
    view = memoryview(each)
    if is_half:
        return HALF, [len(view)], struct.pack(f"<{len(view)}e", *view)
    if view.format not in _NAMES:
        raise TypeError(f"arrays of {view.format!r} are not kept")
    return _NAMES[view.format], list(view.shape or ()), view.tobytes()


def read(data: Buffer) -> tuple[dict[str, Any], dict[str, Any]]:
    """The facts, and the arrays as views of these bytes, halves as floats; ValueError where anything is damaged."""
    try:
        end = data.find(b"\n") + 1
        head = json.loads(data[:end])
        start = end + -end % ALIGNED
        body = memoryview(data)[start:]
        if zlib.crc32(body) != head["crc"] or sys.byteorder != "little":
            raise ValueError("its checksum is wrong")
        found, start = {}, 0
        for name in head["arrays"]:
            kind, shape = head["arrays"][name]
            size = math.prod(shape) * int(kind[-1])
            part = body[start : start + size]
            found[name] = _floats(part) if kind == HALF else _shaped(part, TYPES[kind], shape)
            start += size + -size % ALIGNED
        return head["facts"], found
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it is no such file ({error})") from error


def _floats(halves: "memoryview[int]") -> "memoryview[Any]":
    """Floats of two bytes, which no memoryview reads, in four."""
    return memoryview(array("f", struct.unpack(f"<{len(halves) // 2}e", halves)))


def _shaped(part: "memoryview[int]", letter: Any, shape: list[int]) -> "memoryview[Any]":
    flat = part.cast(letter)
    return flat if len(shape) == 1 or not part.nbytes else part.cast(letter, shape)


def mapped(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same of a file of this version, mapped; DamagedFile where it cannot be read."""
    with memory.shipped(path):
        data = memory.mapped(path)
        found = read(data)
    data.madvise(MADV_DONTNEED)  # the look through it brought all of it into memory
    return found


def loaded(path: Path, made: Callable[[dict[str, Any], dict[str, Any]], T]) -> T:
    """Return what is made of a file of this version; DamagedFile also where the file holds something else."""
    with memory.shipped(path):
        return made(*mapped(path))


def _padded(data: bytes, by: bytes = b"\0") -> bytes:
    return data + by * (-len(data) % ALIGNED)


class WordList:
    """Words with a number each, in the order in which they were given. A look-up is a CRC-32 and a glance."""

    def __init__(self, arrays: Arrays) -> None:
        """Read from what `word_arrays` made."""
        self._text, self._starts, self._slots = (arrays[name] for name in ("text", "starts", "slots"))

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


def word_arrays(words: Sequence[str]) -> dict[str, Any]:
    """The arrays of a `WordList` of these words, no two of them the same."""
    told = [word.encode("utf-8", "surrogatepass") for word in words]
    slots = array("I", bytes(4 * max(1, FREE * len(told))))
    for number, each in enumerate(told, start=1):
        at = zlib.crc32(each) % len(slots)
        while slots[at]:
            at = (at + 1) % len(slots)
        slots[at] = number
    starts = array("I", accumulate(map(len, told), initial=0))
    return {"text": memoryview(b"".join(told)), "starts": memoryview(starts), "slots": memoryview(slots)}
