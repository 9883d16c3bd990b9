"""What a call says to a person, made of its validated arguments: the title of its card. Pure.

A tool's `words` are a template or a function. In a template `{name}` is an argument, and a part in square brackets is
left out unless one of its arguments was given: "Add {title}[ to {list_name}]".
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from typing import Any

Words = str | Callable[[Mapping[str, Any]], str]  # Any: arguments, as pydantic has checked them
NO_CHANGE = "nothing to change"  # the words of a call that found all as it should be: nobody says that it did it
TITLE_CHARACTERS = 140
VALUE_CHARACTERS = 80
_NAME = re.compile(r"\{(\w+)\}")
_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
_PROGRAM = re.compile(r"[a-z0-9_]+\.[a-z0-9_]+")
_LABELS = {"url": "Address", "sql": "SQL", "to": "To", "data": "Settings", "when": "When", "kind": "Format"}


def names_in(template: str) -> frozenset[str]:
    """The arguments that a template names."""
    return frozenset(_NAME.findall(template))


def fitting(words: Words | None, names: Iterable[str]) -> Words | None:
    """The words as they are; TypeError when a template names what is no argument."""
    unknown = names_in(words) - set(names) if isinstance(words, str) else None
    if unknown:
        raise TypeError(f"the words {words!r} name no argument: {sorted(unknown)}")
    return words


def title(words: Words, values: Mapping[str, Any], given: Iterable[str]) -> str:
    """One line. given: the arguments that differ from their defaults."""
    if callable(words):
        return cut(" ".join(words(values).split()), TITLE_CHARACTERS)
    said = frozenset(given)
    kept = _OPTIONAL.sub(lambda part: part[1] if names_in(part[1]) & said else "", words)
    return cut(_NAME.sub(lambda name: short(values[name[1]]), kept), TITLE_CHARACTERS)


def listed(values: Mapping[str, Any]) -> str:
    """All arguments in one line, with their names: for a tool that has no words of its own."""
    return ", ".join(f"{label(name).lower()} {short(value)}" for name, value in values.items())


def short(value: Any) -> str:
    """An argument within a title."""
    return cut(" ".join(plain(value).split()), VALUE_CHARACTERS)


def plain(value: Any) -> str:
    """An argument as a person writes it; what has parts of its own as JSON."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, date) and not isinstance(value, datetime):
        return f"{value:%a} {value.day} {value:%b} {value.year}"
    if isinstance(value, list | tuple) and all(isinstance(one, str | int | float) for one in value):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, dict | list) else str(value)


def label(name: str) -> str:
    """An argument's name above its field: `list_name` is "List name"."""
    if name in _LABELS:
        return _LABELS[name]
    words = f"{name[:-2]} (seconds)" if name.endswith("_s") else name
    return words.replace("_", " ").strip().capitalize() or name


def spoken(name: str) -> str:
    """A name of a program in words: `light.turn_off` is "turn off"; any other text as it is."""
    text = name.strip()
    return text.rpartition(".")[2].replace("_", " ") if _PROGRAM.fullmatch(text) else text


def one_line(text: str) -> str:
    """The text without line ends and runs of blanks."""
    return " ".join(text.split())


def indented(text: str) -> list[str]:
    """Its lines, each moved in: none can pass for a line of ours."""
    return [f"  {line}" for line in text.splitlines()]


def facts(values: Mapping[str, Any]) -> str:
    """All arguments with their names, for a card: one a line, longer ones below their name."""
    lines: list[str] = []
    for name, value in values.items():
        text = plain(value)
        is_long = len(text.splitlines()) > 1
        lines += [f"{label(name)}:", *indented(text)] if is_long else [f"{label(name)}: {text}"]
    return "\n".join(lines)


def counted(count: int, one: str, many: str = "") -> str:
    """A number with its noun: "1 task", "4 tasks"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def cut(text: str, characters: int) -> str:
    """The text, its end left out where it is too long."""
    return text if len(text) <= characters else text[: characters - 1].rstrip() + "…"
