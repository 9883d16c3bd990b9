"""Utterances stand in text files, a line each, under the names of the tools that they want."""

from pathlib import Path
from types import ModuleType

import pytest

from cortex.toolkit.examples import Utterances, examples_of, parsed, read


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


def module(file: Path, **parts: str) -> ModuleType:
    made = ModuleType("cortex.tools.star")
    vars(made).update({"__file__": str(file), **parts})
    return made


def test_a_category_file_finds_its_own_utterances(tmp_path: Path) -> None:
    written(tmp_path, "[star_find]\nwhich star is that\n")
    assert examples_of(module(tmp_path / "star.py")) == (("which star is that", ("star_find",)),)
    assert examples_of(module(tmp_path / "moon.py")) == ()


def test_utterances_may_stand_in_the_tool_file_itself(tmp_path: Path) -> None:
    written(tmp_path, "[star_find]\nwhich star is that\n")
    own = module(tmp_path / "star.py", UTTERANCES="[star_name]\nname that star")
    assert examples_of(own) == (("name that star", ("star_name",)),)


def test_what_the_bench_judges_by_is_no_example() -> None:
    text = "[a_one]\nlearned\n[? a_one a_two]\nheld out\n[a_two]\nlearned too"
    assert parsed(text, "star.txt") == (("learned", ("a_one",)), ("learned too", ("a_two",)))
    assert parsed(text, "star.txt", is_judged=True) == (("held out", ("a_one", "a_two")),)


def test_what_is_made_when_it_is_looked_at_equals_what_was_told() -> None:
    told = (("first", ("a_one",)), ("second", ("a_one",)), ("third", ("a_two", "a_one")), ("fourth", ("a_one",)))
    held = Utterances(told, lambda words, names: (words, names))
    spelt = Utterances(held, lambda words, names: f"{words} {' '.join(names)}")
    assert held == told
    assert (len(held), held[1], held[-2:]) == (len(told), told[1], told[-2:])
    assert [*spelt] == ["first a_one", "second a_one", "third a_two a_one", "fourth a_one"]
    assert held.names == {"a_one", "a_two"}
    assert (len(Utterances((), lambda words, _: words)), [*Utterances((), lambda words, _: words)]) == (0, [])
