from cortex.base.ids import derived_id, new_id
from tests.still_clock import StillClock


def test_new_ids_sort_by_the_time_of_making() -> None:
    clock, ids = StillClock(), []
    for _ in range(50):
        ids.append(new_id(clock))
        clock.forward(seconds=0.000001)
    assert ids == sorted(ids)
    assert {len(id) for id in ids} == {26}
    assert all(id.isalnum() and id.islower() for id in ids)


def test_new_ids_of_one_moment_differ() -> None:
    clock = StillClock()
    assert len({new_id(clock) for _ in range(1000)}) == 1000


def test_derived_ids_repeat_and_keep_their_parts_apart() -> None:
    assert derived_id("message", "turn:1", 2) == derived_id("message", "turn:1", 2)
    assert derived_id("ab", "c") != derived_id("a", "bc")
    assert len(derived_id("a")) == 32
