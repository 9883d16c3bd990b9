"""What each language gets: requests, sentences about the house, small talk, writing; over all sets of that language.

A set is of the language that its name ends in: `de`, `daily_de`. Pure: reads what the bench's JSON says.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.bench import goals
from tests.bench.goals import Goal

ENGLISH, HOUSE = "en", "ha"
Sets = Sequence[Mapping[str, Any]]  # Any: as the JSON has it


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageFigure:
    """A share over all rows of its kind in a language. `goal`: what ours is held against, if anything."""

    key: str
    head: str
    kind: str
    goal: Goal | None = None


FIGURES = (
    LanguageFigure(key="recall", head="requests", kind="tool"),
    LanguageFigure(
        key="recall_after_discover",
        head="after one discovery",
        kind="tool",
        goal=goals.SELECTION["routing"]["recall_after_discover"],
    ),
    LanguageFigure(key=HOUSE, head="home sentences", kind="tool"),
    LanguageFigure(
        key="chat_any", head="small talk with a tool", kind="chat", goal=goals.SELECTION["routing"]["chat_any"]
    ),
    LanguageFigure(
        key="llm_nonweb",
        head="writing, advice beyond the web",
        kind="llm",
        goal=goals.SELECTION["routing"]["llm_nonweb"],
    ),
)


def rows(sets: Sets, ways: Sequence[str]) -> list[list[str]]:
    """A table: a row for each language and way, an asterisk where `cortex` misses its goal; [] without languages."""
    found = [
        [language, way, *(_cell(way, one, share(sets, language, way, one)) for one in FIGURES)]
        for language in languages(sets)
        for way in ways
    ]
    heads = ["language", "way", *(one.head for one in FIGURES)]
    aims = ["goal", "", *(one.goal.shown if one.goal else "" for one in FIGURES)]
    return [heads, *found, aims] if found else []


def languages(sets: Sets) -> list[str]:
    """Those that there are sets of, by name."""
    return sorted({_language(one) for one in sets if one.get("source") == "languages"})


def share(sets: Sets, language: str, way: str, figure: LanguageFigure) -> float | None:
    """The way's figure over all rows of the language that have it; None where none has."""
    told = [found for one in sets if _language(one) == language for found in _told(one, way, figure)]
    count = sum(rows for rows, _ in told)
    return sum(rows * value for rows, value in told) / count if count else None


def of_english(sets: Sets, way: str) -> dict[str, float]:
    """The recall of the way in each other language as a share of that in English; {} without English rows."""
    found = {language: share(sets, language, way, FIGURES[0]) for language in languages(sets)}
    english = found.pop(ENGLISH, None)
    return {name: value / english for name, value in found.items() if english and value is not None}


def _told(one: Mapping[str, Any], way: str, figure: LanguageFigure) -> Iterator[tuple[int, float]]:
    """How many rows of the set have the figure, and the figure."""
    if figure.key == HOUSE:
        house = one.get("categories", {}).get(way, {}).get(HOUSE)
        if house:
            yield house["rows"], house["recall"]
    elif figure.key in one["recipes"].get(way, {}):
        yield one["kinds"][figure.kind], one["recipes"][way][figure.key]


def _language(one: Mapping[str, Any]) -> str:
    return str(one["name"]).rpartition("_")[2] if one.get("source") == "languages" else ""


def _cell(way: str, figure: LanguageFigure, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}{'*' if way == goals.OURS and figure.goal and not figure.goal.is_met(value) else ''}"
