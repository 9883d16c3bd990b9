"""What people say, and the tools that it wants: the text files `cortex/tools/utterances/*.txt`, one utterance a line.

A category's own file stands beside it under the same stem; `several.txt` has requests with needs of several
categories, `none.txt` those that need no tool. Text, because a person reads and writes it as text.
"""

from pathlib import Path
from types import ModuleType

Example = tuple[str, tuple[str, ...]]


def examples_of(module: ModuleType) -> tuple[Example, ...]:
    """The utterances of a category: `UTTERANCES` in its file, else `utterances/<stem>.txt` beside it, else none.

    ValueError for a slip.
    """
    if (text := getattr(module, "UTTERANCES", None)) is not None:
        return parsed(text, module.__name__)
    path = Path(getattr(module, "__file__", None) or "")
    beside = path.parent / "utterances" / f"{path.stem}.txt"
    return read(beside) if beside.is_file() else ()


def read(path: Path) -> tuple[Example, ...]:
    """The utterances of a file, as `parsed` has them."""
    return parsed(path.read_text(encoding="utf-8"), path.name)


def parsed(text: str, where: str, *, is_judged: bool = False) -> tuple[Example, ...]:
    """The utterances of a text, each with the names in the `[...]` line above it.

    Blank lines and lines that begin with "# " are passed over. is_judged: those below a heading that begins with "?",
    by which the bench judges the choice; they are no examples. ValueError for an utterance ahead of the first heading
    or an empty heading, with the line's number.
    """
    found: dict[bool, list[Example]] = {False: [], True: []}
    names: tuple[str, ...] = ()
    is_held_out = False
    for number, line in enumerate(text.splitlines(), 1):
        words = " ".join(line.split())
        if not words or words.startswith("# ") or words == "#":
            continue
        if words.startswith("[") and words.endswith("]"):
            is_held_out = words.startswith("[?")
            names = tuple(words[1:-1].removeprefix("?").split())
        else:
            found[is_held_out].append((words, names))
        if not names:
            raise ValueError(f"{where}, line {number}: no [tool names] stand above {words!r}")
    return tuple(found[is_judged])
