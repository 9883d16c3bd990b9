"""What a message may order: sentences of English and German as patterns, each word of the message used. Pure.

A pattern names its target by {t}, or by {a} ahead of a word and {b} behind it ("lower the {a} volume {b}").
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from cortex.integrations.home_assistant.commands import english, german
from cortex.integrations.home_assistant.commands.kinds import Kind

Language = Literal["en", "de"]
_SLOTS = {
    "{t}": r"(?P<t>\S.*?)",
    "{a}": r"(?P<a>\S.*?)",
    "{b}": r"(?P<b>\S.*?)",
    "{n}": r"(?P<n>\d{1,4}(?:\.\d{1,2})?)",
    "{c}": r"(?P<c>(?:warm|cool|cold|neutral|soft) white|(?:warm|kalt|neutral) weiss|[a-z]+)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderReading:
    """One way to read a message. `kind`: what is meant where only a place is named; `is_only`: nothing else can be."""

    intent: str
    target: tuple[str, ...]
    language: Language
    number: float | None = None
    colour: str = ""
    kind: Kind | None = None
    is_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pattern:
    intent: str
    expression: re.Pattern[str]
    kind: Kind | None
    is_only: bool


def readings(line: str) -> Iterator[OrderReading]:
    """Every way in which the patterns read the line of `words.heard`."""
    for language, head, tail, patterns in _LANGUAGES:
        core = _without_courtesy(line, head, tail)
        for pattern in patterns:
            found = pattern.expression.fullmatch(core)
            if found is None:
                continue
            slots = found.groupdict()
            words = " ".join(slots[name] for name in "abt" if slots.get(name)).split()
            yield OrderReading(
                intent=pattern.intent,
                target=tuple(words),
                language=language,
                number=float(slots["n"]) if slots.get("n") else None,
                colour=slots.get("c") or "",
                kind=pattern.kind,
                is_only=pattern.is_only,
            )


def _without_courtesy(line: str, head: re.Pattern[str], tail: re.Pattern[str]) -> str:
    core = head.sub("", line, count=1)
    return tail.sub("", core, count=1).strip()


def _compiled(rows: str) -> tuple[_Pattern, ...]:
    """The patterns of a table: `intent [kind[!]]: expression`, one a line."""
    made = []
    for row in filter(None, map(str.strip, rows.splitlines())):
        head, _, expression = row.partition(": ")
        intent, _, kind = head.partition(" ")
        for slot, instead in _SLOTS.items():
            expression = expression.replace(slot, instead)
        made.append(
            _Pattern(
                intent=intent,
                expression=re.compile(expression),
                kind=kind.rstrip("!") or None,  # type: ignore[arg-type]  # a table in the source, read at import
                is_only=kind.endswith("!"),
            )
        )
    return tuple(made)


_LANGUAGES: tuple[tuple[Language, re.Pattern[str], re.Pattern[str], tuple[_Pattern, ...]], ...] = (
    ("en", re.compile(english.HEAD), re.compile(english.TAIL), _compiled(english.PATTERNS)),
    ("de", re.compile(german.HEAD), re.compile(german.TAIL), _compiled(german.PATTERNS)),
)
