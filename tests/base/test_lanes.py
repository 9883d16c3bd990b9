"""Lanes: what is added and multiplied as one integer is what each number by itself comes to."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.base.lanes import Lanes

ROWS = st.lists(st.lists(st.integers(-128, 127), min_size=3, max_size=3), max_size=20)
SIZES = pytest.mark.parametrize("size", [4, 5, 8])


@given(rows=ROWS, factors=st.lists(st.integers(-(1 << 18), 1 << 18), min_size=20, max_size=20))
@SIZES
def test_a_sum_of_rows_is_the_sum_of_each_lane(size: int, rows: list[list[int]], factors: list[int]) -> None:
    lanes = Lanes(size, 3)
    told = [lanes.pack(row) for row in rows]
    assert told == [lanes.pack_bytes(array("b", row).tobytes()) for row in rows]
    found = lanes.unpack(sum(factor * row for factor, row in zip(factors, told, strict=False)))
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    assert list(found) == [sum(f * x for f, x in zip(factors, column, strict=False)) for column in columns]


@SIZES
def test_a_lane_holds_what_it_says(size: int) -> None:
    lanes = Lanes(size, 4)
    ends = [lanes.most, -lanes.most - 1, 0, -1]
    assert list(lanes.unpack(lanes.pack(ends))) == ends
