"""Rows of whole numbers as one long integer each, a lane a number: two rows are added in one step, and so multiplied.

Python's long integers do in C what a loop over numbers does fifty times as slowly. Whoever uses it sees to it that no
number outgrows its lane.
"""

from array import array
from collections.abc import Iterable
from typing import Any

WIDEST = 8
_LETTERS: dict[int, Any] = {4: "i", 8: "q"}
_SIGN = bytes(128) + b"\xff" * 128  # the highest byte of a number -> what stands above it


class Lanes:
    """Rows of `count` signed numbers in lanes of `size` bytes, 8 at most."""

    def __init__(self, size: int, count: int) -> None:
        """Work out what signs are told by."""
        self._size, self._count = size, count
        self._signs = int.from_bytes((bytes(size - 1) + b"\x80") * count, "little")
        self._small_signs = int.from_bytes((b"\x80" + bytes(size - 1)) * count, "little")
        self.most = (1 << (8 * size - 1)) - 1

    def pack(self, numbers: Iterable[int]) -> int:
        """The numbers as lanes."""
        told: bytes | bytearray = array(_LETTERS.get(self._size, "q"), numbers).tobytes()
        if self._size not in _LETTERS:
            wide, told = told, bytearray(self._size * self._count)
            for at in range(self._size):
                told[at :: self._size] = wide[at::WIDEST]
        return self.read(told)

    def read(self, told: bytes | bytearray) -> int:
        """The lanes of numbers that stand there in as many bytes, the lowest first."""
        return (int.from_bytes(told, "little") ^ self._signs) - self._signs

    def pack_bytes(self, numbers: "bytes | memoryview[int]") -> int:
        """Numbers of a signed byte each as lanes."""
        spread = bytearray(self._size * self._count)
        spread[:: self._size] = numbers
        return (int.from_bytes(spread, "little") ^ self._small_signs) - self._small_signs

    def unpack(self, lanes: int) -> "memoryview[int]":
        """The numbers of the lanes."""
        told: bytes | bytearray = ((lanes + self._signs) ^ self._signs).to_bytes(self._size * self._count, "little")
        if self._size not in _LETTERS:
            narrow, told = told, bytearray(WIDEST * self._count)
            for at in range(self._size):
                told[at::WIDEST] = narrow[at :: self._size]
            for at in range(self._size, WIDEST):
                told[at::WIDEST] = narrow[self._size - 1 :: self._size].translate(_SIGN)
        return memoryview(told).cast(_LETTERS.get(self._size, "q"))
