"""Vectors as long integers: how like they are to another is what numpy says, whatever they were made of."""

import numpy as np
import pytest

from cortex.selection.index.vectors import Vectors

DRAWN = np.random.default_rng(7)
ROWS = DRAWN.normal(size=(30, 16))
ROWS /= np.linalg.norm(ROWS, axis=1, keepdims=True)


def test_a_likeness_is_right_to_a_millionth() -> None:
    assert Vectors(ROWS.tolist()).cosines(ROWS[3].tolist()) == pytest.approx(ROWS @ ROWS[3], abs=3e-6)
    assert Vectors([[1.0, 0.0], [-1.0, 0.0]]).cosines([1.0, 0.0]) == [1.0, -1.0]


@pytest.mark.parametrize("fresh", [0, 4], ids=["some gone", "some gone and others new"])
def test_what_is_taken_over_is_as_it_was(fresh: int) -> None:
    before = Vectors(ROWS[:20].tolist())
    order = [*range(3, 15), *range(20, 20 + fresh)]
    after = Vectors(ROWS[20 : 20 + fresh].tolist(), before, order)
    assert after.count == len(order)
    assert after.cosines(ROWS[5].tolist()) == Vectors(ROWS[order].tolist()).cosines(ROWS[5].tolist())


def test_without_vectors_there_is_no_likeness() -> None:
    assert Vectors([]).cosines([1.0, 0.0]) == []


def test_what_follows_an_index_without_vectors_has_its_own() -> None:
    after = Vectors(ROWS[:3].tolist(), Vectors([]), [2, 0])
    assert after.cosines(ROWS[1].tolist()) == Vectors(ROWS[[2, 0]].tolist()).cosines(ROWS[1].tolist())
