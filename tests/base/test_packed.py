"""Words in arrays, and the file that holds such arrays: read as it was written, or refused in words."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.base import memory, packed
from cortex.base.errors import DamagedFile
from cortex.base.packed import WordList, word_arrays

ARRAYS: packed.Arrays = {
    "codes": np.arange(6, dtype=np.uint8).reshape(2, 3),
    "worth": np.array([0.5, 1.5], dtype=np.float32),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "a.bin").write_bytes(packed.to_bytes({"made": "today"}, ARRAYS))
    return tmp_path / "a.bin"


def test_a_file_is_read_as_it_was_written_and_cannot_be_changed(path: Path) -> None:
    facts, arrays = packed.mapped(path)
    assert facts == {"made": "today"}
    assert {name: each.tolist() for name, each in arrays.items()} == {
        name: each.tolist() for name, each in ARRAYS.items()
    }
    with pytest.raises(TypeError, match="read-only"):
        arrays["codes"][0, 0] = 9


def test_floats_of_two_bytes_are_read_as_floats_and_written_as_they_were() -> None:
    worth = {"worth": ARRAYS["worth"]}
    data = packed.to_bytes({}, worth, halves=("worth",))
    assert packed.read(data)[1]["worth"].tolist() == [0.5, 1.5]
    assert packed.to_bytes({}, packed.read(data)[1], halves=("worth",)) == data
    assert data != packed.to_bytes({}, worth)


@pytest.mark.parametrize("left", [0, 5, 40, -64, -1], ids=lambda left: f"to {left}")
def test_a_file_that_is_cut_off_is_refused(path: Path, left: int) -> None:
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(DamagedFile, match=r"its file a\.bin .*Install this version of Cortex again"):
        packed.mapped(path)


def test_a_changed_byte_is_noticed(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-64] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedFile, match=r"a\.bin .*checksum"):
        packed.mapped(path)


@given(st.lists(st.text(max_size=6), max_size=40, unique=True), st.text(max_size=6))
def test_each_word_is_found_under_its_number_and_no_other_is(words: list[str], other: str) -> None:
    found = WordList(word_arrays(words))
    assert [found.find(word) for word in words] == list(range(len(words)))
    assert found.find(other) == (words.index(other) if other in words else -1)
    assert list(found) == words
    assert len(found) == len(words)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(DamagedFile, match=r"its file none\.bin "):
        packed.mapped(tmp_path / "none.bin")


def test_who_has_a_file_mapped_reads_the_old_one_while_a_new_one_is_written(path: Path) -> None:
    _, old = packed.mapped(path)
    memory.replace(path, packed.to_bytes({"made": "later"}, {"codes": ARRAYS["codes"] + 1}))
    memory.give_back()  # what was read of it is read anew
    assert old["codes"].tolist() == ARRAYS["codes"].tolist()
    assert packed.mapped(path)[0] == {"made": "later"}
    assert [each.name for each in path.parent.iterdir()] == ["a.bin"]
