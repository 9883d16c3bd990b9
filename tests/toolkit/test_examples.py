"""Utterances stand in text files, a line each, under the names of the tools that they want."""

from pathlib import Path

import pytest

from cortex.toolkit.examples import examples_for, read


def written(folder: Path, text: str) -> Path:
    path = folder / "utterances" / "star.txt"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    return path


def test_each_line_is_an_utterance_of_the_tools_above_it(tmp_path: Path) -> None:
    path = written(tmp_path, "# stars\n\n[a_one a_two]\nfirst  thing\n#hashtags are words\n[a_two]\n\nsecond\n")
    assert read(path) == (
        ("first thing", ("a_one", "a_two")),
        ("#hashtags are words", ("a_one", "a_two")),
        ("second", ("a_two",)),
    )


@pytest.mark.parametrize("text", ["an orphan\n", "[]\nunder nothing\n"], ids=["no heading", "empty heading"])
def test_an_utterance_without_tools_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"star\.txt, line 1: no \[tool names\]"):
        read(written(tmp_path, text))


def test_a_category_file_finds_its_own_utterances(tmp_path: Path) -> None:
    written(tmp_path, "[star_find]\nwhich star is that\n")
    assert examples_for(str(tmp_path / "star.py")) == (("which star is that", ("star_find",)),)
