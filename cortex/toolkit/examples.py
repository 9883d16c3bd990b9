"""What people say, and the tools that it wants: the text files `cortex/tools/utterances/*.txt`, one utterance a line.

A category's own file stands beside it under the same stem; `several.txt` has requests with needs of several
categories, `none.txt` those that need no tool. Text, because a person reads and writes it as text.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Generic, TypeVar, overload

Names = tuple[str, ...]
Example = tuple[str, Names]
T = TypeVar("T")


def _pair(words: str, names: Names) -> Example:
    return words, names


class Utterances(Sequence[T], Generic[T]):
    """Utterances, each made when it is looked at: they are 29,000, of which a running daemon looks at hardly any.

    What stays is a text for each row of them with the same names, a line an utterance: 1 MB in place of 6.
    """

    __slots__ = ("_count", "_make", "_rows")

    def __init__(self, told: Iterable[Example], make: Callable[[str, Names], T]) -> None:
        """Hold what is told; `make`: what one of them is, of its words and names. Those of another share its text."""
        self._make = make
        self._rows: tuple[tuple[Names, str], ...]
        self._count: int
        if isinstance(told, Utterances):
            self._rows, self._count = told._rows, told._count
        else:
            rows = [(names, [words for words, _ in row]) for names, row in groupby(told, lambda each: each[1])]
            self._rows = tuple((names, "\n".join(words)) for names, words in rows)
            self._count = sum(len(words) for _, words in rows)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        for names, lines in self._rows:
            for words in lines.split("\n"):
                yield self._make(words, names)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[T]: ...
    def __getitem__(self, at: int | slice) -> T | Sequence[T]:
        """Make all of them to find these: for a look at a few, not for a walk by number."""
        return tuple(self)[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Utterances | tuple) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    @property
    def names(self) -> frozenset[str]:
        """Every tool that one of them wants."""
        return frozenset(name for names, _ in self._rows for name in names)


def examples_of(module: ModuleType) -> Utterances[Example]:
    """The utterances of a category: `UTTERANCES` in its file, else `utterances/<stem>.txt` beside it, else none.

    ValueError for a slip.
    """
    if (text := getattr(module, "UTTERANCES", None)) is not None:
        return Utterances(parsed(text, module.__name__), _pair)
    path = Path(getattr(module, "__file__", None) or "")
    beside = path.parent / "utterances" / f"{path.stem}.txt"
    return read(beside) if beside.is_file() else Utterances((), _pair)


def read(path: Path) -> Utterances[Example]:
    """The utterances of a file, as `parsed` has them."""
    return Utterances(parsed(path.read_text(encoding="utf-8"), path.name), _pair)


def parsed(text: str, where: str, *, is_judged: bool = False) -> tuple[Example, ...]:
    """The utterances of a text, each with the names in the `[...]` line above it.

    Blank lines and lines that begin with "# " are passed over. is_judged: those below a heading that begins with "?",
    by which the bench judges the choice; they are no examples. ValueError for an utterance ahead of the first heading
    or an empty heading, with the line's number.
    """
    found: dict[bool, list[Example]] = {False: [], True: []}
    names: Names = ()
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
