"""Rows of whole numbers as one long integer each, a lane a number: two rows are added in one step, and so multiplied.

Python's long integers do in C what a loop over numbers does fifty times as slowly. Whoever uses it sees to it that no
number outgrows its lane.
"""

from array import array
from collections.abc import Iterable
from typing import Any, Literal

BITS_A_BYTE = 8


class Lanes:
    """Rows of `count` signed numbers. `letter`: of four bytes each ("i") or of eight ("q")."""

    def __init__(self, letter: Literal["i", "q"], count: int) -> None:
        """Work out what signs are told by."""
        self._letter: Any = letter
        self._bytes = array(letter).itemsize
        self._size = self._bytes * count
        top = bytes(self._bytes - 1) + b"\x80"
        self._signs = int.from_bytes(top * count, "little")
        self._small_signs = int.from_bytes((b"\x80" + bytes(self._bytes - 1)) * count, "little")
        self.most = (1 << (self._bytes * BITS_A_BYTE - 1)) - 1

    def pack(self, numbers: Iterable[int]) -> int:
        """The numbers as lanes."""
        return (int.from_bytes(array(self._letter, numbers).tobytes(), "little") ^ self._signs) - self._signs

    def pack_bytes(self, numbers: "bytes | memoryview[int]") -> int:
        """Numbers of a signed byte each as lanes."""
        spread = bytearray(self._size)
        spread[:: self._bytes] = numbers
        return (int.from_bytes(spread, "little") ^ self._small_signs) - self._small_signs

    def unpack(self, lanes: int) -> "memoryview[int]":
        """The numbers of the lanes."""
        told = ((lanes + self._signs) ^ self._signs).to_bytes(self._size, "little")
        return memoryview(told).cast(self._letter)
