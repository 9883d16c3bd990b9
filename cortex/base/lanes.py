"""Rows of whole numbers as one long integer each, a lane a number: two rows are added in one step, and so multiplied.

Python's long integers do in C what a loop over numbers does fifty times as slowly. Whoever uses it sees to it that no
number outgrows its lane.
"""

from array import array
from collections.abc import Iterable

WIDEST = 8
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
        return self.read(array("q", numbers).tobytes(), WIDEST)

    def read(self, told: "bytes | bytearray", size: int) -> int:
        """The lanes of numbers that stand there in `size` bytes each, the lowest first."""
        return (int.from_bytes(resized(told, size, self._size), "little") ^ self._signs) - self._signs

    def pack_bytes(self, numbers: "bytes | memoryview[int]") -> int:
        """Numbers of a signed byte each as lanes."""
        spread = bytearray(self._size * self._count)
        spread[:: self._size] = numbers
        return (int.from_bytes(spread, "little") ^ self._small_signs) - self._small_signs

    def unpack(self, lanes: int) -> "memoryview[int]":
        """The numbers of the lanes."""
        size = 4 if self._size == 4 else WIDEST
        told = ((lanes + self._signs) ^ self._signs).to_bytes(self._size * self._count, "little")
        return memoryview(resized(told, self._size, size)).cast("i" if size == 4 else "q")


def resized(told: "bytes | bytearray", old: int, new: int) -> "bytes | bytearray":
    """Signed numbers of `old` bytes each in `new` bytes; they must fit."""
    if old == new:
        return told
    made = bytearray(len(told) // old * new)
    for at in range(min(old, new)):
        made[at::new] = told[at::old]
    for at in range(old, new):
        made[at::new] = told[old - 1 :: old].translate(_SIGN)
    return made
