"""The table of meanings that ships: what it reads, what it is like, where it is from."""

import math
from operator import mul
from pathlib import Path

import numpy as np
import pytest

from cortex.selection.words import meanings, text
from tests.bench.meanings import to_file


@pytest.fixture(scope="module")
def table() -> meanings.Meanings:
    return meanings.shipped()


def near(table: meanings.Meanings, one: str, other: str) -> float:
    first, second = table.vectors([one, other])
    return float(sum(map(mul, first, second)))


def test_it_names_model_version_and_licence(table: meanings.Meanings) -> None:
    assert "all-MiniLM-L6-v2" in table.facts["model"]
    assert table.facts["licence"] == "Apache-2.0"
    assert table.facts["version"]


@pytest.mark.parametrize(
    ("said", "like", "unlike"),
    [
        ("feed the parrot", "the bird is hungry", "invoice of the supplier"),
        ("how damp is the greenhouse", "humidity of the plants", "play the next song"),
        ("book a table at a restaurant", "reserve dinner", "restart the server"),
        ("price of a share", "stock market quotes", "water the roses"),
    ],
)
def test_what_means_the_same_is_nearer(table: meanings.Meanings, said: str, like: str, unlike: str) -> None:
    assert near(table, said, like) > near(table, said, unlike) + 0.1


def test_case_accents_and_joints_do_not_matter(table: meanings.Meanings) -> None:
    assert near(table, "Café", "cafe") == pytest.approx(1)
    assert near(table, "task_create", "task create") == pytest.approx(1)
    assert near(table, "don't STOP", "don t stop") == pytest.approx(1)


def test_an_unseen_word_is_read_by_its_pieces(table: meanings.Meanings) -> None:
    assert len(table.cut("greenhouses")) > 1
    assert near(table, "greenhouses", "greenhouse") > 0.5


@pytest.mark.parametrize("said", ["", "?!", "你好"])
def test_what_has_no_known_word_means_nothing(table: meanings.Meanings, said: str) -> None:
    assert not any(table.vectors([said])[0])


def test_a_text_means_the_same_whatever_is_read_with_it(table: meanings.Meanings) -> None:
    alone = table.vectors(["turn off the lights"])[0]
    among = table.vectors(["", "x" * 5_000, "turn off the lights", "hello"])[2]
    assert alone == among
    assert math.hypot(*alone) == pytest.approx(1)


def test_a_written_table_is_read_again_as_it_was(
    table: meanings.Meanings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "meanings.bin"
    to_file(path, table)
    monkeypatch.setattr(meanings, "SHIPPED", path)
    again = meanings.shipped.__wrapped__()
    assert (list(again.pieces), again.facts) == (list(table.pieces), table.facts)
    assert again.vectors(["feed the parrot"]) == table.vectors(["feed the parrot"])


def test_a_text_is_the_sum_of_its_pieces_as_the_books_have_them(table: meanings.Meanings) -> None:
    said = "the greenhouses of my neighbour are damp"
    rows = [row for word in text.words(said) for row in table.cut(word)]
    books, codes = np.asarray(table.books), np.asarray(table.codes)
    parts = books[np.arange(len(books)), codes[rows]].reshape(len(rows), -1)
    exact = np.asarray(table.weight)[rows] @ parts
    assert table.vectors([said])[0] == pytest.approx(exact / np.linalg.norm(exact), abs=1e-6)
