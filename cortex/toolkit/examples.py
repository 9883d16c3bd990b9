"""What people say, and the tools that it wants: the text files `cortex/tools/utterances/*.txt`, one utterance a line.

A category's own file stands beside it under the same stem; `several.txt` has requests with needs of several
categories, `none.txt` those that need no tool. Text, because a person reads and writes it as text.
"""

from pathlib import Path

Example = tuple[str, tuple[str, ...]]


def examples_for(module_file: str) -> tuple[Example, ...]:
    """What `utterances/<stem>.txt` beside this category file holds; OSError without it, ValueError for a slip."""
    path = Path(module_file)
    return read(path.parent / "utterances" / f"{path.stem}.txt")


def read(path: Path) -> tuple[Example, ...]:
    """The utterances of a file, each with the names in the `[...]` line above it.

    Blank lines and lines that begin with "# " are passed over. ValueError for an utterance ahead of the first
    heading or an empty heading, with the line's number.
    """
    found: list[Example] = []
    names: tuple[str, ...] = ()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = " ".join(line.split())
        if not words or words.startswith("# ") or words == "#":
            continue
        if words.startswith("[") and words.endswith("]"):
            names = tuple(words[1:-1].split())
        else:
            found.append((words, names))
        if not names:
            raise ValueError(f"{path.name}, line {number}: no [tool names] stand above {words!r}")
    return tuple(found)
